//! The common part of both ends of a connection: header tables, windows, streams, and frames with
//! the same answer on both ends.

use super::error::{ConnectionError, ErrorCode};
use super::flood::{CONTINUATION_BYTES_MIN, FloodGuard, Nuisance, TINY_DATA_BYTES_MAX};
use super::frame::{self, Frame, FrameHeader, FrameKind, HEADER_BYTES, StreamId};
use super::header_block::HeaderBlock;
use super::hpack::{CodingError, Decoder, Encoder, FieldSink, TABLE_BYTES_DEFAULT};
use super::settings::PeerSettings;
use super::stream::{Closed, Grants, Stream, Streams};
use super::window::{WINDOW_DEFAULT, WINDOW_MAX, Window};

/// The connection's window is widened again when it has shrunk to this size.
const RECEIVE_WINDOW_MIN: u32 = WINDOW_MAX / 4;

/// A stream's window that is kept open is widened again when it has shrunk to this size.
const STREAM_WINDOW_MIN: usize = (WINDOW_MAX / 4) as usize;

/// Windows that let go of less at a time cost more than they are worth, and no client has a reason
/// for them: they explain no frames of the peer's.
const WORTHWHILE_BYTES: usize = 256;

// The largest frame that is taken fits into what is left of a window that is widened late.
const _: () = assert!(RECEIVE_WINDOW_MIN >= frame::PAYLOAD_BYTES_DEFAULT);
const _: () = assert!(STREAM_WINDOW_MIN >= frame::PAYLOAD_BYTES_DEFAULT as usize);
const _: () = assert!(WORTHWHILE_BYTES < frame::PAYLOAD_BYTES_DEFAULT as usize);

/// The effect of a stream's window update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Widened {
    /// More may be sent.
    Sendable,
    /// Nothing: the stream is closed.
    Nothing,
    /// The stream must be reset.
    Refused(ErrorCode),
}

/// One end of a connection.
pub(super) struct Endpoint {
    pub(super) peer: PeerSettings,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) streams: Streams,
    /// The highest stream number that the client has opened.
    pub(super) last_stream: StreamId,
    /// An incomplete header block.
    pub(super) block: Option<HeaderBlock>,
    pub(super) send_window: Window,
    pub(super) receive_window: Window,
    pub(super) guard: FloodGuard,
    pub(super) output: Vec<u8>,
}

impl Default for Endpoint {
    fn default() -> Endpoint {
        Endpoint {
            peer: PeerSettings::default(),
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::default(),
            streams: Streams::default(),
            last_stream: 0,
            block: None,
            send_window: Window::new(WINDOW_DEFAULT),
            receive_window: Window::new(WINDOW_MAX),
            guard: FloodGuard::default(),
            output: Vec::new(),
        }
    }
}

impl Endpoint {
    /// Widens the connection's window for received data to its maximum. The streams' windows limit
    /// the kept data; a limit on the connection would only make streams wait for each other.
    pub(super) fn open_window(&mut self) {
        frame::write_window_update(&mut self.output, 0, WINDOW_MAX - WINDOW_DEFAULT);
    }

