//! `tunnel_pass`: the server is a forward proxy for `CONNECT` (RFC 9110 section 9.3.6).
//!
//! The family says where tunnels go; `pass` chooses servers, connects and carries the bytes.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `tunnel_pass`.
pub(crate) const FAMILY: Family = Family {
    name: plan::PREFIX,
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
