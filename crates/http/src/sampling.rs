//! Samples of the requests that the express lane answered: the program in the network driver passes
//! them on, and lanes write lines of access logs.

use std::net::SocketAddr;

use crate::plan::index::{LocationIndex, ServerIndex};

/// A sample: a request of HTTP/1 that no lane answered, on a connection of its own.
#[derive(Clone, Copy, Debug)]
pub struct SampledRequest<'a> {
    /// The whole head of the request, as it was received.
    pub head: &'a [u8],
    pub client: SocketAddr,
    /// The address that the client connected to.
    pub gate: SocketAddr,
    /// The server and location by which a lane would have answered it.
    pub server: ServerIndex,
    pub location: LocationIndex,
    pub status: u16,
    /// Bytes of the answer's head, and those with its body.
    pub head_bytes: u64,
    pub sent_bytes: u64,
    /// The number of requests that the sample stands for.
    pub weight: u32,
}

/// A source of samples: an answerer of a plan's requests that is no lane.
pub trait SampleSource: Send + Sync {
    /// Takes a limited number of the samples that have arrived, and must not block. Lanes call it
    /// about every 100 ms, and at least every second.
    fn drain(&self, take: &mut dyn FnMut(SampledRequest<'_>));
}
