//! HTTP/3 as the loop sees it: requests become datagrams, and datagrams become answers.
//!
//! Knows no socket. QUIC is quinn-proto's, frames and field sections are `turnpike-wire`'s; a body
//! is measured, and compared with what is expected, but never kept.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, ReadError, StreamEvent, StreamId, VarInt,
};
use turnpike_wire::field_section::{Indexing, ResponseReader};
use turnpike_wire::h3::{
    self, ConnectionRules, ControlEvent, ErrorCode, ResponseEvent, ResponseStream,
    UnidirectionalStream,
};
use turnpike_wire::message::{HeadRules, Strictness};

use crate::streams::{Outcome, Stream, Streams};
use crate::target::{Target, Targets};

/// The largest list of response fields; no server sends more by accident.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The largest datagram that is sent: room for what a path may take.
const DATAGRAM_BYTES_MAX: usize = 1500;

/// How connections are begun: by one thread, to one endpoint.
pub(crate) struct Dialling {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) config: ClientConfig,
    /// The certificates that the thread has looked at: a handshake that resumes shows none.
    pub(crate) verified: Arc<AtomicU64>,
    pub(crate) name: String,
    pub(crate) remote: SocketAddr,
}

/// Why a connection is there no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The peer's certificate, or another part of its handshake, is refused.
    Handshake,
    /// The peer has closed it, or knows it no more.
    Closed,
    /// Nothing has come for too long.
    TimedOut,
    /// What has come is no HTTP/3.
    BadBytes,
}

/// The stream of a request, as its answer is read.
struct Answering {
    id: StreamId,
    response: ResponseStream,
    /// Bytes of the head that are not sent yet.
    head: Vec<u8>,
}

/// One connection.
pub(crate) struct Http3 {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: Connection,
    remote: SocketAddr,
    verified: Arc<AtomicU64>,
    wire: h3::Connection,
    reader: ResponseReader,
    pub(crate) streams: Streams,
    answering: Vec<Answering>,
    unidirectional: Vec<(StreamId, UnidirectionalStream)>,
    /// Room for field sections that are encoded.
    block: Vec<u8>,
    /// A datagram that is to be sent; empty if there is none.
    datagram: Vec<u8>,
    /// Whether our control stream is open.
    has_control: bool,
    /// Whether the server takes no other stream at present.
    is_full: bool,
    is_going_away: bool,
    is_connected: bool,
    /// Whether the server has shown a certificate.
    is_full_handshake: bool,
    /// Whether anything of an answer has come.
    pub(crate) is_answered: bool,
    pub(crate) lost: Option<Lost>,
}

impl Http3 {
    /// A connection whose first datagram waits to be sent; `None` if the name is not one.
    pub(crate) fn connect(dialling: &Dialling, now: Instant) -> Option<Http3> {
        let mut endpoint = Endpoint::new(Arc::clone(&dialling.endpoint), None, false, None);
        let config = dialling.config.clone();
        let connected = endpoint.connect(now, config, dialling.remote, &dialling.name);
        let (handle, quic) = connected.ok()?;
        Some(Http3 {
            endpoint,
            handle,
            quic,
            remote: dialling.remote,
            verified: Arc::clone(&dialling.verified),
            wire: h3::Connection::client(ConnectionRules {
                head: HeadRules {
                    head_bytes_max: HEAD_BYTES_MAX,
                    line_bytes_max: HEAD_BYTES_MAX,
                    // What is measured may be any server.
                    strictness: Strictness::Nginx,
                    ..HeadRules::default()
                },
                ..ConnectionRules::default()
            }),
            reader: ResponseReader::default(),
            streams: Streams::default(),
            answering: Vec::new(),
            unidirectional: Vec::new(),
            block: Vec::new(),
            datagram: Vec::with_capacity(DATAGRAM_BYTES_MAX),
            has_control: false,
            is_full: false,
            is_going_away: false,
            is_connected: false,
            is_full_handshake: false,
            is_answered: false,
            lost: None,
        })
    }

