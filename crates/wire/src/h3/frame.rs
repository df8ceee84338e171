//! Frames (RFC 9114 section 7, RFC 9218 section 7.2). Whether one is allowed on its stream is
//! checked by the stream.

use crate::varint::{self, VARINT_BYTES_MAX};

#[cfg(test)]
mod tests;

/// The number of a stream of QUIC: 62 bits (RFC 9000 section 2.1).
pub type StreamId = u64;

/// The bytes of the longest header: a kind and a length.
pub const HEADER_BYTES_MAX: usize = 2 * VARINT_BYTES_MAX;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    Data,
    Headers,
    CancelPush,
    Settings,
    PushPromise,
    GoAway,
    MaxPushId,
    /// PRIORITY_UPDATE of a request.
    PriorityUpdate,
    /// PRIORITY_UPDATE of a push.
    PriorityUpdateOfPush,
    /// The number of a frame of HTTP/2 that HTTP/3 does without (RFC 9114 section 7.2.8).
    OfHttp2,
    /// An unknown kind, which is ignored (RFC 9114 section 9).
    Unknown,
}

impl FrameKind {
    /// The kind with this number.
    #[must_use]
    pub fn of(number: u64) -> FrameKind {
        match number {
            0 => FrameKind::Data,
            1 => FrameKind::Headers,
            3 => FrameKind::CancelPush,
            4 => FrameKind::Settings,
            5 => FrameKind::PushPromise,
            7 => FrameKind::GoAway,
            0xd => FrameKind::MaxPushId,
            0xf_0700 => FrameKind::PriorityUpdate,
            0xf_0701 => FrameKind::PriorityUpdateOfPush,
            2 | 6 | 8 | 9 => FrameKind::OfHttp2,
            _ => FrameKind::Unknown,
        }
    }

    /// The number of a kind that is written.
    fn number(self) -> u64 {
        match self {
            FrameKind::Data => 0,
            FrameKind::Headers => 1,
            FrameKind::CancelPush => 3,
            FrameKind::Settings => 4,
            FrameKind::PushPromise => 5,
            FrameKind::GoAway => 7,
            FrameKind::MaxPushId => 0xd,
            FrameKind::PriorityUpdate => 0xf_0700,
            FrameKind::PriorityUpdateOfPush => 0xf_0701,
            FrameKind::OfHttp2 => 2,
            // The first of the reserved numbers, which every receiver ignores.
            FrameKind::Unknown => 0x21,
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub kind: FrameKind,
    /// Bytes of the payload.
    pub length: u64,
}

impl FrameHeader {
    /// Reads the header at the start of `input` and advances `input` past it, once it is complete.
    #[must_use]
    pub fn read(input: &mut &[u8]) -> Option<FrameHeader> {
        let mut rest = *input;
        let kind = FrameKind::of(varint::read(&mut rest)?);
        let length = varint::read(&mut rest)?;
        *input = rest;
        Some(FrameHeader { kind, length })
    }

    /// Appends the header.
    pub fn write(self, out: &mut Vec<u8>) {
        varint::write(out, self.kind.number());
        varint::write(out, self.length);
    }
}

/// Appends the header of a DATA frame, whose payload of `length` bytes the caller sends behind it.
pub fn write_data_header(out: &mut Vec<u8>, length: usize) {
    let header = FrameHeader {
        kind: FrameKind::Data,
        length: length as u64,
    };
    header.write(out);
}

/// Appends a frame.
pub(super) fn write_frame(out: &mut Vec<u8>, kind: FrameKind, payload: &[u8]) {
    let header = FrameHeader {
        kind,
        length: payload.len() as u64,
    };
    header.write(out);
    out.extend_from_slice(payload);
}

/// A part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The header. Payload follows unless its length is 0.
    Header(FrameHeader),
    /// Bytes of the payload, at least one.
    Payload { bytes: &'a [u8], is_last: bool },
}

/// Reads the frames of a stream, wherever its bytes are cut. Nothing but a cut header is stored.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    payload_bytes_left: u64,
}

impl FrameReader {
    /// The next part of a frame at the start of `input`, which is advanced past it; `None` once
    /// nothing is left of the input.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<Part<'a>> {
        if self.payload_bytes_left > 0 {
            return self.payload(input);
        }
        let header = match self.header_bytes {
            0 => FrameHeader::read(input).or_else(|| self.cut_header(input)),
            _ => self.cut_header(input),
        }?;
        debug_assert_eq!(self.header_bytes, 0);
        self.payload_bytes_left = header.length;
        Some(Part::Header(header))
    }

    /// Whether no frame is incomplete: the stream may end here.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.header_bytes == 0 && self.payload_bytes_left == 0
    }

    fn payload<'a>(&mut self, input: &mut &'a [u8]) -> Option<Part<'a>> {
        let left = usize::try_from(self.payload_bytes_left).unwrap_or(usize::MAX);
        let (bytes, rest) = input.split_at(input.len().min(left));
        *input = rest;
        self.payload_bytes_left -= bytes.len() as u64;
        let is_last = self.payload_bytes_left == 0;
        (!bytes.is_empty()).then_some(Part::Payload { bytes, is_last })
    }

    /// Takes the bytes of a header one by one until it is complete.
    #[cold]
    fn cut_header(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            // The longest header is complete before its place is used up.
            *self.header.get_mut(self.header_bytes)? = *byte;
            self.header_bytes += 1;
            let mut kept = &self.header[..self.header_bytes];
            if let Some(header) = FrameHeader::read(&mut kept) {
                debug_assert!(kept.is_empty());
                self.header_bytes = 0;
                return Some(header);
            }
        }
        None
    }
}
