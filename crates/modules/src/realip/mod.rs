//! `set_real_ip_from`: the client's address out of what trusted proxies say.
//!
//! The address is replaced right after the head was read, so that everything later (limits, access
//! rules, logs) sees the client. A location may have rules of its own, which are asked before the
//! limits.

mod forwarded;
mod handler;
mod plan;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use turnpike_plan::cidr::warn_of_low_bits;

pub(crate) const FAMILY: Family = Family {
    name: "realip",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    variables: || handler::VARIABLES,
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["set_real_ip_from"]);
    Ok(())
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["set_real_ip_from"]);
    plan::location(view, draft)
}
