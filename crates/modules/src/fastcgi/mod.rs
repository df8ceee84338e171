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

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

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

/// The family of `fastcgi_pass`.
pub(crate) const FAMILY: Family = Family {
    name: plan::PREFIX,
    rows: rows::ROWS,
    reference: REFERENCE,
    is_silent_unless_written: true,
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
