//! The world around the lane: time, the peers, and the behaviour of the socket layer.
//!
//! Everything runs on the lane's thread. While the lane waits for events, the peers act; when none
//! can act at this time, the time advances to the next deadline of a peer or the lane.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_http::counters::HttpCounters;
use turnpike_lane::event_loop::Mailbox;
use turnpike_lane::sys::simulation::{self, Fault, Lookout};
use turnpike_protocols::{Apply, Command};

use crate::client::{Client, Effect};
use crate::origin::{self, OriginConnection, Origins};
use crate::protocol::protocol_of;
use crate::registrations::Registrations;
use crate::time::Time;
use turnpike_testkit::random::Random;

/// The most checks of the peers in one run: a spinning lane makes more.
const LOOKS_MAX: u64 = 200_000;

/// The time that the lane has to clean up after the last client, in milliseconds: longer than every
/// time-out of the configurations.
const QUIET_MS: u64 = 15_000;

/// The behaviour of the socket layer, in percent of the calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    /// A send takes only a part, and the next one nothing until the peer has read.
    pub(crate) short_sends: u64,
    /// A wait gives a spurious event.
    pub(crate) spurious: u64,
    /// A peer that could act is delayed.
    pub(crate) idling: u64,
}

/// A socket of the lane that is connected to a peer.
#[derive(Debug)]
pub(crate) struct LaneSocket {
    pub(crate) peer: Peer,
    /// The bytes that the lane has sent.
    pub(crate) sent: u64,
    /// The bytes of these that the peer has read.
    read: u64,
    pub(crate) received: u64,
    /// The bytes that the peer had read when a send was short.
    full_at: Option<u64>,
    /// The number of the lane's sends since the peer reset the connection, if it did.
    reset: Option<u32>,
}

/// The peer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Client(usize),
    /// A connection to an origin.
    Upstream(usize),
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Clients follow their scripts.
    Traffic,
    /// All clients have left, and the lane cleans up since then.
    Quiet { since_ms: u64 },
    /// The lane was asked to end.
    Ending,
}

/// The state of a run.
pub(crate) struct World {
    random: Random,
    weather: Weather,
    fault: Option<Fault>,
    pub(crate) fault_hits: u64,
    time: Time,
    pub(crate) clients: Vec<Client>,
    pub(crate) origins: Origins,
    /// The connections that the lane has opened to them.
    pub(crate) upstream: Vec<OriginConnection>,
    gate: PathBuf,
    folder: PathBuf,
    listeners: Rc<Vec<UnixListener>>,
    /// The clients whose connections were not accepted yet.
    queue: VecDeque<usize>,
    pub(crate) sockets: Vec<LaneSocket>,
    by_descriptor: HashMap<RawFd, usize>,
    registered: Registrations,
    lookout: Lookout,
    has_entered: bool,
    /// Whether a peer that could act was delayed.
    has_idled: bool,
    looks: u64,
    stage: Stage,
    /// The reloads to come, with their times.
    reloads: VecDeque<(u64, Apply)>,
    /// The times of the reloads that were ordered.
    pub(crate) reloaded_ms: Vec<u64>,
    mailbox: Arc<Mailbox<Command>>,
    pub(crate) counters: Option<Arc<HttpCounters>>,
    /// The connections that the lane still held when it was asked to end.
    pub(crate) active_at_end: u64,
    pub(crate) trace: Option<Vec<String>>,
}

/// The initial state of a run.
pub(crate) struct Start {
    pub(crate) random: Random,
    pub(crate) weather: Weather,
    pub(crate) fault: Option<Fault>,
    pub(crate) clients: Vec<Client>,
    pub(crate) origins: Origins,
    pub(crate) folder: PathBuf,
    pub(crate) listeners: Rc<Vec<UnixListener>>,
    pub(crate) lookout: Lookout,
    pub(crate) reloads: VecDeque<(u64, Apply)>,
    pub(crate) is_traced: bool,
}

impl World {
    pub(crate) fn new(start: Start, mailbox: Arc<Mailbox<Command>>) -> World {
        World {
            random: start.random,
            weather: start.weather,
            fault: start.fault,
            fault_hits: 0,
            time: Time::new(),
            clients: start.clients,
            origins: start.origins,
            upstream: Vec::new(),
            gate: start.folder.join("gate"),
            folder: start.folder,
            listeners: start.listeners,
            queue: VecDeque::new(),
            sockets: Vec::new(),
            by_descriptor: HashMap::new(),
            registered: Registrations::default(),
            lookout: start.lookout,
            reloads: start.reloads,
            reloaded_ms: Vec::new(),
            has_entered: false,
            has_idled: false,
            looks: 0,
            stage: Stage::Traffic,
            mailbox,
            counters: None,
            active_at_end: 0,
            trace: start.is_traced.then(Vec::new),
        }
    }

