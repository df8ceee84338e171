//! The head of an HTTP/1 response, from bytes to a decision: interim ones are passed over, what is
//! no head is refused.

use turnpike_http::exchange::Exchange;
use turnpike_wire::h1::{self, HeadStep};
use turnpike_wire::message::{Head, Method};

use crate::pass::head::{Progress, ReceivedHead, head_rules, invalid, wants_upgrade};
use crate::pass::server::Stop;
use crate::pass::settings::Passing;

/// Interim responses before the final one: none needs more than a few.
const INTERIM_MAX: usize = 16;

/// Takes what has come of a head; those of interim responses are passed over, but for hints that
/// the client is to see.
pub(super) fn take_head(
    exchange: &Exchange,
    passing: &Passing,
    input: &mut Vec<u8>,
    head: &mut Head,
    progress: &mut Progress,
) -> Result<ReceivedHead, Stop> {
    let rules = head_rules(passing.buffers.first_bytes, exchange.strictness());
    let asked = exchange.upstream.tries.last().map(|one| one.method);
    // Of other methods the answer ends as that to GET: no tunnel is made of a CONNECT here.
    let method = match asked {
        Some(Method::Head) => Method::Head,
        _ => Method::Get,
    };
    loop {
        let parsed = &mut progress.parsed;
        match h1::read_response(input, progress.scanned, &rules, method, parsed, head) {
            Ok(HeadStep::Incomplete { scanned }) => {
                progress.scanned = scanned;
                return Ok(ReceivedHead::Incomplete);
            }
            Ok(HeadStep::Complete) if head.is_interim() => {
                progress.interim += 1;
                progress.scanned = 0;
                progress.hints.take(exchange, passing, head);
                if progress.interim > INTERIM_MAX {
                    return Err(invalid(
                        exchange,
                        "upstream sent too many interim responses",
                    ));
                }
                if progress.hints.wait() {
                    return Ok(ReceivedHead::Hints);
                }
            }
            Ok(HeadStep::Complete) if head.status == 101 && !wants_upgrade(exchange, head) => {
                return Err(invalid(exchange, "upstream sent unexpected status 101"));
            }
            Ok(HeadStep::Complete) => return Ok(ReceivedHead::Whole),
            Err(error) => return Err(invalid(exchange, error.reason())),
        }
    }
}
