//! Requests that were answered elsewhere, such as in the network driver, and of which lanes write
//! lines of access logs all the same: what is told of them.

use std::net::SocketAddr;

use crate::plan::index::{LocationIndex, ServerIndex};

/// A request of HTTP/1 that was answered elsewhere, on a connection of its own.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredElsewhere<'a> {
    /// The request's head, whole, as it came.
    pub head: &'a [u8],
    pub client: SocketAddr,
    /// The address that the client connected to.
    pub gate: SocketAddr,
    /// Where a lane would have answered it.
    pub server: ServerIndex,
    pub location: LocationIndex,
    pub status: u16,
    /// Bytes of the answer's head, and those with its body.
    pub head_bytes: u64,
    pub sent_bytes: u64,
    /// For how many requests it stands, of which it was drawn by lot.
    pub stands_for: u32,
}

/// Something that answers requests of a plan elsewhere, and tells of them.
pub trait Elsewhere: Send + Sync {
    /// Tells of some requests that were answered since, a limited number. It must not block. Lanes
    /// call it about every 100 ms, and at least every second.
    fn tell(&self, take: &mut dyn FnMut(AnsweredElsewhere<'_>));
}
