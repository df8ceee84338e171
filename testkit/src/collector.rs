//! A collector of OpenTelemetry spans: OTLP over HTTP/1.1 and over gRPC, with a decoder that shares
//! nothing with the server's encoder.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::{DEADLINE, wait_for};

/// A span that has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Hexadecimal, as the parent and the own number are.
    pub trace: String,
    pub span: String,
    /// Empty: none.
    pub parent: String,
    pub state: String,
    pub name: String,
    pub kind: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Arrays are written as `[TEXT]`.
    pub attributes: BTreeMap<String, String>,
    /// The status code; 2 is an error.
    pub status: u64,
    /// The attributes of its resource.
    pub resource: BTreeMap<String, String>,
}

/// A running collector; it stops when dropped.
#[derive(Debug)]
pub struct Collector {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    spans: Mutex<Vec<Span>>,
    /// The heads of requests of HTTP/1.1.
    heads: Mutex<Vec<String>>,
}

impl Collector {
    /// Listens on a port of 127.0.0.1.
    ///
    /// # Panics
    /// The kernel gives no port.
    pub fn start() -> Collector {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port for the collector");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.is_stopped.load(Ordering::Acquire) {
                    return;
                }
                // A client that goes away early has sent no batch.
                let _ = stream.and_then(|stream| serve(stream, &own));
            }
        });
        Collector {
            port,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Span> {
        let spans = &self.shared.spans;
        spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The heads of requests of HTTP/1.1 so far.
    pub fn heads(&self) -> Vec<String> {
        let heads = &self.shared.heads;
        heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `count` spans have come.
    ///
    /// # Panics
    /// They do not come before the deadline.
    pub fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        let found = wait_for(|| Some(self.spans()).filter(|spans| spans.len() >= count));
        found.unwrap_or_else(|| panic!("{} of {count} spans came", self.spans().len()))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the acceptor
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join(); // a panic there was printed there
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut start = [0; 4];
    stream.read_exact(&mut start)?;
    let batch = match &start {
        b"PRI " => grpc(&mut stream)?,
        _ => http(&mut stream, start.to_vec(), shared)?,
    };
    let spans = decode(&batch).expect("a batch of spans");
    let mut known = shared.spans.lock().unwrap_or_else(PoisonError::into_inner);
    known.extend(spans);
    Ok(())
}

/// Takes a request of HTTP/1.1, and answers it.
fn http(stream: &mut TcpStream, mut head: Vec<u8>, shared: &Shared) -> io::Result<Vec<u8>> {
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    let heads = &shared.heads;
    heads
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    Ok(body)
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The length of the client's preface after its first four bytes.
const PREFACE_REST: usize = 20;

/// Takes a call of gRPC, and answers it: one stream of HTTP/2, frame by frame.
fn grpc(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    stream.read_exact(&mut [0; PREFACE_REST])?;
    write_frame(stream, SETTINGS, 0, 0, &[])?;
    let wide = (1_u32 << 30).to_be_bytes();
    write_frame(stream, WINDOW_UPDATE, 0, 0, &wide)?;
    let mut body = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload)?;
        let (kind, flags) = (head[3], head[4]);
        match kind {
            HEADERS => write_frame(stream, WINDOW_UPDATE, 0, 1, &wide)?,
            DATA => body.extend_from_slice(&payload),
            _ => continue,
        }
        if flags & END_STREAM != 0 {
            break;
        }
    }
    // ":status 200" is entry 8 of the static table.
    write_frame(stream, HEADERS, END_HEADERS, 1, &[0x88])?;
    write_frame(stream, DATA, 0, 1, &[0; 5])?;
    let trailers = [&b"\x00\x0bgrpc-status"[..], b"\x010"].concat();
    write_frame(stream, HEADERS, END_HEADERS | END_STREAM, 1, &trailers)?;
    assert_eq!(body[0], 0, "a compressed message");
    let length = u32::from_be_bytes([body[1], body[2], body[3], body[4]]);
    assert_eq!(body.len(), length as usize + 5, "one message");
    Ok(body.split_off(5))
}

fn write_frame(
    stream: &mut TcpStream,
    kind: u8,
    flags: u8,
    number: u32,
    payload: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(payload.len())
        .unwrap_or_default()
        .to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(payload);
    stream.write_all(&frame)
}

/// A member of a message of Protocol Buffers.
enum Member<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The members of a message; `None` if it is malformed.
fn members(mut bytes: &[u8]) -> Option<Vec<(u64, Member<'_>)>> {
    let mut members = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let member = match key & 7 {
            0 => Member::Number(varint(&mut bytes)?),
            1 => Member::Number(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Member::Bytes(take(&mut bytes, length)?)
            }
            5 => {
                let number = u32::from_le_bytes(take(&mut bytes, 4)?.try_into().ok()?);
                Member::Number(u64::from(number))
            }
            _ => return None,
        };
        members.push((key >> 3, member));
    }
    Some(members)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The spans of an `ExportTraceServiceRequest`; `None` if it is malformed.
pub fn decode(batch: &[u8]) -> Option<Vec<Span>> {
    let mut spans = Vec::new();
    for of_resource in inner(batch, 1)? {
        let mut resource = BTreeMap::new();
        for own in inner(of_resource, 1)? {
            resource.append(&mut attributes(own, 1)?);
        }
        for of_scope in inner(of_resource, 2)? {
            for bytes in inner(of_scope, 2)? {
                let resource = resource.clone();
                spans.push(Span {
                    resource,
                    ..span(bytes)?
                });
            }
        }
    }
    Some(spans)
}

/// The members with this number, all of which are messages.
fn inner(message: &[u8], number: u64) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    for (own, member) in members(message)? {
        match member {
            Member::Bytes(bytes) if own == number => found.push(bytes),
            Member::Number(_) if own == number => return None,
            _ => {}
        }
    }
    Some(found)
}

