//! The whole, put together of its parts while it is sent.

use turnpike_http::client::Client;
use turnpike_http::engine::Answer;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{Body, BodyFailed, BodyStream, LocalFuture};
use turnpike_lane::log::Level;

use super::part::PartOf;
use crate::common::wanted_part::WantedPart;

/// A body of parts that are asked for one after the other.
pub(super) struct Sliced {
    size_bytes: u64,
    /// What the first part says of the whole.
    first: PartOf,
    /// The first byte that is wanted, of its part; `None` once that is looked at.
    from: Option<u64>,
    /// Where what is wanted ends.
    end: u64,
    /// The first byte of the part that is asked for next.
    next: u64,
    current: Option<Current>,
}

/// The part that is sent.
struct Current {
    body: Box<dyn BodyStream>,
    /// Bytes that are still to come.
    left: u64,
    /// The subrequest that it answers; `None` for the request's own.
    asked: Option<Box<Exchange>>,
}

impl Sliced {
    /// The whole that begins with the body of its first part, or of one further on.
    pub(super) fn new(first: PartOf, size_bytes: u64, body: Box<dyn BodyStream>) -> Self {
        Self {
            size_bytes,
            from: Some(0),
            end: first.whole_bytes,
            next: first.end,
            current: Some(Current {
                body,
                left: first.end - first.start,
                asked: None,
            }),
            first,
        }
    }

    /// Lets the first part go where what is wanted begins with another one.
    fn begin(&mut self, exchange: &mut Exchange) {
        let Some(from) = self.from.take().filter(|from| *from != self.first.start) else {
            return;
        };
        if let Some(current) = self.current.take() {
            current.end(exchange);
        }
        self.next = from;
    }

    async fn produce(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        self.begin(exchange);
        while out.is_empty() {
            if let Some(current) = &mut self.current {
                if !current.next(exchange, client, out).await?
                    && let Some(current) = self.current.take()
                {
                    current.end(exchange);
                }
            } else if self.next < self.end {
                self.current = Some(self.ask(exchange, client).await?);
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks for the next part.
    async fn ask(
        &mut self,
        exchange: &Exchange,
        client: Client<'_>,
    ) -> Result<Current, BodyFailed> {
        let mut asked = exchange.subrequest_in_place();
        let location = asked.walk.location();
        WantedPart::want(&mut asked.rooms, location, self.next, self.size_bytes);
        let answer = client.unless_gone(asked.answer_subrequest()).await;
        let Some(answer) = answer else {
            asked.client_closed_request();
            asked.end_subrequest();
            return Err(BodyFailed);
        };
        let part = match answer {
            Answer::Response => PartOf::of(&asked.response).and_then(|part| {
                part.expect(self.next, self.size_bytes)?;
                part.expect_same_whole(&self.first)?;
                Ok(part)
            }),
            Answer::Nothing => Err("no answer for a slice".to_owned()),
        };
        match part {
            Ok(part) => {
                self.next = part.end;
                Ok(Current {
                    body: asked.response.take_stream(),
                    left: part.end - part.start,
                    asked: Some(asked),
                })
            }
            Err(message) => {
                asked.log(Level::Error, format_args!("{message}"));
                asked.end_subrequest();
                Err(BodyFailed)
            }
        }
    }
}

impl Current {
    /// Appends the next piece. `false`: there are no more.
    async fn next(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        let more = match &mut self.asked {
            None => self.body.next(exchange, client, out).await?,
            Some(asked) => {
                let piece = self.body.next(asked, Client::Nobody, out);
                client.unless_gone(piece).await.unwrap_or(Err(BodyFailed))?
            }
        };
        let bytes = out.len() as u64;
        let is_short = !more && bytes < self.left;
        if bytes > self.left || is_short {
            out.clear();
            let exchange = self.asked.as_deref().unwrap_or(exchange);
            let relation = if is_short { "shorter" } else { "longer" };
            exchange.log(
                Level::Error,
                format_args!("upstream sent a slice response {relation} than its Content-Range"),
            );
            return Err(BodyFailed);
        }
        self.left -= bytes;
        Ok(more)
    }

    /// Ends it, read to its end or not.
    fn end(self, exchange: &mut Exchange) {
        let Current {
            mut body, asked, ..
        } = self;
        match asked {
            None => body.ended(exchange),
            Some(mut asked) => {
                asked.response.set_body(Body::Stream(body));
                asked.end_subrequest();
            }
        }
    }
}

impl BodyStream for Sliced {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(self.produce(exchange, client, out))
    }

    fn is_of_parts(&self) -> bool {
        true
    }

    fn narrow(&mut self, start: u64, end: u64) -> u64 {
        let from = start - start % self.size_bytes;
        self.from = Some(from);
        self.end = end;
        from
    }

    fn outlives_client(&mut self) -> bool {
        // No part is asked for that nobody takes.
        self.end = 0;
        match &mut self.current {
            Some(current) if current.asked.is_none() => current.body.outlives_client(),
            _ => false,
        }
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(current) = self.current.take() {
            current.end(exchange);
        }
    }
}
