//! The control socket: a unix socket on which a running server is asked and told things.
//!
//! One request is one line of JSON, and so is its answer; both ends of it are here. What a verb
//! does is said where it is done: in the master, the service, or a directive family.
//!
//! ```text
//!  {"id":1,"verb":"reload"}                       ──►
//!  ◄── {"id":1,"result":{"generation":2, ...}}
//!  ◄── {"id":1,"error":{"code":"failed","message":"..."}}
//! ```

pub mod api;
mod client;
mod clients;
pub mod command_line;
mod connection;
mod protocol;
mod show;
pub(crate) mod socket;
#[cfg(test)]
mod tests;
mod top;
mod warm;

pub use client::{Client, Trouble};
pub(crate) use protocol::{Home, LIFE_VERB, VERBS, find_verb};
pub use protocol::{LINE_BYTES_MAX, Request, RequestError, answer_line, family_verbs};
