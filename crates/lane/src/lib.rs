//! The runtime below HTTP: pinned lanes, their gates (listening sockets), files and counters, and
//! the system calls that they use.
//!
//! A lane is one pinned thread with all of its data; a gate is a listening socket of a lane. This
//! crate knows bytes, descriptors and time. It must not know requests, directives or configuration
//! texts. Every unsafe block of the server is inside [`sys`].

#![deny(unsafe_code)]

pub mod affinity;
pub mod alternating;
pub mod clock;
pub mod counters;
pub mod event_loop;
pub mod files;
pub mod flows;
pub mod gate;
pub mod handshakes;
pub mod heap;
pub mod log;
pub mod pipes;
pub mod pool;
pub mod random;
pub mod recency;
pub mod siphash;
pub mod steering;
pub mod symbols;
#[allow(unsafe_code)]
pub mod sys;
pub mod timeout;
pub mod transport;
pub mod trust;
pub mod turns;
pub mod waiting;

/// The number of allocations since the process started; `None` if they are not counted.
pub fn allocations() -> Option<u64> {
    // A program that counts has made some by now.
    #[cfg(debug_assertions)]
    return Some(sys::allocations::count()).filter(|count| *count > 0);
    #[cfg(not(debug_assertions))]
    return None;
}
