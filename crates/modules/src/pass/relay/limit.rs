//! `..._limit_rate`: how fast a response is read of its server.

use std::time::Duration;

use turnpike_http::upstream::Upstream;
use turnpike_plan::rate::Rate;

/// `..._limit_rate`.
pub(super) struct Limit {
    pub(super) rate: Rate,
    pub(super) started_ms: u64,
}

/// What may be read of a response.
pub(super) enum Allowed {
    /// So many bytes.
    Bytes(usize),
    /// Nothing until this time has passed.
    After(Duration),
}

impl Limit {
    /// How many bytes may be read now.
    pub(super) fn allowed(&self, upstream: &Upstream, now_ms: u64) -> Allowed {
        let one = upstream.tries().last();
        let read_bytes = one.map_or(0, |one| one.response_bytes);
        let elapsed_ms = now_ms.saturating_sub(self.started_ms);
        match self.rate.allowed(elapsed_ms).saturating_sub(read_bytes) {
            0 => {
                let pause_ms = self.rate.pause_ms(read_bytes, elapsed_ms);
                Allowed::After(Duration::from_millis(pause_ms))
            }
            bytes => Allowed::Bytes(usize::try_from(bytes).unwrap_or(usize::MAX)),
        }
    }
}