    /// Whether the handshake is done.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether the handshake has resumed a session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_connected && !self.is_full_handshake
    }

    /// Whether the server has taken what was sent before the handshake was done.
    pub(crate) fn took_early_data(&self) -> bool {
        self.is_connected && self.quic.accepted_0rtt()
    }

    /// Whether the server takes another request now.
    pub(crate) fn may_ask(&self) -> bool {
        let may_send = self.is_connected || self.quic.has_0rtt();
        self.is_open() && may_send && !self.is_full
    }

    /// Whether the server may take another request once others are answered.
    pub(crate) fn is_open(&self) -> bool {
        self.lost.is_none() && !self.is_going_away
    }

    /// Puts a request on a stream; `false`: there is none to be had at present.
    pub(crate) fn ask(
        &mut self,
        index: u32,
        target: &Target,
        intended_ns: u64,
        now_ns: u64,
    ) -> bool {
        let Some(id) = self.open(target) else {
            return false;
        };
        let stream = Stream::new(u64::from(id), index, intended_ns, now_ns);
        self.streams.open.push(stream);
        self.send(id, target);
        true
    }

    /// Opens a stream for a request, whose head waits to be sent.
    fn open(&mut self, target: &Target) -> Option<StreamId> {
        let request = target.fields.as_ref()?;
        self.open_control();
        let Some(id) = self.quic.streams().open(Dir::Bi) else {
            self.is_full = true;
            return None;
        };
        let mut head = Vec::new();
        self.wire
            .write_head(&mut self.block, &mut head, |encoder, block| {
                for (name, value) in &request.fields {
                    encoder.field(name, value, Indexing::No, block);
                }
            });
        if !request.body.is_empty() {
            h3::write_data_header(&mut head, request.body.len());
        }
        self.answering.push(Answering {
            id,
            response: ResponseStream::new(target.head_only),
            head,
        });
        Some(id)
    }

    /// Opens our control stream, once.
    fn open_control(&mut self) {
        if self.has_control {
            return;
        }
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            let mut bytes = Vec::new();
            self.wire.open_control(&mut bytes);
            // A few bytes: every window takes them.
            let _ = self.quic.send_stream(id).write(&bytes);
            self.has_control = true;
        }
    }

    /// Sends what the windows let go of a request.
    fn send(&mut self, id: StreamId, target: &Target) {
        let Some(answering) = self.answering.iter_mut().find(|one| one.id == id) else {
            return;
        };
        let Some(stream) = self.streams.get_mut(u64::from(id)) else {
            return;
        };
        let Some(request) = &target.fields else {
            return;
        };
        let mut out = self.quic.send_stream(id);
        while !answering.head.is_empty() {
            match out.write(&answering.head) {
                Ok(count) => drop(answering.head.drain(..count)),
                Err(_) => return,
            }
        }
        while stream.sent_bytes < request.body.len() {
            let rest = request.body.get(stream.sent_bytes..).unwrap_or_default();
            match out.write(rest) {
                Ok(count) => stream.sent_bytes += count,
                Err(_) => return,
            }
        }
        // A stream that the server has stopped cannot be ended, and need not.
        let _ = out.finish();
    }

    /// Takes a datagram that has come.
    pub(crate) fn receive(&mut self, datagram: &[u8], now: Instant) {
        let before = self.verified.load(Ordering::Relaxed);
        let bytes = BytesMut::from(datagram);
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(now, self.remote, None, None, bytes, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.quic.handle_event(event),
            // A client is asked for no connection, and owes strangers no answer.
            Some(DatagramEvent::NewConnection(_) | DatagramEvent::Response(_)) | None => {}
        }
        self.is_full_handshake |= self.verified.load(Ordering::Relaxed) != before;
    }

    /// Does what is due, and takes what has come in.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        now_ns: u64,
        targets: &Targets,
        expected: Option<&[u8]>,
    ) {
        if self.quic.poll_timeout().is_some_and(|due| due <= now) {
            self.quic.handle_timeout(now);
        }
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => self.connected(targets),
                Event::ConnectionLost { reason } => self.lost = Some(self.lost_by(&reason)),
                Event::Stream(event) => self.stream_event(event, now_ns, targets, expected),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
        if self.lost == Some(Lost::BadBytes) && !self.quic.is_closed() {
            self.close(now, ErrorCode::GeneralProtocolError);
        }
    }

    /// The handshake is done. Where the server has refused what was sent before that, it is sent
    /// again, and QUIC has forgotten its streams.
    fn connected(&mut self, targets: &Targets) {
        self.is_connected = true;
        self.is_full = false;
        let is_refused = self.has_control && !self.quic.accepted_0rtt();
        if !is_refused {
            return self.open_control();
        }
        self.has_control = false;
        self.answering.clear();
        let asked = std::mem::take(&mut self.streams.open);
        for mut stream in asked {
            let Some(target) = targets.targets.get(stream.target as usize) else {
                continue;
            };
            stream.sent_bytes = 0;
            match self.open(target) {
                Some(id) => {
                    stream.id = u64::from(id);
                    self.streams.open.push(stream);
                    self.send(id, target);
                }
                None => self.streams.give_back(stream),
            }
        }
    }

    fn lost_by(&self, reason: &ConnectionError) -> Lost {
        match reason {
            ConnectionError::TimedOut => Lost::TimedOut,
            ConnectionError::TransportError(_) if !self.is_connected => Lost::Handshake,
            ConnectionError::VersionMismatch => Lost::Handshake,
            ConnectionError::ConnectionClosed(_) if !self.is_connected => Lost::Handshake,
            ConnectionError::TransportError(_) => Lost::BadBytes,
            ConnectionError::ConnectionClosed(_)
            | ConnectionError::ApplicationClosed(_)
            | ConnectionError::Reset
            | ConnectionError::LocallyClosed
            | ConnectionError::CidsExhausted => Lost::Closed,
        }
    }

    fn stream_event(
        &mut self,
        event: StreamEvent,
        now_ns: u64,
        targets: &Targets,
        expected: Option<&[u8]>,
    ) {
        match event {
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = self.quic.streams().accept(Dir::Uni) {
                    self.unidirectional
                        .push((id, UnidirectionalStream::default()));
                    self.read_unidirectional(id, now_ns);
                }
            }
            // Only clients ask.
            StreamEvent::Opened { dir: Dir::Bi } => self.lost = Some(Lost::BadBytes),
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => {
                self.read_unidirectional(id, now_ns);
            }
            StreamEvent::Readable { id } => self.read_answer(id, now_ns, expected),
            StreamEvent::Writable { id } => {
                let stream = self.streams.get_mut(u64::from(id));
                let target = stream.map(|stream| stream.target as usize);
                if let Some(target) = target.and_then(|target| targets.targets.get(target)) {
                    self.send(id, target);
                }
            }
            StreamEvent::Available { dir: Dir::Bi } => self.is_full = false,
            StreamEvent::Available { dir: Dir::Uni }
            | StreamEvent::Finished { .. }
            | StreamEvent::Stopped { .. } => {}
        }
    }

    fn read_unidirectional(&mut self, id: StreamId, now_ns: u64) {
        let at = self.unidirectional.iter().position(|(own, _)| *own == id);
        let Some((_, stream)) = at.and_then(|at| self.unidirectional.get_mut(at)) else {
            return;
        };
        let mut receiving = self.quic.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else {
            return;
        };
        let mut stops = None;
        let result = loop {
            let mut input: &[u8] = match chunks.next(usize::MAX) {
                Ok(Some(ref chunk)) => &chunk.bytes.clone(),
                Ok(None) | Err(ReadError::Reset(_)) => break self.wire.end_unidirectional(stream),
                Err(ReadError::Blocked) => break Ok(()),
            };
            let fed = loop {
                let now_ms = now_ns / 1_000_000;
                match self.wire.receive_unidirectional(stream, &mut input, now_ms) {
                    Ok(ControlEvent::More) => break Ok(()),
                    Ok(ControlEvent::GoingAway { id }) => {
                        self.is_going_away = true;
                        self.streams.unprocessed_from(id);
                    }
                    Ok(ControlEvent::Stop(code)) => stops = Some(code),
                    Ok(ControlEvent::Settings | ControlEvent::Prioritized { .. }) => {}
                    Err(error) => break Err(error),
                }
            };
            if fed.is_err() {
                break fed;
            }
        };
        let _ = chunks.finalize();
        if let Some(code) = stops {
            // One that has ended needs not be stopped.
            let _ = receiving.stop(code_of(code));
        }
        if result.is_err() {
            self.lost = Some(Lost::BadBytes);
        }
    }

    fn read_answer(&mut self, id: StreamId, now_ns: u64, expected: Option<&[u8]>) {
        let at = self.answering.iter().position(|one| one.id == id);
        let Some(answering) = at.and_then(|at| self.answering.get_mut(at)) else {
            return;
        };
        let mut receiving = self.quic.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else {
            return;
        };
        let number = u64::from(id);
        let mut outcome = None;
        while outcome.is_none() {
            let (bytes, ends) = match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => (chunk.bytes, false),
                Ok(None) => (Bytes::new(), true),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    outcome = Some(match ErrorCode::of(code.into_inner()) {
                        ErrorCode::RequestRejected => End::Unprocessed,
                        _ => End::Reset,
                    });
                    break;
                }
            };
            self.is_answered = true;
            let mut input = &bytes[..];
            outcome = loop {
                let response = &mut answering.response;
                let event = self.wire.receive_response(
                    response,
                    &mut input,
                    ends,
                    &mut self.reader,
                    now_ns / 1_000_000,
                );
                let stream = self.streams.get_mut(number);
                match (event, stream) {
                    (Ok(ResponseEvent::More), _) => break None,
                    (Ok(ResponseEvent::Head), Some(stream)) => {
                        if !self.reader.head.is_interim() {
                            stream.status = self.reader.head.status;
                        }
                    }
                    (Ok(ResponseEvent::Data(data)), Some(stream)) => stream.body(data, expected),
                    (Ok(ResponseEvent::End), _) => break Some(End::Whole),
                    (Ok(ResponseEvent::Malformed(_)), _) => break Some(End::Reset),
                    (Ok(_), _) => {}
                    (Err(_), _) => break Some(End::BadBytes),
                }
            };
        }
        let _ = chunks.finalize();
        if let Some(end) = outcome {
            self.ends(id, end, expected);
        }
    }

    /// A response has ended.
    fn ends(&mut self, id: StreamId, end: End, expected: Option<&[u8]>) {
        let number = u64::from(id);
        match end {
            End::Whole => self.streams.answered(number, expected),
            End::Reset => self.streams.ends(number, |_| Outcome::Reset),
            End::Unprocessed => self.streams.ends(number, |_| Outcome::Unprocessed),
            End::BadBytes => self.lost = Some(Lost::BadBytes),
        }
        if end != End::Whole {
            // What is left of the request, or of the answer, is of no use.
            let code = code_of(ErrorCode::RequestCancelled);
            let _ = self.quic.recv_stream(id).stop(code);
            let _ = self.quic.send_stream(id).reset(code);
        }
        self.answering.retain(|one| one.id != id);
    }

    /// The next datagram that is to be sent; [`Http3::sent`] is called when it has left.
    pub(crate) fn next_datagram(&mut self, now: Instant) -> Option<&[u8]> {
        if self.datagram.is_empty() {
            // One datagram, to where the socket is connected: the buffer says it all.
            let _ = self.quic.poll_transmit(now, 1, &mut self.datagram)?;
        }
        Some(&self.datagram)
    }

    /// The datagram has left.
    pub(crate) fn sent(&mut self) {
        self.datagram.clear();
    }

    /// When something is due next.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        self.quic.poll_timeout()
    }

    /// Tells the server that the connection ends.
    pub(crate) fn leave(&mut self, now: Instant) {
        if self.lost.is_none() {
            self.close(now, ErrorCode::NoError);
        }
    }

    fn close(&mut self, now: Instant, code: ErrorCode) {
        self.quic.close(now, code_of(code), Bytes::new());
    }
}

/// How the reading of a response has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Reset,
    Unprocessed,
    BadBytes,
}

fn code_of(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.number()).unwrap_or(VarInt::MAX)
}
