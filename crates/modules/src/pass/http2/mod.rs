//! HTTP/2 to servers: one stream at a time on a connection, as in nginx.
//!
//! ```text
//!  head (block of fields) ─► stream opened ─► upload, as far as windows let it
//!  records: frames taken off ─► head ─► body ─► trailers
//! ```

mod block;
mod records;
mod upload;

use std::rc::Rc;

use turnpike_http::exchange::Exchange;
use turnpike_wire::message::{BodyEnd, Head, Method};

use super::head::{Progress, ReceivedHead, head_rules, invalid};
use super::http2_connection::Shared;
use super::server::Stop;
use super::settings::Passing;

pub(crate) use block::RequestBlock;
use records::StreamRecords;
pub(crate) use upload::{StreamBody, StreamUpload, Trailers};

/// A stream that is to be opened for a request.
pub(crate) struct Opening<'a> {
    /// The header block.
    pub(crate) block: &'a [u8],
    pub(crate) body: StreamBody,
    /// Whether trailers of the request are passed on.
    pub(crate) trailers: Trailers,
    /// Bytes that the answer's head may have.
    pub(crate) head_bytes_max: usize,
}

impl Opening<'_> {
    /// Sends the head, and begins to send the body.
    pub(crate) fn begin(
        self,
        exchange: &Exchange,
        http2: &Shared,
    ) -> (StreamRecords, StreamUpload) {
        let mut connection = http2.borrow_mut();
        connection.set_rules(head_rules(self.head_bytes_max, exchange.strictness()));
        let ends = self.body == StreamBody::None;
        let stream = connection.open(ends, is_head(exchange), &mut Vec::new(), |_, out| {
            out.extend_from_slice(self.block);
        });
        drop(connection);
        let records = StreamRecords::new(Rc::clone(http2), stream);
        let upload =
            StreamUpload::new(exchange, Rc::clone(http2), stream, self.body, self.trailers);
        (records, upload)
    }
}

/// Takes the next head that the records hold; those of interim responses are passed over, but for
/// hints that the client is to see.
///
/// # Errors
/// Why this answer cannot be one.
pub(crate) fn read_head(
    exchange: &Exchange,
    passing: &Passing,
    head: &mut Head,
    progress: &mut Progress,
) -> Result<ReceivedHead, Stop> {
    loop {
        let next = progress.records.as_mut();
        let Some((received, ends)) = next.and_then(|records| records.next_head()) else {
            return Ok(ReceivedHead::Incomplete);
        };
        *head = received;
        if head.is_interim() {
            if progress.is_hint(exchange, passing, head)? {
                return Ok(ReceivedHead::Hints);
            }
            continue;
        }
        if head.status == 101 {
            return Err(invalid(exchange, "upstream sent unexpected status 101"));
        }
        let to_head = is_head(exchange);
        // The records say whether the connection can carry another request.
        progress.delivery.end = match head.content_length() {
            _ if ends => BodyEnd::None,
            Some(length) if !to_head => BodyEnd::Length(length),
            _ => BodyEnd::UntilClose,
        };
        return Ok(ReceivedHead::Whole);
    }
}

/// Whether the server was asked for a head alone.
fn is_head(exchange: &Exchange) -> bool {
    let asked = exchange.upstream.tries().last().map(|one| one.method);
    asked == Some(Method::Head)
}
