//! A lane and the protocols that it serves, as equals.
//!
//! ```text
//!  the service ──Command──► mailbox ─┐          ┌─► http::Connections
//!  the event loop ──event──► LaneHandler ──owner┤
//!  other lanes ──datagrams──► inbox ─┘          └─► stream::Sessions
//! ```
//!
//! The handler owns what is the lane's: its commands, gates, CPUs, heartbeat and end. It calls the
//! protocol whose gate, socket or flow it is about; which there are says one list (`list`). What a
//! protocol is, says `turnpike_plan::protocol`. Nothing here knows what bytes mean.

mod commands;
mod dispatch;
mod ending;
mod full;
mod handler;
mod list;

pub use commands::{Apply, Command, Leave, RoundRobin};
pub use handler::LaneHandler;
pub use list::{Moving, OwnCommand, Plans, Process, Protocols, Successors};
