//! `set_real_ip_from`: the client's address out of what trusted proxies say.
//!
//! The address is replaced right after the head was read, so that everything later (limits, access
//! rules, logs) sees the client. A location may have rules of its own, which are asked before the
//! limits.

mod forwarded;
mod handler;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

use turnpike_plan::cidr::warn_of_low_bits;

pub(crate) struct RealIp;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for RealIp {
    fn name(&self) -> &'static str {
        "realip"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn is_silent_unless_written(&self) -> bool {
        true
    }

    fn variables(&self) -> &'static [VariableRow] {
        handler::VARIABLES
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        warn_of_low_bits(view, builder, &["set_real_ip_from"]);
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        warn_of_low_bits(view, builder, &["set_real_ip_from"]);
        plan::location(view, draft)
    }
}
