//! `proxy_pass`: requests are passed to upstream servers, and what they answer to the client.
//!
//! The family reads its directives; `pass` does the rest, with its origin of HTTP.
//!
//! What is forwarded is written anew from what was parsed, in both directions; nothing is passed
//! on raw but bodies. Who the servers are, and connections to them, is the upstream family's.

mod forwarded;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[
    ReferenceText::new(include_str!("reference.md")),
    ReferenceText::shared(
        crate::pass::REFERENCE,
        &[
            ("PREFIX", "proxy"),
            ("ADDRESS", "http://127.0.0.1:3000"),
            ("GROUP", "http://application"),
        ],
    ),
    ReferenceText::shared(
        crate::pass::TLS_REFERENCE,
        &[("PREFIX", "proxy"), ("ADDRESS", "https://127.0.0.1:3443")],
    ),
];

/// The family of `proxy_pass`.
pub(crate) const FAMILY: Family = Family {
    name: "proxy",
    rows: rows::ROWS,
    reference: REFERENCE,
    variables: || variables::ROWS,
    location: plan::location,
    ..Family::NONE
};
