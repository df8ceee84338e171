//! What a peer may say on the streams of its encoder and its decoder (RFC 9204 sections 4.3 and
//! 4.4) where neither side has a dynamic table.

/// Most bytes of an integer behind its prefix: those of 62 bits.
const CONTINUATION_BYTES_MAX: u8 = 9;

/// The instruction that sets the capacity of the dynamic table to 0, as it is.
const CAPACITY_0: u8 = 0x20;

/// Whether these bytes of an encoder's stream are instructions that may come: only that the table's
/// capacity is 0. Any other would insert an entry, which finds no place.
pub(crate) fn check_encoder_instructions(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == CAPACITY_0)
}

/// The instructions of a peer's decoder, which may come in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecoderInstructions {
    /// The bytes behind the prefix of an integer that is not complete.
    continuation_bytes: Option<u8>,
}

impl DecoderInstructions {
    /// Whether these bytes are instructions that may come: cancellations of streams. Nothing was
    /// inserted, so that there is nothing to acknowledge.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.continuation_bytes = match (self.continuation_bytes, byte) {
                (None, 0x7f) => Some(0),
                (None, 0x40..0x7f) => None,
                (None, _) | (Some(CONTINUATION_BYTES_MAX), _) => return false,
                (Some(count), 0x80..) => Some(count + 1),
                (Some(_), _) => None,
            };
        }
        true
    }
}
