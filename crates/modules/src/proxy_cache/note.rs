//! What this family keeps with an exchange: how the cache came to its answer.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::rooms::{Room, Rooms};
use turnpike_wire::message::Head;

/// What a cache had to do with an answer, for variables. Empty where none was asked.
#[derive(Default)]
pub(super) struct CacheNote {
    /// `$upstream_cache_status`; empty: no cache was asked.
    pub(super) status: &'static str,
    /// Why the answer was not stored; empty where it was, or did not come from a server.
    pub(super) not_stored: &'static str,
    /// When what is stored was last modified, in unix seconds.
    pub(super) modified: Option<i64>,
    /// The entity tag.
    pub(super) etag: Vec<u8>,
    /// The age in seconds.
    pub(super) age_s: Option<u64>,
    /// How long it is fresh yet, in seconds; less than 0 where it is stale.
    pub(super) fresh_for_s: Option<i64>,
    /// Why a server was asked, in the words of RFC 9211 section 2.2; empty where none was.
    pub(super) forward: &'static str,
    /// Whether the answer of a server is being stored.
    pub(super) keeps: bool,
    /// Whether the request waited for another's answer.
    pub(super) collapsed: bool,
    /// The head of what is stored, where a server is asked all the same and the client may have a
    /// hint of it.
    pub(super) hinting: Option<Arc<Head>>,
    /// Whether the client has had that hint.
    pub(super) hinted: bool,
    /// Whether the answer was noted as an original: see [`crate::common::published_copies`].
    pub(super) is_original: bool,
}

impl Room for CacheNote {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The note of an exchange, to be written.
pub(super) fn note(rooms: &mut Rooms) -> &mut CacheNote {
    rooms.get_mut()
}

/// The note of an exchange, where a cache was asked.
pub(super) fn noted(exchange: &Exchange) -> Option<&CacheNote> {
    exchange.rooms.get()
}
