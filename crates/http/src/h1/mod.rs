//! What only HTTP/1 knows of its client: a connection of its own, and heads as text.

pub(crate) mod input;
pub mod peer;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod watch;
