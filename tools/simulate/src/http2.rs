//! The requests of a client that speaks HTTP/2. Frames and header blocks are those of `wire`, in
//! the role of the client, which h2spec, curl and the fuzzer judge. Answers are what is checked.

use turnpike_wire::h2::hpack::Indexing;
use turnpike_wire::h2::{
    ClientConnection, ResponseReader, ServerEvent, Setting, StreamId, write_settings,
    write_window_update,
};
use turnpike_wire::message::HeadRules;

use crate::content::body;
use crate::message::Message;
use crate::request::Request;

/// A connection, seen by its client.
pub(crate) struct Http2 {
    connection: ClientConnection,
    reader: ResponseReader,
    /// What has come of a frame.
    input: Vec<u8>,
    /// The bytes to send.
    output: Vec<u8>,
    /// A stream for each request that was begun, in order.
    pub(crate) streams: Vec<Stream>,
    /// Whether windows are widened by what has come, with a PING now and then, as browsers and
    /// gRPC do; else they are as wide as can be.
    has_windows: bool,
    /// Bytes of DATA until the next PING.
    ping_after_bytes: usize,
}

/// Bytes of DATA between two PINGs of a client that measures its round trips: seldom enough that
/// no server takes it for a flood.
const PING_BYTES: usize = 20_000;

/// A PING frame (RFC 9113 section 6.7).
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct Stream {
    id: StreamId,
    /// What of its body is not written yet.
    rest: Vec<u8>,
    pub(crate) answer: Option<Message>,
    pub(crate) asked_ms: u64,
    pub(crate) ended: Option<(StreamEnd, u64)>,
}

/// The end of a stream for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The answer is whole.
    Whole,
    /// The server has reset the stream.
    Reset,
    /// The server has not taken the request, and says so.
    Refused,
}

impl Stream {
    /// Whether all of the request was written.
    pub(crate) fn is_written(&self) -> bool {
        self.rest.is_empty()
    }
}

impl std::fmt::Debug for Http2 {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.streams.fmt(out)
    }
}

