//! `client_body_early_read`: the body of a request before its location is chosen, so that predicate
//! locations and other directives can look at it.

use std::sync::Arc;

use turnpike_conf::{Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, View};
use turnpike_http::body::Progress;
use turnpike_http::client::Client;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, HandlerPlace, Verdict, Work};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::Template;

use crate::common::predicates::{self, any_holds};

const ROWS: &[Row] = &[Row {
    name: "client_body_early_read",
    contexts: &[Context::Http, Context::Server],
    arguments: Arguments::at_least(1),
    repeat: Repeat::Many,
    merge: Merge::Nearest,
    variables: Some(0),
    syntax: "string ...",
    summary: "Reads the request body before a location is chosen, by the server's directives about \
        bodies, if one of the strings is neither empty nor \"0\". Variables such as \
        `$request_body` then have it everywhere.",
    ..Row::PLAIN
}];

/// The strings that say whether the body is read.
struct Conditions(Vec<Template>);

pub(crate) const FAMILY: Family = Family {
    name: "early_body",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("early_body/reference.md"))],
    is_silent_unless_written: true,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let conditions = predicates::read(view, "client_body_early_read", builder)?;
    if !conditions.is_empty() {
        draft.add_handler(HandlerPlace::Body, Arc::new(Conditions(conditions)));
    }
    Ok(())
}

impl Handler for Conditions {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if exchange.purpose() != Purpose::Request || !any_holds(exchange, &self.0) {
            return Verdict::Declined;
        }
        match exchange.keep_whole_body() {
            Ok(Progress::Complete) => Verdict::Declined,
            Ok(Progress::Incomplete) => Verdict::Wait(Box::new(Body)),
            Err(error) => exchange.body_refused(error),
        }
    }
}

/// Reads the body.
struct Body;

impl Work for Body {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        match client.read_body(exchange).await {
            Ok(()) => Verdict::Declined,
            Err(verdict) => verdict,
        }
    }
}
