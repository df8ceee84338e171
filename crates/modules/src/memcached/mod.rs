//! `memcached_pass`: responses are values of memcached, which something else has stored there.
//!
//! The family reads its directives, asks for keys and reads the lines around values; `pass` does
//! the rest.

mod origin;
mod plan;
mod rows;
mod value;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `memcached_pass`.
pub(crate) struct Memcached;

impl Family for Memcached {
    fn name(&self) -> &'static str {
        plan::PREFIX
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn is_silent_unless_written(&self) -> bool {
        true
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
