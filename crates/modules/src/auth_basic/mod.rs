//! `auth_basic`: who may, by name and password (RFC 7617).

mod handler;
mod password;
mod plan;
mod remembered;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

pub(crate) const FAMILY: Family = Family {
    name: "auth_basic",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
