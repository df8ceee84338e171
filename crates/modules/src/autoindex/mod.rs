//! `autoindex`: a folder's list of entries, as a page or as data.
//!
//! The folder is read while the lane waits, as with nginx: listings are for people, not for load.

mod data;
mod handler;
mod page;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Autoindex;
