//! `memcached_pass`: responses are values of memcached, which something else has stored there.
//!
//! The family reads its directives, asks for keys and reads the lines around values; `pass` does
//! the rest.

mod origin;
mod plan;
mod rows;
mod value;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `memcached_pass`.
pub(crate) const FAMILY: Family = Family {
    name: plan::PREFIX,
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    location: plan::location,
    ..Family::NONE
};
