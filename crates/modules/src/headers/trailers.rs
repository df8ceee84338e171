//! Adding the fields behind the body.

use std::sync::Arc;

use turnpike_http::body_filter::{BodyFilter, Filtered, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::{Body, BodyFailed};
use turnpike_wire::message::Version;

use super::handler::is_safe;
use super::plan::Trailers;

/// Adds trailers to what can carry them: a body that is sent in chunks.
pub(super) struct AddTrailers(pub(super) Arc<Trailers>);

impl Filter for AddTrailers {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &exchange.response;
        let has_body = !response.is_head_only() && !matches!(response.body(), Body::Tunnel(_));
        let chunks = match exchange.request().head().version {
            Version::Http09 | Version::Http10 => false,
            Version::Http11 => exchange.location().settings.chunked_transfer_encoding,
            Version::Http20 | Version::Http30 => true,
        };
        let safe = is_safe(response.status());
        if !has_body || !chunks || !self.0.fields.iter().any(|field| safe || field.always) {
            return None;
        }
        let response = &mut exchange.response;
        let body = response.take_stream();
        response.set_content_length(None);
        let trailing = Trailing {
            trailers: Arc::clone(&self.0),
            has_ended: false,
        };
        response.set_body(Body::Stream(Box::new(Filtered::new(body, trailing))));
        None
    }
}

/// Fields behind a body; they are evaluated when it has ended.
struct Trailing {
    trailers: Arc<Trailers>,
    /// Whether the last piece has passed.
    has_ended: bool,
}

impl BodyFilter for Trailing {
    fn pass(
        &mut self,
        _exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        piece.move_to(out);
        self.has_ended = piece.is_last();
        Ok(piece.passed(out))
    }

    fn note(&mut self, exchange: &mut Exchange) {
        if !self.has_ended {
            return;
        }
        let safe = is_safe(exchange.response.status());
        let mut value = exchange.lane.take_scratch();
        let fields = self.trailers.fields.iter();
        for field in fields.filter(|field| safe || field.always) {
            value.clear();
            field.value.evaluate(exchange, &mut value);
            if !value.is_empty() {
                exchange.response.trailers_mut().add(&field.name, &value);
            }
        }
        exchange.lane.keep_scratch(value);
    }
}
