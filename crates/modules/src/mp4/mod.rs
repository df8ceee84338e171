//! `mp4`: a part of a film by its times (`?start=10.5&end=20`), as a film of its own.
//!
//! The index is read and written anew on a thread that may block; the samples are sent from the
//! file.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Mp4;
