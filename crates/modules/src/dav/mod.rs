//! WebDAV's methods for files (RFC 4918): PUT, DELETE, MKCOL, COPY and MOVE, and as in the module
//! dav_ext PROPFIND, OPTIONS, LOCK and UNLOCK.
//!
//! ```text
//!  request ─► checked on the lane ─► job ─► thread for blocking work ─► 201, 204 or an error
//! ```

mod conditions;
mod extended;
mod failure;
mod handler;
mod if_field;
mod job;
mod listing;
mod locks;
mod place;
mod plan;
mod properties;
mod request_xml;
mod rows;
#[cfg(test)]
mod tests;
mod tree;
mod turns;
mod uri;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `dav_methods`.
pub(crate) const FAMILY: Family = Family {
    name: "dav",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
