//! `empty_gif`: one transparent pixel, from memory.

mod handler;
mod plan;
mod rows;

pub use plan::EmptyGif;
