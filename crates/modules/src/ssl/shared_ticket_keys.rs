//! Keys of tickets that all serving processes of a server share: those before and after a change of
//! the binary, and the next one after a crash. They stand in memory that outlives a process.
//!
//! A key seals tickets for one lifetime and opens them for another. Then it is overwritten, so that
//! nothing in memory opens what was recorded earlier. Whichever process finds the key too old
//! writes the next one.
//!
//! ```text
//!  words:  layout, unused ..., then a slot for each lifetime:
//!  slot:   lifetime, version (odd while it is written), key and its time, key before and its time
//! ```

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::environment::KEPT_KEY_WORDS;

use super::ticket_keys::{FRESH_BYTES, Keys};
use super::versioned;

/// The number of this layout: another binary may have another one.
const LAYOUT: u64 = 1;

/// Words of a slot.
const SLOT_WORDS: usize = 32;

/// Words of a key.
const KEY_WORDS: usize = FRESH_BYTES / 8;

/// Words of a key with its time.
const TIMED_WORDS: usize = KEY_WORDS + 1;

/// The places of a slot's words.
const LIFETIME: usize = 0;
const VERSION: usize = 1;
const KEYS: usize = 2;

/// Reads of a slot while another process writes it. Writing takes less than a microsecond; a
/// process that is killed meanwhile leaves a slot that is never read again.
const READS_MAX: usize = 10_000;

/// A key, and when it was made, in seconds since 1970.
#[derive(Clone, Copy, Default)]
struct TimedKey {
    made_s: u64,
    key: [u64; KEY_WORDS],
}

/// What stands in a slot.
struct Stored {
    version: u64,
    present: TimedKey,
    /// The key before, with the time 0 where there is none.
    before: TimedKey,
}

/// The keys of a slot, made ready for use.
#[derive(Debug)]
struct Known {
    version: u64,
    made_s: u64,
    keys: Arc<Keys>,
}

/// Keys for tickets of one lifetime.
#[derive(Debug)]
pub(super) struct SharedKeys {
    words: Arc<SharedWords>,
    /// The place of the slot.
    slot: usize,
    lifetime_s: u64,
    known: RwLock<Known>,
}

impl SharedKeys {
    /// The keys of a lifetime; `None` where the memory has another layout or no room, or the
    /// machine has no random numbers.
    pub(super) fn new(words: Arc<SharedWords>, lifetime_s: u32) -> Option<SharedKeys> {
        Self::at(words, lifetime_s, unix_s())
    }

    fn at(words: Arc<SharedWords>, lifetime_s: u32, now_s: u64) -> Option<SharedKeys> {
        let lifetime_s = u64::from(lifetime_s.max(1));
        let slot = find_slot(words.words(), lifetime_s)?;
        let known = RwLock::new(Known {
            version: 0,
            made_s: 0,
            keys: Arc::default(),
        });
        let keys = SharedKeys {
            words,
            slot,
            lifetime_s,
            known,
        };
        keys.refresh(now_s)?;
        Some(keys)
    }

    /// The keys at that time. Where no new ones can be had, those before are used on: sessions have
    /// times of their own.
    fn keys(&self, now_s: u64) -> Arc<Keys> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let keys = Arc::clone(&known.keys);
        let is_current = known.version == self.word(VERSION).load(Relaxed);
        if is_current && now_s < known.made_s + self.lifetime_s {
            return keys;
        }
        drop(known);
        self.refresh(now_s).unwrap_or(keys)
    }

    /// Reads the slot, and writes a new key first if that in it is too old.
    fn refresh(&self, now_s: u64) -> Option<Arc<Keys>> {
        let mut stored = self.read()?;
        let is_old = |stored: &Stored| {
            stored.version == 0 || now_s >= stored.present.made_s + self.lifetime_s
        };
        if is_old(&stored) {
            // Another process may be faster.
            let _ = self.write(&stored, now_s)?;
            stored = self.read().filter(|stored| !is_old(stored))?;
        }
        let timed = [stored.present, stored.before];
        let timed = timed.into_iter().filter(|timed| timed.made_s > 0);
        let keys = Keys::of(timed.map(|timed| timed.bytes()))?;
        let keys = Arc::new(keys);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known {
            version: stored.version,
            made_s: stored.present.made_s,
            keys: Arc::clone(&keys),
        };
        Some(keys)
    }

    /// Reads the slot, once nobody writes it.
    fn read(&self) -> Option<Stored> {
        for _ in 0..READS_MAX {
            let load = || (self.timed(KEYS), self.timed(KEYS + TIMED_WORDS));
            if let Some((version, (present, before))) = versioned::read(self.word(VERSION), load) {
                return Some(Stored {
                    version,
                    present,
                    before,
                });
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Writes a new key before the one that is there. `false`: another process writes.
    fn write(&self, stored: &Stored, now_s: u64) -> Option<bool> {
        let mut bytes = [0; FRESH_BYTES];
        rand::fill(&mut bytes).ok()?;
        let fresh = TimedKey::new(now_s, &bytes);
        let before = if now_s < stored.present.made_s + 2 * self.lifetime_s {
            stored.present
        } else {
            TimedKey::default()
        };
        Some(versioned::write(self.word(VERSION), stored.version, || {
            self.put(KEYS, &fresh);
            self.put(KEYS + TIMED_WORDS, &before);
        }))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[self.slot + at]
    }

    fn timed(&self, at: usize) -> TimedKey {
        TimedKey {
            made_s: self.word(at).load(Relaxed),
            key: std::array::from_fn(|word| self.word(at + 1 + word).load(Relaxed)),
        }
    }

    fn put(&self, at: usize, timed: &TimedKey) {
        self.word(at).store(timed.made_s, Relaxed);
        for (word, value) in timed.key.iter().enumerate() {
            self.word(at + 1 + word).store(*value, Relaxed);
        }
    }
}

impl TimedKey {
    fn new(made_s: u64, bytes: &[u8; FRESH_BYTES]) -> TimedKey {
        let (words, _) = bytes.as_chunks();
        TimedKey {
            made_s,
            key: std::array::from_fn(|at| u64::from_ne_bytes(words[at])),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.key
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }
}

/// The slot of a lifetime: the one that has it, or the first that is free.
fn find_slot(words: &[AtomicU64], lifetime_s: u64) -> Option<usize> {
    let layout = words.first()?;
    if !versioned::has_layout(layout, LAYOUT) {
        return None;
    }
    let end = words.len().min(KEPT_KEY_WORDS);
    let slots = (SLOT_WORDS..).step_by(SLOT_WORDS);
    let mut slots = slots.take_while(|slot| slot + SLOT_WORDS <= end);
    slots.find(|slot| {
        let taken = words[slot + LIFETIME].compare_exchange(0, lifetime_s, Relaxed, Relaxed);
        taken.is_ok() || taken == Err(lifetime_s)
    })
}

impl ProducesTickets for SharedKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.lifetime_s).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys(unix_s()).encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.keys(unix_s()).decrypt(cipher)
    }
}

