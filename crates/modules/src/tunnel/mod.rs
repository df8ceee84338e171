//! `tunnel_pass`: the server is a forward proxy for `CONNECT` (RFC 9110 section 9.3.6).
//!
//! The family says where tunnels go; `pass` chooses servers, connects and carries the bytes.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `tunnel_pass`.
pub(crate) struct Tunnels;

impl Family for Tunnels {
    fn name(&self) -> &'static str {
        plan::PREFIX
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
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
