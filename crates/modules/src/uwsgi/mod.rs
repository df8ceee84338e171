//! `uwsgi_pass`: requests are passed to applications that speak the uwsgi protocol.
//!
//! The family reads its directives and writes requests; `pass` does the rest.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

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

/// The family of `uwsgi_pass`.
pub(crate) const FAMILY: Family = Family {
    name: plan::PREFIX,
    rows: rows::ROWS,
    reference: REFERENCE,
    is_silent_unless_written: true,
    location: plan::location,
    ..Family::NONE
};
