//! Parts of a body (RFC 9110 section 14): one range, several as multipart/byteranges, or 416.
//!
//! Every location has this filter. It is the last that sees a response, so that ranges are of what
//! is really sent.

mod body;
mod handler;
mod parse;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Ranges;
