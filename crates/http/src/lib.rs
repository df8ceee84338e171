//! HTTP for Turnpike: requests, responses, variables, the location tree, the phases, and the
//! connections they come on.
//!
//! The crate knows how a request travels and what a configuration means for that; it names no
//! handler: directive families live in a crate of their own and reach it through [`plan::Family`].

pub mod account;
mod arrived;
pub mod base64;
pub mod body;
pub mod body_filter;
mod changed_fields;
pub mod client;
mod client_certificate;
pub mod connection;
mod connection_context;
pub mod counters;
pub mod difference;
pub mod engine;
pub mod evaluation;
pub mod exchange;
pub mod h1;
mod h2;
mod h3;
mod interim;
pub mod lane;
mod log;
mod options;
pub mod phase;
mod pieces;
pub mod plan;
#[cfg(any(test, feature = "simulation"))]
pub mod process_rows;
pub mod received;
pub mod regex;
pub mod request;
pub mod requester;
pub mod response;
mod response_head;
pub use turnpike_plan::rooms;
mod routing;
pub mod running;
pub mod sampling;
mod scratch;
mod segments;
pub mod sending;
pub mod settings;
mod special;
mod streams;
pub mod subrequest;
#[cfg(test)]
mod testing;
mod traffic;
pub mod upstream;
pub mod variables;

pub use turnpike_plan::Quoted;
pub use turnpike_plan::product::Product;
