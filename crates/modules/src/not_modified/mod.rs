//! Conditional requests (RFC 9110 section 13): 304 for what the client has, 412 for what it does
//! not want changed.
//!
//! Every location has this filter. It judges what a handler is about to answer and knows nothing
//! of where that came from.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::NotModified;
