//! What a plan needs whatever protocol it is for: what it takes from the process, and the work that
//! goes on in the background while it is in force.
//!
//! Nothing here knows a request.

pub mod background;
pub mod environment;
