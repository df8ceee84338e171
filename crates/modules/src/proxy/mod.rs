//! `proxy_pass`: requests are passed to upstream servers, and what they answer to the client.
//!
//! ```text
//!  plan ─► settings
//!  request (writer) ─► upload ─►┐                       ┌─► response (head) ─► relay (body)
//!                               ├─ attempt ◄─ upstream ─┤
//!  conditions (who is next) ◄───┘                       └─► tunnel (101)
//!  response_store: where a cache joins in
//! ```
//!
//! What is forwarded is written anew from what was parsed, in both directions; nothing is passed
//! on raw but bodies. Who the servers are, and connections to them, is the upstream family's.

mod attempt;
mod awaited_head;
mod coding;
mod conditions;
mod cookies;
mod early_hints;
mod handler;
mod head;
mod hops;
mod names;
mod plan;
mod proxy_header;
mod relay;
mod request;
mod response;
pub(crate) mod response_store;
mod rewrites;
mod rows;
mod settings;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod try_notes;
mod tunnel;
mod upload;
mod variables;

pub(crate) use conditions::Failure;
pub(crate) use plan::Proxy;
