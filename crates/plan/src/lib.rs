//! The common part of plans for every protocol: the environment, the builder, variables, templates
//! and patterns, listens, server names, commands, metrics, temporary files, each lane's state, and
//! background work.
//!
//! Nothing here knows a request.

pub mod background;
pub mod builder;
pub mod cidr;
pub mod control;
pub mod environment;
pub mod held;
pub mod keys;
pub mod lane;
pub mod listen;
pub mod messages;
pub mod metrics;
pub mod passed;
pub mod pattern;
pub mod pattern_list;
pub mod phases;
pub mod ports;
pub mod product;
pub mod protocol;
pub mod proxy_header;
pub mod public_name;
mod quoted;
pub mod rate;
pub mod regex;
pub mod relocate;
pub mod rooms;
pub mod server_names;
pub mod template;
pub mod temporary;
pub mod time;
pub mod tls;
pub mod variables;

pub use quoted::Quoted;
