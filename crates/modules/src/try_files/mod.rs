//! `try_files`: the first of several files or folders that is there, else a last resort.
//!
//! The handler only chooses the path; another handler answers with it.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::TryFiles;
