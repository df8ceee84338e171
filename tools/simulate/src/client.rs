//! A client that follows a script: its sends, reads and failures.

use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::content::shown;
use crate::http2::Http2;
use crate::message;
use crate::request::Request;

/// The longest wait of a client, in milliseconds: far longer than every time-out of the
/// configurations. A client that waits longer was forgotten by the lane.
const PATIENCE_MS: u64 = 30_000;

/// The script of a client.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) start_ms: u64,
    pub(crate) requests: Vec<Request>,
    /// All bytes of the requests.
    pub(crate) bytes: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    /// The bytes read at a time, and the pause after each.
    pub(crate) read_bytes: usize,
    pub(crate) read_pause_ms: u64,
    /// The failure, if any.
    pub(crate) cut: Option<Cut>,
    /// The delay between the last answer and the client's close; `None`: the server closes.
    pub(crate) close_after_ms: Option<u64>,
    /// Whether it sends the beginning of a TLS handshake instead of requests.
    pub(crate) is_handshake: bool,
    /// Whether it speaks HTTP/2. Each piece is a request then, and has no bytes.
    pub(crate) is_http2: bool,
    /// The bytes of its streams' windows at first, which it widens as it reads, at once; `None`:
    /// the widest.
    pub(crate) window_bytes: Option<u32>,
}

/// Bytes that are sent at one time.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Range<usize>,
    /// The time after the previous piece, or after the awaited answers.
    pub(crate) pause_ms: u64,
    /// The number of answers that must have come before it is sent.
    pub(crate) answers: usize,
    /// Whether it is sent through a tunnel only.
    pub(crate) in_tunnel: bool,
}

/// A failure of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) at: CutAt,
    pub(crate) how: How,
}

/// The position of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutAt {
    /// After this many sent bytes.
    Sent(usize),
    /// After this many received bytes.
    Received(usize),
}

/// The kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Close,
    Reset,
    /// Ends its sending side; reads on.
    HalfClose,
    /// Stops sending without ending its side; reads on.
    Silent,
    /// Neither sends nor reads any more.
    Stall,
}

/// The end of a connection for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server closed it.
    ByServer,
    /// The server reset it.
    Broken,
    /// The client closed it.
    ByClient,
    /// The client closed it, after too long without progress.
    Impatient,
}

/// The effect of a client's action on the socket at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    Connected,
    Read(usize),
    Reset,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) script: Script,
    stream: Option<UnixStream>,
    /// The number of completely sent pieces, and the position in the next.
    piece: usize,
    pub(crate) sent: usize,
    piece_at_ms: u64,
    pub(crate) received: Vec<u8>,
    /// The start of the response that is being read.
    response_at: usize,
    /// The number of complete final responses.
    pub(crate) answers: usize,
    pub(crate) answered_ms: Vec<u64>,
    /// The times of the last byte of each request.
    pub(crate) asked_ms: Vec<u64>,
    /// The time of the last sent byte.
    pub(crate) sent_ms: u64,
    read_at_ms: u64,
    /// Whether there may be input.
    is_readable: bool,
    pub(crate) cut_done: Option<How>,
    pub(crate) ended: Option<(Ended, u64)>,
    last_change_ms: u64,
    /// Whether the server has switched protocols: what comes is no response any more.
    is_tunnel: bool,
    /// An error of the reader: no server may write such a message.
    pub(crate) misread: Option<String>,
    pub(crate) http2: Option<Http2>,
    /// The time before which it does not try to write frames.
    write_at_ms: u64,
}

impl Client {
    pub(crate) fn new(script: Script) -> Client {
        Client {
            piece_at_ms: 0,
            stream: None,
            piece: 0,
            sent: 0,
            received: Vec::new(),
            response_at: 0,
            answers: 0,
            answered_ms: Vec::new(),
            asked_ms: Vec::new(),
            sent_ms: 0,
            read_at_ms: 0,
            is_readable: false,
            cut_done: None,
            ended: None,
            last_change_ms: script.start_ms,
            is_tunnel: false,
            misread: None,
            http2: script.is_http2.then(|| Http2::new(script.window_bytes)),
            write_at_ms: 0,
            script,
        }
    }

