//! `proxy_pass`: requests are passed to upstream servers, and what they answer to the client.
//!
//! The family reads its directives; `pass` does the rest, with its origin of HTTP.
//!
//! What is forwarded is written anew from what was parsed, in both directions; nothing is passed
//! on raw but bodies. Who the servers are, and connections to them, is the upstream family's.

mod forwarded;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use plan::Proxy;
