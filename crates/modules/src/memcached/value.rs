//! What the engine sees of memcached's answers: line and value, without what stands behind them.

use turnpike_http::exchange::Exchange;
use turnpike_wire::memcached::ValueReader;

use crate::pass::origin::RecordLayer;

/// Takes off what stands behind the value of one answer.
pub(super) struct Framing(ValueReader);

impl Framing {
    pub(super) fn new() -> Self {
        Self(ValueReader::new())
    }
}

impl RecordLayer for Framing {
    fn take_off(&mut self, _: &Exchange, bytes: &mut Vec<u8>, from: usize) -> Result<(), String> {
        self.0.take(bytes, from).map_err(|error| error.to_string())
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn early_end(&self) -> &'static str {
        "upstream prematurely closed connection"
    }

    fn is_reusable(&self) -> bool {
        self.0.is_reusable()
    }
}