#[cfg(test)]
mod tests {
    //! What one process opens of another's.

    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use rustls::server::ProducesTickets as _;
    use turnpike_lane::sys::mapping::SharedWords;
    use turnpike_plan::environment::KEPT_KEY_WORDS;

    use super::{SLOT_WORDS, SharedKeys, VERSION};

    fn memory() -> Arc<SharedWords> {
        Arc::new(SharedWords::anonymous(KEPT_KEY_WORDS).expect("memory"))
    }

    fn keys(words: &Arc<SharedWords>, lifetime_s: u32, now_s: u64) -> SharedKeys {
        SharedKeys::at(Arc::clone(words), lifetime_s, now_s).expect("keys")
    }

    #[test]
    fn processes_open_each_others_tickets_for_two_lifetimes() {
        let words = memory();
        let old = keys(&words, 300, 1000);
        let new = keys(&words, 300, 1200);
        let ticket = old.keys(1200).encrypt(b"session").expect("a ticket");
        let plain = Some(b"session".to_vec());
        // At 1300 one of them writes the next key, at 1600 the first one is overwritten.
        for (now_s, expected) in [
            (1299, &plain),
            (1300, &plain),
            (1599, &plain),
            (1600, &None),
        ] {
            assert_eq!(new.keys(now_s).decrypt(&ticket), *expected, "{now_s}");
            assert_eq!(old.keys(now_s).decrypt(&ticket), *expected, "{now_s}");
        }
        let ticket = new.keys(1600).encrypt(b"session").expect("a ticket");
        assert_eq!(&old.keys(1600).decrypt(&ticket), &plain);
        assert_eq!(keys(&memory(), 300, 1600).keys(1600).decrypt(&ticket), None);
    }

    #[test]
    fn keys_of_long_ago_open_nothing() {
        let words = memory();
        let first = keys(&words, 300, 1000);
        let ticket = first.keys(1000).encrypt(b"session").expect("a ticket");
        assert_eq!(keys(&words, 300, 2000).keys(2000).decrypt(&ticket), None);
        assert_eq!(first.keys(2000).decrypt(&ticket), None);
    }

    #[test]
    fn lifetimes_have_keys_of_their_own_while_there_is_room() {
        let words = memory();
        let all: Vec<SharedKeys> = (1..32).map(|it| keys(&words, it, 1000)).collect();
        let ticket = all[0].keys(1000).encrypt(b"session").expect("a ticket");
        assert_eq!(all[1].keys(1000).decrypt(&ticket), None);
        assert!(SharedKeys::at(Arc::clone(&words), 32, 1000).is_none());
        assert!(SharedKeys::at(Arc::clone(&words), 31, 1000).is_some());
    }

    #[test]
    fn what_cannot_be_read_is_not_waited_for() {
        let words = memory();
        let running = keys(&words, 300, 1000);
        let ticket = running.keys(1000).encrypt(b"session").expect("a ticket");
        // A process has ended while it wrote.
        words.words()[SLOT_WORDS + VERSION].fetch_add(1, Relaxed);
        assert!(SharedKeys::at(Arc::clone(&words), 300, 1000).is_none());
        assert!(running.keys(1000).decrypt(&ticket).is_some());
        let other = memory();
        other.words()[0].store(2, Relaxed);
        assert!(SharedKeys::at(other, 300, 1000).is_none(), "another layout");
    }
}