    /// The next frame at the start of `input`, and its bytes, if it is complete. Its header is
    /// checked before its payload has come.
    pub(super) fn next_frame<'a>(
        &mut self,
        input: &'a [u8],
        payload_bytes_max: u32,
        now_ms: u64,
    ) -> Result<Option<(FrameHeader, Frame<'a>, usize)>, ConnectionError> {
        let Some(header) = FrameHeader::parse(input) else {
            return Ok(None);
        };
        if header.length > payload_bytes_max {
            return Err(ConnectionError::size("client sent too large frame"));
        }
        self.check(header)?;
        let whole = HEADER_BYTES + header.length as usize;
        let Some(payload) = input.get(HEADER_BYTES..whole) else {
            return Ok(None);
        };
        self.guard.set_now(now_ms);
        let parsed = Frame::parse(header, payload)?;
        let useful_bytes = match parsed {
            Frame::Data { data, .. } => data.len(),
            Frame::Headers { fragment, .. } | Frame::Continuation { fragment, .. } => {
                fragment.len()
            }
            _ => 0,
        };
        self.guard.weigh(whole, useful_bytes)?;
        match parsed {
            Frame::Headers { .. } => self.guard.head_received(),
            Frame::Data { data, .. } if data.len() > TINY_DATA_BYTES_MAX => {
                self.guard.data_received();
            }
            _ => {}
        }
        Ok(Some((header, parsed, whole)))
    }

    /// Checks whether a frame may follow the one before it, by its header.
    fn check(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        let continued = self.block.as_ref().map(|block| block.stream);
        match (continued, header.kind) {
            (None, FrameKind::Continuation) => Err(ConnectionError::protocol(
                "client sent unexpected CONTINUATION frame",
            )),
            (Some(stream), FrameKind::Continuation) if stream != header.stream => {
                Err(ConnectionError::protocol(
                    "client sent CONTINUATION frame with incorrect identifier",
                ))
            }
            (Some(_), kind) if kind != FrameKind::Continuation => Err(ConnectionError::protocol(
                "client sent inappropriate frame while CONTINUATION was expected",
            )),
            _ => check_stream(header),
        }
    }

    /// Whether data may still be sent on a stream.
    pub(super) fn may_send(&self, stream: StreamId) -> bool {
        let stream = self.streams.get(stream);
        stream.is_some_and(Stream::may_send)
    }

    /// Bytes of DATA that may be sent on a stream now.
    pub(super) fn window(&self, stream: StreamId) -> usize {
        let own = self
            .streams
            .get(stream)
            .map_or(0, |stream| stream.send_window.available());
        own.min(self.send_window.available())
    }

    /// Appends a header block on a stream that may be written; see
    /// [`super::Connection::send_head`].
    pub(super) fn send_head(
        &mut self,
        stream: StreamId,
        ends: bool,
        block: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> usize {
        block.clear();
        self.encoder.begin(block);
        write(&mut self.encoder, block);
        let before = self.output.len();
        let payload_bytes_max = self.peer.payload_bytes_max as usize;
        frame::write_headers(&mut self.output, stream, block, payload_bytes_max, ends);
        self.output.len() - before
    }

    /// Sends as much of `data` as the windows allow, as one frame of at most `frame_bytes_max`.
    /// Returns the number of bytes sent, and whether they ended the stream.
    pub(super) fn send_data(
        &mut self,
        stream: StreamId,
        data: &[u8],
        ends: bool,
        frame_bytes_max: usize,
    ) -> (usize, bool) {
        let window = self.window(stream);
        let Some(own) = self.streams.get_mut(stream).filter(|own| own.may_send()) else {
            return (0, false);
        };
        let frame_bytes_max = frame_bytes_max.min(self.peer.payload_bytes_max as usize);
        let count = data.len().min(window).min(frame_bytes_max);
        let is_last = count == data.len() && ends;
        if count == 0 && !is_last {
            return (0, false);
        }
        own.send_window.take(count);
        self.send_window.take(count);
        let is_cut_by_window = count < data.len().min(frame_bytes_max);
        if !is_cut_by_window || count >= WORTHWHILE_BYTES {
            self.guard.data_sent(count);
        }
        frame::write_data(&mut self.output, stream, &data[..count], is_last);
        (count, is_last)
    }

    /// Allows the peer to send `bytes` more on a stream that it has not ended. A window that is
    /// kept open needs no grants.
    pub(super) fn grant(&mut self, stream: StreamId, bytes: u32) {
        let own = self.streams.get(stream);
        if own.is_some_and(|own| own.grants == Grants::AsRead) {
            self.widen_stream(stream, bytes);
        }
    }

    /// Opens a stream's window to the maximum and keeps it open.
    pub(super) fn open_stream_window(&mut self, stream: StreamId) {
        if let Some(own) = self.streams.get_mut(stream) {
            own.grants = Grants::KeptOpen;
            let left = own.receive_window.available() as u32;
            self.widen_stream(stream, WINDOW_MAX - left);
        }
    }

    /// DATA of so many bytes with their padding is taken off a stream's window. `false`: the peer
    /// may not send as much.
    pub(super) fn take_stream_window(&mut self, stream: StreamId, length: u32, ends: bool) -> bool {
        let Some(own) = self.streams.get_mut(stream) else {
            return true;
        };
        let room = own.receive_window.available();
        let Some(left) = room.checked_sub(length as usize) else {
            return false;
        };
        own.receive_window.take(length as usize);
        if own.grants == Grants::KeptOpen && left < STREAM_WINDOW_MIN && !ends {
            self.widen_stream(stream, WINDOW_MAX - left as u32);
        }
        true
    }

    fn widen_stream(&mut self, stream: StreamId, bytes: u32) {
        let Some(own) = self.streams.get_mut(stream) else {
            return;
        };
        if bytes == 0 || !own.may_receive() {
            return;
        }
        if own.receive_window.widen(bytes).is_ok() {
            frame::write_window_update(&mut self.output, stream, bytes);
        }
    }

    /// Resets a stream that has not ended.
    pub(super) fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if self.streams.get(stream).is_some() {
            self.streams.close(stream, Closed::ResetByUs);
            frame::write_rst_stream(&mut self.output, stream, code);
        }
    }

    /// Counts the reset of a stream, from either side.
    pub(super) fn count_reset(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        let opened_ms = self.streams.get(stream).map(|own| own.opened_ms);
        self.guard.count_reset(opened_ms)
    }

    /// Counts received DATA with its padding, on any stream.
    pub(super) fn data_received(
        &mut self,
        data: &[u8],
        length: u32,
        ends: bool,
    ) -> Result<(), ConnectionError> {
        if self.receive_window.available() < length as usize {
            return Err(ConnectionError::flow_control(
                "client violated connection flow control",
            ));
        }
        self.receive_window.take(length as usize);
        let left = self.receive_window.available() as u32;
        if left < RECEIVE_WINDOW_MIN && self.receive_window.widen(WINDOW_MAX - left).is_ok() {
            frame::write_window_update(&mut self.output, 0, WINDOW_MAX - left);
        }
        if data.is_empty() && !ends {
            self.guard.count(Nuisance::Empty)
        } else {
            Ok(())
        }
    }

    /// Adds a CONTINUATION frame to the incomplete block; returns the block once it is complete.
    pub(super) fn continuation(
        &mut self,
        fragment: &[u8],
        ends_headers: bool,
    ) -> Result<Option<HeaderBlock>, ConnectionError> {
        if !ends_headers && fragment.len() < CONTINUATION_BYTES_MIN {
            self.guard.count(Nuisance::Continuation)?;
        }
        let Some(mut block) = self.block.take() else {
            return Ok(None);
        };
        block.add(fragment)?;
        if ends_headers {
            return Ok(Some(block));
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Decodes a complete header block.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        sink: &mut impl FieldSink,
    ) -> Result<(), ConnectionError> {
        self.decoder
            .decode(block, sink)
            .map_err(|error| match error {
                CodingError::TruncatedInteger => {
                    ConnectionError::size("client sent HEADERS frame with incorrect length")
                }
                _ => ConnectionError::new(
                    ErrorCode::CompressionError,
                    "client sent invalid header block",
                ),
            })
    }

    /// Applies the peer's settings, and acknowledges them.
    pub(super) fn settings(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        self.guard.count(Nuisance::Settings)?;
        let old_window = self.peer.initial_window;
        self.peer.apply(payload)?;
        let new_window = self.peer.initial_window;
        for stream in self.streams.iter_mut() {
            let changed = stream.send_window.initial_changed(old_window, new_window);
            changed.map_err(|_| {
                ConnectionError::flow_control("client violated flow control by INITIAL_WINDOW_SIZE")
            })?;
        }
        self.encoder.allow_table(self.peer.header_table_bytes);
        frame::write_settings_ack(&mut self.output);
        Ok(())
    }

    /// Answers a PING frame.
    pub(super) fn ping(&mut self, data: [u8; 8]) -> Result<(), ConnectionError> {
        self.guard.count(Nuisance::Ping)?;
        frame::write_ping_ack(&mut self.output, data);
        Ok(())
    }

    /// Widens a window for sent data.
    pub(super) fn window_update(
        &mut self,
        stream: StreamId,
        increment: u32,
    ) -> Result<Widened, ConnectionError> {
        self.guard.count(Nuisance::WindowUpdate)?;
        if stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol(
                    "client sent WINDOW_UPDATE frame with incorrect window increment 0",
                ));
            }
            self.send_window.widen(increment).map_err(|_| {
                ConnectionError::flow_control("client violated connection flow control")
            })?;
            return Ok(Widened::Sendable);
        }
        if self.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent WINDOW_UPDATE frame for an idle stream",
            ));
        }
        let Some(own) = self.streams.get_mut(stream) else {
            return Ok(Widened::Nothing);
        };
        if increment == 0 {
            return Ok(Widened::Refused(ErrorCode::ProtocolError));
        }
        Ok(match own.send_window.widen(increment) {
            Ok(()) => Widened::Sendable,
            Err(_) => Widened::Refused(ErrorCode::FlowControlError),
        })
    }

    /// Ignores a frame, which counts as an empty one.
    pub(super) fn ignore(&mut self) -> Result<(), ConnectionError> {
        self.guard.count(Nuisance::Empty)
    }

    /// Whether a stream was never opened.
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        stream > self.last_stream || stream.is_multiple_of(2)
    }
}

/// Checks that a frame belongs to a stream or to the connection, as its kind requires.
fn check_stream(header: FrameHeader) -> Result<(), ConnectionError> {
    let of_connection = header.stream == 0;
    let reason = match header.kind {
        FrameKind::Settings if !of_connection => "client sent SETTINGS frame for a stream",
        FrameKind::Ping if !of_connection => "client sent PING frame for a stream",
        FrameKind::GoAway if !of_connection => "client sent GOAWAY frame for a stream",
        FrameKind::PriorityUpdate if !of_connection => {
            "client sent PRIORITY_UPDATE frame for a stream"
        }
        FrameKind::Data if of_connection => "client sent DATA frame with incorrect identifier",
        FrameKind::Headers if of_connection => {
            "client sent HEADERS frame with incorrect identifier"
        }
        FrameKind::Priority if of_connection => {
            "client sent PRIORITY frame with incorrect identifier"
        }
        FrameKind::RstStream if of_connection => {
            "client sent RST_STREAM frame with incorrect identifier"
        }
        FrameKind::PushPromise => "client sent PUSH_PROMISE frame",
        _ => return Ok(()),
    };
    Err(ConnectionError::protocol(reason))
}
