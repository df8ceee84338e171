//! Where the body of a request is when a server is asked: here, in memory, or still to come.

use turnpike_http::body;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_wire::message::BodyLength;

use crate::pass::settings::Passing;

/// Whether the body is passed on as it comes.
pub(super) fn is_unbuffered(exchange: &Exchange, passing: &Passing) -> bool {
    let rules = &passing.body;
    let chunked = exchange.body_length() == BodyLength::Unknown;
    exchange.body_length() != BodyLength::None
        && !rules.buffered
        && rules.instead.is_none()
        && rules.passes
        && !exchange.body.is_finished()
        && (!chunked || passing.origin.takes_unknown_length())
}

/// Whether the whole body came with the head: then it is kept, as if it had been waited for.
pub(super) fn body_is_here(exchange: &mut Exchange) -> Result<bool, Verdict> {
    if exchange.body_length() == BodyLength::None {
        return Ok(true);
    }
    match exchange.keep_buffered_body() {
        Ok(progress) => Ok(progress == body::Progress::Complete),
        Err(error) => Err(exchange.body_refused(error)),
    }
}

/// Whether a body that is here stays in memory. Those that need not be kept are in no file.
pub(super) fn fits(exchange: &Exchange, passing: &Passing) -> bool {
    let needs_none = exchange.body_length() == BodyLength::None || !passing.body.buffered;
    needs_none || exchange.keeps_body_in_memory()
}