impl Http2 {
    /// A client whose streams have windows of so many bytes at first; `None`: the widest.
    pub(crate) fn new(window_bytes: Option<u32>) -> Http2 {
        let mut connection = ClientConnection::new(HeadRules::default());
        let mut output = std::mem::take(connection.output());
        if let Some(bytes) = window_bytes {
            write_settings(&mut output, &[(Setting::InitialWindowSize, bytes)]);
        }
        Http2 {
            output,
            has_windows: window_bytes.is_some(),
            ping_after_bytes: PING_BYTES,
            connection,
            reader: ResponseReader::default(),
            input: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// The bytes to send.
    pub(crate) fn output(&self) -> &[u8] {
        &self.output
    }

    /// Removes bytes that were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    /// Whether another request may be begun.
    pub(crate) fn may_ask(&self) -> bool {
        self.connection.may_open()
    }

    /// Begins a request.
    pub(crate) fn ask(&mut self, request: &Request, now_ms: u64) {
        let upload = request.upload.map(|upload| upload.length);
        let rest = body(request.number, upload.unwrap_or(0));
        let says_length = request.upload.filter(|upload| !upload.is_chunked);
        let fields = [
            (":method", request.method.to_owned()),
            (":scheme", "http".to_owned()),
            (":path", request.path()),
            (":authority", "simulated".to_owned()),
            ("x-number", request.number.to_string()),
        ];
        let length = says_length.map(|upload| ("content-length", upload.length.to_string()));
        let (ends, is_head) = (rest.is_empty(), request.is_head());
        let id = self
            .connection
            .open(ends, is_head, &mut Vec::new(), |encoder, out| {
                for (name, value) in fields.iter().chain(&length) {
                    encoder.field(name.as_bytes(), value.as_bytes(), Indexing::No, out);
                }
            });
        self.streams.push(Stream {
            id,
            rest,
            answer: None,
            asked_ms: now_ms,
            ended: None,
        });
        self.write_bodies();
    }

    /// Writes bodies as far as the windows allow.
    fn write_bodies(&mut self) {
        for stream in &mut self.streams {
            if stream.rest.is_empty() {
                continue;
            }
            if !self.connection.may_send(stream.id) {
                stream.rest.clear();
                continue;
            }
            let sent = self.connection.send_data(stream.id, &stream.rest, true);
            stream.rest.drain(..sent);
        }
        self.output.append(self.connection.output());
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// The server's mistake.
    pub(crate) fn receive(&mut self, bytes: &[u8], now_ms: u64) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        let mut consumed = 0;
        loop {
            let input = &self.input[consumed..];
            let step = self.connection.receive(input, &mut self.reader, now_ms);
            let step = step.map_err(|error| format!("{error:?}"))?;
            consumed += step.consumed;
            let streams = &mut self.streams;
            match step.event {
                ServerEvent::More => break,
                ServerEvent::Nothing | ServerEvent::Sendable => {}
                ServerEvent::Head { stream, ends } => {
                    let stream = find(streams, stream).ok_or("a head came on no stream")?;
                    let message = message(&self.reader);
                    if message.status() >= 200 {
                        if stream.answer.is_some() {
                            return Err("a second head came".to_owned());
                        }
                        stream.answer = Some(message);
                        stream.end_if(ends, now_ms);
                    }
                }
                ServerEvent::Data { stream, data, ends } => {
                    let stream = find(streams, stream).ok_or("data came on no stream")?;
                    let answer = stream.answer.as_mut().ok_or("data came before a head")?;
                    answer.body.extend_from_slice(data);
                    stream.end_if(ends, now_ms);
                    if self.has_windows && !data.is_empty() {
                        write_window_update(&mut self.output, stream.id, data.len() as u32);
                        self.ping_after_bytes = match self.ping_after_bytes.checked_sub(data.len())
                        {
                            Some(left) => left,
                            None => {
                                self.output.extend_from_slice(PING);
                                PING_BYTES
                            }
                        };
                    }
                }
                ServerEvent::Trailers { stream } => {
                    find(streams, stream)
                        .ok_or("trailers came on no stream")?
                        .end_if(true, now_ms);
                }
                ServerEvent::Malformed { fault, .. } => return Err(fault.reason().to_owned()),
                ServerEvent::Reset { stream, .. } => {
                    if let Some(stream) = find(streams, stream) {
                        stream.ended.get_or_insert((StreamEnd::Reset, now_ms));
                    }
                }
                ServerEvent::GoingAway { last_stream, .. } => {
                    for stream in streams {
                        if stream.id > last_stream {
                            stream.ended.get_or_insert((StreamEnd::Refused, now_ms));
                        }
                    }
                }
            }
        }
        self.input.drain(..consumed);
        self.write_bodies();
        Ok(())
    }
}

fn find(streams: &mut [Stream], id: StreamId) -> Option<&mut Stream> {
    streams.iter_mut().find(|stream| stream.id == id)
}

impl Stream {
    fn end_if(&mut self, ends: bool, now_ms: u64) {
        if let Some(answer) = self.answer.as_mut().filter(|_| ends) {
            answer.is_whole = true;
            self.ended = Some((StreamEnd::Whole, now_ms));
        }
    }
}

/// The head of an answer, with names as HTTP/1 writes them.
fn message(reader: &ResponseReader) -> Message {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = reader.head.fields.iter();
    Message {
        first_line: format!("HTTP/2 {}", reader.head.status),
        fields: fields
            .map(|(name, value)| (capitalised(&text(name)), text(value)))
            .collect(),
        ..Message::default()
    }
}

/// A name as HTTP/1 writes it: each word begins with a capital.
fn capitalised(name: &str) -> String {
    let mut begins = true;
    let letter = |letter: char| {
        let shown = if begins {
            letter.to_ascii_uppercase()
        } else {
            letter
        };
        begins = letter == '-';
        shown
    };
    name.chars().map(letter).collect()
}
