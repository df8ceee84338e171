//! The configuration language: nginx's syntax, read by nginx's rules, with nginx's messages.
//!
//! This crate parses text into a [`Tree`] (words with their places), and checks a tree into a
//! [`Scope`] (allowed directives with their inheritance), by the directive rows of a [`Registry`].
//! It knows no directive except `include`, opens neither file nor socket, and must not know the
//! meaning of a directive: that belongs to the rows' owners.
//!
//! ```text
//!  files ─► Loader ─► lexer ─► parse: Tree ─► Registry::check: Scope ─► View: typed look-ups
//! ```

mod check;
mod environment;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod glob;
mod lexer;
mod mistakes;
mod parse;
mod reference;
mod registry;
mod source;
mod suggest;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod unclosed;
pub mod value;
mod view;

pub use check::{Entry, Scope};
pub use error::{Complaint, ConfError, Errors};
pub use lexer::TOKEN_BYTES_MAX;
pub use mistakes::Mistakes;
pub use parse::{BLOCK_DEPTH_MAX, INCLUDE_DEPTH_MAX, INCLUDES_MAX, parse};
pub use reference::{FamilyReference, Origin, Reference, ReferenceText, plain};
pub use registry::{Arguments, Check, Context, Merge, Registry, Repeat, Row, Value};
pub use source::{FILE_BYTES_MAX, Loader, MemoryLoader, Source, Sources};
pub use suggest::{did_you_mean, nearest};
pub use text::{bytes_of, text_of};
pub use tree::{Directive, FileId, Span, Tree, Word};
pub use view::View;
