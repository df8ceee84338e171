//! What an exchange has cost so far: its time and its bytes.

/// The time and the bytes of an exchange.
#[derive(Default)]
pub struct Account {
    started_ms: u64,
    sent_bytes: u64,
    head_bytes: u64,
    request_bytes: u64,
    is_completed: bool,
}

impl Account {
    /// An account of a request whose first byte was seen then, in the lane's monotonic
    /// milliseconds.
    pub(crate) fn since(started_ms: u64) -> Self {
        Self {
            started_ms,
            ..Self::default()
        }
    }

    /// An account for a subrequest: it has received what its request has, and sent nothing.
    pub(crate) fn of_subrequest(&self, started_ms: u64) -> Self {
        Self {
            started_ms,
            request_bytes: self.request_bytes,
            ..Self::default()
        }
    }

    /// When the request's first byte was seen, in the lane's monotonic milliseconds.
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Bytes sent, the head and interim responses included (`$bytes_sent`).
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Bytes of the body that were sent (`$body_bytes_sent`).
    pub fn body_sent_bytes(&self) -> u64 {
        self.sent_bytes.saturating_sub(self.head_bytes)
    }

    /// Bytes of the request that were read and taken (`$request_length`).
    pub fn request_bytes(&self) -> u64 {
        self.request_bytes
    }

    /// Whether the whole answer was sent.
    pub fn is_completed(&self) -> bool {
        self.is_completed
    }

    /// Bytes have left.
    pub fn sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// A head of so many bytes is sent next. Interim responses went before it.
    pub(crate) fn head_written(&mut self, bytes: u64) {
        self.head_bytes = self.sent_bytes + bytes;
    }

    /// Bytes of the request were read and taken.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.request_bytes += bytes;
    }

    /// The head of the request was read: it has so many bytes.
    pub(crate) fn head_received(&mut self, bytes: u64) {
        self.request_bytes = bytes;
    }

    /// The answer was sent, whole or not.
    pub fn completed(&mut self, whole: bool) {
        self.is_completed = whole;
    }
}
