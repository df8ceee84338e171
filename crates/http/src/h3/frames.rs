//! The frames of HTTP/3 as its streams send them, on the connection of QUIC below.

use std::collections::HashMap;

use turnpike_quic::{self as quic};
use turnpike_wire::h3::{self, ConnectionError, ErrorCode};
use turnpike_wire::qpack::Encoder;

use super::request_stream::{Allowance, RequestStream};
use crate::streams::frames::{FieldBlock, Frames, Indexing, Priority, ResetReason, StreamId};

/// Bytes of a body that a stream is thought to take while nothing is known of its windows: one that
/// took less than it was given takes nothing until it says so.
const OPEN_WINDOW_BYTES: usize = 256 * 1024;

/// The frames of a connection of HTTP/3, in and out.
pub(crate) struct Http3Frames {
    pub(crate) quic: quic::Connection,
    pub(super) wire: h3::Connection,
    pub(super) streams: HashMap<StreamId, RequestStream>,
    /// Streams whose readers have asked for more.
    pub(super) granted: Vec<StreamId>,
    priorities: HashMap<StreamId, Priority>,
    pub(super) preread_bytes: usize,
    /// Room for a header block while it is encoded.
    block: Vec<u8>,
}

/// A header block that is compressed.
struct Block<'a> {
    encoder: &'a mut Encoder,
    block: &'a mut Vec<u8>,
}

impl FieldBlock for Block<'_> {
    fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing) {
        self.encoder.field(name, value, indexing, self.block);
    }
}

/// The code of a reason (RFC 9114 section 8.1).
fn code(reason: ResetReason) -> ErrorCode {
    match reason {
        ResetReason::Refused => ErrorCode::RequestRejected,
        ResetReason::Failed => ErrorCode::InternalError,
        ResetReason::Cancelled | ResetReason::TooSlow => ErrorCode::RequestCancelled,
        ResetReason::GaveWay => ErrorCode::ExcessiveLoad,
    }
}

/// The stream of QUIC with that number.
fn of(id: StreamId) -> quic::StreamId {
    quic::stream_id(id)
}

impl Http3Frames {
    /// The frames of a connection, of whose bodies so many bytes may come before they are asked
    /// for.
    pub(crate) fn new(quic: quic::Connection, wire: h3::Connection, preread_bytes: usize) -> Self {
        Self {
            quic,
            wire,
            streams: HashMap::new(),
            granted: Vec::new(),
            priorities: HashMap::new(),
            preread_bytes,
            block: Vec::new(),
        }
    }

    /// Notes the priority of a stream; of one whose request has not come, until that does.
    pub(super) fn prioritize(&mut self, id: StreamId, priority: Priority) {
        self.priorities.insert(id, priority);
        if self.streams.contains_key(&id) {
            self.order(id, priority);
        }
    }

    /// Gives a stream its place when its request comes, with the priority that its head has. What a
    /// PRIORITY_UPDATE has said before holds (RFC 9218 section 7), and where nothing is said the
    /// default: the library's own comes before all others.
    pub(super) fn prioritize_request(&mut self, id: StreamId, priority: Option<Priority>) {
        if let Some(priority) = priority {
            self.priorities.entry(id).or_insert(priority);
        }
        self.order(id, self.priority(id));
    }

    /// Gives a stream its place where packets are made.
    fn order(&mut self, id: StreamId, priority: Priority) {
        self.quic.prioritize(of(id), -i32::from(priority.urgency));
    }

    /// Takes what reads a stream, until it is given back.
    pub(super) fn take_wire(&mut self, id: StreamId) -> Option<h3::RequestStream> {
        self.streams.get_mut(&id)?.wire.take()
    }

