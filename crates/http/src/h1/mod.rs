//! What only HTTP/1 knows of its client: a connection of its own, and heads as text.

mod input;
mod peer;
mod request;
mod response;
mod watch;

pub(crate) use input::{Input, InputPool};
pub use peer::Peer;
use peer::end_of_input;
pub(crate) use request::{Head, give_up, read};
pub(crate) use response::{write_head, write_last_chunk, write_piece};
pub(crate) use watch::Watch;
