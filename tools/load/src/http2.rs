//! HTTP/2 as the loop sees it: requests become frames, and frames become answers.
//!
//! Knows no socket. Frames, windows and header tables are `turnpike-wire`'s; a body is measured,
//! and compared with what is expected, but never kept.

use turnpike_wire::h2::hpack::Indexing;
use turnpike_wire::h2::{ClientConnection, ErrorCode, ResponseReader, ServerEvent, StreamId};
use turnpike_wire::message::{HeadRules, Strictness};

use crate::http1::{Answer, BadBytes};
use crate::target::{Target, Targets};

/// The largest list of response fields; no server sends more by accident.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request, ready to be put into frames.
pub(crate) struct Http2Request {
    /// Names in lower case, pseudo-header fields first.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    id: StreamId,
    target: u32,
    /// Bytes of the request's body that are sent.
    sent_bytes: usize,
    pub(crate) intended_ns: u64,
    pub(crate) sent_ns: u64,
    status: u16,
    /// Bytes of the response's body that have come.
    body_bytes: u64,
    body_differs: bool,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered(Answer),
    /// The server has reset the stream, or its answer breaks the rules.
    Reset,
    /// The server has not looked at it, and takes no more on this connection.
    Unprocessed,
}

/// One connection.
pub(crate) struct Http2 {
    wire: ClientConnection,
    reader: ResponseReader,
    /// A frame that has not come whole.
    partial: Vec<u8>,
    /// Room for header blocks that are encoded.
    block: Vec<u8>,
    /// In the order in which they were sent.
    streams: Vec<Stream>,
    ended: Vec<(Stream, Outcome)>,
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
            streams: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Whether the server takes another request now.
    pub(crate) fn may_ask(&self) -> bool {
        self.wire.may_open()
    }

    /// Whether the server may take another request once others are answered.
    pub(crate) fn is_open(&self) -> bool {
        self.wire.may_open() || (!self.streams.is_empty() && !self.wire.is_going_away())
    }

    /// When the oldest request under way was sent.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.streams.first().map(|stream| stream.sent_ns)
    }

    /// Frames that are to be sent; the caller takes out what has left.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        self.wire.output()
    }

    /// Puts a request into frames.
    pub(crate) fn ask(&mut self, index: u32, target: &Target, intended_ns: u64, now_ns: u64) {
        let Some(request) = &target.http2 else {
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
        let sent_bytes = match ends {
            true => 0,
            false => self.wire.send_data(id, &request.body, true),
        };
        self.streams.push(Stream {
            id,
            target: index,
            sent_bytes,
            intended_ns,
            sent_ns: now_ns,
            status: 0,
            body_bytes: 0,
            body_differs: false,
        });
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
        match is_joined {
            true => drop(partial.drain(..at)),
            false => partial.extend_from_slice(bytes.get(at..).unwrap_or_default()),
        }
        self.partial = partial;
        Ok(())
    }

    /// The requests that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<(Stream, Outcome)> {
        std::mem::take(&mut self.ended)
    }

    /// Gives the room of a list back that [`Http2::take_ended`] returned.
    pub(crate) fn reuse(&mut self, mut list: Vec<(Stream, Outcome)>) {
        list.clear();
        self.ended = list;
    }

    fn take(&mut self, event: ServerEvent<'_>, targets: &Targets, expected: Option<&[u8]>) {
        match event {
            ServerEvent::Head { stream, ends } => {
                let head = &self.reader.head;
                let (status, is_interim) = (head.status, head.is_interim());
                if let Some(own) = self.stream(stream).filter(|_| !is_interim) {
                    own.status = status;
                }
                if ends {
                    self.answered(stream, expected);
                }
            }
            ServerEvent::Data { stream, data, ends } => {
                if let Some(own) = self.stream(stream) {
                    own.body(data, expected);
                }
                if ends {
                    self.answered(stream, expected);
                }
            }
            ServerEvent::Trailers { stream } => self.answered(stream, expected),
            ServerEvent::Reset { stream, .. } | ServerEvent::Malformed { stream, .. } => {
                self.ends(stream, |_| Outcome::Reset);
            }
            ServerEvent::Sendable => self.send_bodies(targets),
            ServerEvent::GoingAway { last_stream, .. } => {
                let unseen = |stream: &Stream| stream.id > last_stream;
                let ended = self.streams.iter().filter(|stream| unseen(stream));
                self.ended
                    .extend(ended.map(|stream| (*stream, Outcome::Unprocessed)));
                for stream in self.streams.iter().filter(|stream| unseen(stream)) {
                    self.wire.reset(stream.id, ErrorCode::Cancel);
                }
                self.streams.retain(|stream| !unseen(stream));
            }
            ServerEvent::Nothing | ServerEvent::More => {}
        }
    }

    fn stream(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    fn answered(&mut self, id: StreamId, expected: Option<&[u8]>) {
        self.ends(id, |stream| {
            let whole = expected.is_none_or(|body| body.len() as u64 == stream.body_bytes);
            Outcome::Answered(Answer {
                status: stream.status,
                close: false,
                body_matches: whole && !stream.body_differs,
            })
        });
    }

    fn ends(&mut self, id: StreamId, outcome: impl FnOnce(&Stream) -> Outcome) {
        if let Some(at) = self.streams.iter().position(|stream| stream.id == id) {
            let stream = self.streams.remove(at);
            self.ended.push((stream, outcome(&stream)));
        }
    }

    /// Sends what the windows now let go of bodies.
    fn send_bodies(&mut self, targets: &Targets) {
        for stream in &mut self.streams {
            let target = targets.targets.get(stream.target as usize);
            let Some(request) = target.and_then(|target| target.http2.as_ref()) else {
                continue;
            };
            let rest = request.body.get(stream.sent_bytes..).unwrap_or_default();
            if !rest.is_empty() {
                stream.sent_bytes += self.wire.send_data(stream.id, rest, true);
            }
        }
    }
}

impl Stream {
    fn body(&mut self, data: &[u8], expected: Option<&[u8]>) {
        if let Some(expected) = expected {
            let start = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
            let same = expected
                .get(start..)
                .and_then(|rest| rest.get(..data.len()));
            self.body_differs |= same != Some(data);
        }
        self.body_bytes += data.len() as u64;
    }
}
