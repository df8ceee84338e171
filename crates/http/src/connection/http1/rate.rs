//! `limit_rate` and `limit_rate_after`.

use turnpike_plan::rate::Rate;

use crate::exchange::Exchange;
use crate::variables::Template;

/// A response's limit.
pub(crate) struct RateLimit {
    rate: Rate,
    /// Bytes at full speed first.
    after: u64,
}

impl RateLimit {
    /// Bytes that may have been sent so long after the start.
    pub(crate) fn allowed(&self, elapsed_ms: u64) -> u64 {
        self.after.saturating_add(self.rate.allowed(elapsed_ms))
    }

    /// How long to wait until another byte is allowed, in milliseconds.
    pub(crate) fn pause_ms(&self, sent: u64, elapsed_ms: u64) -> u64 {
        let over = sent.saturating_sub(self.after).saturating_add(1);
        self.rate.pause_ms(over, elapsed_ms)
    }
}

impl Exchange {
    /// The rate limit of the response, if it has one.
    pub(crate) fn rate_limit(&self) -> Option<RateLimit> {
        let settings = &self.location().settings;
        let size = |template: &Option<Template>| {
            let value = template.as_ref()?.value(self);
            turnpike_conf::value::size(std::str::from_utf8(&value).ok()?)
        };
        let rate = match self.sending.limit_rate() {
            Some(rate) => rate,
            None => size(&settings.limit_rate)?,
        };
        let after = size(&settings.limit_rate_after);
        (rate > 0).then(|| RateLimit {
            rate: Rate {
                bytes_per_second: rate,
            },
            after: after.unwrap_or(0),
        })
    }

    /// Whether a limit may apply. Nothing is evaluated for this.
    pub(crate) fn may_be_limited(&self) -> bool {
        self.sending.limit_rate().is_some() || self.location().settings.limit_rate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_a_second_at_once_then_by_time() {
        let limit = RateLimit {
            rate: Rate {
                bytes_per_second: 1000,
            },
            after: 500,
        };
        for (elapsed_ms, allowed) in [(0, 1500), (500, 2000), (1000, 2500)] {
            assert_eq!(limit.allowed(elapsed_ms), allowed, "after {elapsed_ms} ms");
        }
        assert_eq!(limit.pause_ms(1500, 0), 100);
        assert_eq!(limit.pause_ms(2500, 0), 1001);
    }
}
