//! Sessions that were learned: which server each belongs to, for all lanes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use md5::{Digest, Md5};
use slab::Slab;
use turnpike_lane::recency::Recency;

/// Bytes of a zone that a session is counted with: a megabyte holds about 8000, as nginx's.
const SESSION_BYTES: u64 = 128;

/// The hash of a session's identity: what clients send may be of any length.
type Key = [u8; 16];

/// Sessions by the hash of their identity. When the zone is full, the one that was silent longest
/// makes room.
pub(crate) struct Sessions {
    sessions_max: usize,
    timeout_ms: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    index: HashMap<Key, usize>,
    sessions: Slab<Session>,
    recency: Recency,
}

struct Session {
    key: Key,
    server: Box<str>,
    /// When a request of the session was last seen.
    used_ms: u64,
}

impl Sessions {
    pub(super) fn new(size_bytes: u64, timeout_ms: u64) -> Sessions {
        let sessions_max = usize::try_from(size_bytes / SESSION_BYTES).unwrap_or(usize::MAX);
        Sessions::of_number(sessions_max.max(1), timeout_ms)
    }

    /// Room for so many of them; one is forgotten when it was silent for `timeout_ms`.
    pub(crate) fn of_number(sessions_max: usize, timeout_ms: u64) -> Sessions {
        Sessions {
            sessions_max,
            timeout_ms,
            table: Mutex::default(),
        }
    }

    /// The server of a session.
    pub(crate) fn server(&self, session: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        let table = self.table();
        let session = &table.sessions[*table.index.get(&key(session))?];
        let is_fresh = now_ms.saturating_sub(session.used_ms) < self.timeout_ms;
        is_fresh.then(|| session.server.as_bytes().to_vec())
    }

    /// A server has begun a session, or taken one over.
    pub(crate) fn begin(&self, session: &[u8], server: &str, now_ms: u64) {
        let mut table = self.table();
        table.expire(now_ms, self.timeout_ms);
        let key = key(session);
        table.remove(&key);
        if table.sessions.len() >= self.sessions_max
            && let Some(oldest) = table.recency.oldest()
        {
            let oldest = table.sessions[oldest].key;
            table.remove(&oldest);
        }
        table.insert(key, server, now_ms);
    }

    /// A session had a word. One that is not known is not begun.
    pub(super) fn go_on(&self, session: &[u8], server: &str, now_ms: u64) {
        let mut table = self.table();
        table.expire(now_ms, self.timeout_ms);
        let key = key(session);
        if table.remove(&key) {
            table.insert(key, server, now_ms);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, key: Key, server: &str, now_ms: u64) {
        let slot = self.sessions.insert(Session {
            key,
            server: server.into(),
            used_ms: now_ms,
        });
        self.recency.insert(slot);
        self.index.insert(key, slot);
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(slot) = self.index.remove(key) else {
            return false;
        };
        self.recency.remove(slot);
        self.sessions.remove(slot);
        true
    }

    /// Forgets the sessions that were silent for `timeout_ms`.
    fn expire(&mut self, now_ms: u64, timeout_ms: u64) {
        while let Some(oldest) = self.recency.oldest() {
            let session = &self.sessions[oldest];
            if now_ms.saturating_sub(session.used_ms) < timeout_ms {
                return;
            }
            let key = session.key;
            self.remove(&key);
        }
    }
}

fn key(session: &[u8]) -> Key {
    Md5::digest(session).into()
}

#[cfg(test)]
mod tests {
    use super::Sessions;

    #[test]
    fn sessions_are_learned_moved_and_forgotten() {
        let sessions = Sessions::new(256, 1000);
        let server = |session: &[u8], now_ms| sessions.server(session, now_ms);
        sessions.go_on(b"a", "one", 0);
        assert_eq!(server(b"a", 0), None);
        sessions.begin(b"a", "one", 0);
        assert_eq!(server(b"a", 999), Some(b"one".to_vec()));
        assert_eq!(server(b"a", 1000), None);
        sessions.begin(b"a", "one", 2000);
        sessions.begin(b"b", "two", 2001);
        sessions.go_on(b"a", "three", 2002);
        sessions.begin(b"c", "two", 2003); // the zone has room for two
        assert_eq!(server(b"a", 2003), Some(b"three".to_vec()));
        assert_eq!(server(b"b", 2003), None);
        assert_eq!(server(b"c", 2003), Some(b"two".to_vec()));
    }
}
