//! Sessions that all serving processes of a server share: those before and after a change of the
//! binary, and the next one after a crash. They stand in memory that outlives a process, behind
//! the keys of tickets.
//!
//! A session has four places, and a new one takes the place of the oldest of them. Readers and
//! writers never wait: a place that another thread writes is passed over, since a session that is
//! not found costs a client one whole handshake.
//!
//! ```text
//!  place:  version (odd while it is written), digest of cache and session, time, bytes, content
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use aws_lc_rs::digest::{Context as Digest, SHA256};
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_plan::environment::KEPT_KEY_WORDS;

use super::versioned;

/// The number of this layout: another binary may have another one.
const LAYOUT: u64 = 1;

/// The place of the layout's number among the words that the keys leave unused.
const LAYOUT_AT: usize = 1;

/// Words of a place: the largest sessions are those of clients with certificates.
const PLACE_WORDS: usize = 128;

/// The places that a session may have.
const WAYS: usize = 4;

/// Words of a digest.
const DIGEST_WORDS: usize = 4;

/// The places of a place's words.
const VERSION: usize = 0;
const DIGEST: usize = 1;
const TIME: usize = DIGEST + DIGEST_WORDS;
const BYTES: usize = TIME + 1;
const CONTENT: usize = BYTES + 1;

/// Bytes of the largest session that is shared; larger ones are in their process's memory alone.
const SESSION_BYTES_MAX: usize = (PLACE_WORDS - CONTENT) * 8;

type Key = [u64; DIGEST_WORDS];

/// The sessions of one cache.
#[derive(Clone, Debug)]
pub(super) struct SharedSessions {
    words: Arc<SharedWords>,
    /// The cache, which is part of each key: caches do not know each other's sessions.
    cache: Arc<str>,
}

impl SharedSessions {
    /// The sessions of a cache of that name; `None` where the memory has another layout or no room.
    pub(super) fn new(words: Arc<SharedWords>, cache: &str) -> Option<SharedSessions> {
        let layout = words.words().get(LAYOUT_AT)?;
        if !versioned::has_layout(layout, LAYOUT) || sets(&words) == 0 {
            return None;
        }
        Some(SharedSessions {
            words,
            cache: cache.into(),
        })
    }

    /// Keeps a session, if it is not too large.
    pub(super) fn put(&self, id: &[u8], session: &[u8], now_s: u64) {
        if session.len() > SESSION_BYTES_MAX {
            return;
        }
        let key = self.key(id);
        let age = |place: &&[AtomicU64]| {
            if key_of(place) == key {
                0
            } else {
                place[TIME].load(Relaxed)
            }
        };
        let Some(place) = self.places(&key).min_by_key(age) else {
            return;
        };
        write(place, |place| {
            for (word, value) in place[DIGEST..].iter().zip(key) {
                word.store(value, Relaxed);
            }
            place[TIME].store(now_s, Relaxed);
            place[BYTES].store(session.len() as u64, Relaxed);
            for (word, bytes) in place[CONTENT..].iter().zip(session.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_ne_bytes(whole), Relaxed);
            }
        });
    }

    /// The session of that name.
    pub(super) fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        self.places(&key).find_map(|place| read(place, &key))
    }

    /// Forgets a session.
    pub(super) fn remove(&self, id: &[u8]) {
        let key = self.key(id);
        for place in self.places(&key).filter(|place| key_of(place) == key) {
            write(place, |place| {
                for word in &place[DIGEST..] {
                    word.store(0, Relaxed);
                }
            });
        }
    }

    fn key(&self, id: &[u8]) -> Key {
        let mut digest = Digest::new(&SHA256);
        digest.update(&(self.cache.len() as u64).to_be_bytes());
        digest.update(self.cache.as_bytes());
        digest.update(id);
        let sum = digest.finish();
        let (words, _) = sum.as_ref().as_chunks();
        std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word)))
    }

    fn places(&self, key: &Key) -> impl Iterator<Item = &[AtomicU64]> {
        let set = usize::try_from(key[0] % sets(&self.words) as u64).unwrap_or(0);
        let start = KEPT_KEY_WORDS + set * WAYS * PLACE_WORDS;
        let words = self.words.words().get(start..).unwrap_or_default();
        words.chunks_exact(PLACE_WORDS).take(WAYS)
    }
}

/// The number of sets of places.
fn sets(words: &SharedWords) -> usize {
    let words = words.words().len().saturating_sub(KEPT_KEY_WORDS);
    words / (WAYS * PLACE_WORDS)
}