    /// The milliseconds since the run's beginning.
    fn now_ms(&mut self) -> u64 {
        self.time.now_ms()
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let now_ms = self.now_ms();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_ms:>7} ms  {}", line()));
        }
    }

    /// Lets every peer act that is due, starting with one that the seed chooses.
    fn peers_act(&mut self) -> bool {
        let mut acted = false;
        self.has_idled = false;
        for token in self.lookout.look().into_iter().flatten() {
            let index = (token / 2) as usize;
            match token % 2 {
                0 => self.clients[index].can_read(),
                _ => self.upstream[index].can_read(),
            }
        }
        let count = self.clients.len();
        let first = self.random.index(count);
        for index in (0..count).map(|index| (first + index) % count) {
            if self.clients[index].ended.is_none() && !self.idles() {
                acted |= self.client_acts(index);
            }
        }
        for index in 0..self.upstream.len() {
            if !self.upstream[index].is_closed && !self.idles() {
                acted |= self.origin_acts(index);
            }
        }
        acted
    }

    fn idles(&mut self) -> bool {
        let idles = self.random.percent(self.weather.idling);
        self.has_idled |= idles;
        idles
    }

    fn client_acts(&mut self, index: usize) -> bool {
        let now_ms = self.now_ms();
        let trace = &mut self.trace;
        let mut note = |what: &dyn Fn() -> String| {
            if let Some(trace) = trace {
                trace.push(format!("{now_ms:>7} ms  client {index} {}", what()));
            }
        };
        let Some(effect) = self.clients[index].act(now_ms, &self.gate, &mut note) else {
            return false;
        };
        match effect {
            Effect::None => {}
            Effect::Connected => {
                self.queue.push_back(index);
                if let Some(socket) = self.clients[index].socket() {
                    // The kernel refuses only if it has no memory.
                    let _ = self.lookout.watch(socket, index as u64 * 2);
                }
            }
            Effect::Read(bytes) => self.peer_read(Peer::Client(index), bytes),
            Effect::Reset => self.peer_reset(Peer::Client(index)),
        }
        true
    }

    fn origin_acts(&mut self, index: usize) -> bool {
        let now_ms = self.now_ms();
        let origin = self.upstream[index].origin;
        let is_older = |other: &OriginConnection| other.is_new() && other.origin == origin;
        let is_next = !self.upstream[..index].iter().any(is_older);
        let connection = &mut self.upstream[index];
        let trace = &mut self.trace;
        let mut note = |what: &dyn Fn() -> String| {
            if let Some(trace) = trace {
                trace.push(format!(
                    "{now_ms:>7} ms  origin {origin}, connection {index} {}",
                    what()
                ));
            }
        };
        if connection.is_new() && is_next {
            return match self.listeners[origin].accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    note(&|| "is accepted".to_owned());
                    connection.accept(stream);
                    if let Some(socket) = connection.socket() {
                        let _ = self.lookout.watch(socket, index as u64 * 2 + 1);
                    }
                    true
                }
                _ => false,
            };
        }
        let Some(effect) = connection.act(now_ms, &mut self.origins, &mut note) else {
            return false;
        };
        match effect {
            origin::Effect::None => {}
            origin::Effect::Read(bytes) => self.peer_read(Peer::Upstream(index), bytes),
            origin::Effect::Reset => self.peer_reset(Peer::Upstream(index)),
        }
        true
    }

    fn peer_read(&mut self, peer: Peer, bytes: usize) {
        if let Some(socket) = self.sockets.iter_mut().find(|socket| socket.peer == peer) {
            socket.read += bytes as u64;
        }
    }

    fn peer_reset(&mut self, peer: Peer) {
        if let Some(socket) = self.sockets.iter_mut().find(|socket| socket.peer == peer) {
            socket.reset = Some(0);
        }
    }

    /// The time of the next action of a peer or the run.
    fn due_ms(&mut self) -> Option<u64> {
        let now_ms = self.now_ms();
        if self.has_idled {
            return Some(now_ms);
        }
        let clients = self.clients.iter();
        let clients = clients.filter_map(|client| client.due_ms(now_ms)).min();
        let upstream = self.upstream.iter();
        let upstream = upstream.filter_map(OriginConnection::due_ms).min();
        let stage = match self.stage {
            Stage::Quiet { since_ms } => Some(since_ms + QUIET_MS),
            Stage::Traffic | Stage::Ending => None,
        };
        let reload = self.reloads.front().map(|(at_ms, _)| *at_ms);
        let reload = reload.filter(|_| self.stage != Stage::Ending);
        let all = [clients, upstream, stage, reload];
        all.into_iter().flatten().min()
    }

    fn go_on(&mut self) {
        let now_ms = self.now_ms();
        let is_due = |(at_ms, _): &mut (u64, Apply)| *at_ms <= now_ms;
        if self.stage != Stage::Ending
            && let Some((_, apply)) = self.reloads.pop_front_if(is_due)
        {
            self.note(|| "a reload is ordered".to_owned());
            self.reloaded_ms.push(now_ms);
            self.mailbox.send(Command::Apply(Box::new(apply)));
        }
        match self.stage {
            Stage::Traffic if self.clients.iter().all(|client| client.ended.is_some()) => {
                self.note(|| "all clients have gone".to_owned());
                self.stage = Stage::Quiet { since_ms: now_ms };
            }
            Stage::Quiet { since_ms } if now_ms >= since_ms + QUIET_MS => {
                self.note(|| "the lane is asked to end".to_owned());
                let counters = self.counters.as_ref();
                self.active_at_end = counters.map_or(0, |counters| counters.active.value());
                self.stage = Stage::Ending;
                self.mailbox.send(Command::Terminate);
            }
            Stage::Traffic | Stage::Quiet { .. } | Stage::Ending => {}
        }
    }

    fn socket(&mut self, descriptor: RawFd) -> Option<&mut LaneSocket> {
        let index = *self.by_descriptor.get(&descriptor)?;
        self.sockets.get_mut(index)
    }

    /// Whether the peer has closed its end.
    fn is_gone(&self, descriptor: RawFd) -> bool {
        let index = self.by_descriptor.get(&descriptor);
        let socket = index.and_then(|index| self.sockets.get(*index));
        socket.is_none_or(|socket| match socket.peer {
            Peer::Client(index) => self.clients[index].ended.is_some(),
            Peer::Upstream(index) => self.upstream[index].is_closed,
        })
    }

    fn name(&self, descriptor: RawFd) -> String {
        let index = self.by_descriptor.get(&descriptor);
        match index.and_then(|index| self.sockets.get(*index)) {
            Some(socket) => match socket.peer {
                Peer::Client(index) => format!("client {index}"),
                Peer::Upstream(index) => format!("connection {index}"),
            },
            None => "a socket of its own".to_owned(),
        }
    }

    fn add_socket(&mut self, descriptor: RawFd, peer: Peer) {
        self.by_descriptor.insert(descriptor, self.sockets.len());
        self.sockets.push(LaneSocket {
            peer,
            sent: 0,
            read: 0,
            received: 0,
            full_at: None,
            reset: None,
        });
    }
}

