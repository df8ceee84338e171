//! One end of a relay: what it sends, when it reads, how it ends.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use turnpike_testkit::random::Random;

/// The longest wait of an end, in milliseconds: one that waits longer was forgotten by the lane.
const PATIENCE_MS: u64 = 30_000;

/// The longest wait for the other end where none fails, in milliseconds: the time-outs of the
/// configurations are longer, so that an end that waits for one of them is known.
const WAIT_MS_MAX: u64 = 2_500;

/// The pause after a send into a full socket.
const FULL_PAUSE_MS: u64 = 10;

/// Which end it is. `halves`: an end is passed on while the other direction lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ends its side when it has sent everything, or closes when it has got everything too.
    Client { halves: bool },
    /// Closes when it is told that the client has ended, after all of its own bytes where it can.
    Server { halves: bool },
}

/// How an end fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Close,
    /// Neither sends nor reads any more.
    Stall,
}

/// What an end did.
pub(crate) enum Act {
    Connects,
    Sends(usize),
    Reads(usize),
    ReadsEnd,
    EndsSide,
    Closes,
    Fails,
    GoesAfterPatience,
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Connects => out.write_str("connects"),
            Act::Sends(bytes) => write!(out, "sends {bytes} bytes"),
            Act::Reads(bytes) => write!(out, "reads {bytes} bytes"),
            Act::ReadsEnd => out.write_str("reads the end"),
            Act::EndsSide => out.write_str("ends its side"),
            Act::Closes => out.write_str("closes"),
            Act::Fails => out.write_str("fails"),
            Act::GoesAfterPatience => out.write_str("has waited long enough and goes"),
        }
    }
}

/// One end.
pub(crate) struct RelayEnd {
    role: Role,
    stream: Option<UnixStream>,
    start_ms: u64,
    bytes: Vec<u8>,
    sent: usize,
    piece_bytes: usize,
    piece_pause_ms: u64,
    send_at_ms: u64,
    received: Vec<u8>,
    /// The bytes that it waits for before it closes.
    wants: usize,
    read_bytes: usize,
    read_pause_ms: u64,
    read_at_ms: u64,
    cut: Option<(usize, Cut)>,
    has_failed: bool,
    has_read_end: bool,
    has_ended_side: bool,
    has_connected: bool,
    is_impatient: bool,
    changed_ms: u64,
    /// The longest time between two of its actions.
    longest_wait_ms: u64,
}

impl RelayEnd {
    /// An end that sends these bytes, and waits for so many.
    pub(crate) fn new(random: &mut Random, role: Role, bytes: Vec<u8>, wants: usize) -> RelayEnd {
        let is_slow = random.percent(20);
        let cut = random.pick(&[Cut::Close, Cut::Close, Cut::Stall]);
        let at = random.index(bytes.len() + 1);
        RelayEnd {
            start_ms: random.pick(&[0, 0, 1, 50, 700]),
            piece_bytes: random.pick(&[7, 3_000, 100_000]).max(bytes.len() / 30 + 1),
            piece_pause_ms: random.pick(&[0, 0, 1, 20]),
            read_bytes: random.pick(&[3_000, 20_000, 100_000]),
            read_pause_ms: if is_slow { random.pick(&[1, 5]) } else { 0 },
            cut: random.percent(20).then_some((at, cut)),
            bytes,
            wants,
            role,
            ..RelayEnd::stranger()
        }
    }

    /// The end of a connection whose client is not known: it reads its first byte, and no more.
    pub(crate) fn stranger() -> RelayEnd {
        RelayEnd {
            role: Role::Server { halves: false },
            stream: None,
            start_ms: 0,
            bytes: Vec::new(),
            sent: 0,
            piece_bytes: 1,
            piece_pause_ms: 0,
            send_at_ms: 0,
            received: Vec::new(),
            wants: 0,
            read_bytes: 1,
            read_pause_ms: 0,
            read_at_ms: 0,
            cut: None,
            has_failed: false,
            has_read_end: false,
            has_ended_side: false,
            has_connected: false,
            is_impatient: false,
            changed_ms: 0,
            longest_wait_ms: 0,
        }
    }

    pub(crate) fn take_stream(&mut self, stream: UnixStream, now_ms: u64) {
        // It fails for no open socket.
        let _ = stream.set_nonblocking(true);
        self.stream = Some(stream);
        self.has_connected = true;
        self.changed_ms = now_ms;
        self.send_at_ms = now_ms;
    }

