//! WebDAV's methods for files (RFC 4918): PUT, DELETE, MKCOL, COPY and MOVE.
//!
//! ```text
//!  request ─► checked on the lane ─► job ─► thread for blocking work ─► 201, 204 or an error
//! ```

mod handler;
mod job;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use plan::Dav;