fn key_of(place: &[AtomicU64]) -> Key {
    std::array::from_fn(|at| place[DIGEST + at].load(Relaxed))
}

/// Writes a place, unless another thread does.
fn write(place: &[AtomicU64], store: impl FnOnce(&[AtomicU64])) {
    let version = &place[VERSION];
    versioned::write(version, version.load(Relaxed), || store(place));
}

/// The session in a place, if it is the one that is looked for and nobody writes there.
fn read(place: &[AtomicU64], key: &Key) -> Option<Vec<u8>> {
    let load = || (key_of(place) == *key).then(|| content(place)).flatten();
    versioned::read(&place[VERSION], load)?.1
}

/// The session that a place holds; `None` where its length is none of a session.
fn content(place: &[AtomicU64]) -> Option<Vec<u8>> {
    let bytes = usize::try_from(place[BYTES].load(Relaxed)).ok()?;
    if bytes > SESSION_BYTES_MAX {
        return None;
    }
    let words = place[CONTENT..].iter().take(bytes.div_ceil(8));
    let mut session: Vec<u8> = words
        .flat_map(|word| word.load(Relaxed).to_ne_bytes())
        .collect();
    session.truncate(bytes);
    Some(session)
}

#[cfg(test)]
mod tests {
    //! What one process finds of another's.

    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use turnpike_lane::sys::mapping::SharedWords;
    use turnpike_plan::environment::{KEPT_KEY_WORDS, KEPT_WORDS};

    use super::{LAYOUT_AT, PLACE_WORDS, SESSION_BYTES_MAX, SharedSessions, VERSION, WAYS};

    fn memory(words: usize) -> Arc<SharedWords> {
        Arc::new(SharedWords::anonymous(words).expect("memory"))
    }

    fn sessions(words: &Arc<SharedWords>, cache: &str) -> SharedSessions {
        SharedSessions::new(Arc::clone(words), cache).expect("room")
    }

    #[test]
    fn processes_find_each_others_sessions_of_the_same_cache() {
        let words = memory(KEPT_WORDS);
        let (old, new) = (sessions(&words, "one"), sessions(&words, "one"));
        let other = sessions(&words, "other");
        for length in [0, 1, 8, 100, SESSION_BYTES_MAX] {
            let session = vec![7; length];
            old.put(b"id", &session, 1000);
            assert_eq!(new.get(b"id").as_ref(), Some(&session), "{length}");
            assert_eq!(other.get(b"id"), None);
            assert_eq!(new.get(b"i"), None);
        }
        old.put(b"large", &[7; SESSION_BYTES_MAX + 1], 1000);
        assert_eq!(new.get(b"large"), None);
        new.remove(b"id");
        assert_eq!(old.get(b"id"), None);
    }

    #[test]
    fn the_oldest_session_makes_room() {
        // Memory of one set.
        let words = memory(KEPT_KEY_WORDS + WAYS * PLACE_WORDS);
        let all = sessions(&words, "");
        for time in [3, 1, 2, 4, 5] {
            all.put(&[time as u8], b"session", time);
        }
        let found: Vec<u8> = (1..=5).filter(|id| all.get(&[*id]).is_some()).collect();
        assert_eq!(found, [2, 3, 4, 5]);
        // A session that is kept again stays where it is.
        all.put(&[4], b"again", 6);
        let found: Vec<u8> = (1..=5).filter(|id| all.get(&[*id]).is_some()).collect();
        assert_eq!(found, [2, 3, 4, 5]);
        assert_eq!(all.get(&[4]), Some(b"again".to_vec()));
    }

    #[test]
    fn what_is_being_written_is_passed_over() {
        let words = memory(KEPT_KEY_WORDS + WAYS * PLACE_WORDS);
        let all = sessions(&words, "");
        all.put(b"id", b"session", 1);
        for way in 0..WAYS {
            words.words()[KEPT_KEY_WORDS + way * PLACE_WORDS + VERSION].fetch_add(1, Relaxed);
        }
        assert_eq!(all.get(b"id"), None);
        all.put(b"other", b"session", 2);
        assert_eq!(all.get(b"other"), None);
    }

    #[test]
    fn other_memory_is_not_used() {
        assert!(SharedSessions::new(memory(KEPT_KEY_WORDS), "").is_none());
        let words = memory(KEPT_WORDS);
        words.words()[LAYOUT_AT].store(2, Relaxed);
        assert!(SharedSessions::new(words, "").is_none());
    }
}
