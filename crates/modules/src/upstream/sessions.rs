//! Sessions that were learned: which server each belongs to, for all lanes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use md5::{Digest, Md5};

/// Bytes of a zone that a session is counted with: a megabyte holds about 8000, as nginx's.
const SESSION_BYTES: u64 = 128;

/// The hash of a session's identity: what clients send may be of any length.
type Key = [u8; 16];

/// Sessions by the hash of their identity. When the zone is full, the one that was silent longest
/// makes room.
pub(super) struct Sessions {
    sessions_max: usize,
    timeout_ms: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<Key, Session>,
    /// Sessions by the time of their last word; the number tells those of one moment apart.
    by_age: BTreeMap<(u64, u64), Key>,
    next: u64,
}

struct Session {
    server: Box<str>,
    age: (u64, u64),
}

impl Sessions {
    pub(super) fn new(size_bytes: u64, timeout_ms: u64) -> Sessions {
        let sessions_max = usize::try_from(size_bytes / SESSION_BYTES).unwrap_or(usize::MAX);
        Sessions {
            sessions_max: sessions_max.max(1),
            timeout_ms,
            table: Mutex::default(),
        }
    }

    /// The server of a session.
    pub(super) fn server(&self, session: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        let table = self.table();
        let session = table.sessions.get(&key(session))?;
        let is_fresh = now_ms.saturating_sub(session.age.0) < self.timeout_ms;
        is_fresh.then(|| session.server.as_bytes().to_vec())
    }

    /// A server has begun a session, or taken one over.
    pub(super) fn begin(&self, session: &[u8], server: &str, now_ms: u64) {
        let mut table = self.table();
        table.expire(now_ms, self.timeout_ms);
        let key = key(session);
        table.remove(&key);
        if table.sessions.len() >= self.sessions_max
            && let Some(oldest) = table.by_age.values().next().copied()
        {
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
        let age = (now_ms, self.next);
        self.next += 1;
        self.by_age.insert(age, key);
        let server = server.into();
        self.sessions.insert(key, Session { server, age });
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(session) = self.sessions.remove(key) else {
            return false;
        };
        self.by_age.remove(&session.age);
        true
    }

    fn expire(&mut self, now_ms: u64, timeout_ms: u64) {
        while let Some((&(last_ms, _), &key)) = self.by_age.first_key_value() {
            if now_ms.saturating_sub(last_ms) < timeout_ms {
                return;
            }
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
