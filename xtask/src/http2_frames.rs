//! Frames of HTTP/2, written and read by hand (RFC 9113 section 4.1), so that no code of the server
//! judges itself.

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
/// Of RFC 9218.
pub(crate) const PRIORITY_UPDATE: u8 = 16;

/// END_STREAM, and ACK of SETTINGS and PING.
pub(crate) const FLAG_END: u8 = 1;
pub(crate) const FLAG_END_HEADERS: u8 = 4;
pub(crate) const FLAG_PADDED: u8 = 8;

/// What a client begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The bytes before a frame's payload.
pub(crate) const HEAD_BYTES: usize = 9;

/// A frame that was received.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

/// Appends a frame.
pub(crate) fn write_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// The first frame, and the bytes behind it; `None` if it has not come whole.
pub(crate) fn first_frame(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let [high, middle, low, kind, flags, stream @ ..] = *head;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    let (payload, rest) = rest.split_at_checked(length)?;
    let frame = Frame {
        kind,
        flags,
        stream: u32::from_be_bytes(stream),
        payload,
    };
    Some((frame, rest))
}
