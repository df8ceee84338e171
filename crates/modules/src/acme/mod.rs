//! `acme_issuer` and its like, with the names of nginx's ACME module: certificates that are ordered
//! and renewed by the server itself (RFC 8555).
//!
//! ```text
//!  acme_issuer ─► Issuer ◄─ a service in the background: lock, schedule, orders
//!                   │ publishes challenges ─► lanes answer them (`challenges`)
//!  acme_certificate ─► Certificate ◄─ the certificate in force, in memory and in `state_path`
//!                         └─► ssl_certificate $acme_certificate
//! ```
//!
//! Lanes only read: nothing about an order runs on them.

mod account;
mod answers;
mod certificate;
mod challenges;
mod client;
mod handler;
mod hook;
mod issuer;
mod key_type;
mod order;
mod plan;
mod renewal;
mod rows;
mod schedule;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, Context, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family of `acme_issuer`.
pub(crate) const FAMILY: Family = Family {
    name: "acme",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::variables(view, builder)?;
    plan::issuers(view, builder)
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    plan::location(view, builder, draft, view.context() == Context::Server)
}
