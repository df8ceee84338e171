//! Files of the file system as answers: what a location does unless it says otherwise.
//!
//! A path that ends in a slash is a folder's and is left to those that list or choose.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// Files: every location has them. `root` and `types` are the core's, since it names files itself.
pub(crate) const FAMILY: Family = Family {
    name: "static",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
