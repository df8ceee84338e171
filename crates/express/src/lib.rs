//! The express lane: small, hot answers are sent by a program of ours in the network driver (XDP),
//! and their requests never reach a socket.
//!
//! ```text
//!  network driver            kernel              serving process
//!  ──────────────            ──────              ───────────────
//!  express (XDP) ──answers──► client
//!       │  ▲
//!       │  └── memory ◄──────────────────────────── lanes publish what they have answered
//!       └─ all else ─► hand_over (tc) ─► listener ─► lanes answer
//! ```
//!
//! The master, which has the privilege, loads and attaches the program ([`Installation`]); the
//! serving process has its memory mapped ([`Memory`]) and needs none. The program is in C, in the
//! folder `bpf`; its compiled object is committed, so that a build needs no clang.

mod counters;
mod drops;
mod installation;
mod layout;
mod memory;
mod program;
mod proof;
mod publisher;
mod samples;
mod sources;

#[cfg(test)]
mod tests;

pub use counters::{COUNTERS, CounterRow};
pub use installation::{Attempt, Installation, Passed};
pub use layout::{ANSWER_BYTES_MAX, SLOT_BYTES};
pub use memory::{Answer, Gate, Key, Memory, Published, SAMPLED_ONE_IN_MAX};
pub use program::{
    Mode, OBJECTS_MAX, OBJECTS_MIN, Program, ProgramSettings, Refusal, find_interface, slot_count,
};
pub use proof::{Arrival, Counts, Proof};
pub use publisher::Publisher;
pub use samples::Sample;
pub use sources::{Derivation, Source, Withdrawn};