    /// The client's socket, while it has one.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(UnixStream::as_fd)
    }

    /// The time of the end of the answer to the request with this index.
    pub(crate) fn answered_at_ms(&self, index: usize) -> Option<u64> {
        match &self.http2 {
            None => self.answered_ms.get(index).copied(),
            Some(http2) => http2.streams.get(index)?.ended.map(|(_, at_ms)| at_ms),
        }
    }

    /// Whether not all of the request with this index was sent.
    pub(crate) fn is_unsent(&self, index: usize) -> bool {
        let is_unwritten = |http2: &Http2| {
            let stream = http2.streams.get(index);
            self.cut_done.is_some() || stream.is_none_or(|stream| !stream.is_written())
        };
        index >= self.asked_ms.len() || self.http2.as_ref().is_some_and(is_unwritten)
    }

    /// Records that there is input.
    pub(crate) fn can_read(&mut self) {
        self.is_readable = true;
    }

    /// The time of its next action; `None` if it waits for the server.
    pub(crate) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        if self.ended.is_some() {
            return None;
        }
        if self.stream.is_none() {
            return Some(self.script.start_ms);
        }
        let reading = (self.read_at_ms > now_ms).then_some(self.read_at_ms);
        let patience = Some(self.last_change_ms + PATIENCE_MS);
        let all = [self.sends_at_ms(), self.closes_at_ms(), reading, patience];
        all.into_iter().flatten().min()
    }

    fn sends_at_ms(&self) -> Option<u64> {
        if self.cut_done.is_some() {
            return None;
        }
        if let Some(http2) = &self.http2 {
            let writes = (!http2.output().is_empty()).then_some(self.write_at_ms);
            return [writes, self.asks_at_ms()].into_iter().flatten().min();
        }
        let piece = self.script.pieces.get(self.piece)?;
        let has_way = self.is_tunnel || !piece.in_tunnel;
        (has_way && self.answers >= piece.answers).then_some(self.piece_at_ms)
    }

    /// The time at which it begins its next request of HTTP/2.
    fn asks_at_ms(&self) -> Option<u64> {
        let piece = self.script.pieces.get(self.piece)?;
        let may_ask = self.http2.as_ref().is_some_and(Http2::may_ask);
        (may_ask && self.answers >= piece.answers).then_some(self.piece_at_ms)
    }

    fn closes_at_ms(&self) -> Option<u64> {
        let close_after_ms = self.script.close_after_ms?;
        let all = self.answers >= self.script.requests.len();
        let last = self.answered_ms.last().copied().unwrap_or(self.sent_ms);
        (all && self.cut_done.is_none()).then_some(last + close_after_ms)
    }

    /// Does one action that is due; `None` if there is none.
    pub(crate) fn act(
        &mut self,
        now_ms: u64,
        gate: &Path,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        if self.ended.is_some() || self.script.start_ms > now_ms {
            return None;
        }
        let effect = self.try_to_act(now_ms, gate, note);
        match effect {
            Some(_) => self.last_change_ms = now_ms,
            None if now_ms >= self.last_change_ms + PATIENCE_MS => {
                note(&|| "has waited long enough and goes".to_owned());
                let is_closed = self.cut_done == Some(How::Stall) && self.has_end();
                let ended = if is_closed {
                    Ended::ByClient
                } else {
                    Ended::Impatient
                };
                self.end(ended, now_ms);
                return Some(Effect::None);
            }
            None => {}
        }
        effect
    }

    fn try_to_act(
        &mut self,
        now_ms: u64,
        gate: &Path,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        if self.stream.is_none() {
            let stream = UnixStream::connect(gate).ok()?;
            stream.set_nonblocking(true).ok()?;
            self.stream = Some(stream);
            self.piece_at_ms =
                now_ms + self.script.pieces.first().map_or(0, |piece| piece.pause_ms);
            note(&|| "connects".to_owned());
            return Some(Effect::Connected);
        }
        if self.cut_done.is_none()
            && let Some(cut) = self.script.cut
            && self.is_reached(cut.at)
        {
            return Some(self.fail(cut.how, now_ms, note));
        }
        if self.cut_done != Some(How::Stall)
            && self.is_readable
            && self.read_at_ms <= now_ms
            && let Some(effect) = self.read(now_ms, note)
        {
            if self.script.window_bytes.is_some() && self.cut_done.is_none() {
                // The lane finds room in the socket and what the client says to it together.
                let _ = self.send(now_ms, note);
            }
            return Some(effect);
        }
        if self.sends_at_ms().is_some_and(|at_ms| at_ms <= now_ms)
            && let Some(effect) = self.send(now_ms, note)
        {
            return Some(effect);
        }
        if self.closes_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            note(&|| "closes".to_owned());
            self.end(Ended::ByClient, now_ms);
            return Some(Effect::None);
        }
        None
    }

    fn is_reached(&self, at: CutAt) -> bool {
        match at {
            CutAt::Sent(bytes) => self.sent >= bytes,
            CutAt::Received(bytes) => self.received.len() >= bytes,
        }
    }

    fn fail(&mut self, how: How, now_ms: u64, note: &mut dyn FnMut(&dyn Fn() -> String)) -> Effect {
        note(&|| format!("fails: {how:?}"));
        self.cut_done = Some(how);
        match how {
            How::Close => self.end(Ended::ByClient, now_ms),
            How::Reset => {
                self.end(Ended::ByClient, now_ms);
                return Effect::Reset;
            }
            How::HalfClose => {
                if let Some(stream) = &self.stream {
                    // The server may have closed it already.
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
            }
            How::Silent | How::Stall => {}
        }
        Effect::None
    }

    /// Whether the server has closed a connection that the client does not read.
    fn has_end(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = self
            .stream
            .as_mut()
            .map(|stream| stream.read_to_end(&mut rest));
        !matches!(read, Some(Err(error)) if error.kind() == ErrorKind::WouldBlock)
    }

    fn end(&mut self, ended: Ended, now_ms: u64) {
        self.ended = Some((ended, now_ms));
        self.stream = None;
    }

    fn read(&mut self, now_ms: u64, note: &mut dyn FnMut(&dyn Fn() -> String)) -> Option<Effect> {
        let from = self.received.len();
        let wanted = match self.script.cut {
            Some(Cut {
                at: CutAt::Received(end),
                ..
            }) if self.cut_done.is_none() => self.script.read_bytes.min(end - from),
            _ => self.script.read_bytes,
        };
        self.received.resize(from + wanted, 0);
        let read = self.stream.as_mut()?.read(&mut self.received[from..]);
        self.received
            .truncate(from + *read.as_ref().ok().unwrap_or(&0));
        match read {
            Ok(0) => {
                note(&|| "reads the end, closes".to_owned());
                self.end(Ended::ByServer, now_ms);
                self.follow(from, now_ms);
                Some(Effect::None)
            }
            Ok(read) => {
                let is_handshake = self.script.is_handshake;
                note(&|| {
                    if is_handshake {
                        // Its random numbers are new in each run.
                        format!("reads {read} bytes of a handshake")
                    } else {
                        format!("reads {}", shown(&self.received[from..]))
                    }
                });
                self.read_at_ms = now_ms + self.script.read_pause_ms;
                self.follow(from, now_ms);
                Some(Effect::Read(read))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_readable = false;
                None
            }
            Err(error) => {
                note(&|| format!("reads an error: {error}"));
                self.end(Ended::Broken, now_ms);
                Some(Effect::None)
            }
        }
    }

    /// Counts the complete responses, of which bytes have come from this position on.
    fn follow(&mut self, from: usize, now_ms: u64) {
        if self.script.is_handshake {
            return;
        }
        if self.http2.is_some() {
            self.follow_http2(from, now_ms);
            return;
        }
        while self.misread.is_none() && !self.is_tunnel && self.response_at < self.received.len() {
            let request = self.script.requests.get(self.answers);
            let is_headless = request.is_some_and(Request::is_head);
            let bytes = &self.received[self.response_at..];
            match message::response(bytes, is_headless, self.ended.is_some()) {
                Ok(Some(message)) if message.is_whole || message.is_tunnel() => {
                    self.response_at += message.length;
                    self.is_tunnel = message.is_tunnel();
                    if message.status() >= 200 || self.is_tunnel {
                        self.answers += 1;
                        self.answered_ms.push(now_ms);
                        self.piece_at_ms = self.piece_at_ms.max(now_ms + self.pause_ms());
                    }
                }
                Ok(_) => return,
                Err(error) => self.misread = Some(error),
            }
        }
    }

    fn follow_http2(&mut self, from: usize, now_ms: u64) {
        let Some(http2) = self.http2.as_mut().filter(|_| self.misread.is_none()) else {
            return;
        };
        if let Err(error) = http2.receive(&self.received[from..], now_ms) {
            self.misread = Some(error);
        }
        let has_ended = |stream: &&crate::http2::Stream| stream.ended.is_some();
        let answers = http2.streams.iter().filter(has_ended).count();
        if answers > self.answers {
            self.answers = answers;
            self.answered_ms.resize(answers, now_ms);
            self.piece_at_ms = self.piece_at_ms.max(now_ms + self.pause_ms());
        }
    }

    /// Begins the next request of HTTP/2, or writes frames.
    fn send_http2(
        &mut self,
        now_ms: u64,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        let asks = self.asks_at_ms().is_some_and(|at_ms| at_ms <= now_ms);
        let http2 = self.http2.as_mut()?;
        if asks {
            let request = self.script.requests.get(self.piece)?;
            note(&|| format!("asks for {} {}", request.method, request.path()));
            http2.ask(request, now_ms);
            self.asked_ms.push(now_ms);
            self.piece += 1;
            self.piece_at_ms = now_ms + self.pause_ms();
            return Some(Effect::None);
        }
        let mut bytes = http2.output();
        if let Some(Cut {
            at: CutAt::Sent(most),
            ..
        }) = self.script.cut
        {
            bytes = &bytes[..bytes.len().min(most.saturating_sub(self.sent))];
        }
        if bytes.is_empty() || self.write_at_ms > now_ms {
            return None;
        }
        match self.stream.as_mut()?.write(bytes) {
            Ok(count) => {
                note(&|| format!("sends {count} bytes of frames"));
                http2.sent(count);
                self.sent += count;
                self.sent_ms = now_ms;
                Some(Effect::None)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.write_at_ms = now_ms + 10;
                None
            }
            Err(error) => {
                note(&|| format!("cannot send: {error}"));
                self.cut_done = Some(How::HalfClose);
                Some(Effect::None)
            }
        }
    }

    fn pause_ms(&self) -> u64 {
        let piece = self.script.pieces.get(self.piece);
        piece.map_or(0, |piece| piece.pause_ms)
    }

    fn send(&mut self, now_ms: u64, note: &mut dyn FnMut(&dyn Fn() -> String)) -> Option<Effect> {
        if self.http2.is_some() {
            return self.send_http2(now_ms, note);
        }
        let piece = self.script.pieces.get(self.piece)?;
        let mut end = piece.bytes.end;
        if let Some(Cut {
            at: CutAt::Sent(bytes),
            ..
        }) = self.script.cut
        {
            end = end.min(bytes);
        }
        let bytes = &self.script.bytes[self.sent..end];
        match self.stream.as_mut()?.write(bytes) {
            Ok(count) => {
                note(&|| format!("sends {}", shown(&bytes[..count])));
                self.sent += count;
                self.sent_ms = now_ms;
                if self.sent == piece.bytes.end {
                    self.piece += 1;
                    self.piece_at_ms = now_ms + self.pause_ms();
                }
                let asked = |request: &&Request| request.end <= self.sent;
                let asked = self.script.requests.iter().filter(asked).count();
                self.asked_ms.resize(asked, now_ms);
                Some(Effect::None)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // The server does not read now; the client tries again.
                self.piece_at_ms = now_ms + 10;
                None
            }
            Err(error) => {
                note(&|| format!("cannot send: {error}"));
                // The server's earlier bytes must still be read.
                self.cut_done = Some(How::HalfClose);
                Some(Effect::None)
            }
        }
    }
}
