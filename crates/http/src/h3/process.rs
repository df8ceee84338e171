//! What the lanes of a process share for HTTP/3.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use turnpike_quic::{HalfOpenCount, HostKey, Place, UsedTokens};

/// What the lanes of a process share for HTTP/3.
#[derive(Default)]
pub(crate) struct Http3Process {
    half_open: HalfOpenCount,
    used_tokens: UsedTokens,
    host_key: OnceLock<HostKey>,
    places: Arc<Places>,
}

/// The places that lanes have, by their gate and serial.
#[derive(Default)]
struct Places(Mutex<BTreeSet<(u8, u8)>>);

/// A place that no other lane has, for as long as this is kept.
pub(crate) struct OwnPlace {
    place: Place,
    places: Arc<Places>,
}

impl Http3Process {
    /// The handshakes that are not complete.
    pub(crate) fn half_open(&self) -> &HalfOpenCount {
        &self.half_open
    }

    /// The tokens that clients have shown.
    pub(crate) fn used_tokens(&self) -> &UsedTokens {
        &self.used_tokens
    }

    /// A place for the connections of the lane of that number. A lane that leaves may have some for
    /// long, so no other is given its place. `None`: 256 lanes have the same gate.
    pub(crate) fn place(&self, lane: usize) -> Option<OwnPlace> {
        let gate = lane as u8;
        let serial = {
            let mut taken = self.places.taken();
            let serial = (0..=u8::MAX).find(|serial| !taken.contains(&(gate, *serial)))?;
            taken.insert((gate, serial));
            serial
        };
        Some(OwnPlace {
            place: Place {
                gate,
                serial,
                // Two processes that serve at a time have different numbers.
                process: std::process::id() as u16,
            },
            places: Arc::clone(&self.places),
        })
    }

    /// The key of the process: that of the first plan that has one, so that a reload breaks no
    /// connection. `None`: there is none.
    pub(crate) fn host_key(&self, of_plan: Option<&HostKey>) -> Option<HostKey> {
        let of_plan = of_plan?;
        Some(self.host_key.get_or_init(|| of_plan.clone()).clone())
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, BTreeSet<(u8, u8)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnPlace {
    pub(crate) fn get(&self) -> Place {
        self.place
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        let place = (self.place.gate, self.place.serial);
        self.places.taken().remove(&place);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Http3Process;

    #[test]
    fn no_two_lanes_have_one_place() {
        let process = Http3Process::default();
        let first = process.place(1).unwrap();
        let second = process.place(1).unwrap();
        let other = process.place(2).unwrap();
        let facts = |place: &super::OwnPlace| (place.get().gate, place.get().serial);
        assert_eq!(
            [facts(&first), facts(&second), facts(&other)],
            [(1, 0), (1, 1), (2, 0)]
        );
        drop(first);
        let more: Vec<_> = (0..300).map_while(|_| process.place(1)).collect();
        assert_eq!((facts(&more[0]), facts(&more[1])), ((1, 0), (1, 2)));
        // Lane 257 has the same gate as lane 1.
        assert_eq!(more.len(), 255);
        assert!(process.place(257).is_none());
    }
}
