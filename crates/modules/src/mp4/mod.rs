//! `mp4`: a part of a film by its times (`?start=10.5&end=20`), as a film of its own.
//!
//! The index is read and written anew on a thread that may block; the samples are sent from the
//! file.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `mp4`.
pub(crate) struct Mp4;

impl Family for Mp4 {
    fn name(&self) -> &'static str {
        "mp4"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
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
