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

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

pub(crate) struct Compression;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for Compression {
    fn name(&self) -> &'static str {
        "compression"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        plan::VARIABLES
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
