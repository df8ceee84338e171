//! What a plan needs whatever protocol it is for: what it takes from the process, the builder that
//! families fill, variables, templates and patterns, listens, names of servers, commands, metrics,
//! temporary files, what each lane keeps for it, and the work that goes on in the background while
//! it is in force.
//!
//! Nothing here knows a request.

pub mod background;
pub mod builder;
pub mod control;
pub mod environment;
pub mod keys;
pub mod lane;
pub mod listen;
pub mod metrics;
pub mod pattern;
pub mod pattern_list;
pub mod ports;
pub mod product;
pub mod proxy_header;
mod quoted;
pub mod regex;
mod relocate;
pub mod rooms;
pub mod server_names;
pub mod template;
pub mod temporary;
pub mod time;
pub mod tls;
pub mod variables;

pub use quoted::Quoted;
