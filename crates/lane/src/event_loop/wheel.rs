//! Deadlines of parked connections: a hashed timing wheel with links in a table, so that insertion
//! and removal are a few stores without an allocation.
//!
//! A deadline that changes (every request changes the keep-alive deadline) is not moved in the
//! wheel. The owner keeps the real one; if the wheel expires the token too early, the owner inserts
//! it again. So the hot path never touches the wheel.

/// Width of a slot in milliseconds: time-outs are in seconds, and may be late by this much.
const SLOT_MS: u64 = 128;

/// The number of slots; with [`SLOT_MS`] a round takes 65 seconds. Later deadlines are checked once
/// a round.
const SLOTS: usize = 512;

const NONE: u32 = u32::MAX;

/// The wheel. Tokens are small numbers, such as the keys of a slab.
pub struct Wheel {
    heads: Vec<u32>,
    links: Vec<Link>,
    /// The next slot to expire, counted from the start of the clock.
    next_slot: u64,
}

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    /// The index of the slot; `NONE` if the token is not in the wheel.
    slot: u32,
}

const UNLINKED: Link = Link {
    previous: NONE,
    next: NONE,
    slot: NONE,
};

impl Wheel {
    /// An empty wheel that begins at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            heads: vec![NONE; SLOTS],
            links: Vec::new(),
            next_slot: now_ms / SLOT_MS,
        }
    }

    /// Inserts a token, which expires at `deadline_ms` or up to a slot later. A token that is
    /// already in the wheel is moved.
    pub fn insert(&mut self, token: u32, deadline_ms: u64) {
        self.remove(token);
        let index = token as usize;
        if self.links.len() <= index {
            self.links.resize(index + 1, UNLINKED);
        }
        let furthest = self.next_slot + SLOTS as u64 - 1;
        let slot = (deadline_ms / SLOT_MS + 1).clamp(self.next_slot, furthest) % SLOTS as u64;
        let head = self.heads[slot as usize];
        self.links[index] = Link {
            previous: NONE,
            next: head,
            slot: slot as u32,
        };
        if head != NONE {
            self.links[head as usize].previous = token;
        }
        self.heads[slot as usize] = token;
    }

    /// As [`Wheel::insert`], but does not move a token that expires early enough.
    pub fn insert_if_earlier(&mut self, token: u32, deadline_ms: u64) {
        let slots = SLOTS as u64;
        let wanted = (deadline_ms / SLOT_MS + 1).saturating_sub(self.next_slot);
        let is_early = self.links.get(token as usize).is_some_and(|link| {
            let distance = (u64::from(link.slot) + slots - self.next_slot % slots) % slots;
            link.slot != NONE && distance <= wanted
        });
        if !is_early {
            self.insert(token, deadline_ms);
        }
    }

    /// Removes a token, if it is in the wheel.
    pub fn remove(&mut self, token: u32) {
        let Some(link) = self.links.get_mut(token as usize) else {
            return;
        };
        let Link {
            previous,
            next,
            slot,
        } = std::mem::replace(link, UNLINKED);
        if slot == NONE {
            return;
        }
        match previous {
            NONE => self.heads[slot as usize] = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
    }

    /// The number of tokens.
    #[cfg(feature = "simulation")]
    pub(super) fn len(&self) -> usize {
        let is_in = |link: &&Link| link.slot != NONE;
        self.links.iter().filter(is_in).count()
    }

    /// Moves every token that is due at `now_ms` to `due`.
    pub fn expire(&mut self, now_ms: u64, due: &mut Vec<u32>) {
        let last = now_ms / SLOT_MS;
        let rounds_end = self.next_slot + SLOTS as u64;
        while self.next_slot <= last.min(rounds_end) {
            let slot = (self.next_slot % SLOTS as u64) as usize;
            let mut token = std::mem::replace(&mut self.heads[slot], NONE);
            while token != NONE {
                let next = self.links[token as usize].next;
                self.links[token as usize] = UNLINKED;
                due.push(token);
                token = next;
            }
            self.next_slot += 1;
        }
        self.next_slot = self.next_slot.max(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired(wheel: &mut Wheel, now_ms: u64) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.expire(now_ms, &mut due);
        due.sort_unstable();
        due
    }

    #[test]
    fn names_tokens_once_and_not_before_their_time() {
        let mut wheel = Wheel::new(0);
        for (token, deadline_ms) in [(0, 100), (1, 1_000), (2, 60_000), (3, 200_000)] {
            wheel.insert(token, deadline_ms);
        }
        assert_eq!(expired(&mut wheel, 99), []);
        assert_eq!(expired(&mut wheel, 100 + SLOT_MS), [0]);
        assert_eq!(expired(&mut wheel, 1_000 + SLOT_MS), [1]);
        assert_eq!(expired(&mut wheel, 60_000 + SLOT_MS), [2]);
        // A deadline after more than one round expires early; its owner inserts it again.
        assert_eq!(expired(&mut wheel, 70_000), [3]);
        assert_eq!(expired(&mut wheel, 900_000), []);
    }

    #[test]
    fn removes_tokens_from_any_place_in_a_slot() {
        for gone in 0..3 {
            let mut wheel = Wheel::new(0);
            (0..3).for_each(|token| wheel.insert(token, 500));
            wheel.remove(gone);
            wheel.remove(gone);
            let left: Vec<u32> = (0..3).filter(|token| *token != gone).collect();
            assert_eq!(expired(&mut wheel, 1_000), left, "without {gone}");
        }
    }

    #[test]
    fn moves_a_token_only_to_an_earlier_place() {
        for start_ms in [0, 70_000, 65_000] {
            for (first_ms, second_ms, named_ms) in [
                (5_000, 60_000, 5_000),
                (60_000, 5_000, 5_000),
                (200_000, 1_000, 1_000),
                (1_000, 200_000, 1_000),
            ] {
                let mut wheel = Wheel::new(start_ms);
                wheel.insert_if_earlier(4, start_ms + first_ms);
                wheel.insert_if_earlier(4, start_ms + second_ms);
                let case = (start_ms, first_ms, second_ms);
                assert_eq!(expired(&mut wheel, start_ms + named_ms - 1), [], "{case:?}");
                let due_ms = start_ms + named_ms + SLOT_MS;
                assert_eq!(expired(&mut wheel, due_ms), [4], "{case:?}");
            }
        }
    }

    #[test]
    fn survives_a_clock_that_jumps() {
        let mut wheel = Wheel::new(1_000_000);
        wheel.insert(7, 1_000_500);
        assert_eq!(expired(&mut wheel, 99_000_000), [7]);
        wheel.insert(7, 99_000_100);
        assert_eq!(expired(&mut wheel, 99_001_000), [7]);
    }
}
