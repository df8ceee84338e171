//! What is known of the servers that a session was passed to.

use std::cell::Cell;
use std::sync::Arc;

/// One server that was tried.
#[derive(Debug)]
pub struct Try {
    /// The address as text (`$upstream_addr`).
    pub address: Arc<str>,
    /// When it was begun, in the lane's monotonic milliseconds.
    pub started_ms: u64,
    /// How long connecting took.
    pub connect_ms: Option<u64>,
    /// When its first byte came, after the beginning.
    pub first_byte_ms: Cell<Option<u64>>,
    /// How long it was used.
    pub session_ms: Option<u64>,
    pub bytes_sent: Cell<u64>,
    pub bytes_received: Cell<u64>,
}

impl Try {
    /// A try that begins.
    pub fn new(address: Arc<str>, now_ms: u64) -> Self {
        Self {
            address,
            started_ms: now_ms,
            connect_ms: None,
            first_byte_ms: Cell::new(None),
            session_ms: None,
            bytes_sent: Cell::new(0),
            bytes_received: Cell::new(0),
        }
    }

    /// Something has come; returns whether it is the first, whose time counts.
    pub fn note_first_byte(&self, now_ms: u64) -> bool {
        let is_first = self.first_byte_ms.get().is_none();
        if is_first {
            let after_ms = now_ms.saturating_sub(self.started_ms);
            self.first_byte_ms.set(Some(after_ms));
        }
        is_first
    }
}