    /// The first byte that has come.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        self.received.first().copied()
    }

    /// Goes on with a connection whose client is this one's.
    pub(crate) fn take_over(&mut self, stranger: RelayEnd, now_ms: u64) {
        self.received = stranger.received;
        self.has_read_end = stranger.has_read_end;
        if let Some(stream) = stranger.stream {
            self.take_stream(stream, now_ms);
        }
    }

    /// Whether it is done, or has no connection any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_connected && self.stream.is_none()
    }

    /// The time of its next action; `None` if it waits for the other end.
    pub(crate) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        if self.stream.is_none() {
            let connects = matches!(self.role, Role::Client { .. }) && !self.has_connected;
            return connects.then_some(self.start_ms);
        }
        let sends = (self.sent < self.bytes.len() && !self.has_failed).then_some(self.send_at_ms);
        let reads = (self.read_at_ms > now_ms).then_some(self.read_at_ms);
        let patience = Some(self.changed_ms + PATIENCE_MS);
        [sends, reads, patience].into_iter().flatten().min()
    }

    /// Connects where it has not, else acts.
    pub(crate) fn connect_or_act(&mut self, now_ms: u64, gate: &Path) -> Option<Act> {
        if self.has_connected {
            return self.act(now_ms);
        }
        if now_ms < self.start_ms {
            return None;
        }
        let stream = UnixStream::connect(gate).ok()?;
        self.take_stream(stream, now_ms);
        Some(Act::Connects)
    }

    /// Does one thing that is due.
    pub(crate) fn act(&mut self, now_ms: u64) -> Option<Act> {
        self.stream.as_ref()?;
        let act = self.try_to_act(now_ms);
        match act {
            Some(_) => {
                let waited_ms = now_ms - self.changed_ms;
                self.longest_wait_ms = self.longest_wait_ms.max(waited_ms);
                self.changed_ms = now_ms;
            }
            None if now_ms >= self.changed_ms + PATIENCE_MS => {
                self.stream = None;
                self.is_impatient = !self.has_failed;
                return Some(Act::GoesAfterPatience);
            }
            None => {}
        }
        act
    }

    fn try_to_act(&mut self, now_ms: u64) -> Option<Act> {
        if let Some((at, cut)) = self.cut
            && self.sent >= at
            && !self.has_failed
        {
            self.has_failed = true;
            if cut == Cut::Close {
                self.stream = None;
            }
            return Some(Act::Fails);
        }
        if self.has_failed {
            return None;
        }
        self.read(now_ms)
            .or_else(|| self.send(now_ms))
            .or_else(|| self.end())
    }

    fn read(&mut self, now_ms: u64) -> Option<Act> {
        if self.has_read_end || now_ms < self.read_at_ms {
            return None;
        }
        let from = self.received.len();
        // A stranger is to read one byte only.
        let room = if self.bytes.is_empty() && self.wants == 0 && from > 0 {
            return None;
        } else {
            self.read_bytes
        };
        self.received.resize(from + room, 0);
        let read = self.stream.as_mut()?.read(&mut self.received[from..]);
        let count = *read.as_ref().unwrap_or(&0);
        self.received.truncate(from + count);
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            // A reset is an end too.
            Ok(0) | Err(_) => {
                self.has_read_end = true;
                Some(Act::ReadsEnd)
            }
            Ok(count) => {
                self.read_at_ms = now_ms + self.read_pause_ms;
                Some(Act::Reads(count))
            }
        }
    }

    fn send(&mut self, now_ms: u64) -> Option<Act> {
        if self.sent == self.bytes.len() || now_ms < self.send_at_ms {
            return None;
        }
        let end = self.bytes.len().min(self.sent + self.piece_bytes);
        match self.stream.as_mut()?.write(&self.bytes[self.sent..end]) {
            Ok(count) => {
                self.sent += count;
                self.send_at_ms = now_ms + self.piece_pause_ms;
                Some(Act::Sends(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.send_at_ms = now_ms + FULL_PAUSE_MS;
                None
            }
            // The relay has ended.
            Err(_) => {
                self.stream = None;
                Some(Act::Closes)
            }
        }
    }

    fn end(&mut self) -> Option<Act> {
        let has_sent = self.sent == self.bytes.len();
        let closes = match self.role {
            Role::Client { halves: true } if has_sent && !self.has_ended_side => {
                self.has_ended_side = true;
                // It fails where the relay has ended, which is read next.
                let _ = self.stream.as_ref()?.shutdown(Shutdown::Write);
                return Some(Act::EndsSide);
            }
            Role::Client { halves: true } | Role::Server { halves: false } => self.has_read_end,
            Role::Client { halves: false } => {
                self.has_read_end || (has_sent && self.received.len() >= self.wants)
            }
            Role::Server { halves: true } => self.has_read_end && has_sent,
        };
        if !closes {
            return None;
        }
        self.stream = None;
        Some(Act::Closes)
    }

    /// What is wrong with what both ends of a relay have seen.
    pub(crate) fn judge(client: &RelayEnd, server: &RelayEnd) -> Vec<String> {
        let mut problems = Vec::new();
        for (from, to, name) in [(client, server, "server"), (server, client, "client")] {
            let is_whole = to.received.len() == from.bytes.len();
            if !from.bytes.starts_with(&to.received) {
                problems.push(format!("the {name} got other bytes than were sent"));
            } else if !is_whole && !client.has_failed && !server.has_failed {
                let (got, all) = (to.received.len(), from.bytes.len());
                problems.push(format!("the {name} got {got} of {all} bytes"));
            }
            let waited_ms = to.longest_wait_ms;
            if waited_ms > WAIT_MS_MAX && !client.has_failed && !server.has_failed {
                problems.push(format!("the {name} waited for {waited_ms} ms"));
            }
            if to.is_impatient {
                problems.push(format!("the {name} was forgotten"));
            }
            if to.stream.is_some() && !to.has_failed {
                problems.push(format!("the {name} is still connected"));
            }
        }
        problems
    }
}
