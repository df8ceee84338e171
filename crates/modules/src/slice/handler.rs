//! What this family does with a request.

use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Verdict};
use turnpike_http::response::Body;
use turnpike_lane::log::Level;
use turnpike_wire::message::Known;

use super::body::Sliced;
use super::part::{PartOf, first_byte};
use crate::common::wanted_part::{self, WantedPart};

/// Closes the connection without an answer: nginx's way with servers that send another part than
/// they were asked for.
const CLOSE: u16 = 444;

/// Chooses the part that is asked for first.
pub(super) struct FirstPart {
    pub(super) size_bytes: u64,
}

impl Handler for FirstPart {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        // The requests for the other parts are copies, which have no content.
        if exchange.purpose() != Purpose::Request
            || !exchange.is_get_or_head()
            || exchange.may_have_content()
        {
            return Verdict::Declined;
        }
        // Whether the range holds is known only once the whole is known to be the same.
        let range = match exchange.known_field(Known::IfRange) {
            None => exchange.known_field(Known::Range),
            Some(_) => None,
        };
        let start = first_byte(range, self.size_bytes);
        let location = exchange.walk.location();
        WantedPart::want(&mut exchange.rooms, location, start, self.size_bytes);
        Verdict::Declined
    }
}

/// Makes the whole of the first part.
pub(super) struct Parts {
    pub(super) size_bytes: u64,
}

impl Filter for Parts {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let start = wanted_part::start_of(exchange)?;
        if exchange.response.status() != 206 {
            return None;
        }
        let part = PartOf::of(&exchange.response).and_then(|part| {
            part.expect(start, self.size_bytes)?;
            Ok(part)
        });
        let part = match part {
            Ok(part) => part,
            Err(message) => {
                exchange.log(Level::Error, format_args!("{message}"));
                return Some(CLOSE);
            }
        };
        let response = &mut exchange.response;
        response.replace_status(200);
        response.set_content_length(Some(part.whole_bytes));
        response.fields_mut().remove(b"Content-Range");
        response.fields_mut().remove(b"Accept-Ranges");
        response.set_ranges_allowed(true);
        response.set_unconditional(false);
        if !response.is_head_only() {
            let first = response.take_stream();
            let whole = Sliced::new(part, self.size_bytes, first);
            response.set_body(Body::Stream(Box::new(whole)));
        }
        None
    }
}
