//! Parts of a response: what other locations answer, included in its body (`ssi`, `addition`).

use turnpike_http::client::Client;
use turnpike_http::engine::Answer;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{Body, BodyFailed, BodyStream};

/// A part that is answered and whose body is read.
pub(crate) struct Part {
    exchange: Box<Exchange>,
    body: Box<dyn BodyStream>,
}

impl Part {
    /// Asks for what stands at a path. `None`: nobody answers.
    ///
    /// # Errors
    /// When the client goes.
    pub(crate) async fn ask(
        exchange: &mut Exchange,
        client: Client<'_>,
        path: &[u8],
        query: &[u8],
    ) -> Result<Option<Part>, BodyFailed> {
        let mut asked = exchange.subrequest_part(path, query);
        match client.while_there(asked.answer_subrequest()).await {
            Some(Answer::Response) => {}
            Some(Answer::Nothing) => {
                end(exchange, asked);
                return Ok(None);
            }
            None => {
                asked.client_closed_request();
                asked.end_subrequest();
                return Err(BodyFailed);
            }
        }
        if asked.response.is_head_only() {
            asked.response.set_body(Body::Empty);
            asked.response.text_mut().clear();
        }
        let body = asked.response.take_stream();
        Ok(Some(Part {
            exchange: asked,
            body,
        }))
    }

    /// The exchange that answers it.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Whether the answer is an error of this server: one of an upstream server comes with a text
    /// of its own.
    pub(crate) fn is_own_error(&self) -> bool {
        let status = self.exchange.response.status();
        status >= 300 && self.exchange.upstream.head().status != status
    }

    /// Appends the next piece of its body. `false`: there are no more.
    ///
    /// # Errors
    /// When its rest cannot be had, or the client goes.
    pub(crate) async fn next(
        &mut self,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        let next = self.body.next(&mut self.exchange, Client::Nobody, out);
        client.while_there(next).await.unwrap_or(Err(BodyFailed))
    }

    /// Ends it, read to its end or not.
    pub(crate) fn end(self, exchange: &mut Exchange) {
        let Part {
            exchange: mut asked,
            body,
        } = self;
        asked.response.set_body(Body::Stream(body));
        end(exchange, asked);
    }
}

/// Ends the exchange of a part; the values of variables are those of both requests.
fn end(exchange: &mut Exchange, mut asked: Box<Exchange>) {
    asked.share_values(exchange);
    asked.end_subrequest();
}
