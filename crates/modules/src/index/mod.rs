//! `index`: the file that stands for a folder.
//!
//! The handler only finds the file's path; the request goes on with that path, and may so meet
//! another location.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::Index;
