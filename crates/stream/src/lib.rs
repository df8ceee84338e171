//! Stream proxying for Turnpike: sessions of TCP connections and of flows of UDP, what a `stream`
//! block means for them, and the phases that each goes through.
//!
//! ```text
//!  accept ─► PROXY header ─► phases (real address, limits, access) ─► TLS handshake
//!         ─► phase (preread) ─► content ─► log
//! ```
//!
//! The crate names no handler: directive families live in a crate of their own and reach it through
//! [`plan::Family`]. It knows nothing of HTTP.

pub mod client;
mod cut;
mod datagrams;
pub mod flow;
mod flow_table;
mod handshake;
pub mod lane;
mod log;
mod loops;
pub mod own_connections;
pub mod phase;
pub mod plan;
mod protocol;
pub mod relay_socket;
pub mod rows;
pub mod serve;
pub mod session;
pub mod sessions;
mod stepped;
pub mod upstream;
pub mod variables;
pub mod watch;
