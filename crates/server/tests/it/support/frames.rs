//! A client of HTTP/2 whose every frame a test decides.

use std::io::{Read as _, Write as _};

use turnpike_testkit::{Peer, Server};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 16;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

/// The preface, and SETTINGS with a window for each response's body.
pub fn opening(window: u32) -> Vec<u8> {
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat()
}

/// The SETTINGS of a client whose table of fields is empty, so that each block stands for itself.
pub const NO_TABLE: &[u8] = &[0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];

/// A header block whose fields are all literals.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A GET request with these fields besides.
pub fn get(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.test"),
    ];
    let block = block(&[&fields, more].concat());
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

/// The status of the answer to a request on a connection of its own; 0: there was none. A request
/// is a method and a path, lines of fields, and a body.
pub fn ask(server: &Server, line: &str, fields: &str, body: &str) -> u16 {
    let (method, path) = line.split_once(' ').unwrap();
    let fields: Vec<(String, &str)> = fields
        .lines()
        .map(|field| field.split_once(':').unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.trim()))
        .collect();
    let own = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "host"),
    ];
    let fields = fields.iter().map(|(name, value)| (name.as_str(), *value));
    let list: Vec<(&str, &str)> = own.into_iter().chain(fields).collect();
    let end = if body.is_empty() { END_STREAM } else { 0 };
    let mut client = Client::connect(server, &opening(65_535));
    client.send(NO_TABLE);
    client.send(&frame(HEADERS, END_HEADERS | end, 1, &block(&list)));
    if !body.is_empty() {
        client.send(&frame(DATA, END_STREAM, 1, body.as_bytes()));
    }
    client.status().unwrap_or(0)
}

/// A frame from the server.
#[derive(Debug)]
pub struct Received {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Received {
    /// The status in the first block of an answer; `None`: it is no such block, or the server may
    /// have put the status into its table (see [`NO_TABLE`]).
    pub fn status(&self) -> Option<u16> {
        let block = &self.payload[..];
        // The size of the table, which the first block says again.
        let block = block.strip_prefix(&[0x20]).unwrap_or(block);
        match *block {
            // Appendix A of RFC 7541.
            [index @ 0x88..=0x8e, ..] => {
                Some([200, 204, 206, 304, 400, 404, 500][usize::from(index) - 0x88])
            }
            // The shorter of both forms.
            [0x08, 0x82, first, second, ..] => status_of_huffman([first, second]),
            [0x08, 0x03, ..] => std::str::from_utf8(block.get(2..5)?).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Three digits by appendix B of RFC 7541: 0, 1 and 2 have five bits, the others six.
fn status_of_huffman(bytes: [u8; 2]) -> Option<u16> {
    let mut bits = u32::from(u16::from_be_bytes(bytes)) << 16;
    let mut status = 0;
    for _ in 0..3 {
        let (digit, length) = match bits >> 27 {
            digit @ 0..=2 => (digit, 5),
            _ => ((bits >> 26).checked_sub(0x16)?, 6),
        };
        bits <<= length;
        status = status * 10 + u16::try_from(digit).ok()?;
    }
    Some(status)
}

/// A client's side of a connection.
pub struct Client {
    pub peer: Peer,
    read: Vec<u8>,
}

impl Client {
    /// A connection on which `opening` was sent.
    pub fn connect(server: &Server, opening: &[u8]) -> Client {
        let mut client = Client {
            peer: server.connect(),
            read: Vec::new(),
        };
        client.send(opening);
        client
    }

    /// Sends all of it; a connection that has ended takes no more.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.peer.stream().write_all(bytes);
    }

    /// Allows so many bytes of bodies more, of one stream or, where that is 0, of all together.
    pub fn widen(&mut self, stream: u32, bytes: u32) {
        self.send(&frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()));
    }

    /// The next frame. `None`: the connection has ended.
    pub fn frame(&mut self) -> Option<Received> {
        loop {
            if let Some((head, rest)) = self.read.split_first_chunk::<9>() {
                let [high, middle, low, kind, flags, stream @ ..] = *head;
                let length = u32::from_be_bytes([0, high, middle, low]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let found = Received {
                        kind,
                        flags,
                        stream: u32::from_be_bytes(stream),
                        payload: payload.to_vec(),
                    };
                    self.read.drain(..9 + length);
                    return Some(found);
                }
            }
            let mut piece = [0; 16 * 1024];
            match self.peer.stream().read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// The next frame of DATA.
    pub fn data(&mut self) -> Received {
        loop {
            let frame = self.frame().unwrap();
            if frame.kind == DATA {
                return frame;
            }
        }
    }

    /// The status of the next answer, of a client with [`NO_TABLE`].
    pub fn status(&mut self) -> Option<u16> {
        loop {
            let frame = self.frame()?;
            if frame.kind == HEADERS {
                return frame.status();
            }
        }
    }

    /// Whether an answer to a PING comes before the connection ends: all that was sent before was
    /// taken then.
    pub fn is_served(&mut self) -> bool {
        self.send(&frame(PING, 0, 0, b"a mark.."));
        while let Some(frame) = self.frame() {
            if frame.kind == PING && frame.flags == ACK && frame.payload == b"a mark.." {
                return true;
            }
            if frame.kind == GOAWAY {
                return false;
            }
        }
        false
    }
}