/// The world for the lane's system calls.
pub(crate) struct Shared(pub(crate) Rc<RefCell<World>>);

impl simulation::World for Shared {
    fn now_ns(&mut self) -> u64 {
        self.0.borrow_mut().time.now_ns()
    }

    fn unix_ms(&mut self) -> u64 {
        self.0.borrow_mut().time.unix_ms()
    }

    fn act(&mut self) -> io::Result<bool> {
        let mut world = self.0.borrow_mut();
        world.looks += 1;
        if world.looks > LOOKS_MAX {
            world.note(|| "the run does not end".to_owned());
            return Err(io::ErrorKind::TimedOut.into());
        }
        let entered = std::mem::take(&mut world.has_entered);
        let acted = world.peers_act();
        world.go_on();
        Ok(entered || acted)
    }

    fn pass_ms(&mut self, most_ms: u64) -> u64 {
        let mut world = self.0.borrow_mut();
        let now_ms = world.now_ms();
        let passed_ms = match world.due_ms() {
            Some(due_ms) => due_ms.saturating_sub(now_ms).min(most_ms),
            None => most_ms,
        };
        world.time.pass_ms(passed_ms);
        passed_ms
    }

    fn pause_ms(&mut self, most_ms: u64) -> u64 {
        let mut world = self.0.borrow_mut();
        let now_ms = world.now_ms();
        match world.due_ms() {
            Some(due_ms) => due_ms.saturating_sub(now_ms).min(most_ms),
            None => most_ms,
        }
    }

    fn spurious(&mut self) -> Option<u64> {
        let mut world = self.0.borrow_mut();
        let percent = world.weather.spurious;
        let World {
            registered, random, ..
        } = &mut *world;
        let (descriptor, token) = registered.choose(random, percent)?;
        let name = world.name(descriptor);
        world.note(|| format!("lane gets a spurious event of {name}"));
        Some(token)
    }

    fn registered(&mut self, descriptor: RawFd, token: Option<u64>) {
        self.0.borrow_mut().registered.set(descriptor, token);
    }

