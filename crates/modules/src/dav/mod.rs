//! WebDAV's methods for files (RFC 4918): PUT, DELETE, MKCOL, COPY and MOVE, and as in the module
//! dav_ext PROPFIND, OPTIONS, LOCK and UNLOCK.
//!
//! ```text
//!  request ─► checked on the lane ─► job ─► thread for blocking work ─► 201, 204 or an error
//! ```

mod extended;
mod handler;
mod job;
mod listing;
mod locks;
mod plan;
mod properties;
mod request_xml;
mod rows;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use plan::Dav;
