//! `express_syn auto`: the driver answers SYN segments only while enough of the connections that it
//! begins are answered there too. A connection that it begins and then hands over costs more than
//! one that the kernel begins, and lacks some options of TCP.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_express::Publisher;

/// Connections in a judged time below which nothing is concluded.
const CONNECTIONS_MIN: u64 = 50;

/// The part of connections that the driver has to answer: one in so many.
const HITS_ONE_IN: u64 = 2;

/// Seconds after which the driver tries again: what is asked for may have changed.
const SILENT_S: u64 = 10;

/// Judges, for one configuration, whether SYN segments are answered.
#[derive(Debug, Default)]
pub(super) struct SynChoice {
    /// The second in which it was judged last.
    judged_s: AtomicU64,
    state: Mutex<State>,
}

/// What was known when it was judged last.
#[derive(Debug, Default)]
struct State {
    /// Whether the counts are known: those of other configurations do not count.
    is_begun: bool,
    hits: u64,
    handed_over: u64,
    /// The second since which SYN segments are left to the kernel.
    silent_since_s: Option<u64>,
}

impl SynChoice {
    /// Judges once a second. Lanes call it after each request that reached them.
    pub(super) fn judge(&self, publisher: &Publisher, now_s: u64) {
        let judged_s = self.judged_s.swap(now_s, Relaxed);
        if judged_s == now_s {
            return;
        }
        let Ok(mut state) = self.state.try_lock() else {
            return; // another lane judges
        };
        let memory = publisher.memory();
        let [hits, handed_over] = ["hits", "handed_over"].map(|name| memory.count(name));
        if let Some(answers) = state.decide(now_s, hits, handed_over) {
            publisher.answer_syn(answers);
        }
    }
}

impl State {
    /// Whether SYN segments are answered from now on; `None`: nothing changes. The counts are those
    /// since the program was loaded.
    fn decide(&mut self, now_s: u64, hits: u64, handed_over: u64) -> Option<bool> {
        if let Some(since_s) = self.silent_since_s {
            if now_s.saturating_sub(since_s) < SILENT_S {
                return None;
            }
            self.silent_since_s = None;
            (self.hits, self.handed_over) = (hits, handed_over);
            return Some(true);
        }
        if !self.is_begun {
            self.is_begun = true;
            (self.hits, self.handed_over) = (hits, handed_over);
            return None;
        }
        let new_hits = hits.saturating_sub(self.hits);
        let connections = new_hits + handed_over.saturating_sub(self.handed_over);
        if connections < CONNECTIONS_MIN {
            return None;
        }
        (self.hits, self.handed_over) = (hits, handed_over);
        if new_hits >= connections.div_ceil(HITS_ONE_IN) {
            return None;
        }
        self.silent_since_s = Some(now_s);
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syn_segments_are_left_to_the_kernel_while_hits_are_few() {
        let mut state = State::default();
        for (now_s, hits, handed_over, decision) in [
            // What was before does not count.
            (1, 10, 300, None),
            (2, 30, 320, None),
            // 40 of 80 connections are enough.
            (3, 50, 340, None),
            (4, 80, 371, Some(false)),
            (5, 80, 371, None),
            (13, 80, 371, None),
            (14, 80, 400, Some(true)),
            (15, 100, 410, None),
            (16, 110, 420, None),
            (17, 110, 500, Some(false)),
        ] {
            let decided = state.decide(now_s, hits, handed_over);
            assert_eq!(decided, decision, "second {now_s}");
        }
    }
}
