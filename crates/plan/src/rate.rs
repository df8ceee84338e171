//! Rates in bytes per second, as `..._limit_rate` directives say them: a second's worth is allowed
//! at once, as in nginx.

/// Shortest pause, in milliseconds. What becomes due meanwhile passes in one call: pausing only
/// until the next byte is due would pass the bytes in crumbs.
const PAUSE_MS_MIN: u64 = 100;

/// A rate. It is finer than nginx's, which counts whole seconds.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub bytes_per_second: u64,
}

impl Rate {
    /// Bytes that are allowed so long after the start.
    pub fn allowed(self, elapsed_ms: u64) -> u64 {
        let elapsed_ms = u128::from(elapsed_ms) + 1000;
        let bytes = u128::from(self.bytes_per_second).saturating_mul(elapsed_ms) / 1000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The time until so many bytes are allowed, in milliseconds, rounded down; a tenth of a second
    /// at least.
    pub fn pause_ms(self, bytes: u64, elapsed_ms: u64) -> u64 {
        let due_ms = u128::from(bytes) * 1000 / u128::from(self.bytes_per_second.max(1));
        let due_ms = u64::try_from(due_ms).unwrap_or(u64::MAX);
        let pause_ms = due_ms.saturating_sub(elapsed_ms.saturating_add(1000));
        pause_ms.max(PAUSE_MS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn a_second_is_allowed_at_once_then_by_time() {
        let rate = |bytes_per_second| Rate { bytes_per_second };
        for (bytes_per_second, elapsed_ms, allowed) in [
            (1000, 0, 1000),
            (1000, 500, 1500),
            (1, 999, 1),
            (u64::MAX, u64::MAX, u64::MAX),
        ] {
            assert_eq!(rate(bytes_per_second).allowed(elapsed_ms), allowed);
        }
        for (bytes_per_second, bytes, elapsed_ms, pause_ms) in [
            (1000, 1000, 0, 100),
            (1000, 2000, 0, 1000),
            (1000, 2000, 400, 600),
            (1000, 2000, 999, 100),
            (1000, 0, u64::MAX, 100),
            (1, u64::MAX, 0, u64::MAX - 1000),
        ] {
            let pause = rate(bytes_per_second).pause_ms(bytes, elapsed_ms);
            assert_eq!(pause, pause_ms, "{bytes} bytes after {elapsed_ms} ms");
        }
    }
}
