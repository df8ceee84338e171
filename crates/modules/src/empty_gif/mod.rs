//! `empty_gif`: one transparent pixel, from memory.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::EmptyGif;
