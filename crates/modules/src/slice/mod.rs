//! `slice`: a large response is asked for in parts, each of which a cache keeps under a key of its
//! own (`$slice_range`), and put together again.
//!
//! The first part answers the request itself; the others are subrequests in the same location, one
//! after the other, each once the client has taken the one before it.

mod body;
mod handler;
mod part;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use plan::Slice;