fn span(bytes: &[u8]) -> Option<Span> {
    let mut span = Span {
        attributes: attributes(bytes, 9)?,
        ..Span::default()
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    for (number, member) in members(bytes)? {
        match (number, member) {
            (1, Member::Bytes(bytes)) => span.trace = hex(bytes),
            (2, Member::Bytes(bytes)) => span.span = hex(bytes),
            (3, Member::Bytes(bytes)) => span.state = text(bytes)?,
            (4, Member::Bytes(bytes)) => span.parent = hex(bytes),
            (5, Member::Bytes(bytes)) => span.name = text(bytes)?,
            (6, Member::Number(number)) => span.kind = number,
            (7, Member::Number(number)) => span.start_ns = number,
            (8, Member::Number(number)) => span.end_ns = number,
            (15, Member::Bytes(bytes)) => {
                for (number, member) in members(bytes)? {
                    if let (3, Member::Number(code)) = (number, member) {
                        span.status = code;
                    }
                }
            }
            _ => {}
        }
    }
    Some(span)
}

fn attributes(message: &[u8], number: u64) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for pair in inner(message, number)? {
        let name = inner(pair, 1)?.concat();
        let value = inner(pair, 2)?.concat();
        found.insert(String::from_utf8(name).ok()?, any(&value)?);
    }
    Some(found)
}

/// An `AnyValue` as text.
fn any(value: &[u8]) -> Option<String> {
    let mut all = members(value)?;
    match (all.pop()?, all.is_empty()) {
        ((1, Member::Bytes(text)), true) => String::from_utf8(text.to_vec()).ok(),
        ((3, Member::Number(number)), true) => Some(number.to_string()),
        ((5, Member::Bytes(array)), true) => {
            let values = inner(array, 1)?.into_iter().map(any);
            Some(format!(
                "[{}]",
                values.collect::<Option<Vec<_>>>()?.join(",")
            ))
        }
        _ => None,
    }
}
