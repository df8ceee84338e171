//! Files of the file system as answers: what a location does unless it says otherwise.
//!
//! A path that ends in a slash is a folder's and is left to those that list or choose.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::StaticFiles;
