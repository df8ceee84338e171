//! What a plan needs whatever protocol it is for: the work that goes on in the background while it
//! is in force.
//!
//! Nothing here knows a request.

pub mod background;
