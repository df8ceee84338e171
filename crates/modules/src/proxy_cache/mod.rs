//! `proxy_cache` and its like: answers of upstream servers are stored and given again.
//!
//! ```text
//!  pass ─► handler (look up) ─┬─► answer ─► the response, from memory or a file
//!                              ├─► waiting (for the request that fetches the same)
//!                              └─► recorder ─► the server's answer, stored as it passes
//! ```
//!
//! What may be stored, for how long, and where it is kept, is the cache crate's business; how a
//! server is asked is the engine's.

mod answer;
mod content;
mod counts;
mod handler;
mod hosts;
mod hot;
mod note;
mod plan;
mod purge;
mod purge_rules;
mod recorder;
mod rows;
mod show;
mod status;
#[cfg(test)]
mod tests;
mod variables;
mod waiting;
mod warm;
mod zones;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

use crate::common::server_names::first_names;
use crate::common::zone;
use crate::pass::view::PassView;
use hosts::{AllHosts, Hosts};

/// The cache of the passing family whose directives begin with `$prefix`.
macro_rules! cache {
    ($prefix:literal, $rows:expr, $address:literal) => {
        Family {
            name: concat!($prefix, "_cache"),
            rows: $rows,
            reference: &[ReferenceText::shared(
                include_str!("reference.md"),
                &[("PREFIX", $prefix), ("ADDRESS", $address)],
            )],
            is_silent_unless_written: true,
            prepare_location: |view, builder, draft| {
                let pass = PassView::new(view, $prefix);
                if plan::is_wanted(pass) {
                    plan::prepare(pass, builder, draft)?;
                }
                Ok(())
            },
            location: |view, builder, draft| {
                purge::purge_by_location(PassView::new(view, $prefix), builder, draft)
            },
            ..Family::NONE
        }
    };
}

/// The families that have caches.
const PREFIXES: &[&str] = &["proxy", "fastcgi", "scgi", "uwsgi"];

/// The cache of `proxy_pass`. What all caches have in common (zones, variables, verbs, metrics) is
/// its own.
pub(crate) const PROXY: Family = Family {
    variables: || variables::VARIABLES,
    commands: purge::COMMANDS,
    metrics: counts::METRICS,
    http,
    ..cache!("proxy", rows::PROXY, "http://127.0.0.1:3000")
};

/// The cache of `fastcgi_pass`.
pub(crate) const FASTCGI: Family = cache!("fastcgi", rows::FASTCGI, "127.0.0.1:9000");

/// The cache of `scgi_pass`.
pub(crate) const SCGI: Family = cache!("scgi", rows::SCGI, "127.0.0.1:3000");

/// The cache of `uwsgi_pass`.
pub(crate) const UWSGI: Family = cache!("uwsgi", rows::UWSGI, "127.0.0.1:3000");

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    zones::declare(view, PREFIXES, builder)?;
    if !builder.store::<zones::Zones>().0.is_empty() {
        let all = zone::unnamed(builder, "hosts of caches", AllHosts::default);
        let hosts = Arc::new(all.of(first_names(view)));
        *builder.store::<Arc<Hosts>>() = Arc::clone(&hosts);
        builder.metrics(hosts);
    }
    purge::offer(builder);
    let zones = builder.store::<zones::Zones>().clone();
    builder.metrics(Arc::new(counts::Counts(zones)));
    Ok(())
}
