//! TLS with a client: the handshake as a parked state, and what it leaves with the connection.

mod handshake;
pub(super) mod security;
