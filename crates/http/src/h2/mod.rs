//! What only HTTP/2 knows of its clients: frames, and how their connection is read and written. Its
//! requests and their answers are [`crate::streams`]'s.
//!
//! ```text
//!  socket ─► connection (frames in, frames out; parked while nothing is open, else a future)
//!               │ a request: run at once, answered at once where all is at hand
//!               └─► answer (a future, where something must be waited for)
//! ```
//!
//! The connection alone reads and writes the socket. Answers put frames into its output as far as
//! windows, the output and priorities let them, and wake its future. The frames themselves are
//! `wire::h2`'s.

pub(crate) mod connection;
pub(crate) mod drive;
pub(crate) mod frames;
pub(crate) mod output_pool;
