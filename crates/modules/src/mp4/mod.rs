//! `mp4`: a part of a film by its times (`?start=10.5&end=20`), as a film of its own.
//!
//! The index is read and written anew on a thread that may block; the samples are sent from the
//! file.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `mp4`.
pub(crate) const FAMILY: Family = Family {
    name: "mp4",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
