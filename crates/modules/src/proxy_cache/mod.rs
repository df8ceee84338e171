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
mod zones;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;
use turnpike_plan::control::CommandRow;

use crate::pass::view::PassView;

/// The cache of a passing family.
pub(crate) struct Cache {
    name: &'static str,
    /// What the names of the directives begin with.
    prefix: &'static str,
    rows: &'static [Row],
    reference: &'static [ReferenceText],
}

/// What people wrote about the directives of all caches, for the family with this prefix.
macro_rules! reference {
    ($prefix:literal, $address:literal) => {
        &[ReferenceText::shared(
            include_str!("reference.md"),
            &[("PREFIX", $prefix), ("ADDRESS", $address)],
        )]
    };
}

/// The cache of `proxy_pass`. What all caches have in common (zones, variables, verbs, metrics) is
/// its own.
pub(crate) const PROXY: Cache = Cache {
    name: "proxy_cache",
    prefix: "proxy",
    rows: rows::PROXY,
    reference: reference!("proxy", "http://127.0.0.1:3000"),
};

/// The cache of `fastcgi_pass`.
pub(crate) const FASTCGI: Cache = Cache {
    name: "fastcgi_cache",
    prefix: "fastcgi",
    rows: rows::FASTCGI,
    reference: reference!("fastcgi", "127.0.0.1:9000"),
};

/// The cache of `scgi_pass`.
pub(crate) const SCGI: Cache = Cache {
    name: "scgi_cache",
    prefix: "scgi",
    rows: rows::SCGI,
    reference: reference!("scgi", "127.0.0.1:3000"),
};

/// The cache of `uwsgi_pass`.
pub(crate) const UWSGI: Cache = Cache {
    name: "uwsgi_cache",
    prefix: "uwsgi",
    rows: rows::UWSGI,
    reference: reference!("uwsgi", "127.0.0.1:3000"),
};

/// The families that have caches.
const PREFIXES: &[&str] = &[PROXY.prefix, FASTCGI.prefix, SCGI.prefix, UWSGI.prefix];

impl Cache {
    /// Whether what all caches have in common belongs to this one.
    fn is_first(&self) -> bool {
        self.prefix == PROXY.prefix
    }
}

impl Family for Cache {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> &'static [Row] {
        self.rows
    }

    fn reference(&self) -> &'static [ReferenceText] {
        self.reference
    }

    fn is_silent_unless_written(&self) -> bool {
        true
    }

    fn variables(&self) -> &'static [VariableRow] {
        if self.is_first() {
            variables::VARIABLES
        } else {
            &[]
        }
    }

    fn commands(&self) -> &'static [CommandRow] {
        if self.is_first() {
            purge::COMMANDS
        } else {
            &[]
        }
    }

    fn metrics(&self) -> &'static [turnpike_lane::counters::Row] {
        if self.is_first() {
            counts::METRICS
        } else {
            &[]
        }
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        if !self.is_first() {
            return Ok(());
        }
        zones::declare(view, PREFIXES, builder)?;
        purge::offer(builder);
        let zones = builder.store::<zones::Zones>().clone();
        builder.metrics(Arc::new(counts::Counts(zones)));
        Ok(())
    }

    fn prepare_location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let pass = PassView::new(view, self.prefix);
        if plan::is_wanted(pass) {
            plan::prepare(pass, builder, draft)
        } else {
            Ok(())
        }
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        purge::purge_by_location(PassView::new(view, self.prefix), builder, draft)
    }
}
