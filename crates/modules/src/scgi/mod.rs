//! `scgi_pass`: requests are passed to SCGI applications.
//!
//! The family reads its directives and writes requests; `pass` does the rest.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Scgi;
