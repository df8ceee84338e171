//! What only HTTP/1 knows of its client: a connection of its own, and heads as text.

mod peer;
mod watch;

pub use peer::Peer;
pub(crate) use peer::end_of_input;
pub(crate) use watch::Watch;
