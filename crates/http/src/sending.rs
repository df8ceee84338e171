//! How a response leaves: what of it is on its way, and what happens to its connection.

/// A response on its way to the socket.
#[derive(Default)]
pub struct Sending {
    /// Head and copied body bytes.
    output: Vec<u8>,
    keep_alive: bool,
    chunked: bool,
    limit_rate: Option<u64>,
}

impl Sending {
    /// Head and copied body bytes on their way to the socket.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Head and copied body bytes, to be looked at.
    pub fn pending(&self) -> &[u8] {
        &self.output
    }

    /// Whether the connection is kept after this exchange.
    pub fn keeps_connection(&self) -> bool {
        self.keep_alive
    }

    /// The connection is closed after this exchange.
    pub fn close_connection(&mut self) {
        self.keep_alive = false;
    }

    /// The connection is kept after this exchange, or not.
    pub(crate) fn keep_connection(&mut self, keep: bool) {
        self.keep_alive = keep;
    }

    /// Whether the body is sent in chunks.
    pub(crate) fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// The body is sent in chunks, or not.
    pub(crate) fn send_chunked(&mut self, chunked: bool) {
        self.chunked = chunked;
    }

    /// Rate limit in bytes per second set for this response; `None` asks the location.
    pub(crate) fn limit_rate(&self) -> Option<u64> {
        self.limit_rate
    }

    /// Limits the rate of this response, in bytes per second; 0 does not limit it.
    pub fn set_limit_rate(&mut self, bytes_per_second: u64) {
        self.limit_rate = Some(bytes_per_second);
    }

    /// Makes ready for the next response; the room is kept.
    pub(crate) fn clear(&mut self) {
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        *self = Self {
            output,
            ..Self::default()
        };
    }
}
