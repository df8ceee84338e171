//! Whether what the program sends from the driver arrives. Some drivers take a frame and drop it:
//! veth does where the other end has no program, and others where a queue is missing. A client that
//! gets an answer to its SYN sends the cookie back, so the program's counters tell.
//!
//! One SYN of a client that never meant to connect looks the same. So whoever asks here tries the
//! driver again, and a proof that was given once is never asked for again.

use std::time::{Duration, Instant};

/// How long the first answer to a SYN may take to be acknowledged: longer than the way to most
/// clients and back, and short enough that their second SYN, after a second, meets the kernel.
const WAIT: Duration = Duration::from_millis(500);

/// What the program has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// SYN segments that it has answered.
    pub answered: u64,
    /// Segments that came with a cookie of such an answer.
    pub returned: u64,
}

/// What is known of the program's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Not enough was sent yet.
    Unknown,
    /// Answers arrive.
    Seen,
    /// None has arrived of those that were sent.
    Missing,
}

/// What was seen since the program runs in a driver.
#[derive(Debug)]
pub struct Proof {
    begun: Counts,
    /// When a SYN was first seen to be answered.
    answered_at: Option<Instant>,
}

impl Proof {
    /// Begins with what the program had counted before.
    pub fn new(begun: Counts) -> Proof {
        Proof {
            begun,
            answered_at: None,
        }
    }

    /// Judges by what the program has counted by now.
    pub fn judge(&mut self, counts: Counts, now: Instant) -> Arrival {
        if counts.returned > self.begun.returned {
            return Arrival::Seen;
        }
        if counts.answered == self.begun.answered {
            return Arrival::Unknown;
        }
        let answered_at = *self.answered_at.get_or_insert(now);
        if now.duration_since(answered_at) >= WAIT {
            Arrival::Missing
        } else {
            Arrival::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it is looked, in milliseconds, the SYNs that were answered, and the cookies that came
    /// back.
    type Look = (u64, u64, u64);

    #[test]
    fn answers_arrive_or_are_missed_within_a_second() {
        let begun = Instant::now();
        let cases: [(&str, &[Look], Arrival); 5] = [
            (
                "nothing was asked",
                &[(0, 5, 2), (9_000, 5, 2)],
                Arrival::Unknown,
            ),
            (
                "asked just now",
                &[(0, 5, 2), (200, 6, 2), (600, 6, 2)],
                Arrival::Unknown,
            ),
            (
                "no answer arrives",
                &[(0, 5, 2), (200, 6, 2), (700, 6, 2)],
                Arrival::Missing,
            ),
            (
                "one does",
                &[(0, 5, 2), (200, 9, 2), (700, 9, 3)],
                Arrival::Seen,
            ),
            ("late", &[(0, 5, 2), (400, 6, 3)], Arrival::Seen),
        ];
        for (name, steps, expected) in cases {
            let [(_, answered, returned), ..] = *steps else {
                continue;
            };
            let mut proof = Proof::new(Counts { answered, returned });
            let judged = steps.iter().map(|&(at_ms, answered, returned)| {
                let now = begun + Duration::from_millis(at_ms);
                proof.judge(Counts { answered, returned }, now)
            });
            assert_eq!(judged.last(), Some(expected), "{name}");
        }
    }
}
