//! The cache: the rules of storing and freshness (RFC 9111), the zones, the fetches and the purges.
//!
//! ```text
//!  head ─► freshness::judge ─► Entry ─► Zone (index, memory or files) ─► find ─► Variant
//!                                         ▲                │
//!                            fetch (one per key)          purge by key, prefix, host, tag
//! ```
//!
//! The crate knows neither requests nor directives: its input is heads, keys and times as plain
//! values.

pub mod control;
pub mod disk;
pub mod fetch;
pub mod freshness;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod head;
pub mod links;
pub mod manager;
pub mod not_stored;
pub mod partial;
pub mod purge;
pub mod stored;
pub mod structured;
pub mod tally;
pub mod validation;
pub mod vary;
pub mod why;
pub mod zone;

#[cfg(test)]
mod tests;
