//! The frames of a message on a stream of a request (RFC 9114 section 4.1): field sections and
//! DATA, of either direction.

use super::error::{ConnectionError, ErrorCode};
use super::flood::{FloodGuard, Nuisance};
use super::frame::{FrameHeader, FrameKind, FrameReader, Part};
use crate::allowance::Credit;

/// What is allowed on a stream.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The largest encoded section, in bytes.
    pub(super) section_bytes_max: usize,
    /// The error that a PUSH_PROMISE is.
    pub(super) push_promise: ErrorCode,
}

/// A piece of a message.
#[derive(Debug)]
pub(super) enum Piece<'s, 'a> {
    /// Nothing is left of the input.
    More,
    Nothing,
    /// A whole encoded section.
    Section(&'s [u8]),
    /// A section that is larger than allowed, and is not kept.
    SectionTooLarge,
    /// Bytes of a body, at least one.
    Data(&'a [u8]),
    /// The body is longer than announced.
    TooLong,
    /// The stream has too many tiny DATA frames.
    TooManyTiny,
}

/// What may come on the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head of a request, or the final one of a response.
    #[default]
    Head,
    Body,
    /// Nothing but the end.
    End,
    /// Nothing that is used.
    Waste,
}

/// The frame whose payload is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Payload {
    #[default]
    Ignored,
    Section,
    Data,
}

/// Reads the frames of a message.
#[derive(Default)]
pub(super) struct MessageReader {
    pub(super) phase: Phase,
    /// The announced bytes of the body that have not come yet, but for those of a begun frame.
    pub(super) announced_bytes: Option<u64>,
    frames: FrameReader,
    payload: Payload,
    /// What has come of a section that came in pieces.
    section: Vec<u8>,
    tiny_data: Credit,
}

impl MessageReader {
    /// Takes the next piece at the start of `input`, which is advanced past it.
    pub(super) fn next<'s, 'a: 's>(
        &'s mut self,
        input: &mut &'a [u8],
        limits: Limits,
        guard: &mut FloodGuard,
    ) -> Result<Piece<'s, 'a>, ConnectionError> {
        let before = input.len();
        let part = self.frames.next(input);
        let taken = before - input.len();
        match part {
            None => {
                guard.weigh(taken, 0)?;
                Ok(Piece::More)
            }
            Some(Part::Header(header)) => {
                guard.weigh(taken, 0)?;
                self.begin(header, limits, guard)
            }
            Some(Part::Payload { bytes, is_last }) => match self.payload {
                Payload::Ignored => {
                    guard.weigh(taken, 0)?;
                    Ok(Piece::Nothing)
                }
                Payload::Data => {
                    guard.weigh(taken, taken)?;
                    Ok(Piece::Data(bytes))
                }
                Payload::Section => {
                    guard.weigh(taken, taken)?;
                    Ok(self.section(bytes, is_last))
                }
            },
        }
    }

    /// Counts the bytes of a DATA frame, when its header has come; `false`: they are more than
    /// announced.
    fn takes(&mut self, length: u64) -> bool {
        let Some(announced_bytes) = &mut self.announced_bytes else {
            return true;
        };
        let left = announced_bytes.checked_sub(length);
        *announced_bytes = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether bytes of the body are missing.
    pub(super) fn is_short(&self) -> bool {
        self.announced_bytes.is_some_and(|left| left > 0)
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// A frame is incomplete (RFC 9114 section 7.1).
    pub(super) fn check_end(&self) -> Result<(), ConnectionError> {
        if self.frames.is_between_frames() {
            Ok(())
        } else {
            Err(ConnectionError::frame(
                "client closed stream in the middle of a frame",
            ))
        }
    }

    fn begin<'s, 'a>(
        &'s mut self,
        header: FrameHeader,
        limits: Limits,
        guard: &mut FloodGuard,
    ) -> Result<Piece<'s, 'a>, ConnectionError> {
        self.payload = Payload::Ignored;
        match header.kind {
            FrameKind::Data if self.phase != Phase::Body => Err(ConnectionError::unexpected(
                "client sent unexpected DATA frame",
            )),
            FrameKind::Headers if self.phase == Phase::End => Err(ConnectionError::unexpected(
                "client sent unexpected HEADERS frame",
            )),
            FrameKind::Data => {
                self.payload = Payload::Data;
                let is_useful = guard.data_begun(header.length, &mut self.tiny_data)?;
                Ok(match self.takes(header.length) {
                    false => Piece::TooLong,
                    true if is_useful => Piece::Nothing,
                    true => Piece::TooManyTiny,
                })
            }
            FrameKind::Headers if header.length > limits.section_bytes_max as u64 => {
                Ok(Piece::SectionTooLarge)
            }
            FrameKind::Headers => {
                guard.head_begun();
                self.payload = Payload::Section;
                self.section = Vec::new();
                Ok(match header.length {
                    0 => Piece::Section(&self.section),
                    _ => Piece::Nothing,
                })
            }
            FrameKind::Unknown => {
                guard.count(Nuisance::Empty)?;
                Ok(Piece::Nothing)
            }
            FrameKind::PushPromise => Err(ConnectionError::new(
                limits.push_promise,
                "client sent PUSH_PROMISE frame",
            )),
            FrameKind::CancelPush
            | FrameKind::Settings
            | FrameKind::GoAway
            | FrameKind::MaxPushId
            | FrameKind::PriorityUpdate
            | FrameKind::PriorityUpdateOfPush
            | FrameKind::OfHttp2 => Err(ConnectionError::unexpected(
                "client sent frame that is not allowed on a stream of a request",
            )),
        }
    }

    /// Bytes of a section. One that comes whole is not copied.
    fn section<'s, 'a: 's>(&'s mut self, bytes: &'a [u8], is_last: bool) -> Piece<'s, 'a> {
        if is_last && self.section.is_empty() {
            return Piece::Section(bytes);
        }
        self.section.extend_from_slice(bytes);
        if is_last {
            Piece::Section(&self.section)
        } else {
            Piece::Nothing
        }
    }
}
