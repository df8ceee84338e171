//! `proxy_pass`: requests are passed to upstream servers, and what they answer to the client.
//!
//! The family reads its directives and writes HTTP/1 requests; `pass` does the rest.
//!
//! What is forwarded is written anew from what was parsed, in both directions; nothing is passed
//! on raw but bodies. Who the servers are, and connections to them, is the upstream family's.

mod cookies;
mod forwarded;
mod head;
mod hops;
pub(crate) mod origin;
mod plan;
pub(crate) mod request;
mod rewrites;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use plan::Proxy;
