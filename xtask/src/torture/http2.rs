//! Clients of HTTP/2 as browsers and gRPC are: a large download whose windows outrun the socket,
//! beside small requests and PINGs on the same connection. Some cancel the download, some read
//! slowly. Frames are written by hand, so that no code of the server judges itself.

use std::collections::BTreeSet;
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::clients::{broken, connect, repeat};
use super::ledger::{Account, Failure, now_us};
use crate::contender::OBJECT;
use crate::http2_frames::{
    DATA, FLAG_END, FLAG_END_HEADERS, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, write_frame,
};

/// The large download's path, and its length: many times what a socket holds.
pub(super) const LARGE: &str = "/large";
pub(super) const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// Windows that the client opens at once: wider than the download.
const WINDOW_BYTES: u32 = 1 << 30;
/// Bytes of DATA between two small requests, each with a PING.
const ASKS_EVERY_BYTES: usize = 512 * 1024;
/// Bytes after which a client cancels its download.
const CANCELS_AFTER_BYTES: usize = 5 * 1024 * 1024;
/// The pause of a slow reader after each part of that length.
const SLOW_PAUSE: Duration = Duration::from_millis(5);
const SLOW_BYTES: usize = 64 * 1024;

/// How a client takes its download.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Whole,
    Cancelling,
    Slow,
}

/// Downloads until it is stopped, one large download on a connection.
pub(super) fn download(port: u16, reader: Reader, is_over: &AtomicBool) -> Account {
    let clients = match reader {
        Reader::Whole => "http2 downloads",
        Reader::Cancelling => "http2 cancelled downloads",
        Reader::Slow => "http2 slow downloads",
    };
    repeat(clients, is_over, |account| session(port, reader, account))
}

/// A connection, seen by its client.
struct Connection {
    stream: BufReader<TcpStream>,
    /// Streams that are not answered yet.
    open: BTreeSet<u32>,
    next: u32,
    /// Whether the server takes no more requests on it.
    is_leaving: bool,
}

/// One large download with all that is asked beside it. All of a connection's requests are lost
/// with it.
fn session(port: u16, reader: Reader, account: &mut Account) -> Result<(), Failure> {
    let begun_us = now_us();
    let mut connection = Connection {
        stream: connect(port)?,
        open: BTreeSet::new(),
        next: 1,
        is_leaving: false,
    };
    let before = account.offered;
    let answered = connection.run(reader, account);
    let Err(kind) = answered else { return Ok(()) };
    // Of all that are lost, one is named.
    let lost = connection.open.len() as u64;
    account.offered = (account.offered - lost + 1).max(before + 1);
    Err(broken(begun_us, kind, Some(&connection.stream), false))
}

impl Connection {
    fn run(&mut self, reader: Reader, account: &mut Account) -> Result<(), String> {
        let window = WINDOW_BYTES.to_be_bytes();
        let mut setting = vec![0, 4];
        setting.extend(window);
        let mut opening = PREFACE.to_vec();
        write_frame(&mut opening, SETTINGS, 0, 0, &setting);
        write_frame(&mut opening, WINDOW_UPDATE, 0, 0, &window);
        self.write(&opening)?;
        let large = self.ask(LARGE, account)?;
        let (mut bytes, mut asked_at, mut paused_at) = (0, 0, 0);
        while !self.open.is_empty() {
            let (kind, flags, stream, payload) = self.read()?;
            match kind {
                DATA if stream == large => bytes += payload.len(),
                SETTINGS if flags & FLAG_END == 0 => self.say(SETTINGS, FLAG_END, 0, &[])?,
                RST_STREAM => return Err(format!("reset of stream {stream}")),
                GOAWAY => self.left(&payload, account)?,
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & FLAG_END != 0 && self.open.remove(&stream)
            {
                account.answered += 1;
            }
            let is_downloading = self.open.contains(&large);
            if is_downloading && bytes >= asked_at + ASKS_EVERY_BYTES && !self.is_leaving {
                asked_at = bytes;
                self.say(PING, 0, 0, &[7; 8])?;
                self.ask(OBJECT, account)?;
            }
            if is_downloading && reader == Reader::Cancelling && bytes >= CANCELS_AFTER_BYTES {
                self.say(RST_STREAM, 0, large, &8_u32.to_be_bytes())?;
                self.open.remove(&large);
                account.answered += 1;
            }
            if reader == Reader::Slow && bytes >= paused_at + SLOW_BYTES {
                paused_at = bytes;
                std::thread::sleep(SLOW_PAUSE);
            }
        }
        match bytes {
            LARGE_BYTES => Ok(()),
            _ if reader == Reader::Cancelling || self.is_leaving => Ok(()),
            _ => Err(format!("a download of {bytes} bytes")),
        }
    }

    /// Asks for a path; returns its stream.
    fn ask(&mut self, path: &str, account: &mut Account) -> Result<u32, String> {
        let stream = self.next;
        self.next += 2;
        // GET, http, a literal :path, a literal :authority (RFC 7541 appendix A).
        let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
        block.extend(path.as_bytes());
        block.extend([0x01, 1, b'a']);
        account.offered += 1;
        self.open.insert(stream);
        self.say(HEADERS, FLAG_END | FLAG_END_HEADERS, stream, &block)?;
        Ok(stream)
    }

    /// The server goes: it says which requests it has not taken, and those are no loss.
    fn left(&mut self, payload: &[u8], account: &mut Account) -> Result<(), String> {
        self.is_leaving = true;
        let last = payload
            .first_chunk::<4>()
            .map(|last| u32::from_be_bytes(*last));
        let code = payload.get(4..8);
        if code != Some(&[0; 4]) {
            return Err(format!("GOAWAY with {code:?}"));
        }
        let refused = self.open.split_off(&(last.unwrap_or(0) + 1));
        account.offered -= refused.len() as u64;
        Ok(())
    }

    fn say(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<(), String> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, kind, flags, stream, payload);
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.stream.get_mut().write_all(bytes);
        written.map_err(|error| format!("send: {:?}", error.kind()))
    }

    /// Reads a frame: its kind, flags, stream and payload.
    fn read(&mut self) -> Result<(u8, u8, u32, Vec<u8>), String> {
        let failed = |error: std::io::Error| format!("frame: {:?}", error.kind());
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).map_err(failed)?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).map_err(failed)?;
        Ok((kind, flags, u32::from_be_bytes(stream), payload))
    }
}
