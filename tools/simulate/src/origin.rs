//! Servers behind the lane that follow a script: their answer to each request, and their failures.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::answer::{Answer, Disorder, Ending, Failing};
use crate::content::{body, shown};
use crate::protocol::{ParsedRequest, Protocol};

/// The part of an answer in which it breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Head,
    Body,
}

/// The outcome of a request at an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The answer is incomplete.
    Pending,
    /// The answer was sent completely.
    Whole,
    /// A failure; whether the head was sent before.
    Failed { had_head: bool },
    /// The lane closed the connection first.
    Abandoned,
}

/// A request that reached an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) answer: Answer,
    /// The number of the answer's body.
    pub(crate) content: u64,
    pub(crate) outcome: Outcome,
    pub(crate) at_ms: u64,
    pub(crate) protocol: Protocol,
    /// The time that the head takes, if nothing else delays it.
    pub(crate) head_ms: u64,
    pub(crate) broken: Option<Broken>,
}

/// The number of the question whether a request is allowed: that of the request, and so much more.
pub(crate) const AUTH: u64 = 1_000_000;

/// The same for the copy of a request.
pub(crate) const MIRROR: u64 = 2_000_000;

/// The number by which a request is known: a client's request may lead to several.
fn number_of(asked: &ParsedRequest) -> u64 {
    match asked.path.split('/').nth(1) {
        Some("auth") => AUTH + asked.number,
        Some("mirror") => MIRROR + asked.number,
        _ => asked.number,
    }
}

/// The state that all origins of a run share.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The answers to the requests with a number, one for each try.
    pub(crate) scripts: BTreeMap<u64, Vec<Answer>>,
    /// The same for cached paths.
    pub(crate) cached: Vec<Answer>,
    /// The arrivals by the request's number.
    pub(crate) arrivals: BTreeMap<u64, Vec<Arrival>>,
    /// The arrivals by cached path: the versions of its answer.
    pub(crate) versions: BTreeMap<u64, Vec<Arrival>>,
    /// The lengths of the bodies that clients send, by number.
    pub(crate) uploads: BTreeMap<u64, usize>,
    /// The same for what they send through tunnels.
    pub(crate) tunnelled: BTreeMap<u64, usize>,
    /// When origins closed connections that they were not asked on, in order.
    pub(crate) idle_closed_ms: Vec<u64>,
    pub(crate) problems: Vec<String>,
}

/// The record of an arrival.
#[derive(Clone, Copy, Debug)]
enum Place {
    Number(u64, usize),
    Version(u64, usize),
}

impl Origins {
    fn arrive(
        &mut self,
        asked: &ParsedRequest,
        protocol: Protocol,
        now_ms: u64,
    ) -> Result<(Place, Arrival), String> {
        let cached = asked.path.strip_prefix("/cache/");
        let cached: Option<u64> = cached.and_then(|text| text.parse().ok());
        let number = number_of(asked);
        let list = match cached {
            Some(path) => self.versions.entry(path).or_default(),
            None => self.arrivals.entry(number).or_default(),
        };
        let scripts = match cached {
            Some(_) => Some(&self.cached),
            None => self.scripts.get(&number),
        };
        let index = list.len();
        let scripts = scripts.filter(|scripts| !scripts.is_empty());
        let scripts = scripts.ok_or_else(|| format!("a request for {}", asked.path))?;
        let answer = match cached {
            Some(_) => scripts[index % scripts.len()],
            None => scripts[index.min(scripts.len() - 1)],
        };
        let arrival = Arrival {
            answer,
            content: match cached {
                Some(path) => version_content(path, index),
                None => asked.number,
            },
            outcome: Outcome::Pending,
            at_ms: now_ms,
            protocol,
            head_ms: 0,
            broken: None,
        };
        list.push(arrival);
        let place = match cached {
            Some(path) => Place::Version(path, index),
            None => Place::Number(number, index),
        };
        Ok((place, arrival))
    }

    fn arrival(&mut self, place: Place) -> Option<&mut Arrival> {
        match place {
            Place::Number(number, index) => self.arrivals.get_mut(&number)?.get_mut(index),
            Place::Version(path, index) => self.versions.get_mut(&path)?.get_mut(index),
        }
    }

    fn note(&mut self, place: Place, outcome: Outcome) {
        if let Some(arrival) = self.arrival(place) {
            arrival.outcome = outcome;
        }
    }
}

/// The number of the body of a version of a cached path.
pub(crate) fn version_content(path: u64, version: usize) -> u64 {
    100_000 + path * 10_000 + version as u64
}

/// A connection that the lane has opened.
#[derive(Debug)]
pub(crate) struct OriginConnection {
    pub(crate) origin: usize,
    protocol: Protocol,
    stream: Option<UnixStream>,
    input: Vec<u8>,
    state: State,
    /// The time at which it closes the idle connection.
    idle_until_ms: Option<u64>,
    /// The number of the request that made the connection a tunnel.
    tunnel: Option<u64>,
    /// Whether there may be input.
    is_readable: bool,
    pub(crate) is_closed: bool,
}

