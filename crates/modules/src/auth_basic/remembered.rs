//! Passwords that were right a moment ago: a browser sends its own with every request, and a scheme
//! that is made to be slow would make a page of fifty files take ten seconds.
//!
//! What is kept is a keyed hash of user, password and what is stored, under a key that this process
//! drew at random: neither a password nor anything that reveals one outside of this process. A
//! change of the stored password is another entry, and so takes effect at once.

use std::collections::{HashSet, VecDeque};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;

/// For how long a check need not be repeated. Short, since the entry is worth as much as the
/// password to whoever could read this process's memory.
const KEPT: Duration = Duration::from_secs(60);

/// Most entries, of about 100 bytes each; beyond them the oldest goes.
const ENTRIES_MAX: usize = 8192;

/// Bytes of a tag.
const TAG_BYTES: usize = 32;

/// The passwords of this process.
pub(super) static REMEMBERED: Remembered = Remembered::new(KEPT, ENTRIES_MAX);

/// Drawn at the first need; none where the system gives no random bytes: then nothing is kept.
static KEY: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok());

/// Stands for a user, a password and what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tag([u8; TAG_BYTES]);

impl Tag {
    /// `None`: there is no key.
    pub(super) fn of(user: &[u8], password: &[u8], stored: &[u8]) -> Option<Tag> {
        let mut context = hmac::Context::with_key(KEY.as_ref()?);
        for part in [user, password, stored] {
            // With their lengths, so that no two triples give the same bytes.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        context.sign().as_ref().try_into().ok().map(Tag)
    }
}

/// Tags that were right, each for a while.
pub(super) struct Remembered {
    kept: Duration,
    entries_max: usize,
    entries: Mutex<Option<Entries>>,
}

#[derive(Default)]
struct Entries {
    tags: HashSet<Tag>,
    /// The same, the oldest first.
    order: VecDeque<(Instant, Tag)>,
}

impl Remembered {
    const fn new(kept: Duration, entries_max: usize) -> Remembered {
        Remembered {
            kept,
            entries_max,
            entries: Mutex::new(None),
        }
    }

    /// Whether this was right within the time that counts.
    pub(super) fn has(&self, tag: Option<Tag>, now: Instant) -> bool {
        let Some(tag) = tag else {
            return false;
        };
        self.with(|entries| {
            entries.forget(|since, _| now.saturating_duration_since(since) >= self.kept);
            entries.tags.contains(&tag)
        })
    }

    /// Keeps one that is right. One that is there already stays as old as it is.
    pub(super) fn add(&self, tag: Option<Tag>, now: Instant) {
        let Some(tag) = tag else {
            return;
        };
        self.with(|entries| {
            if entries.tags.insert(tag) {
                entries.order.push_back((now, tag));
            }
            entries.forget(|_, count| count > self.entries_max);
        });
    }

    fn with<T>(&self, action: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        action(entries.get_or_insert_default())
    }
}

impl Entries {
    /// Drops the oldest while the condition holds for its age and for how many there are.
    fn forget(&mut self, is_due: impl Fn(Instant, usize) -> bool) {
        while let Some((since, tag)) = self.order.front().copied()
            && is_due(since, self.order.len())
        {
            self.order.pop_front();
            self.tags.remove(&tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_is_known_for_a_while() {
        let memory = Remembered::new(Duration::from_secs(60), 2);
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let tag = |name: &str| Tag::of(name.as_bytes(), b"password", b"stored");
        memory.add(tag("a"), after(0));
        memory.add(tag("a"), after(30));
        assert!(memory.has(tag("a"), after(59)) && !memory.has(tag("b"), after(59)));
        assert!(
            !memory.has(tag("a"), after(60)),
            "a use makes it no younger"
        );
        for (name, at) in [("a", 60), ("b", 61), ("c", 62)] {
            memory.add(tag(name), after(at));
        }
        let known = ["a", "b", "c"].map(|name| memory.has(tag(name), after(62)));
        assert_eq!(known, [false, true, true], "the oldest made room");
        memory.add(None, after(63));
        assert!(!memory.has(None, after(63)));
    }

    #[test]
    fn everything_counts_in_a_tag() {
        let tag = Tag::of(b"user", b"password", b"stored");
        assert!(tag.is_some() && tag == Tag::of(b"user", b"password", b"stored"));
        for (user, password, stored) in [
            ("other", "password", "stored"),
            ("user", "other", "stored"),
            ("user", "password", "other"),
            ("userp", "assword", "stored"),
            ("user", "passwords", "tored"),
        ] {
            let other = Tag::of(user.as_bytes(), password.as_bytes(), stored.as_bytes());
            assert_ne!(other, tag, "{user} {password} {stored}");
        }
    }
}
