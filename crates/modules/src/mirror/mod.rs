//! `mirror`: copies of a request for other locations, whose answers nobody waits for.

mod handler;
mod plan;
mod rows;

pub(crate) use plan::Mirror;
