//! `echo` and others of the module of that name: answers that are written in the configuration, for
//! tests and for looking at what a request is.

mod body;
mod handler;
mod plan;
mod rows;
mod variables;

pub(crate) use plan::Echo;
