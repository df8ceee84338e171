//! `upstream`: named groups of servers, and the groups that an address written elsewhere stands
//! for.
//!
//! Families that pass requests on ask here for their group by name when a plan is built
//! ([`find`]), and for peers and connections while they serve ([`Upstream`]). How a request is
//! sent is theirs.

mod all_groups;
mod background;
mod balancing;
mod changes;
mod commands;
mod handler;
mod health;
mod limits;
mod matches;
mod passed;
mod plan;
mod resolver;
mod rows;
mod servers;
mod sessions;
mod state_file;
mod status_zones;
mod sticky;
pub(crate) mod stream;
mod stream_health;
mod stream_metrics;
#[cfg(test)]
mod tests;
mod url;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

pub(crate) use handler::{Directory, Upstream};
pub(crate) use health::{Checked, check};
pub(crate) use plan::{directory, find};
pub(crate) use resolver::{Names, names};
pub(crate) use sessions::Sessions;
pub(crate) use stream_health::{CheckedServers, check_servers};
pub(crate) use url::{Target, Url};

pub(crate) const FAMILY: Family = Family {
    name: "upstream",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    commands: commands::ROWS,
    metrics: commands::METRICS,
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    resolver::check(view, builder)?;
    matches::read::<health::Conditions, _>(view, builder);
    plan::groups(view, builder)?;
    commands::offer(builder);
    Ok(())
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    _draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some(entry) = view.own("health_check")
        && view.own("proxy_pass").is_none()
    {
        let message = "\"health_check\" directive requires \"proxy_pass\"";
        return Err(view.error(entry.span, message));
    }
    resolver::check(view, builder)
}
