//! What both ends keep of a connection: the peer's settings, limits, and the coders of field
//! sections; and the streams that only the peer writes.

use super::control::{ControlFrame, ControlReader};
use super::error::{ConnectionError, ErrorCode};
use super::flood::{FloodGuard, Nuisance};
use super::frame::{self, FrameHeader, FrameKind, StreamId};
use super::settings::{PeerSettings, Setting};
use super::unidirectional::{self, Kind, UnidirectionalStream};
use crate::field_section::FieldSink;
use crate::message::{HeadRules, Priority};
use crate::qpack::{Decoder, DecoderInstructions, Encoder, check_encoder_instructions};
use crate::varint::{self, VARINT_MAX};

/// The end of a connection that this side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// The limits of a connection, and what it offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionRules {
    /// Limits and choices that heads are read under.
    pub head: HeadRules,
    /// Whether the extended CONNECT is offered (RFC 9220).
    pub has_connect_protocol: bool,
}

/// An event of a stream that only the peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// Nothing is left of the input.
    More,
    /// The peer's settings have come.
    Settings,
    /// The peer ends the connection: it answers no request from this stream's number on. Of a
    /// client, `id` is that of a push.
    GoingAway { id: u64 },
    /// A client gives a stream, which it may not have opened yet, another priority.
    Prioritized {
        stream: StreamId,
        priority: Priority,
    },
    /// The stream is of no use: it is to be stopped with this code.
    Stop(ErrorCode),
}

/// One end of a connection.
pub struct Connection {
    role: Role,
    pub(super) rules: ConnectionRules,
    peer: PeerSettings,
    is_open: bool,
    /// Which of the streams that may be there once have come, by their types.
    seen: [bool; 4],
    /// The number in the peer's last GOAWAY, which may only fall.
    peer_last: u64,
    /// The number in our last GOAWAY.
    own_last: u64,
    max_push_id: u64,
    pub(super) guard: FloodGuard,
    pub(super) decoder: SectionDecoder,
    encoder: Encoder,
}

/// The decoder of sections, with the errors of a connection.
#[derive(Default)]
pub(super) struct SectionDecoder(Decoder);

impl SectionDecoder {
    pub(super) fn read(
        &mut self,
        section: &[u8],
        sink: &mut impl FieldSink,
    ) -> Result<(), ConnectionError> {
        self.0.decode(section, sink).map_err(|_| {
            ConnectionError::new(
                ErrorCode::QpackDecompressionFailed,
                "client sent invalid field section",
            )
        })
    }
}

impl Connection {
    /// The server's side of a connection.
    #[must_use]
    pub fn server(rules: ConnectionRules) -> Connection {
        Connection::new(Role::Server, rules)
    }

    /// The client's side of a connection.
    #[must_use]
    pub fn client(rules: ConnectionRules) -> Connection {
        Connection::new(Role::Client, rules)
    }

    fn new(role: Role, rules: ConnectionRules) -> Connection {
        Connection {
            role,
            rules,
            peer: PeerSettings::default(),
            is_open: false,
            seen: [false; 4],
            peer_last: VARINT_MAX,
            own_last: VARINT_MAX,
            max_push_id: 0,
            guard: FloodGuard::default(),
            decoder: SectionDecoder::default(),
            encoder: Encoder::default(),
        }
    }

    /// Appends the beginning of our control stream: its type, and our settings. Those of QPACK are
    /// the defaults, so that neither side needs a stream for it.
    pub fn open_control(&self, out: &mut Vec<u8>) {
        varint::write(out, unidirectional::CONTROL);
        let mut settings = Vec::new();
        if self.rules.has_connect_protocol {
            Setting::EnableConnectProtocol.write(1, &mut settings);
        }
        frame::write_frame(out, FrameKind::Settings, &settings);
    }

    /// Appends a GOAWAY to our control stream: requests from this stream's number on are not
    /// answered. One that says no less than the last is left out.
    pub fn go_away(&mut self, id: u64, out: &mut Vec<u8>) {
        if id >= self.own_last {
            return;
        }
        self.own_last = id;
        let mut number = Vec::new();
        varint::write(&mut number, id);
        frame::write_frame(out, FrameKind::GoAway, &number);
    }

    /// The peer's settings; the defaults until they have come.
    #[must_use]
    pub fn peer(&self) -> &PeerSettings {
        &self.peer
    }

