//! `more_set_headers` and its like, as in the module headers-more: fields of responses and requests
//! are set or taken away, those included that the server makes itself.
//!
//! Fields that say where a message ends, and fields of the connection, belong to the protocol and
//! cannot be changed.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::MoreHeaders;
