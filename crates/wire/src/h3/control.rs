//! The frames of a control stream (RFC 9114 section 6.2.1).

use super::error::{ConnectionError, ErrorCode};
use super::flood::{FloodGuard, Nuisance};
use super::frame::{FrameHeader, FrameKind, FrameReader, Part, StreamId};
use super::settings::PeerSettings;
use crate::message::Priority;
use crate::varint::{self, VARINT_BYTES_MAX};

/// The largest SETTINGS, in bytes: sixty settings, where peers send five.
const SETTINGS_BYTES_MAX: u64 = 1024;

/// The largest PRIORITY_UPDATE, in bytes: a number and a dictionary, of which six bytes are used.
const PRIORITY_UPDATE_BYTES_MAX: u64 = 256;

/// A frame of a control stream.
#[derive(Debug)]
pub(super) enum ControlFrame {
    Settings,
    GoAway(u64),
    MaxPushId(u64),
    PriorityUpdate {
        prioritized: StreamId,
        priority: Priority,
    },
    Ignored,
}

/// Reads the frames of a control stream.
pub(super) struct ControlReader {
    frames: FrameReader,
    /// The kind of the frame whose payload is read.
    kind: FrameKind,
    payload: Vec<u8>,
    /// Whether the first frame has come.
    is_begun: bool,
}

impl Default for ControlReader {
    fn default() -> ControlReader {
        ControlReader {
            frames: FrameReader::default(),
            kind: FrameKind::Unknown,
            payload: Vec::new(),
            is_begun: false,
        }
    }
}

impl ControlReader {
    /// The next frame at the start of `input`, which is advanced past it; `None` once nothing is
    /// left. Settings are applied to `peer`.
    pub(super) fn next(
        &mut self,
        input: &mut &[u8],
        peer: &mut PeerSettings,
        guard: &mut FloodGuard,
    ) -> Result<Option<ControlFrame>, ConnectionError> {
        let before = input.len();
        let part = self.frames.next(input);
        guard.weigh(before - input.len(), 0)?;
        match part {
            None => Ok(None),
            Some(Part::Header(header)) => {
                self.begin(header, guard)?;
                match header.length {
                    0 => self.frame(&[], peer).map(Some),
                    _ => Ok(Some(ControlFrame::Ignored)),
                }
            }
            Some(Part::Payload { .. }) if self.kind == FrameKind::Unknown => {
                Ok(Some(ControlFrame::Ignored))
            }
            Some(Part::Payload { bytes, is_last }) if is_last && self.payload.is_empty() => {
                self.frame(bytes, peer).map(Some)
            }
            Some(Part::Payload { bytes, is_last }) => {
                self.payload.extend_from_slice(bytes);
                if !is_last {
                    return Ok(Some(ControlFrame::Ignored));
                }
                let payload = std::mem::take(&mut self.payload);
                self.frame(&payload, peer).map(Some)
            }
        }
    }

    /// Checks a frame by its header.
    fn begin(
        &mut self,
        header: FrameHeader,
        guard: &mut FloodGuard,
    ) -> Result<(), ConnectionError> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        debug_assert!(self.payload.is_empty());
        self.kind = header.kind;
        match header.kind {
            FrameKind::Settings if !is_first => Err(ConnectionError::unexpected(
                "client sent a second SETTINGS frame",
            )),
            kind if kind != FrameKind::Settings && is_first => Err(ConnectionError::new(
                ErrorCode::MissingSettings,
                "client sent another frame before SETTINGS",
            )),
            FrameKind::Settings => at_most(
                header,
                SETTINGS_BYTES_MAX,
                "client sent too large SETTINGS frame",
            ),
            FrameKind::PriorityUpdate => {
                guard.count(Nuisance::Priority)?;
                at_most(
                    header,
                    PRIORITY_UPDATE_BYTES_MAX,
                    "client sent too large PRIORITY_UPDATE frame",
                )
            }
            FrameKind::GoAway | FrameKind::MaxPushId => {
                guard.count(Nuisance::Empty)?;
                if header.length <= VARINT_BYTES_MAX as u64 {
                    Ok(())
                } else {
                    Err(incorrect_length())
                }
            }
            FrameKind::Unknown => guard.count(Nuisance::Empty),
            FrameKind::CancelPush | FrameKind::PriorityUpdateOfPush => Err(ConnectionError::id(
                "client sent frame for a push that was not promised",
            )),
            FrameKind::Data | FrameKind::Headers | FrameKind::PushPromise | FrameKind::OfHttp2 => {
                Err(ConnectionError::unexpected(
                    "client sent frame that is not allowed on a control stream",
                ))
            }
        }
    }

    /// A frame whose payload is whole.
    fn frame(
        &self,
        payload: &[u8],
        peer: &mut PeerSettings,
    ) -> Result<ControlFrame, ConnectionError> {
        let mut rest = payload;
        match self.kind {
            FrameKind::Settings => {
                peer.apply(payload)?;
                Ok(ControlFrame::Settings)
            }
            FrameKind::GoAway => only_number(rest).map(ControlFrame::GoAway),
            FrameKind::MaxPushId => only_number(rest).map(ControlFrame::MaxPushId),
            FrameKind::PriorityUpdate => {
                let prioritized = varint::read(&mut rest).ok_or(incorrect_length())?;
                let priority = Priority::parse(rest);
                Ok(ControlFrame::PriorityUpdate {
                    prioritized,
                    priority,
                })
            }
            _ => Ok(ControlFrame::Ignored),
        }
    }
}

fn at_most(
    header: FrameHeader,
    bytes_max: u64,
    reason: &'static str,
) -> Result<(), ConnectionError> {
    if header.length <= bytes_max {
        Ok(())
    } else {
        Err(ConnectionError::new(ErrorCode::ExcessiveLoad, reason))
    }
}

/// The number that a payload is.
fn only_number(payload: &[u8]) -> Result<u64, ConnectionError> {
    let mut rest = payload;
    let number = varint::read(&mut rest).ok_or(incorrect_length())?;
    match rest {
        [] => Ok(number),
        _ => Err(incorrect_length()),
    }
}

fn incorrect_length() -> ConnectionError {
    ConnectionError::frame("client sent frame with incorrect length")
}
