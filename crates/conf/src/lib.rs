//! The configuration language: nginx's syntax, read by nginx's rules, with nginx's messages.
//!
//! This crate turns text into a [`Tree`]: what was written, with its places. It knows no directive but `include`, opens no socket, and must not
//! learn what any directive means: that is said by the rows' owners.
//!
//! ```text
//!  files ─► Loader ─► lexer ─► parse: Tree
//! ```

mod error;
mod glob;
mod lexer;
mod parse;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use error::{ConfError, Errors};
pub use lexer::TOKEN_BYTES_MAX;
pub use parse::{BLOCK_DEPTH_MAX, INCLUDE_DEPTH_MAX, INCLUDES_MAX, parse};
pub use source::{DiskLoader, FILE_BYTES_MAX, Loader, MemoryLoader, Source, Sources};
pub use text::{bytes_of, text_of};
pub use tree::{Directive, FileId, Span, Tree, Word};
