//! HTTP/1 connections of a lane.
//!
//! ```text
//!             accept ─► optimistic first transaction ─┐
//!                                                     ▼
//!   ┌─► parked (a slab entry: first bytes, rest of a head, next request)
//!   │        │ readable
//!   │        ▼
//!   │   served in the turn: parse, run, send ──────────► closed
//!   │        │ must wait
//!   │        ▼
//!   └── driven (a future: slow client, body, rate limit, upstream) ──► lingers, closed
//! ```
//!
//! A connection is moved by value between these: none of them shares it with another.
//!
//! What a connection is, where it stands and what the lane holds of all of them (`open`, `slot`,
//! `connections`) knows nothing of what is done with it.

mod awaited;
mod background;
mod commands;
mod connections;
mod cut;
mod driven;
mod ending;
mod events;
mod hand_over;
mod handshake;
mod http2;
mod http3;
mod moving;
mod open;
mod parked;
mod passed;
mod proxy_header;
mod rate;
mod requests;
mod return_queue;
mod rush;
mod sampled_logs;
mod security;
mod serve;
mod shortage;
mod slot;
mod slots;
mod splicing;
mod stalled;
mod successor_link;
#[cfg(test)]
mod tests;
mod transfer;

pub use commands::Command;
pub use connections::Connections;
pub use moving::Moving;
pub use successor_link::{SuccessorLink, offer, take_connections};
