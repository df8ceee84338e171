//! Frames: the common header and the payloads (RFC 9113 sections 4 and 6, RFC 9218 section 7.1).
//! The connection checks whether a frame is allowed in its state.

use super::error::{ConnectionError, ErrorCode};
use super::settings::Setting;

#[cfg(test)]
mod tests;

/// The number of a stream; 0 is the connection.
pub type StreamId = u32;

/// Bytes of a frame header.
pub const HEADER_BYTES: usize = 9;

/// The payload size that every peer accepts, without a setting.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1 << 14;

/// The largest payload size that a setting may allow.
pub const PAYLOAD_BYTES_MAX: u32 = (1 << 24) - 1;

const FLAG_ACK: u8 = 0x1;
const FLAG_END_STREAM: u8 = 0x1;
const FLAG_END_HEADERS: u8 = 0x4;
const FLAG_PADDED: u8 = 0x8;
const FLAG_PRIORITY: u8 = 0x20;

/// The reserved bit of a stream number; in a dependency it marks an exclusive one.
const RESERVED_BIT: u32 = 1 << 31;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    /// An unknown kind, which is ignored (RFC 9113 section 4.1).
    Unknown(u8),
}

impl FrameKind {
    /// The kind with this number.
    #[must_use]
    pub fn of(number: u8) -> FrameKind {
        match number {
            0 => FrameKind::Data,
            1 => FrameKind::Headers,
            2 => FrameKind::Priority,
            3 => FrameKind::RstStream,
            4 => FrameKind::Settings,
            5 => FrameKind::PushPromise,
            6 => FrameKind::Ping,
            7 => FrameKind::GoAway,
            8 => FrameKind::WindowUpdate,
            9 => FrameKind::Continuation,
            0x10 => FrameKind::PriorityUpdate,
            other => FrameKind::Unknown(other),
        }
    }

    /// The number of the kind.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            FrameKind::Data => 0,
            FrameKind::Headers => 1,
            FrameKind::Priority => 2,
            FrameKind::RstStream => 3,
            FrameKind::Settings => 4,
            FrameKind::PushPromise => 5,
            FrameKind::Ping => 6,
            FrameKind::GoAway => 7,
            FrameKind::WindowUpdate => 8,
            FrameKind::Continuation => 9,
            FrameKind::PriorityUpdate => 0x10,
            FrameKind::Unknown(other) => other,
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub length: u32,
    pub kind: FrameKind,
    pub flags: u8,
    pub stream: StreamId,
}

impl FrameHeader {
    /// The header at the start of `input`, once it is complete.
    #[must_use]
    pub fn parse(input: &[u8]) -> Option<FrameHeader> {
        let [high, middle, low, kind, flags, stream @ ..] = input.first_chunk::<HEADER_BYTES>()?;
        Some(FrameHeader {
            length: u32::from_be_bytes([0, *high, *middle, *low]),
            kind: FrameKind::of(*kind),
            flags: *flags,
            stream: u32::from_be_bytes(*stream) & !RESERVED_BIT,
        })
    }

