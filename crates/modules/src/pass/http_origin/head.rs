//! The head of an HTTP/1 response, from bytes to a decision: interim ones are passed over, what is
//! no head is refused.

use turnpike_http::exchange::Exchange;
use turnpike_http::received::Received;
use turnpike_wire::message::{Head, Method};

use crate::pass::head::{Progress, ReceivedHead, head_rules, invalid};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;

/// Takes what has come of a head; those of interim responses are passed over, but for hints that
/// the client is to see.
pub(super) fn take_head(
    exchange: &Exchange,
    passing: &Passing,
    input: &mut Received,
    head: &mut Head,
    progress: &mut Progress,
) -> Result<ReceivedHead, Stop> {
    let rules = head_rules(passing.buffers.first_bytes, exchange.strictness());
    let asked = exchange.upstream.tries().last().map(|one| one.method);
    // Of other methods the answer ends as that to GET: no tunnel is made of a CONNECT here.
    let method = match asked {
        Some(Method::Head) => Method::Head,
        _ => Method::Get,
    };
    loop {
        let read = progress.lines.read(input, &rules, method, head);
        if !read.map_err(|reason| invalid(exchange, reason))? {
            return Ok(ReceivedHead::Incomplete);
        }
        if !head.is_interim() {
            return progress.end_lines(exchange, head);
        }
        if progress.is_hint(exchange, passing, head)? {
            return Ok(ReceivedHead::Hints);
        }
    }
}
