//! `addition`: what other locations answer, before and after the body of a response.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::Addition;
