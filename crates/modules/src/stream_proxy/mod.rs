//! `proxy_pass` of `stream`: connections are passed to servers, and their bytes both ways; so are
//! the datagrams of UDP's flows.
//!
//! Which server it is, [`crate::upstream`] says. Nothing here looks at the bytes.

mod activity;
mod buffer_size;
mod datagrams;
mod direction_limit;
mod flow_steps;
mod handler;
mod own_address;
mod plain_relay;
mod plan;
mod quic;
mod relay;
mod rows;
mod steps;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_stream::plan::{Builder, Family, ServerDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[
    ReferenceText::new(include_str!("reference.md")),
    ReferenceText::shared(crate::pass::TLS_REFERENCE, &[("PREFIX", "proxy")]),
];

pub(crate) struct StreamProxy;

impl Family for StreamProxy {
    fn name(&self) -> &'static str {
        "stream proxy"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        buffer_size::check(view, builder)
    }

    fn server(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut ServerDraft,
    ) -> Result<(), ConfError> {
        plan::server(view, builder, draft)
    }
}
