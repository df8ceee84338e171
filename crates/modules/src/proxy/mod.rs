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

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// The family of `proxy_pass`.
pub(crate) struct Proxy;

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

impl Family for Proxy {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::ROWS
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
