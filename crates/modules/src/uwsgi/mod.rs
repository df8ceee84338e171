//! `uwsgi_pass`: requests are passed to applications that speak the uwsgi protocol.
//!
//! The family reads its directives and writes requests; `pass` does the rest.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family of `uwsgi_pass`.
pub(crate) struct Uwsgi;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[
    ReferenceText::new(include_str!("reference.md")),
    ReferenceText::shared(
        crate::pass::REFERENCE,
        &[
            ("PREFIX", "uwsgi"),
            ("ADDRESS", "127.0.0.1:3000"),
            ("GROUP", "application"),
        ],
    ),
    ReferenceText::shared(
        crate::pass::TLS_REFERENCE,
        &[("PREFIX", "uwsgi"), ("ADDRESS", "suwsgi://127.0.0.1:3443")],
    ),
];

impl Family for Uwsgi {
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
