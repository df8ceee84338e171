//! `tunnel_pass`: the server is a forward proxy for `CONNECT` (RFC 9110 section 9.3.6).
//!
//! The family says where tunnels go; `pass` chooses servers, connects and carries the bytes.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Tunnels;