#[derive(Debug)]
enum State {
    Reading,
    Answering(Answering),
    /// All was sent through a tunnel; the rest of what the client sends is awaited.
    Draining(Place),
    Stalled,
}

#[derive(Debug)]
struct Answering {
    place: Place,
    answer: Answer,
    bytes: Vec<u8>,
    head_bytes: usize,
    sent: usize,
    at_ms: u64,
    /// The position of the failure, or the end.
    end: usize,
    /// Whether the connection is closed after it.
    is_last: bool,
}

/// The effect of an action on the socket at the lane's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    Read(usize),
    Reset,
}

impl OriginConnection {
    /// A connection that the lane has begun, and the origin has not accepted yet.
    pub(crate) fn new(origin: usize, protocol: Protocol) -> OriginConnection {
        OriginConnection {
            origin,
            protocol,
            stream: None,
            input: Vec::new(),
            state: State::Reading,
            idle_until_ms: None,
            tunnel: None,
            is_readable: false,
            is_closed: false,
        }
    }

    /// Whether it was not accepted yet.
    pub(crate) fn is_new(&self) -> bool {
        self.stream.is_none() && !self.is_closed
    }

    /// The connection's socket, while it has one.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(UnixStream::as_fd)
    }

    /// Records that there is input.
    pub(crate) fn can_read(&mut self) {
        self.is_readable = true;
    }

    pub(crate) fn accept(&mut self, stream: UnixStream) {
        self.stream = Some(stream);
    }

    /// The time of its next action; `None` if it waits for the lane.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        match &self.state {
            _ if self.is_closed => None,
            State::Answering(answering) => Some(answering.at_ms),
            State::Reading => self.idle_until_ms,
            State::Draining(..) | State::Stalled => None,
        }
    }

    /// Does one action that is due; `None` if there is none.
    pub(crate) fn act(
        &mut self,
        now_ms: u64,
        origins: &mut Origins,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        if self.is_closed || self.stream.is_none() {
            return None;
        }
        if matches!(&self.state, State::Answering(answering) if answering.at_ms <= now_ms)
            && let Some(effect) = self.answer(now_ms, origins, note)
        {
            return Some(effect);
        }
        let read = self.read(now_ms, origins, note);
        if read.is_none()
            && self
                .idle_until_ms
                .is_some_and(|until_ms| until_ms <= now_ms)
        {
            note(&|| "closes, having nothing to do".to_owned());
            origins.idle_closed_ms.push(now_ms);
            self.close();
            return Some(Effect::None);
        }
        read
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.stream = None;
    }

    fn read(
        &mut self,
        now_ms: u64,
        origins: &mut Origins,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        if !self.is_readable {
            return None;
        }
        let mut buffer = [0; 16 * 1024];
        let ended = match self.stream.as_mut()?.read(&mut buffer) {
            Ok(0) => "reads the end, closes".to_owned(),
            Ok(count) => {
                note(&|| format!("reads {}", shown(&buffer[..count])));
                self.input.extend_from_slice(&buffer[..count]);
                self.idle_until_ms = None;
                match self.tunnel {
                    None => self.begin(now_ms, origins),
                    Some(number) => self.check_tunnelled(number, origins),
                }
                self.end_drained(origins, note);
                return Some(Effect::Read(count));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_readable = false;
                return None;
            }
            Err(error) => format!("reads an error, closes: {error}"),
        };
        note(&|| ended.clone());
        match &self.state {
            State::Answering(Answering { place, .. }) | State::Draining(place) => {
                origins.note(*place, Outcome::Abandoned);
            }
            State::Reading | State::Stalled => {}
        }
        self.close();
        Some(Effect::None)
    }

    /// Checks what has come through a tunnel.
    fn check_tunnelled(&self, number: u64, origins: &mut Origins) {
        let length = origins.tunnelled.get(&number).copied().unwrap_or(0);
        if !body(number, length).starts_with(&self.input) {
            let come = self.input.len();
            let problem = format!("tunnel {number}: {come} wrong bytes came, {length} were sent");
            origins.problems.push(problem);
        }
    }

    /// Closes a tunnel when all has come that its client sends.
    fn end_drained(&mut self, origins: &mut Origins, note: &mut dyn FnMut(&dyn Fn() -> String)) {
        if let (State::Draining(place), Some(number)) = (&self.state, self.tunnel)
            && self.input.len() >= origins.tunnelled.get(&number).copied().unwrap_or(0)
        {
            note(&|| "closes the tunnel".to_owned());
            origins.note(*place, Outcome::Whole);
            self.close();
        }
    }

    /// Begins an answer when enough of a request has come.
    fn begin(&mut self, now_ms: u64, origins: &mut Origins) {
        if !matches!(self.state, State::Reading) {
            return;
        }
        let begun = self.try_to_begin(now_ms, origins);
        if let Err(problem) = begun {
            let origin = self.origin;
            origins.problems.push(format!("origin {origin}: {problem}"));
        }
    }

    fn try_to_begin(&mut self, now_ms: u64, origins: &mut Origins) -> Result<(), String> {
        let Some(asked) = self.protocol.read(&self.input)? else {
            return Ok(());
        };
        let number = asked.number;
        let upload = origins
            .uploads
            .get(&number_of(&asked))
            .copied()
            .unwrap_or(0);
        if asked.body != body(number, upload) {
            let (come, sent) = (asked.body.len(), upload);
            let problem = format!("request {number} has a wrong body: {come} bytes, not {sent}");
            origins.problems.push(problem);
        }
        if self.input.len() > asked.length {
            let rest = shown(&self.input[asked.length..]);
            return Err(format!("more than a request: {rest}"));
        }
        self.input.clear();
        let (
            place,
            Arrival {
                answer, content, ..
            },
        ) = origins.arrive(&asked, self.protocol, now_ms)?;
        self.tunnel = (answer.ending == Ending::Tunnel).then_some(number);
        let written = self.protocol.write(&answer, content, &asked);
        let head_pieces = written.head_bytes.div_ceil(answer.piece_bytes) as u64;
        if let Some(arrival) = origins.arrival(place) {
            arrival.head_ms = answer.delay_ms + head_pieces * answer.piece_pause_ms;
            arrival.broken = written.broken_at.map(|at| {
                if at < written.head_bytes {
                    Broken::Head
                } else {
                    Broken::Body
                }
            });
        }
        let bytes = written.bytes;
        let end = answer.fails.map_or(bytes.len(), |(at, _)| at);
        self.state = State::Answering(Answering {
            place,
            answer,
            head_bytes: written.head_bytes,
            sent: 0,
            at_ms: now_ms + answer.delay_ms,
            end: end.min(bytes.len()),
            bytes,
            is_last: written.is_last,
        });
        Ok(())
    }

    fn answer(
        &mut self,
        now_ms: u64,
        origins: &mut Origins,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Option<Effect> {
        let State::Answering(answering) = &mut self.state else {
            return None;
        };
        if answering.sent == answering.end {
            return Some(self.ended(now_ms, origins, note));
        }
        let until = answering
            .end
            .min(answering.sent + answering.answer.piece_bytes);
        let piece = &answering.bytes[answering.sent..until];
        match self.stream.as_mut()?.write(piece) {
            Ok(count) => {
                note(&|| format!("sends {}", shown(&piece[..count])));
                answering.sent += count;
                answering.at_ms = if answering.sent == answering.end {
                    now_ms
                } else {
                    now_ms + answering.answer.piece_pause_ms
                };
                Some(Effect::None)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                answering.at_ms = now_ms + 10;
                None
            }
            Err(error) => {
                note(&|| format!("cannot send, closes: {error}"));
                origins.note(answering.place, Outcome::Abandoned);
                self.close();
                Some(Effect::None)
            }
        }
    }

    /// The answer was sent as far as its script goes.
    fn ended(
        &mut self,
        now_ms: u64,
        origins: &mut Origins,
        note: &mut dyn FnMut(&dyn Fn() -> String),
    ) -> Effect {
        let State::Answering(answering) = std::mem::replace(&mut self.state, State::Reading) else {
            return Effect::None;
        };
        let answer = answering.answer;
        let is_whole = answering.end == answering.bytes.len();
        if is_whole && answer.disorder == Some(Disorder::EndlessHead) {
            self.state = State::Stalled;
            return Effect::None;
        }
        if is_whole && answer.ending == Ending::Tunnel {
            self.state = State::Draining(answering.place);
            self.end_drained(origins, note);
            return Effect::None;
        }
        if is_whole {
            origins.note(answering.place, Outcome::Whole);
            self.idle_until_ms = Some(now_ms + answer.idle_ms);
            if answering.is_last {
                note(&|| "closes".to_owned());
                // Only HTTP/1 announces it.
                origins.idle_closed_ms.push(now_ms);
                self.close();
            }
            return Effect::None;
        }
        let had_head = answering.sent >= answering.head_bytes;
        origins.note(answering.place, Outcome::Failed { had_head });
        match answer.fails {
            Some((_, Failing::Reset)) => {
                note(&|| "resets".to_owned());
                self.close();
                Effect::Reset
            }
            Some((_, Failing::Stall)) => {
                note(&|| "falls silent".to_owned());
                self.state = State::Stalled;
                Effect::None
            }
            _ => {
                note(&|| "closes too early".to_owned());
                self.close();
                Effect::None
            }
        }
    }
}
