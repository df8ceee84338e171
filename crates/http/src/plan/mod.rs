//! What a configuration means: typed, resolved once, never changed, shared by all lanes.
//!
//! ```text
//!  Plan ─► Listen (address) ─► names ─► Server ─► locations ─► Location ─► handlers by phase
//! ```
//!
//! Servers and locations stand in flat tables and are named by index, so that an exchange can
//! hold on to its location without a lifetime. Building is in [`builder`]; lanes only read.

mod assemble;
mod builder;
pub(crate) mod index;
pub(crate) mod listen;
pub(crate) mod location_words;
pub(crate) mod locations;
mod prefixes;
mod quic;
pub(crate) mod resolved;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Environment, Family, LocationDraft, PlanError, ReadLocation};
pub use index::{ListenIndex, LocationIndex, ServerIndex};
pub use listen::{Listen, ListenRequest, listens};
pub use locations::{Found, LocationTree};
pub use resolved::{LimitExcept, Location, Plan, Server};
pub use turnpike_plan::pattern::Pattern;
pub use turnpike_plan::pattern_list::PatternList;
