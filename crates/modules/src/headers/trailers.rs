//! Adding the fields behind the body.

use std::sync::Arc;

use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::{Body, BodyFailed, BodyStream, LocalFuture};
use turnpike_wire::h1::Version;

use super::handler::is_safe;
use super::plan::Trailers;

/// Adds trailers to what can carry them: a body that is sent in chunks.
pub(super) struct AddTrailers(pub(super) Arc<Trailers>);

impl Filter for AddTrailers {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &exchange.response;
        let has_body = !response.head_only && !matches!(response.body, Body::Tunnel(_));
        let chunks = exchange.head.version == Version::Http11
            && exchange.location().settings.chunked_transfer_encoding;
        let safe = is_safe(response.status);
        if !has_body || !chunks || !self.0.fields.iter().any(|field| safe || field.always) {
            return None;
        }
        let response = &mut exchange.response;
        let body = response.take_stream();
        response.content_length = None;
        response.body = Body::Stream(Box::new(Trailing {
            body,
            trailers: Arc::clone(&self.0),
        }));
        None
    }
}

/// A body with fields behind it; they are evaluated when it has ended.
struct Trailing {
    body: Box<dyn BodyStream>,
    trailers: Arc<Trailers>,
}

impl Trailing {
    fn passed(&self, exchange: &mut Exchange, more: bool) -> bool {
        if !more {
            self.add(exchange);
        }
        more
    }

    fn add(&self, exchange: &mut Exchange) {
        let safe = is_safe(exchange.response.status);
        let mut value = std::mem::take(&mut exchange.scratch);
        let fields = self.trailers.fields.iter();
        for field in fields.filter(|field| safe || field.always) {
            value.clear();
            field.value.evaluate(exchange, &mut value);
            if !value.is_empty() {
                exchange.response.trailers.add(&field.name, &value);
            }
        }
        exchange.scratch = value;
    }
}

impl BodyStream for Trailing {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: &'a Stream,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            let more = self.body.next(exchange, client, out).await?;
            Ok(self.passed(exchange, more))
        })
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        let more = self.body.ready(exchange, out)?;
        Some(more.map(|more| self.passed(exchange, more)))
    }

    fn read_ahead<'a>(&'a mut self, exchange: &'a mut Exchange) -> LocalFuture<'a, ()> {
        self.body.read_ahead(exchange)
    }

    fn outlives_client(&mut self) -> bool {
        self.body.outlives_client()
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        self.body.ended(exchange);
    }
}
