//! `fastcgi_pass`: requests are passed to FastCGI applications, such as PHP.
//!
//! ```text
//!  plan ─► settings ─► pass (the engine)
//!  request: parameters and body, in records ─►┐ application
//!  records: taken off ─► head (CGI) ─► body ◄─┘
//! ```
//!
//! The family reads its directives, writes requests and reads heads; `pass` does the rest.

mod origin;
mod plan;
mod records;
mod rows;
mod script;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family of `fastcgi_pass`.
pub(crate) struct FastCgi;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[
    ReferenceText::new(include_str!("reference.md")),
    ReferenceText::shared(
        crate::pass::REFERENCE,
        &[
            ("PREFIX", "fastcgi"),
            ("ADDRESS", "127.0.0.1:9000"),
            ("GROUP", "application"),
        ],
    ),
];

impl Family for FastCgi {
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

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::http(view, builder)
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