    fn may_send(&mut self, descriptor: RawFd, bytes: usize) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        let mut random = world.random.clone();
        let short_sends = world.weather.short_sends;
        let is_gone = world.is_gone(descriptor);
        let Some(socket) = world.socket(descriptor) else {
            return Ok(bytes);
        };
        if let Some(sends) = &mut socket.reset {
            *sends += 1;
            let kind = match sends {
                1 => io::Error::from_raw_os_error(ECONNRESET),
                _ => io::Error::from_raw_os_error(EPIPE),
            };
            let name = world.name(descriptor);
            world.note(|| format!("lane cannot send to {name}: {kind}"));
            return Err(kind);
        }
        if bytes <= WHOLE_BYTES_MAX {
            return Ok(bytes);
        }
        let is_unread = socket.sent > socket.read && !is_gone;
        let was_full = socket.full_at.take() == Some(socket.read);
        // The peer will read the bytes on their way, and the kernel reports that.
        let allowed = if was_full && is_unread {
            socket.full_at = Some(socket.read);
            None
        } else if random.percent(short_sends) {
            let part = 1 + random.index(bytes);
            socket.full_at = (part < bytes).then_some(socket.read);
            Some(part)
        } else {
            Some(bytes)
        };
        world.random = random;
        if allowed.is_none() {
            let name = world.name(descriptor);
            world.note(|| format!("lane cannot send to {name}: it is full"));
        }
        allowed.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn sent(&mut self, descriptor: RawFd, result: &io::Result<usize>) {
        let mut world = self.0.borrow_mut();
        if let Ok(bytes) = result
            && let Some(socket) = world.socket(descriptor)
        {
            socket.sent += *bytes as u64;
        }
        if world.trace.is_some() {
            let name = world.name(descriptor);
            let what = match result {
                Ok(bytes) => format!("lane sends {bytes} bytes to {name}"),
                Err(error) => format!("lane cannot send to {name}: {error}"),
            };
            world.note(|| what);
        }
    }

    fn received(
        &mut self,
        descriptor: RawFd,
        result: io::Result<usize>,
        peeked: bool,
    ) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        let mut result = result;
        if let Some(socket) = world.socket(descriptor) {
            match &mut result {
                // The bytes before the reset are read first, as with TCP.
                end @ (Ok(0) | Err(_)) if socket.reset.is_some() => {
                    *end = Err(io::Error::from_raw_os_error(ECONNRESET));
                }
                Ok(bytes) if !peeked => socket.received += *bytes as u64,
                Ok(_) | Err(_) => {}
            }
        }
        if world.trace.is_some() {
            let name = world.name(descriptor);
            let verb = if peeked { "peeks at" } else { "receives" };
            let what = match &result {
                Ok(0) => format!("lane {verb} the end of {name}"),
                Ok(bytes) => format!("lane {verb} {bytes} bytes of {name}"),
                Err(error) => format!("lane {verb} nothing of {name}: {error}"),
            };
            world.note(|| what);
        }
        result
    }

    fn accepted(&mut self, descriptor: RawFd) {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        if let Some(client) = world.queue.pop_front() {
            world.add_socket(descriptor, Peer::Client(client));
            world.note(|| format!("lane accepts client {client}"));
        }
    }

    fn may_connect(&mut self, _: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().has_entered = true;
        Ok(())
    }

    fn connected(&mut self, descriptor: RawFd, path: &[u8]) {
        let mut world = self.0.borrow_mut();
        let named = |number: &usize| {
            let own = world.folder.join(format!("origin{number}"));
            own.as_os_str().as_encoded_bytes() == path
        };
        let Some(origin) = (0..world.listeners.len()).find(named) else {
            return;
        };
        let connection = world.upstream.len();
        world
            .upstream
            .push(OriginConnection::new(origin, protocol_of(origin)));
        world.add_socket(descriptor, Peer::Upstream(connection));
        world.note(|| format!("lane opens connection {connection} to origin {origin}"));
    }

    fn is_faulty(&mut self, fault: Fault) -> bool {
        let mut world = self.0.borrow_mut();
        let percent = match fault {
            // It shows only where a socket and a stream meet.
            Fault::SenderNotWoken => 100,
            _ => FAULTY_PERCENT,
        };
        let strikes = world.fault == Some(fault) && world.random.percent(percent);
        if strikes {
            world.fault_hits += 1;
            world.note(|| format!("injected fault: {fault:?}"));
        }
        strikes
    }
}

/// A length that a socket always takes at once: `100 Continue` is sent in one piece or not at all,
/// and in the latter case the connection is closed, as in nginx.
const WHOLE_BYTES_MAX: usize = 32;

/// The frequency of an injected fault: rare, like a real fault.
const FAULTY_PERCENT: u64 = 2;

/// errno(3) on Linux.
const ECONNRESET: i32 = 104;
const EPIPE: i32 = 32;
