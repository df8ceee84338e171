//! `random_index`: one of a folder's files, by chance.

mod handler;
mod plan;
mod rows;

pub use plan::RandomIndex;
