//! What only HTTP/1 knows: of its client, which has a connection of its own, and of servers that
//! requests are passed to; heads as text.

pub(crate) mod input;
pub mod origin;
pub mod peer;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod watch;
