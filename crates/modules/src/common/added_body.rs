//! A body with others before and after it, which other locations answer.

use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};

use crate::common::subrequest_body::Part;

/// A body with others before and after it. What has been sent of the three is taken out.
pub(crate) struct AddedBody {
    before: Option<Arc<[u8]>>,
    body: Option<Box<dyn BodyStream>>,
    after: Option<Arc<[u8]>>,
    /// The part that is being sent.
    part: Option<Part>,
}

impl AddedBody {
    /// `before` and `after` are the paths whose answers are added.
    pub(crate) fn new(
        before: Option<Arc<[u8]>>,
        body: Box<dyn BodyStream>,
        after: Option<Arc<[u8]>>,
    ) -> Self {
        Self {
            before,
            body: Some(body),
            after,
            part: None,
        }
    }

    /// Sends a piece of a part.
    async fn relay(
        &mut self,
        exchange: &Exchange,
        client: Client<'_>,
        mut part: Part,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let more = part.next(client, out).await;
        match more {
            Ok(true) => self.part = Some(part),
            Ok(false) | Err(BodyFailed) => part.end(exchange),
        }
        more.map(|_| ())
    }
}

impl BodyStream for AddedBody {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            while out.is_empty() {
                if let Some(part) = self.part.take() {
                    self.relay(exchange, client, part, out).await?;
                } else if let Some(path) = self.before.take() {
                    self.part = Part::ask(exchange, client, &path, b"").await?;
                } else if let Some(body) = &mut self.body {
                    if !body.next(exchange, client, out).await? {
                        body.ended(exchange);
                        self.body = None;
                    }
                } else if let Some(path) = self.after.take() {
                    self.part = Part::ask(exchange, client, &path, b"").await?;
                } else {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn is_of_parts(&self) -> bool {
        let body = self.body.as_ref();
        body.is_some_and(|body| body.is_of_parts())
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(part) = self.part.take() {
            part.end(exchange);
        }
        if let Some(mut body) = self.body.take() {
            body.ended(exchange);
        }
    }
}