    /// A stream takes more.
    pub(super) fn is_writable(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.is_blocked = false;
            self.flush(id);
        }
    }

    /// The client has ended its side of a stream, or given it up.
    pub(super) fn input_ended(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.may_receive = false;
            self.forget_if_over(id);
        }
    }

    /// Ends a stream both ways, with this code.
    pub(super) fn give_up(&mut self, id: StreamId, code: ErrorCode) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.output.clear();
        if std::mem::take(&mut stream.may_send) {
            self.quic.reset(of(id), code.number());
        }
        if std::mem::take(&mut stream.may_receive) {
            self.quic.stop(of(id), code.number());
        }
        self.forget_if_over(id);
    }

    /// Ends a stream both ways that the client has reset, or made us reset, and counts it.
    ///
    /// # Errors
    /// There were too many.
    pub(super) fn was_reset(
        &mut self,
        id: StreamId,
        code: ErrorCode,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        let opened_ms = self.streams.get(&id).map(|stream| stream.opened_ms);
        self.give_up(id, code);
        self.wire.stream_reset(opened_ms, now_ms)
    }

    fn forget_if_over(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(RequestStream::is_over) {
            self.streams.remove(&id);
            self.priorities.remove(&id);
        }
    }

    /// Writes what windows have not let through before; `false`: they still do not.
    fn flush(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        let taken = write(&mut self.quic, id, &stream.output);
        stream.output.drain(..taken);
        stream.is_blocked = !stream.output.is_empty();
        if stream.is_blocked {
            return false;
        }
        if std::mem::take(&mut stream.output_ends) {
            self.finish(id);
        }
        true
    }

    /// Ends our side: the rest of a request whose answer is complete is not wanted (RFC 9114
    /// section 4.1).
    fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if std::mem::take(&mut stream.may_send) {
            self.quic.finish(of(id));
        }
        if std::mem::take(&mut stream.may_receive) {
            self.quic.stop(of(id), ErrorCode::NoError.number());
        }
        self.forget_if_over(id);
    }
}

/// Writes as much as windows let through. What they do not is asked for until the connection says
/// so, since it tells of room only to those that have met its lack.
fn write(quic: &mut quic::Connection, id: StreamId, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < bytes.len() {
        match quic.write(of(id), &bytes[taken..]) {
            0 => break,
            count => taken += count,
        }
    }
    taken
}

impl Frames for Http3Frames {
    fn send_head(
        &mut self,
        id: StreamId,
        ends: bool,
        write: &mut dyn FnMut(&mut dyn FieldBlock),
    ) -> usize {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.may_send) else {
            // The caller counts on being called.
            let (mut block, mut nowhere) = (Vec::new(), Vec::new());
            return self
                .wire
                .write_head(&mut block, &mut nowhere, |encoder, block| {
                    write(&mut Block { encoder, block });
                });
        };
        let output = &mut stream.output;
        let count = self
            .wire
            .write_head(&mut self.block, output, |encoder, block| {
                write(&mut Block { encoder, block });
            });
        stream.output_ends = ends;
        self.flush(id);
        count
    }

    fn send_data(
        &mut self,
        id: StreamId,
        data: &[u8],
        ends: bool,
        frame_bytes_max: usize,
    ) -> usize {
        if !self.may_send(id) || !self.flush(id) {
            return 0;
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return 0;
        };
        if stream.frame_rest_bytes == 0 && !data.is_empty() {
            stream.frame_rest_bytes = data.len().min(frame_bytes_max);
            h3::write_data_header(&mut stream.output, stream.frame_rest_bytes);
            if !self.flush(id) {
                return 0;
            }
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return 0;
        };
        let count = data.len().min(stream.frame_rest_bytes);
        let taken = write(&mut self.quic, id, &data[..count]);
        stream.frame_rest_bytes -= taken;
        stream.is_blocked = taken < count;
        self.wire.data_sent(taken);
        if ends && taken == data.len() {
            self.finish(id);
        }
        taken
    }

    fn window(&self, id: StreamId) -> usize {
        match self.streams.get(&id) {
            Some(stream) if stream.may_send && !stream.is_blocked => OPEN_WINDOW_BYTES,
            _ => 0,
        }
    }

    fn is_window_closed(&self) -> bool {
        self.quic.is_closed()
    }

    fn may_send(&self, id: StreamId) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| stream.may_send && !stream.output_ends)
    }

    fn may_receive(&self, id: StreamId) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| stream.may_receive)
    }

    fn grant(&mut self, id: StreamId, bytes: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.grant(bytes as usize);
            self.granted.push(id);
        }
    }

    fn allow_buffer(&mut self, id: StreamId, buffer_bytes: usize) {
        let more = buffer_bytes.saturating_sub(self.preread_bytes);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.grant(more);
            self.granted.push(id);
        }
    }

    fn open_stream_window(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.allowance = Allowance::Open;
            self.granted.push(id);
        }
    }

    fn priority(&self, id: StreamId) -> Priority {
        self.priorities.get(&id).copied().unwrap_or_default()
    }

    fn reset(&mut self, id: StreamId, reason: ResetReason) {
        self.give_up(id, code(reason));
    }

    fn prepare_output(&mut self) {}

    fn unsent_bytes(&mut self) -> usize {
        self.quic.unsent_bytes()
    }

    fn is_open(&self) -> bool {
        !self.quic.is_handshaking()
    }
}
