//! When a certificate is ordered: at two thirds of its life, or when its authority suggests it, or
//! some time after an order that has failed.

use super::renewal::Suggestion;

/// The longest random delay of a renewal, as a part of the certificate's life: certificates that
/// were ordered together need not be renewed together.
const JITTER_PART: u64 = 50;

/// The pause after the first order that fails, in seconds: a fault of the network is over by then.
const PAUSE_S_MIN: u64 = 60;

/// The longest pause, after many that fail, in seconds: authorities limit failed validations to a
/// few an hour, and a certificate has weeks left.
const PAUSE_S_MAX: u64 = 8 * 60 * 60;

/// The state of a certificate's renewals. Times are in Unix seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    /// The renewal by the certificate's life; `None`: there is no certificate.
    renew_at_s: Option<u64>,
    /// The next question to the authority when it wants a renewal; `None`: it has no such service.
    ask_at_s: Option<u64>,
    /// The orders in a row that have failed.
    failures: u32,
    /// The earliest next order after those.
    retry_at_s: u64,
}

impl Schedule {
    /// A certificate is in force that is valid from and until these times.
    pub(super) fn issued(&mut self, not_before_s: u64, not_after_s: u64) {
        let life_s = not_after_s.saturating_sub(not_before_s);
        let at_s = not_before_s + life_s / 3 * 2 + random_below(life_s / JITTER_PART);
        *self = Schedule {
            renew_at_s: Some(at_s),
            ask_at_s: Some(0),
            ..Schedule::default()
        };
    }

    /// A certificate was issued just now. One that is due at once all the same is not ordered again
    /// and again.
    pub(super) fn ordered(&mut self, now_s: u64) {
        if self.order_at_s() <= now_s {
            self.retry_at_s = now_s + PAUSE_S_MIN;
        }
    }

    /// An order has failed, and the authority wants the next one not before `not_before_s`; returns
    /// the pause in seconds.
    pub(super) fn failed(&mut self, now_s: u64, not_before_s: u64) -> u64 {
        let doubled = PAUSE_S_MIN.checked_shl(self.failures.min(u64::BITS / 2));
        let pause_s = doubled.unwrap_or(PAUSE_S_MAX).min(PAUSE_S_MAX);
        let pause_s = pause_s.max(not_before_s.saturating_sub(now_s));
        self.failures = self.failures.saturating_add(1);
        self.retry_at_s = now_s + pause_s;
        pause_s
    }

    /// The authority suggests a time, and when to ask again. A time after the usual one is not
    /// waited for.
    pub(super) fn suggested(&mut self, suggestion: Suggestion) {
        self.ask_at_s = suggestion.ask_at_s;
        if let (Some(usual_s), Some(suggested_s)) = (self.renew_at_s, suggestion.renew_at_s) {
            self.renew_at_s = Some(usual_s.min(suggested_s));
        }
    }

    /// When the authority is to be asked; `None`: not at all.
    pub(super) fn ask_at_s(&self) -> Option<u64> {
        self.ask_at_s
    }

    /// When something is to be done next.
    pub(super) fn next_at_s(&self) -> u64 {
        let order_at_s = self.order_at_s();
        self.ask_at_s
            .map_or(order_at_s, |at_s| at_s.min(order_at_s))
    }

    /// When the certificate is to be ordered.
    pub(super) fn order_at_s(&self) -> u64 {
        self.renew_at_s.unwrap_or(0).max(self.retry_at_s)
    }
}

/// A random number from 0, below `limit` if that is not 0.
pub(super) fn random_below(limit: u64) -> u64 {
    let mut bytes = [0; 8];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes).checked_rem(limit).unwrap_or(0),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    //! Tests of renewals and of pauses.

    use super::{PAUSE_S_MAX, Schedule, Suggestion};

    #[test]
    fn a_renewal_comes_at_two_thirds_of_the_life() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.order_at_s(), 0);
        for _ in 0..100 {
            schedule.issued(1000, 10_000);
            let at_s = schedule.order_at_s();
            assert!((7000..7180).contains(&at_s), "{at_s}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_end_with_a_certificate() {
        let mut schedule = Schedule::default();
        let pauses: Vec<u64> = (0..12).map(|_| schedule.failed(5000, 0)).collect();
        assert_eq!(pauses[..4], [60, 120, 240, 480]);
        assert_eq!(pauses[11], PAUSE_S_MAX);
        assert_eq!(schedule.order_at_s(), 5000 + PAUSE_S_MAX);
        schedule.issued(0, 300);
        assert_eq!(schedule.failed(0, 0), 60);
        // The authority wants a longer pause, and then a shorter one.
        assert_eq!(schedule.failed(1000, 9000), 8000);
        assert_eq!(schedule.order_at_s(), 9000);
        assert_eq!(schedule.failed(9000, 9001), 240);
    }

    #[test]
    fn the_authority_may_want_an_earlier_renewal() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.ask_at_s(), None);
        schedule.issued(1000, 10_000);
        assert_eq!(schedule.ask_at_s(), Some(0));
        for (renew_at_s, expected) in [(Some(9000), 7000..7180), (Some(3000), 3000..3001)] {
            schedule.suggested(Suggestion {
                renew_at_s,
                ask_at_s: Some(2000),
            });
            assert!(expected.contains(&schedule.order_at_s()));
            assert_eq!(schedule.ask_at_s(), Some(2000));
        }
    }

    #[test]
    fn a_certificate_that_is_due_at_once_waits() {
        let mut schedule = Schedule::default();
        schedule.issued(0, 300);
        schedule.ordered(1000);
        assert_eq!(schedule.order_at_s(), 1060);
        schedule.issued(0, 3000);
        schedule.ordered(1000);
        assert!(schedule.order_at_s() >= 2000);
    }
}
