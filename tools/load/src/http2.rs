//! HTTP/2 as the loop sees it: requests become frames, and frames become answers.
//!
//! Knows no socket. Frames, windows and header tables are `turnpike-wire`'s; a body is measured,
//! and compared with what is expected, but never kept.

use turnpike_wire::h2::hpack::Indexing;
use turnpike_wire::h2::{ClientConnection, ErrorCode, ResponseReader, ServerEvent, StreamId};
use turnpike_wire::message::{HeadRules, Strictness};

use crate::http1::BadBytes;
use crate::streams::{Outcome, Stream, Streams};
use crate::target::{Target, Targets};

/// The largest list of response fields; no server sends more by accident.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// One connection.
pub(crate) struct Http2 {
    wire: ClientConnection,
    reader: ResponseReader,
    /// A frame that has not come whole.
    partial: Vec<u8>,
    /// Room for header blocks that are encoded.
    block: Vec<u8>,
    pub(crate) streams: Streams,
}

impl Http2 {
    /// A connection on which nothing was sent yet.
    pub(crate) fn new() -> Http2 {
        Http2 {
            wire: ClientConnection::new(HeadRules {
                head_bytes_max: HEAD_BYTES_MAX,
                line_bytes_max: HEAD_BYTES_MAX,
                // What is measured may be any server.
                strictness: Strictness::Nginx,
                ..HeadRules::default()
            }),
            reader: ResponseReader::default(),
            partial: Vec::new(),
            block: Vec::new(),
            streams: Streams::default(),
        }
    }

    /// Whether the server takes another request now.
    pub(crate) fn may_ask(&self) -> bool {
        self.wire.may_open()
    }

    /// Whether the server may take another request once others are answered.
    pub(crate) fn is_open(&self) -> bool {
        self.wire.may_open() || (!self.streams.open.is_empty() && !self.wire.is_going_away())
    }

    /// Frames that are to be sent; the caller takes out what has left.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        self.wire.output()
    }

    /// Puts a request into frames.
    pub(crate) fn ask(&mut self, index: u32, target: &Target, intended_ns: u64, now_ns: u64) {
        let Some(request) = &target.fields else {
            return;
        };
        let ends = request.body.is_empty();
        let write = |encoder: &mut turnpike_wire::h2::hpack::Encoder, block: &mut Vec<u8>| {
            for (name, value) in &request.fields {
                encoder.field(name, value, Indexing::WhenRepeated, block);
            }
        };
        let id = self
            .wire
            .open(ends, target.head_only, &mut self.block, write);
        let sent_bytes = if ends {
            0
        } else {
            self.wire.send_data(id, &request.body, true)
        };
        let mut stream = Stream::new(u64::from(id), index, intended_ns, now_ns);
        stream.sent_bytes = sent_bytes;
        self.streams.open.push(stream);
    }

    /// Reads on in what the server sends.
    ///
    /// # Errors
    /// The bytes are no HTTP/2.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        targets: &Targets,
        expected: Option<&[u8]>,
    ) -> Result<(), BadBytes> {
        let mut partial = std::mem::take(&mut self.partial);
        let is_joined = !partial.is_empty();
        if is_joined {
            partial.extend_from_slice(bytes);
        }
        let mut at = 0;
        loop {
            let input = if is_joined { &partial } else { bytes };
            let rest = input.get(at..).unwrap_or_default();
            let now_ms = now_ns / 1_000_000;
            let step = self.wire.receive(rest, &mut self.reader, now_ms);
            let step = step.map_err(|_| BadBytes)?;
            at += step.consumed;
            match step.event {
                ServerEvent::More => break,
                event => self.take(event, targets, expected),
            }
        }
        if is_joined {
            drop(partial.drain(..at));
        } else {
            partial.extend_from_slice(bytes.get(at..).unwrap_or_default());
        }
        self.partial = partial;
        Ok(())
    }

    fn take(&mut self, event: ServerEvent<'_>, targets: &Targets, expected: Option<&[u8]>) {
        match event {
            ServerEvent::Head { stream, ends } => {
                let head = &self.reader.head;
                let (status, is_interim) = (head.status, head.is_interim());
                if let Some(own) = self
                    .streams
                    .get_mut(u64::from(stream))
                    .filter(|_| !is_interim)
                {
                    own.status = status;
                }
                if ends {
                    self.streams.answered(u64::from(stream), expected);
                }
            }
            ServerEvent::Data { stream, data, ends } => {
                if let Some(own) = self.streams.get_mut(u64::from(stream)) {
                    own.body(data, expected);
                }
                if ends {
                    self.streams.answered(u64::from(stream), expected);
                }
            }
            ServerEvent::Trailers { stream } => self.streams.answered(u64::from(stream), expected),
            ServerEvent::Reset { stream, .. } | ServerEvent::Malformed { stream, .. } => {
                self.streams.ends(u64::from(stream), |_| Outcome::Reset);
            }
            ServerEvent::Sendable => self.send_bodies(targets),
            ServerEvent::GoingAway { last_stream, .. } => {
                let first_unseen = u64::from(last_stream) + 1;
                let unseen = self.streams.open.iter();
                for stream in unseen.filter(|stream| stream.id >= first_unseen) {
                    self.wire.reset(stream.id as StreamId, ErrorCode::Cancel);
                }
                self.streams.unprocessed_from(first_unseen);
            }
            ServerEvent::Nothing | ServerEvent::More => {}
        }
    }

    /// Sends what the windows now let go of bodies.
    fn send_bodies(&mut self, targets: &Targets) {
        for stream in &mut self.streams.open {
            let target = targets.targets.get(stream.target as usize);
            let Some(request) = target.and_then(|target| target.fields.as_ref()) else {
                continue;
            };
            let rest = request.body.get(stream.sent_bytes..).unwrap_or_default();
            if !rest.is_empty() {
                stream.sent_bytes += self.wire.send_data(stream.id as StreamId, rest, true);
            }
        }
    }
}
