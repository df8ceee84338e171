//! What a connection has read of a request's body and nobody has asked for yet.

use turnpike_wire::message::Fields;

/// The bytes of a body that have come, their coding taken off.
#[derive(Default)]
pub(crate) struct Arrived {
    bytes: Vec<u8>,
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

    /// Moves what has come behind `kept`; returns how much that was.
    pub(crate) fn move_to(&mut self, kept: &mut Vec<u8>) -> u64 {
        let count = self.bytes.len() as u64;
        match kept.is_empty() {
            true => std::mem::swap(kept, &mut self.bytes),
            false => kept.append(&mut self.bytes),
        }
        count
    }

    /// Drops what has come.
    pub(crate) fn drop_bytes(&mut self) {
        self.bytes.clear();
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
