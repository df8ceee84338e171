//! Memory that a lane has no more use for once a rush is over: what was pooled in it, and the pages
//! that it has filled.

use turnpike_lane::heap;
use turnpike_plan::protocol::Protocol as _;

use super::connections::Connections;

/// Connections and requests below which a rush leaves too little to be worth the work: some MB.
const RUSH_MIN: usize = 256;

/// The part of the most at a time below which a rush is over.
const OVER_PART: usize = 4;

/// Milliseconds for which a rush has to be over: the next one may be about to begin.
const OVER_MS: u64 = 1_000;

/// Connections and requests that are few enough to end the matter: memory has gone back before, and
/// what these hold is little.
const REST_MAX: usize = RUSH_MIN / OVER_PART;

/// What a lane holds, from one time that it gives memory back to the next.
#[derive(Default)]
pub(super) struct Rush {
    /// The most connections and requests at a time.
    most: usize,
    /// Since when there are few, in the lane's monotonic milliseconds.
    over_since_ms: Option<u64>,
    /// Whether memory went back while there were more than a few: what these held is still to go.
    is_settling: bool,
}

impl Rush {
    /// Whether memory is to be given back now, with so many connections and requests.
    fn has_ended(&mut self, count: usize, now_ms: u64) -> bool {
        self.most = self.most.max(count);
        let few = match self.most {
            ..RUSH_MIN if self.is_settling => REST_MAX,
            ..RUSH_MIN => return self.goes_on(),
            most => most / OVER_PART,
        };
        if count > few {
            return self.goes_on();
        }
        let over_since_ms = *self.over_since_ms.get_or_insert(now_ms);
        let has_ended = now_ms.saturating_sub(over_since_ms) >= OVER_MS;
        if has_ended {
            *self = Self {
                is_settling: count > REST_MAX,
                ..Self::default()
            };
        }
        has_ended
    }

    fn goes_on(&mut self) -> bool {
        self.over_since_ms = None;
        false
    }
}

impl Connections {
    /// Gives memory back where a rush has ended.
    pub(super) fn give_memory_back(&mut self, now_ms: u64) {
        let count = self.held();
        if self.rush.has_ended(count, now_ms) {
            self.lane.forget_exchanges();
            self.slots.shrink_to_fit();
            heap::trim_soon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rush;

    #[test]
    fn memory_goes_back_once_after_a_rush() {
        let mut rush = Rush::default();
        // How many connections there are, when, and whether memory goes back.
        let steps = [
            (200, 0, false),
            (0, 5_000, false),
            (1_000, 6_000, false),
            (251, 7_000, false),
            (250, 8_000, false),
            (250, 8_900, false),
            (251, 8_950, false),
            (10, 9_000, false),
            (10, 9_999, false),
            (10, 10_000, true),
            (10, 12_000, false),
            (0, 20_000, false),
            // What is left of a rush goes in steps, and some of it stays for a while.
            (1_000, 30_000, false),
            (200, 31_000, false),
            (200, 32_000, true),
            (65, 40_000, false),
            (65, 50_000, false),
            (64, 51_000, false),
            (64, 52_000, true),
            (64, 60_000, false),
            (0, 70_000, false),
        ];
        for (count, now_ms, expected) in steps {
            assert_eq!(rush.has_ended(count, now_ms), expected, "{count} {now_ms}");
        }
    }
}
