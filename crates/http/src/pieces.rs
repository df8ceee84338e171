//! Streamed bodies: pieces are asked for one by one, whatever protocol they leave by.
//!
//! A piece is left in the response's text. While the stream works, it is out of the exchange, so
//! that it may change the exchange.

use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::{Body, BodyFailed, BodyStream, Response};

/// Makes the first piece where it is at hand: it leaves together with the head. Returns whether
/// there is more behind it; `None`: there is no piece yet.
pub(crate) fn ready(exchange: &mut Exchange) -> Option<Result<bool, BodyFailed>> {
    let mut body = take(&mut exchange.response)?;
    let mut piece = exchange.response.take_text();
    piece.clear();
    let more = body.ready(exchange, &mut piece);
    put_back(&mut exchange.response, body, piece);
    more
}

/// Makes the next piece behind what is left of the last one, of which so many bytes were sent,
/// where the body is at hand: it makes no difference then where a piece ends. The piece has at most
/// `bytes_max`. Returns whether there is more behind it; `None`: it is not at hand, and what is
/// left stands alone. `sent` is what was sent of the text as it is then.
pub(crate) fn refill(
    exchange: &mut Exchange,
    sent: &mut usize,
    bytes_max: usize,
) -> Option<Result<bool, BodyFailed>> {
    if !limit(&mut exchange.response, bytes_max) {
        return None;
    }
    let left = exchange
        .response
        .text()
        .get(*sent..)
        .unwrap_or_default()
        .to_vec();
    let more = ready(exchange);
    exchange.response.text_mut().splice(0..0, left);
    // Also where there is no piece yet, since a part of a file is not in memory.
    *sent = 0;
    more
}

/// Has the next pieces of a body at hand be no longer than that. Returns whether it is one.
pub(crate) fn limit(response: &mut Response, bytes_max: usize) -> bool {
    let Some(mut body) = take(response) else {
        return false;
    };
    let is_at_hand = body.is_at_hand();
    if is_at_hand {
        body.limit_pieces(bytes_max);
    }
    response.set_body(Body::Stream(body));
    is_at_hand
}

/// Makes the next piece. Returns whether there is more behind it; `None`: the body has no pieces.
pub(crate) async fn next(
    exchange: &mut Exchange,
    client: Client<'_>,
) -> Option<Result<bool, BodyFailed>> {
    let mut body = take(&mut exchange.response)?;
    let mut piece = exchange.response.take_text();
    piece.clear();
    let more = body.next(exchange, client, &mut piece).await;
    put_back(&mut exchange.response, body, piece);
    Some(more)
}

/// Lets the body read ahead, as long as the caller waits for something else. Never ends.
pub(crate) async fn read_ahead(exchange: &mut Exchange, client: Client<'_>) {
    if let Some(mut held) = hold(exchange) {
        let (exchange, body) = held.parts();
        body.read_ahead(exchange, client).await;
    }
    std::future::pending().await
}

/// Takes a stream out of its exchange for as long as it works. `None`: the body is none.
pub(crate) fn hold(exchange: &mut Exchange) -> Option<Held<'_>> {
    let body = take(&mut exchange.response)?;
    Some(Held {
        exchange,
        body: Some(body),
    })
}

/// A stream outside of its exchange, put back when this is dropped.
pub(crate) struct Held<'a> {
    exchange: &'a mut Exchange,
    body: Option<Box<dyn BodyStream>>,
}

impl Held<'_> {
    /// The exchange, and the stream beside it.
    pub(crate) fn parts(&mut self) -> (&mut Exchange, &mut dyn BodyStream) {
        match &mut self.body {
            Some(body) => (self.exchange, &mut **body),
            None => unreachable!("it is taken when this is dropped"),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.exchange.response.set_body(Body::Stream(body));
        }
    }
}

fn take(response: &mut Response) -> Option<Box<dyn BodyStream>> {
    if response.is_head_only() || !matches!(response.body(), Body::Stream(_)) {
        return None;
    }
    match response.take_body() {
        Body::Stream(body) => Some(body),
        _ => None,
    }
}

fn put_back(response: &mut Response, body: Box<dyn BodyStream>, piece: Vec<u8>) {
    response.set_body(Body::Stream(body));
    response.set_text(piece);
}

#[cfg(test)]
mod tests {
    //! What is left of a piece where the next one is not there yet.

    use super::refill;
    use crate::client::Client;
    use crate::exchange::Exchange;
    use crate::response::{Body, BodyFailed, BodyStream, LocalFuture};
    use crate::testing;

    /// A file of which the next part is not in memory.
    struct OnDisk;

    impl BodyStream for OnDisk {
        fn next<'a>(
            &'a mut self,
            _: &'a mut Exchange,
            _: Client<'a>,
            _: &'a mut Vec<u8>,
        ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
            Box::pin(async { Ok(false) })
        }

        fn is_at_hand(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_is_left_is_kept_where_the_next_piece_is_on_a_disk() {
        let plan = testing::plan("server { listen 127.0.0.1:8080; }").expect("a plan");
        let mut exchange = testing::exchange(plan, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        exchange.response.set_body(Body::Stream(Box::new(OnDisk)));
        exchange.response.set_text(b"sent and left".to_vec());
        let mut sent = 5;
        assert!(refill(&mut exchange, &mut sent, usize::MAX).is_none());
        assert_eq!(&exchange.response.text()[sent..], b"and left");
    }
}
