//! Character sets of texts: `charset` says in Content-Type which one it is, and converts to it from
//! `source_charset` where a `charset_map` says how.
//!
//! The filter looks at no text to find out what it is in.

mod handler;
mod plan;
mod recode;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Charset;
