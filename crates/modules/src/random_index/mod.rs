//! `random_index`: one of a folder's files, by chance.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::RandomIndex;
