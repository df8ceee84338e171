//! A simulated lane in a world that a seed determines: the real event loop, connections and engine,
//! in one thread, with a virtual clock and scripted peers.
//!
//! The sockets are real (unix socket pairs), so edges, half-closed connections and full buffers
//! need no imitation. Only time and the free choices of a kernel (short sends, spurious events) are
//! simulated, by the hooks in `turnpike_lane::sys::simulation`. So a seed always gives the same
//! run, and a run takes about a millisecond, however long its time-outs are.

#![cfg(feature = "simulation")]

mod answer;
mod client;
mod content;
mod expected;
mod flows;
mod handshake;
mod http2;
pub mod message;
mod origin;
mod passing;
mod plan;
mod protocol;
mod quic;
mod quic_client;
mod registrations;
mod relay_end;
mod relays;
mod request;
mod run;
mod scenario;
mod seeds;
mod stream;
mod time;
mod verdict;
mod world;

pub use run::{Bench, Options, Report};
pub use seeds::{Seeds, Summary, run_all, show};
pub use turnpike_lane::sys::simulation::Fault;