    /// Appends the header.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, length @ ..] = self.length.to_be_bytes();
        out.extend_from_slice(&length);
        out.extend_from_slice(&[self.kind.number(), self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }

    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame of a known kind, with its payload parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Data {
        data: &'a [u8],
        ends_stream: bool,
    },
    Headers {
        fragment: &'a [u8],
        /// The stream that this one depends on, by the priority scheme of RFC 7540.
        dependency: Option<StreamId>,
        ends_headers: bool,
        ends_stream: bool,
    },
    /// The priority scheme of RFC 7540, which is obsolete and ignored.
    Priority {
        dependency: StreamId,
    },
    RstStream {
        code: ErrorCode,
    },
    Settings {
        settings: &'a [u8],
    },
    SettingsAck,
    PushPromise,
    Ping {
        data: [u8; 8],
    },
    PingAck,
    GoAway {
        last_stream: StreamId,
        code: ErrorCode,
    },
    WindowUpdate {
        increment: u32,
    },
    Continuation {
        fragment: &'a [u8],
        ends_headers: bool,
    },
    /// PRIORITY_UPDATE (RFC 9218 section 7.1).
    PriorityUpdate {
        prioritized: StreamId,
        value: &'a [u8],
    },
    Unknown,
}

impl<'a> Frame<'a> {
    /// Parses a frame with this header and payload.
    ///
    /// # Errors
    /// The payload has the wrong size for its kind, or more padding than bytes.
    pub fn parse(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, ConnectionError> {
        Ok(match header.kind {
            FrameKind::Data => Frame::Data {
                data: unpadded(
                    header,
                    payload,
                    "client sent padded DATA frame with incorrect length",
                )?,
                ends_stream: header.has(FLAG_END_STREAM),
            },
            FrameKind::Headers => headers(header, payload)?,
            FrameKind::Priority => Frame::Priority {
                dependency: match payload.as_array::<5>() {
                    Some([number @ .., _]) => u32::from_be_bytes(*number) & !RESERVED_BIT,
                    None => {
                        return Err(ConnectionError::size(
                            "client sent PRIORITY frame with incorrect length",
                        ));
                    }
                },
            },
            FrameKind::RstStream => Frame::RstStream {
                code: ErrorCode::of(number(
                    payload,
                    "client sent RST_STREAM frame with incorrect length",
                )?),
            },
            FrameKind::Settings => settings(header, payload)?,
            FrameKind::PushPromise => Frame::PushPromise,
            FrameKind::Ping => {
                let data = payload.as_array::<8>();
                let data = data.ok_or(ConnectionError::size(
                    "client sent PING frame with incorrect length",
                ))?;
                if header.has(FLAG_ACK) {
                    Frame::PingAck
                } else {
                    Frame::Ping { data: *data }
                }
            }
            FrameKind::GoAway => go_away(payload)?,
            FrameKind::WindowUpdate => Frame::WindowUpdate {
                increment: number(
                    payload,
                    "client sent WINDOW_UPDATE frame with incorrect length",
                )? & !RESERVED_BIT,
            },
            FrameKind::Continuation => Frame::Continuation {
                fragment: payload,
                ends_headers: header.has(FLAG_END_HEADERS),
            },
            FrameKind::PriorityUpdate => match payload.split_first_chunk::<4>() {
                Some((stream, value)) => Frame::PriorityUpdate {
                    prioritized: u32::from_be_bytes(*stream) & !RESERVED_BIT,
                    value,
                },
                None => {
                    return Err(ConnectionError::size(
                        "client sent PRIORITY_UPDATE frame with incorrect length",
                    ));
                }
            },
            FrameKind::Unknown(_) => Frame::Unknown,
        })
    }
}

fn headers(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, ConnectionError> {
    let reason = "client sent padded HEADERS frame with incorrect length";
    let mut fragment = unpadded(header, payload, reason)?;
    let mut dependency = None;
    if header.has(FLAG_PRIORITY) {
        let Some(([number @ .., _], rest)) = fragment.split_first_chunk::<5>() else {
            return Err(ConnectionError::size(
                "client sent HEADERS frame with incorrect length",
            ));
        };
        dependency = Some(u32::from_be_bytes(*number) & !RESERVED_BIT);
        fragment = rest;
    }
    Ok(Frame::Headers {
        fragment,
        dependency,
        ends_headers: header.has(FLAG_END_HEADERS),
        ends_stream: header.has(FLAG_END_STREAM),
    })
}

fn go_away(payload: &[u8]) -> Result<Frame<'static>, ConnectionError> {
    match payload.first_chunk::<8>() {
        Some([a, b, c, d, code @ ..]) => Ok(Frame::GoAway {
            last_stream: u32::from_be_bytes([*a, *b, *c, *d]) & !RESERVED_BIT,
            code: ErrorCode::of(u32::from_be_bytes(*code)),
        }),
        None => Err(ConnectionError::size(
            "client sent GOAWAY frame with incorrect length",
        )),
    }
}

fn settings(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, ConnectionError> {
    if header.has(FLAG_ACK) {
        return match payload {
            [] => Ok(Frame::SettingsAck),
            _ => Err(ConnectionError::size(
                "client sent SETTINGS frame with the ACK flag and nonzero length",
            )),
        };
    }
    if !payload.len().is_multiple_of(Setting::BYTES) {
        return Err(ConnectionError::size(
            "client sent SETTINGS frame with incorrect length",
        ));
    }
    Ok(Frame::Settings { settings: payload })
}

/// The payload without its padding (RFC 9113 section 6.1).
fn unpadded<'a>(
    header: FrameHeader,
    payload: &'a [u8],
    reason: &'static str,
) -> Result<&'a [u8], ConnectionError> {
    if !header.has(FLAG_PADDED) {
        return Ok(payload);
    }
    let Some((padding, rest)) = payload.split_first() else {
        return Err(ConnectionError::size(reason));
    };
    let kept = rest.len().checked_sub(usize::from(*padding));
    kept.and_then(|kept| rest.get(..kept))
        .ok_or(ConnectionError::protocol(reason))
}

fn number(payload: &[u8], reason: &'static str) -> Result<u32, ConnectionError> {
    let bytes = payload.as_array::<4>();
    bytes
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or(ConnectionError::size(reason))
}

fn write_header(out: &mut Vec<u8>, kind: FrameKind, flags: u8, stream: StreamId, length: usize) {
    let header = FrameHeader {
        length: length as u32,
        kind,
        flags,
        stream,
    };
    header.write(out);
}

/// Appends a DATA frame.
pub fn write_data(out: &mut Vec<u8>, stream: StreamId, data: &[u8], ends_stream: bool) {
    let flags = if ends_stream { FLAG_END_STREAM } else { 0 };
    write_header(out, FrameKind::Data, flags, stream, data.len());
    out.extend_from_slice(data);
}

/// Appends a header block as a HEADERS frame and as many CONTINUATION frames as it needs.
pub fn write_headers(
    out: &mut Vec<u8>,
    stream: StreamId,
    block: &[u8],
    payload_bytes_max: usize,
    ends_stream: bool,
) {
    let mut kind = FrameKind::Headers;
    let mut flags = if ends_stream { FLAG_END_STREAM } else { 0 };
    let mut rest = block;
    loop {
        let (fragment, behind) = rest.split_at(rest.len().min(payload_bytes_max.max(1)));
        if behind.is_empty() {
            flags |= FLAG_END_HEADERS;
        }
        write_header(out, kind, flags, stream, fragment.len());
        out.extend_from_slice(fragment);
        if behind.is_empty() {
            return;
        }
        (kind, flags, rest) = (FrameKind::Continuation, 0, behind);
    }
}

/// Appends an RST_STREAM frame.
pub fn write_rst_stream(out: &mut Vec<u8>, stream: StreamId, code: ErrorCode) {
    write_header(out, FrameKind::RstStream, 0, stream, 4);
    out.extend_from_slice(&code.number().to_be_bytes());
}

/// Appends a SETTINGS frame.
pub fn write_settings(out: &mut Vec<u8>, settings: &[(Setting, u32)]) {
    write_header(
        out,
        FrameKind::Settings,
        0,
        0,
        settings.len() * Setting::BYTES,
    );
    for (setting, value) in settings {
        out.extend_from_slice(&setting.number().to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of a SETTINGS frame.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write_header(out, FrameKind::Settings, FLAG_ACK, 0, 0);
}

/// Appends the answer to a PING frame.
pub fn write_ping_ack(out: &mut Vec<u8>, data: [u8; 8]) {
    write_header(out, FrameKind::Ping, FLAG_ACK, 0, data.len());
    out.extend_from_slice(&data);
}

/// Appends a GOAWAY frame.
pub fn write_go_away(out: &mut Vec<u8>, last_stream: StreamId, code: ErrorCode) {
    write_header(out, FrameKind::GoAway, 0, 0, 8);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.number().to_be_bytes());
}

/// Appends a WINDOW_UPDATE frame.
pub fn write_window_update(out: &mut Vec<u8>, stream: StreamId, increment: u32) {
    write_header(out, FrameKind::WindowUpdate, 0, stream, 4);
    out.extend_from_slice(&increment.to_be_bytes());
}
