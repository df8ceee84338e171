//! Character sets of texts: `charset` says in Content-Type which one it is, and converts to it from
//! `source_charset` where a `charset_map` says how.
//!
//! The filter looks at no text to find out what it is in.

mod handler;
mod plan;
mod recode;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

pub(crate) const FAMILY: Family = Family {
    name: "charset",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
