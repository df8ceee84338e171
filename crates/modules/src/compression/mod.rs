//! Compression: `gzip`, `brotli` and `zstd` compress what is sent, `gzip_static` and its like send
//! files that were compressed before, `gunzip` expands what the client cannot read.
//!
//! All ask the same question (what may this client have?) and say in `Vary` that they did. They
//! change how a representation is coded, never which one is sent.

mod accept;
mod compress;
mod encoder;
mod expand;
mod handler;
mod kept;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

pub(crate) const FAMILY: Family = Family {
    name: "compression",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || plan::VARIABLES,
    location: plan::location,
    ..Family::NONE
};
