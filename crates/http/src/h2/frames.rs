//! The frames of HTTP/2 as its streams send them.

use std::rc::Rc;

use turnpike_wire::h2::hpack::Encoder;
use turnpike_wire::h2::{self, ErrorCode};

use super::output_pool::OutputPool;
use crate::streams::frames::{FieldBlock, Frames, Indexing, Priority, ResetReason, StreamId};

/// The frames of a connection of HTTP/2, in and out.
pub(crate) struct Http2Frames {
    pub(super) wire: h2::Connection,
    outputs: Rc<OutputPool>,
}

impl Http2Frames {
    pub(crate) fn new(wire: h2::Connection, outputs: &Rc<OutputPool>) -> Self {
        let outputs = Rc::clone(outputs);
        Self { wire, outputs }
    }
}

/// The number of a stream in its frames; 0, which is no stream's, where HTTP/2 has none such.
pub(super) fn number(stream: StreamId) -> h2::StreamId {
    h2::StreamId::try_from(stream).unwrap_or(0)
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

/// The code of a reason (RFC 9113 section 7).
fn code(reason: ResetReason) -> ErrorCode {
    match reason {
        ResetReason::Refused => ErrorCode::RefusedStream,
        ResetReason::Failed => ErrorCode::InternalError,
        ResetReason::Cancelled => ErrorCode::Cancel,
        // nginx's choice.
        ResetReason::TooSlow => ErrorCode::ProtocolError,
        ResetReason::GaveWay => ErrorCode::EnhanceYourCalm,
    }
}

impl Frames for Http2Frames {
    fn send_head(
        &mut self,
        stream: StreamId,
        ends: bool,
        write: &mut dyn FnMut(&mut dyn FieldBlock),
    ) -> usize {
        let mut block = self.outputs.block.borrow_mut();
        self.wire
            .send_head(number(stream), ends, &mut block, |encoder, block| {
                write(&mut Block { encoder, block });
            })
    }

    fn send_data(
        &mut self,
        stream: StreamId,
        data: &[u8],
        ends: bool,
        frame_bytes_max: usize,
    ) -> usize {
        self.wire
            .send_data(number(stream), data, ends, frame_bytes_max)
    }

    fn window(&self, stream: StreamId) -> usize {
        self.wire.window(number(stream))
    }

    fn is_window_closed(&self) -> bool {
        self.wire.is_window_closed()
    }

    fn may_send(&self, stream: StreamId) -> bool {
        self.wire.may_send(number(stream))
    }

    fn may_receive(&self, stream: StreamId) -> bool {
        self.wire.may_receive(number(stream))
    }

    fn grant(&mut self, stream: StreamId, bytes: u32) {
        self.wire.grant(number(stream), bytes);
    }

    fn allow_buffer(&mut self, stream: StreamId, buffer_bytes: usize) {
        self.wire.allow_buffer(number(stream), buffer_bytes);
    }

    fn open_stream_window(&mut self, stream: StreamId) {
        self.wire.open_stream_window(number(stream));
    }

    fn priority(&self, stream: StreamId) -> Priority {
        self.wire.priority(number(stream))
    }

    fn reset(&mut self, stream: StreamId, reason: ResetReason) {
        self.wire.reset(number(stream), code(reason));
    }

    fn prepare_output(&mut self) {
        let output = self.wire.output();
        if output.capacity() == 0 {
            *output = self.outputs.take();
        }
    }

    fn unsent_bytes(&mut self) -> usize {
        self.wire.output().len()
    }

    fn is_open(&self) -> bool {
        self.wire.is_open()
    }
}