    /// Whether the peer's settings have come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Appends a HEADERS frame: a head, interim or final, or trailers. `write` puts its fields into
    /// `block`, which is emptied first. Returns the bytes of the frame.
    pub fn write_head(
        &mut self,
        block: &mut Vec<u8>,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> usize {
        block.clear();
        self.encoder.begin(block);
        write(&mut self.encoder, block);
        let before = out.len();
        let header = FrameHeader {
            kind: FrameKind::Headers,
            length: block.len() as u64,
        };
        header.write(out);
        out.extend_from_slice(block);
        out.len() - before
    }

    /// Notes sent DATA of so many bytes: traffic that serves a request.
    pub fn data_sent(&mut self, bytes: usize) {
        self.guard.data_sent(bytes);
    }

    /// Counts a stream that ended by a reset from either side. `opened_ms` says when it was opened,
    /// if it is known. Both are monotonic times in milliseconds.
    ///
    /// # Errors
    /// There were too many.
    pub fn stream_reset(
        &mut self,
        opened_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        self.guard.set_now(now_ms);
        self.guard.count_reset(opened_ms)
    }

    /// Takes the next event at the start of `input`, which is advanced past it, of a stream that
    /// only the peer writes. `now_ms` is a monotonic time in milliseconds.
    ///
    /// # Errors
    /// An error that ends the connection.
    pub fn receive_unidirectional(
        &mut self,
        stream: &mut UnidirectionalStream,
        input: &mut &[u8],
        now_ms: u64,
    ) -> Result<ControlEvent, ConnectionError> {
        self.guard.set_now(now_ms);
        loop {
            match &mut stream.kind {
                Kind::Awaited => {
                    let before = input.len();
                    let kind = stream.read_type(input);
                    self.guard.weigh(before - input.len(), 0)?;
                    let Some(kind) = kind else {
                        return Ok(ControlEvent::More);
                    };
                    stream.kind = self.kind(kind)?;
                    if matches!(stream.kind, Kind::Ignored) {
                        return Ok(ControlEvent::Stop(ErrorCode::StreamCreationError));
                    }
                }
                Kind::Control(control) => {
                    let next = control.next(input, &mut self.peer, &mut self.guard)?;
                    let Some(frame) = next else {
                        return Ok(ControlEvent::More);
                    };
                    if let Some(event) = self.control_frame(frame)? {
                        return Ok(event);
                    }
                }
                Kind::Encoder => {
                    let bytes = std::mem::take(input);
                    self.guard.weigh(bytes.len(), 0)?;
                    return if check_encoder_instructions(bytes) {
                        Ok(ControlEvent::More)
                    } else {
                        Err(ConnectionError::new(
                            ErrorCode::QpackEncoderStreamError,
                            "client sent instruction for a dynamic table that has no room",
                        ))
                    };
                }
                Kind::Decoder(instructions) => {
                    let bytes = std::mem::take(input);
                    self.guard.weigh(bytes.len(), 0)?;
                    return if instructions.take(bytes) {
                        Ok(ControlEvent::More)
                    } else {
                        Err(ConnectionError::new(
                            ErrorCode::QpackDecoderStreamError,
                            "client acknowledged what a dynamic table does not hold",
                        ))
                    };
                }
                Kind::Ignored => {
                    *input = &[];
                    return Ok(ControlEvent::More);
                }
            }
        }
    }

    /// The peer has ended or reset a stream that only it writes.
    ///
    /// # Errors
    /// The connection cannot go on without the stream.
    pub fn end_unidirectional(&self, stream: &UnidirectionalStream) -> Result<(), ConnectionError> {
        if stream.is_critical() {
            Err(ConnectionError::new(
                ErrorCode::ClosedCriticalStream,
                "client closed a stream that the connection needs",
            ))
        } else {
            Ok(())
        }
    }

    /// What a stream of this type is read as.
    fn kind(&mut self, number: u64) -> Result<Kind, ConnectionError> {
        let kind = match (number, self.role) {
            (unidirectional::CONTROL, _) => Kind::Control(ControlReader::default()),
            (unidirectional::ENCODER, _) => Kind::Encoder,
            (unidirectional::DECODER, _) => Kind::Decoder(DecoderInstructions::default()),
            (unidirectional::PUSH, Role::Server) => {
                return Err(ConnectionError::new(
                    ErrorCode::StreamCreationError,
                    "client opened a push stream",
                ));
            }
            (unidirectional::PUSH, Role::Client) => {
                return Err(ConnectionError::id("client opened a push stream"));
            }
            _ => {
                self.guard.count(Nuisance::Empty)?;
                return Ok(Kind::Ignored);
            }
        };
        let seen = &mut self.seen[number as usize];
        if std::mem::replace(seen, true) {
            Err(ConnectionError::new(
                ErrorCode::StreamCreationError,
                "client opened a second stream of a type that may be there once",
            ))
        } else {
            Ok(kind)
        }
    }

    fn control_frame(
        &mut self,
        frame: ControlFrame,
    ) -> Result<Option<ControlEvent>, ConnectionError> {
        match (frame, self.role) {
            (ControlFrame::Settings, _) => {
                self.is_open = true;
                Ok(Some(ControlEvent::Settings))
            }
            (ControlFrame::GoAway(id), role) => {
                let is_request = id.is_multiple_of(4);
                if id > self.peer_last || role == Role::Client && !is_request {
                    return Err(ConnectionError::id(
                        "client sent GOAWAY frame with incorrect identifier",
                    ));
                }
                self.peer_last = id;
                Ok(Some(ControlEvent::GoingAway { id }))
            }
            (ControlFrame::MaxPushId(id), Role::Server) => {
                if id < self.max_push_id {
                    return Err(ConnectionError::id(
                        "client sent MAX_PUSH_ID frame with incorrect identifier",
                    ));
                }
                self.max_push_id = id;
                Ok(None)
            }
            (ControlFrame::PriorityUpdate { .. } | ControlFrame::MaxPushId(_), Role::Client) => {
                Err(ConnectionError::unexpected(
                    "client sent frame that only a client may send",
                ))
            }
            (
                ControlFrame::PriorityUpdate {
                    prioritized: stream,
                    priority,
                },
                Role::Server,
            ) => {
                if stream.is_multiple_of(4) {
                    Ok(Some(ControlEvent::Prioritized { stream, priority }))
                } else {
                    Err(ConnectionError::id(
                        "client sent PRIORITY_UPDATE frame with incorrect identifier",
                    ))
                }
            }
            (ControlFrame::Ignored, _) => Ok(None),
        }
    }
}
