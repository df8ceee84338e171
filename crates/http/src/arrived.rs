//! What a connection has read of a request's body and nobody has asked for yet.

use turnpike_wire::message::Fields;

/// The bytes of a body that have come, their coding taken off.
#[derive(Default)]
pub(crate) struct Arrived {
    bytes: Vec<u8>,
    /// Bytes that were read straight to where they are kept.
    kept_bytes: u64,
    /// Bytes of the last such read if it got all that it asked for; else 0.
    filled_bytes: usize,
    received_bytes: u64,
    is_whole: bool,
    is_malformed: bool,
    trailers: Fields,
}

impl Arrived {
    /// A piece has come; it had so many bytes on its way.
    pub(crate) fn add(&mut self, piece: &[u8], received_bytes: u64) {
        self.bytes.extend_from_slice(piece);
        self.received_bytes += received_bytes;
    }

    /// So many bytes were read straight to where they are kept; `is_filled`: as many as were asked
    /// for.
    pub(crate) fn add_kept(&mut self, count: usize, is_filled: bool) {
        self.kept_bytes += count as u64;
        self.received_bytes += count as u64;
        self.filled_bytes = if is_filled { count } else { 0 };
    }

    /// Bytes of the last such read if it got all that it asked for; else 0.
    pub(crate) fn filled_bytes(&self) -> usize {
        self.filled_bytes
    }

    /// That was all of the body.
    pub(crate) fn set_whole(&mut self) {
        self.is_whole = true;
    }

    /// These fields stand behind the body.
    pub(crate) fn set_trailers(&mut self, trailers: Fields) {
        self.trailers = trailers;
    }

    /// The fields behind a body that is whole.
    pub(crate) fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// What comes cannot be understood any more.
    pub(crate) fn set_malformed(&mut self) {
        self.is_malformed = true;
    }

    /// Whether all of the body has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the rest of the body cannot be understood.
    pub(crate) fn is_malformed(&self) -> bool {
        self.is_malformed
    }

    /// Takes the count of bytes that those which came since it was asked had on their way.
    pub(crate) fn take_received_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.received_bytes)
    }

    /// Moves what has come behind `kept`; returns how much that was, with what was read there.
    pub(crate) fn move_to(&mut self, kept: &mut Vec<u8>) -> u64 {
        let count = self.bytes.len() as u64;
        // Memory that has grown with a body before stays where the next one is read to.
        if kept.is_empty() && self.bytes.len() > kept.capacity() {
            std::mem::swap(kept, &mut self.bytes)
        } else {
            kept.append(&mut self.bytes)
        }
        count + std::mem::take(&mut self.kept_bytes)
    }

    /// Drops what has come.
    pub(crate) fn drop_bytes(&mut self) {
        self.bytes.clear();
        self.kept_bytes = 0;
    }

    /// Makes ready for the next body; the room is kept.
    pub(crate) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self {
            bytes,
            ..Self::default()
        };
    }

    /// The buffer, for whoever limits what is kept of it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}
