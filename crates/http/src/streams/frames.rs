//! What a stream needs of its protocol: heads, data and windows by the number of a stream, however
//! the protocol writes them. Whoever reads the frames of clients is the protocol's own.

pub(crate) use turnpike_wire::field_section::Indexing;
pub(crate) use turnpike_wire::message::Priority;

/// The number of a stream: 31 bits in HTTP/2, 62 bits in HTTP/3 (RFC 9000 section 2.1).
pub(crate) type StreamId = u64;

/// Why a stream is reset; each protocol has a code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetReason {
    /// The request was not looked at.
    Refused,
    /// The rest of the answer cannot be had.
    Failed,
    /// The rest is not wanted any more.
    Cancelled,
    /// The client was too slow.
    TooSlow,
    /// Others need the place of the request.
    GaveWay,
}

/// A header block that is written.
pub(crate) trait FieldBlock {
    /// Appends a field.
    fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing);
}

/// The frames of one connection. Those of a stream that may not be written any more are left out.
pub(crate) trait Frames {
    /// Sends a head, interim or final, or trailers; `write` is called once. Returns the bytes of
    /// its frames.
    fn send_head(
        &mut self,
        stream: StreamId,
        ends: bool,
        write: &mut dyn FnMut(&mut dyn FieldBlock),
    ) -> usize;

    /// Sends as much of `data` as the windows allow, as one frame of at most `frame_bytes_max`.
    /// With `ends`, the frame with the last byte ends the stream. Returns the number of bytes
    /// sent.
    fn send_data(
        &mut self,
        stream: StreamId,
        data: &[u8],
        ends: bool,
        frame_bytes_max: usize,
    ) -> usize;

    /// Bytes of a body that may be sent on a stream now.
    fn window(&self, stream: StreamId) -> usize;

    /// Whether nothing may be sent on any stream.
    fn is_window_closed(&self) -> bool;

    /// Whether the answer of a stream has not ended.
    fn may_send(&self, stream: StreamId) -> bool;

    /// Whether the client may send more on a stream now.
    fn may_receive(&self, stream: StreamId) -> bool;

    /// Allows the client to send so many bytes more on a stream.
    fn grant(&mut self, stream: StreamId, bytes: u32);

    /// Lets the client send as much of a body as the reader's buffer takes.
    fn allow_buffer(&mut self, stream: StreamId, buffer_bytes: usize);

    /// Opens a stream's window as far as it goes, and keeps it open.
    fn open_stream_window(&mut self, stream: StreamId);

    /// The priority of a stream (RFC 9218).
    fn priority(&self, stream: StreamId) -> Priority;

    /// Ends a stream that has no whole answer.
    fn reset(&mut self, stream: StreamId, reason: ResetReason);

    /// Makes ready to take more frames.
    fn prepare_output(&mut self);

    /// Bytes of frames that wait for the socket.
    fn unsent_bytes(&mut self) -> usize;

    /// Whether the client has begun the connection as its protocol wants it.
    fn is_open(&self) -> bool;
}
