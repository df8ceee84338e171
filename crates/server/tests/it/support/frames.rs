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

/// A frame from the server.
#[derive(Debug)]
pub struct Received {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
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
