//! The matches of a request: what they may cost together, and how a heavy one is waited for
//! ([`turn`]). What a pattern is stands in [`turnpike_plan::regex`].

mod pool;
#[cfg(test)]
mod tests;
pub(crate) mod turn;

#[cfg(test)]
pub(crate) use pool::Hold;
pub use turn::matching::Settled;
pub use turn::{Position, Turn};
pub use turnpike_plan::regex::{Captures, Case, Programs, Regex, Undecided};
