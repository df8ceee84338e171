//! A lane in a world that a seed decides: the real event loop, connections and engine, in one
//! thread, with a virtual clock and scripted peers.
//!
//! Sockets are the kernel's own (unix socket pairs): edges, half-closed connections and full
//! buffers need no imitation. Only time and what a kernel may do at its own discretion (short
//! sends, events without reason) are ours, by the hooks in `turnpike_lane::sys::simulation`. So a
//! seed gives the same run again, and a run takes about a millisecond, however long its time-outs
//! are.

#![cfg(feature = "simulation")]

mod client;
mod content;
mod expected;
mod message;
mod origin;
mod plan;
mod request;
mod run;
mod scenario;
mod seeds;
mod verdict;
mod world;

pub use run::{Bench, Options, Report};
pub use seeds::{Seeds, Summary, run_all, show};
pub use turnpike_lane::sys::simulation::Fault;
