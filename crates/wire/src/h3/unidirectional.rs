//! The streams that only the peer writes (RFC 9114 section 6.2): its control stream, those of its
//! QPACK encoder and decoder, and others.

use super::control::ControlReader;
use crate::qpack::DecoderInstructions;
use crate::varint::{self, VARINT_BYTES_MAX};

/// The number of a stream's type.
pub(super) const CONTROL: u64 = 0;
pub(super) const PUSH: u64 = 1;
pub(super) const ENCODER: u64 = 2;
pub(super) const DECODER: u64 = 3;

/// What a stream is read as.
#[derive(Default)]
pub(super) enum Kind {
    /// The type has not come whole.
    #[default]
    Awaited,
    Control(ControlReader),
    Encoder,
    Decoder(DecoderInstructions),
    /// Of no use.
    Ignored,
}

/// A stream that only the peer writes.
#[derive(Default)]
pub struct UnidirectionalStream {
    pub(super) kind: Kind,
    type_bytes: [u8; VARINT_BYTES_MAX],
    type_length: usize,
}

impl UnidirectionalStream {
    /// Takes the bytes of the type; `None` until it is whole.
    pub(super) fn read_type(&mut self, input: &mut &[u8]) -> Option<u64> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            // The longest number is complete before its place is used up.
            *self.type_bytes.get_mut(self.type_length)? = *byte;
            self.type_length += 1;
            let mut kept = &self.type_bytes[..self.type_length];
            if let Some(number) = varint::read(&mut kept) {
                return Some(number);
            }
        }
        None
    }

    /// Whether the connection cannot go on without the stream (RFC 9114 section 6.2.1, RFC 9204
    /// section 4.2).
    pub(super) fn is_critical(&self) -> bool {
        matches!(
            self.kind,
            Kind::Control(_) | Kind::Encoder | Kind::Decoder(_)
        )
    }
}
