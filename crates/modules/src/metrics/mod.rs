//! `metrics`: every number that the server has, as Prometheus reads them.

mod handler;
mod rows;
mod servers;
pub(crate) mod stream;

use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_plan::metrics;

use crate::common::server_names::first_names;
use crate::common::{content_directive, zone};
use handler::{Detail, Page};
use servers::{AllServers, Servers};
use stream::AllSessions;

/// The metrics: those of servers of HTTP, then those of servers of stream.
const METRICS: &[metrics::Row] = &{
    let [requests, received, sent, times] = servers::METRICS;
    let [active, sessions, from_clients, to_clients, durations] = stream::METRICS;
    [
        requests,
        received,
        sent,
        times,
        active,
        sessions,
        from_clients,
        to_clients,
        durations,
    ]
};

/// The counts of each server, where a page shows them.
#[derive(Default)]
struct Counting(Option<Arc<Servers>>);

pub(crate) const FAMILY: Family = Family {
    name: "metrics",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    metrics: METRICS,
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let sessions = AllSessions::open(builder);
    builder.metrics(sessions);
    if !view.children("server").any(shows_servers) {
        return Ok(());
    }
    let all = zone::unnamed(builder, "metrics of servers", AllServers::default);
    let servers = Arc::new(all.of(first_names(view)));
    builder.metrics(servers.clone());
    builder.store::<Counting>().0 = Some(servers);
    Ok(())
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some(servers) = builder.store::<Counting>().0.clone() {
        draft.add_logger(servers);
    }
    let Some((entry, is_own)) = content_directive::in_force(view, "metrics") else {
        return Ok(());
    };
    let detail = match entry.arguments.first().map(|word| word.text.as_str()) {
        None | Some("by=lane") => Detail::Lane,
        Some("by=total" | BY_SERVER) => Detail::Total,
        Some(other) => {
            let message = format!("invalid parameter \"{other}\"");
            return Err(view.error(entry.span, message));
        }
    };
    draft.set_content(Arc::new(Page(detail)), is_own);
    Ok(())
}

const BY_SERVER: &str = "by=server";

/// Whether a page in this block or one inside it shows servers.
fn shows_servers(view: View<'_>) -> bool {
    let shows = |entry: &Entry| entry.argument(0) == BY_SERVER;
    view.own("metrics").is_some_and(shows) || view.children("location").any(shows_servers)
}
