//! A stream of a request, as far as HTTP/3 knows it: what has come and was not taken, and what
//! windows have not let through.

use turnpike_wire::h3::RequestStream as WireStream;

/// How much of a request's body may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// So many bytes.
    Bytes(usize),
    /// As much as comes.
    Open,
}

/// A stream of a request.
pub(super) struct RequestStream {
    /// `None` while what has come is read.
    pub(super) wire: Option<WireStream>,
    pub(super) allowance: Allowance,
    /// Frames that windows have not let through.
    pub(super) output: Vec<u8>,
    /// Bytes of a begun DATA frame that are still to come.
    pub(super) frame_rest_bytes: usize,
    /// Whether our side ends behind the output.
    pub(super) output_ends: bool,
    /// Whether the stream took less than it was given the last time.
    pub(super) is_blocked: bool,
    /// Whether our side has neither ended nor been given up.
    pub(super) may_send: bool,
    /// Whether the client may send more.
    pub(super) may_receive: bool,
    /// When it was opened, in monotonic milliseconds.
    pub(super) opened_ms: u64,
}

impl RequestStream {
    /// A stream that is opened at this time, and of which so many bytes of a body may come before
    /// anybody asks for them.
    pub(super) fn new(preread_bytes: usize, opened_ms: u64) -> Self {
        Self {
            wire: Some(WireStream::default()),
            allowance: Allowance::Bytes(preread_bytes),
            output: Vec::new(),
            frame_rest_bytes: 0,
            output_ends: false,
            is_blocked: false,
            may_send: true,
            may_receive: true,
            opened_ms,
        }
    }

    /// Bytes that may be read now, at most `bytes_max`.
    pub(super) fn readable_bytes(&self, bytes_max: usize) -> usize {
        match self.allowance {
            Allowance::Open => bytes_max,
            Allowance::Bytes(bytes) => bytes.min(bytes_max),
        }
    }

    /// Allows so many bytes more.
    pub(super) fn grant(&mut self, bytes: usize) {
        if let Allowance::Bytes(allowed) = &mut self.allowance {
            *allowed = allowed.saturating_add(bytes);
        }
    }

    /// Notes that so many bytes were read.
    pub(super) fn was_read(&mut self, bytes: usize) {
        if let Allowance::Bytes(allowed) = &mut self.allowance {
            *allowed = allowed.saturating_sub(bytes);
        }
    }

    /// Whether nothing more happens on it.
    pub(super) fn is_over(&self) -> bool {
        !self.may_send && !self.may_receive && self.output.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::RequestStream;

    #[test]
    fn a_stream_is_read_as_far_as_it_was_granted() {
        let mut stream = RequestStream::new(10, 0);
        assert_eq!(stream.readable_bytes(100), 10);
        stream.was_read(10);
        assert_eq!(stream.readable_bytes(100), 0);
        stream.grant(7);
        assert_eq!(stream.readable_bytes(5), 5);
        assert_eq!(stream.readable_bytes(100), 7);
    }
}
