//! `post_action`: another location is asked once a request is over, and its answer is ignored.

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, ReferenceText, Row, Value, View};
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Logger;
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_lane::log::Level;

const ROWS: &[Row] = &[Row {
    name: "post_action",
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::IfInLocation,
    ],
    value: Value::Text,
    syntax: "uri | off",
    default: "off",
    summary: "Sends a subrequest to this path or named location after the request, and ignores the \
              answer. In the subrequest, `$request_completion`, `$bytes_sent`, `$body_bytes_sent` \
              and `$request_time` have the values of the request. Differs from nginx: the next \
              request on the connection does not wait for the subrequest, and the access log shows \
              the request without the subrequest's changes.",
    ..Row::PLAIN
}];

/// The family of `post_action`.
pub(crate) const FAMILY: Family = Family {
    name: "post_action",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("post_action/reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    _builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let target = view.text("post_action");
    if target != "off" {
        let target = target.as_bytes().into();
        draft.add_logger(Arc::new(Afterwards { target }));
    }
    Ok(())
}

/// Asks once a request is over.
struct Afterwards {
    /// A path, or the name of a location.
    target: Box<[u8]>,
}

impl Logger for Afterwards {
    fn log(&self, exchange: &Exchange) {
        if exchange.purpose() != Purpose::Request {
            return;
        }
        let target = String::from_utf8_lossy(&self.target);
        let Some(asked) = exchange.subrequest_afterwards(&self.target) else {
            exchange.log(
                Level::Error,
                format_args!("could not find named location \"{target}\""),
            );
            return;
        };
        if !asked.start_in_background() {
            exchange.log(
                Level::Error,
                format_args!(
                    "too many requests are in the background: the post action \"{target}\" is left \
                     out"
                ),
            );
        }
    }
}
