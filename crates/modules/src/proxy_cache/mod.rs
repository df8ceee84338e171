//! `proxy_cache`: answers of upstream servers are stored and given again.
//!
//! ```text
//!  proxy ─► handler (look up) ─┬─► answer ─► the response, from memory or a file
//!                              ├─► waiting (for the request that fetches the same)
//!                              └─► recorder ─► the server's answer, stored as it passes
//! ```
//!
//! What may be stored, for how long, and where it is kept, is the cache crate's business; how a
//! server is asked is the proxy's.

mod answer;
mod counts;
mod handler;
mod plan;
mod purge;
mod recorder;
mod rows;
mod status;
#[cfg(test)]
mod tests;
mod variables;
mod waiting;
mod zones;

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::control::CommandRow;
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// The family. It must stand before the proxy's, which asks for its response stores.
pub(crate) struct ProxyCache;

impl Family for ProxyCache {
    fn name(&self) -> &'static str {
        "proxy_cache"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::VARIABLES
    }

    fn commands(&self) -> &'static [CommandRow] {
        purge::COMMANDS
    }

    fn metrics(&self) -> &'static [turnpike_lane::counters::Row] {
        counts::METRICS
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        zones::declare(view, builder)?;
        purge::offer(builder);
        let zones = builder.store::<zones::Zones>().clone();
        builder.metrics(Arc::new(counts::Counts(zones)));
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
