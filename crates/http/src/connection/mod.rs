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

mod background;
mod commands;
mod connections;
mod cut;
mod ending;
mod events;
mod http1;
mod http2;
mod http3;
mod moving;
mod open;
mod parked;
mod proxy_header;
mod requests;
mod return_queue;
mod rush;
mod sampled_logs;
mod shortage;
mod slot;
mod slots;
mod stalled;
#[cfg(test)]
mod tests;
mod tls;

pub use commands::Command;
pub use connections::Connections;
pub use moving::{Moving, SuccessorLink, offer, take_connections};
