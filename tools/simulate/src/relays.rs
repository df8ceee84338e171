//! Relays of `stream`: clients and servers that send each other bytes through a lane, in steps or
//! by futures. What one end has sent is what the other one gets, and an end is passed on.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{LaneGate, Mailbox};
use turnpike_lane::gate::AcceptMode;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_lane::sys::socket::{self, Kind};
use turnpike_protocols::{Command, Plans};
use turnpike_testkit::random::Random;

use crate::content::body;
use crate::registrations::Registrations;
use crate::relay_end::{Act, RelayEnd, Role};
use crate::time::Time;
use crate::world::Weather;

/// Longer than every time-out of the configurations, in milliseconds.
const QUIET_MS: u64 = 15_000;

/// The most looks at the peers in one run: a spinning lane makes more.
const LOOKS_MAX: u64 = 100_000;

/// A length that a socket always takes at once.
const WHOLE_BYTES_MAX: usize = 32;

/// The file names of the gates: for relays in steps, and for those that are futures, since the
/// first bytes are looked at.
pub(crate) const GATES: [&str; 2] = ["relay", "relay_driven"];

/// The file name of the servers' socket.
pub(crate) const SERVERS: &str = "relayed";

/// The listening sockets of runs.
pub(crate) struct RelaySockets {
    gates: Vec<Arc<OwnedFd>>,
    servers: Rc<UnixListener>,
}

impl RelaySockets {
    /// Sockets in that folder.
    ///
    /// # Errors
    /// Those of making them.
    pub(crate) fn new(folder: &Path) -> io::Result<RelaySockets> {
        let bound = |name: &str| {
            let listener = UnixListener::bind(folder.join(name))?;
            listener.set_nonblocking(true)?;
            Ok::<_, io::Error>(listener)
        };
        let gates = GATES.iter().map(|name| Ok(Arc::new(bound(name)?.into())));
        Ok(RelaySockets {
            gates: gates.collect::<io::Result<_>>()?,
            servers: Rc::new(bound(SERVERS)?),
        })
    }

    /// The gates of a lane that serves by these plans.
    pub(crate) fn lane_gates(&self, plans: &Plans) -> Vec<LaneGate> {
        let numbered = self.gates.iter().enumerate();
        let gates = numbered.filter_map(|(place, socket)| {
            Some(LaneGate {
                number: plans.gate_number(place)?,
                socket: Arc::clone(socket),
                mode: AcceptMode::Shared,
                kind: Kind::Stream,
            })
        });
        gates.collect()
    }

    /// Where servers accept.
    pub(crate) fn servers(&self) -> Rc<UnixListener> {
        Rc::clone(&self.servers)
    }

    /// Removes the leftovers of a run from the queues.
    pub(crate) fn clear_queues(&self) {
        while self.servers.accept().is_ok() {}
        for gate in &self.gates {
            while socket::accept(gate.as_fd()).is_ok() {}
        }
    }
}

/// The settings of a run.
pub(crate) struct RelaySettings {
    timeout_ms: u64,
    buffer_bytes: usize,
    passes_half_ends: bool,
}

/// A run before it begins.
pub(crate) struct RelayScenario {
    pub(crate) settings: RelaySettings,
    weather: Weather,
    /// Clients, each with the number of its gate.
    clients: Vec<(usize, RelayEnd)>,
    /// The servers of these, in the same order.
    servers: Vec<RelayEnd>,
}

impl RelaySettings {
    /// The text of the block.
    pub(crate) fn configuration(&self, folder: &str) -> String {
        let half = if self.passes_half_ends { "on" } else { "off" };
        let mut text = format!(
            "stream {{ log_format simulated '$status $bytes_received $bytes_sent';\n\
             access_log {folder}/sessions simulated;\n\
             proxy_timeout {}ms; proxy_connect_timeout 1s; preread_timeout 3s;\n\
             proxy_buffer_size {}; proxy_half_close {half};\n",
            self.timeout_ms, self.buffer_bytes,
        );
        for (gate, preread) in GATES.iter().zip(["off", "on"]) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "server {{ listen unix:{folder}/{gate}; ssl_preread {preread}; \
                 proxy_pass unix:{folder}/{SERVERS}; }}"
            );
        }
        text.push_str("}\n");
        text
    }
}

impl RelayScenario {
    pub(crate) fn new(random: &mut Random) -> RelayScenario {
        let settings = RelaySettings {
            timeout_ms: random.pick(&[3_000, 5_000]),
            buffer_bytes: random.pick(&[512, 4_096, 16_384]),
            passes_half_ends: random.percent(50),
        };
        let count = 1 + random.index(3);
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for number in 0..count as u64 {
            let lengths = &[1, 20, 3_000, 40_000, 300_000];
            // The server knows its client by the first byte.
            let mut sent = vec![number as u8];
            sent.extend(body(number * 2, random.pick(lengths)));
            let answered = body(number * 2 + 1, random.pick(lengths));
            let halves = settings.passes_half_ends;
            let client = RelayEnd::new(random, Role::Client { halves }, sent, answered.len());
            let server = RelayEnd::new(random, Role::Server { halves }, answered, 0);
            clients.push((random.index(GATES.len()), client));
            servers.push(server);
        }
        RelayScenario {
            settings,
            weather: Weather {
                short_sends: random.pick(&[0, 10, 50]),
                spurious: random.pick(&[0, 5, 20]),
                idling: random.pick(&[0, 30]),
            },
            clients,
            servers,
        }
    }
}

/// The state of a run.
pub(crate) struct RelayWorld {
    random: Random,
    weather: Weather,
    fault: Option<Fault>,
    pub(crate) fault_hits: u64,
    time: Time,
    gates: [PathBuf; 2],
    listener: Rc<UnixListener>,
    clients: Vec<(usize, RelayEnd)>,
    servers: Vec<RelayEnd>,
    /// Connections whose client is not known yet.
    strangers: Vec<RelayEnd>,
    registered: Registrations,
    has_entered: bool,
    has_idled: bool,
    looks: u64,
    quiet_since_ms: Option<u64>,
    has_ended: bool,
    mailbox: Arc<Mailbox<Command>>,
    pub(crate) accepted: u64,
    pub(crate) trace: Option<Vec<String>>,
}

impl RelayWorld {
    pub(crate) fn new(
        scenario: RelayScenario,
        (random, fault): (Random, Option<Fault>),
        folder: &Path,
        listener: Rc<UnixListener>,
        mailbox: Arc<Mailbox<Command>>,
    ) -> RelayWorld {
        RelayWorld {
            random,
            weather: scenario.weather,
            fault,
            fault_hits: 0,
            time: Time::new(),
            gates: GATES.map(|name| folder.join(name)),
            listener,
            clients: scenario.clients,
            servers: scenario.servers,
            strangers: Vec::new(),
            registered: Registrations::default(),
            has_entered: false,
            has_idled: false,
            looks: 0,
            quiet_since_ms: None,
            has_ended: false,
            mailbox,
            accepted: 0,
            trace: None,
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let now_ms = self.time.now_ms();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_ms:>7} ms  {}", line()));
        }
    }

    fn idles(&mut self) -> bool {
        let idles = self.random.percent(self.weather.idling);
        self.has_idled |= idles;
        idles
    }

    fn peers_act(&mut self) -> bool {
        self.has_idled = false;
        let now_ms = self.time.now_ms();
        let mut acted = self.accept();
        for index in 0..self.clients.len() {
            if self.idles() {
                continue;
            }
            let (gate, client) = &mut self.clients[index];
            let act = client.connect_or_act(now_ms, &self.gates[*gate]);
            acted |= self.acted(act, &format!("client {index}"));
        }
        for index in 0..self.strangers.len() {
            let act = self.strangers[index].act(now_ms);
            acted |= act.is_some();
        }
        acted |= self.introduce();
        for index in 0..self.servers.len() {
            if !self.idles() {
                let act = self.servers[index].act(now_ms);
                acted |= self.acted(act, &format!("server {index}"));
            }
        }
        acted
    }

    fn acted(&mut self, act: Option<Act>, name: &str) -> bool {
        let Some(act) = act else {
            return false;
        };
        self.note(|| format!("{name} {act}"));
        true
    }

    /// Accepts connections of the lane, whose clients show by their first byte.
    fn accept(&mut self) -> bool {
        let mut acted = false;
        while let Ok((stream, _)) = self.listener.accept() {
            let mut stranger = RelayEnd::stranger();
            stranger.take_stream(stream, self.time.now_ms());
            self.strangers.push(stranger);
            acted = true;
        }
        acted
    }

    /// Gives connections whose first byte has come to the servers of their clients.
    fn introduce(&mut self) -> bool {
        let now_ms = self.time.now_ms();
        let mut acted = false;
        let mut index = 0;
        while index < self.strangers.len() {
            let first = self.strangers[index].first_byte();
            let server = first.and_then(|number| self.servers.get_mut(usize::from(number)));
            match server {
                Some(server) => {
                    server.take_over(self.strangers.remove(index), now_ms);
                    acted = true;
                }
                None => index += 1,
            }
        }
        self.strangers.retain(|stranger| !stranger.has_ended());
        acted
    }

    fn due_ms(&mut self) -> Option<u64> {
        let now_ms = self.time.now_ms();
        if self.has_idled {
            return Some(now_ms);
        }
        let clients = self.clients.iter().map(|(_, client)| client);
        let all = clients.chain(&self.servers).chain(&self.strangers);
        let ends = all.filter_map(|end| end.due_ms(now_ms));
        let quiet = self.quiet_since_ms.map(|since_ms| since_ms + QUIET_MS);
        ends.chain(quiet).min()
    }

    fn go_on(&mut self) {
        let now_ms = self.time.now_ms();
        let have_ended = self.clients.iter().all(|(_, client)| client.has_ended());
        match self.quiet_since_ms {
            None if have_ended => {
                self.note(|| "all clients have gone".to_owned());
                self.quiet_since_ms = Some(now_ms);
            }
            Some(since_ms) if now_ms >= since_ms + QUIET_MS && !self.has_ended => {
                self.note(|| "the lane is asked to end".to_owned());
                self.has_ended = true;
                self.mailbox.send(Command::Terminate);
            }
            _ => {}
        }
    }

    /// What is wrong at the end.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, ((gate, client), server)) in self.clients.iter().zip(&self.servers).enumerate()
        {
            let gate = GATES[*gate];
            for problem in RelayEnd::judge(client, server) {
                problems.push(format!("{gate}, client {index}: {problem}"));
            }
        }
        problems
    }
}

/// The world for the lane's system calls.
pub(crate) struct Shared(pub(crate) Rc<RefCell<RelayWorld>>);

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
            return Err(io::ErrorKind::TimedOut.into());
        }
        let entered = std::mem::take(&mut world.has_entered);
        let acted = world.peers_act();
        world.go_on();
        Ok(entered || acted)
    }

    fn pass_ms(&mut self, most_ms: u64) -> u64 {
        let passed_ms = self.pause_ms(most_ms);
        self.0.borrow_mut().time.pass_ms(passed_ms);
        passed_ms
    }

    fn pause_ms(&mut self, most_ms: u64) -> u64 {
        let mut world = self.0.borrow_mut();
        let now_ms = world.time.now_ms();
        let due_ms = world.due_ms();
        due_ms.map_or(most_ms, |due_ms| due_ms.saturating_sub(now_ms).min(most_ms))
    }

    fn spurious(&mut self) -> Option<u64> {
        let mut world = self.0.borrow_mut();
        let percent = world.weather.spurious;
        let RelayWorld {
            registered, random, ..
        } = &mut *world;
        let (_, token) = registered.choose(random, percent)?;
        world.note(|| "lane gets a spurious event".to_owned());
        Some(token)
    }

    fn registered(&mut self, descriptor: RawFd, token: Option<u64>) {
        self.0.borrow_mut().registered.set(descriptor, token);
    }

    fn may_send(&mut self, _: RawFd, bytes: usize) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        let percent = world.weather.short_sends;
        if bytes <= WHOLE_BYTES_MAX || !world.random.percent(percent) {
            return Ok(bytes);
        }
        // The peer will read these, and the kernel reports that.
        Ok(1 + world.random.index(bytes))
    }

    fn sent(&mut self, _: RawFd, result: &io::Result<usize>) {
        let mut world = self.0.borrow_mut();
        world.note(|| format!("lane sends {result:?}"));
    }

    fn received(&mut self, _: RawFd, result: io::Result<usize>, _: bool) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        world.note(|| format!("lane receives {result:?}"));
        result
    }

    fn accepted(&mut self, _: RawFd) {
        let mut world = self.0.borrow_mut();
        world.has_entered = true;
        world.accepted += 1;
    }

    fn may_connect(&mut self, _: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().has_entered = true;
        Ok(())
    }

    fn connected(&mut self, _: RawFd, _: &[u8]) {}

    fn is_faulty(&mut self, fault: Fault) -> bool {
        let mut world = self.0.borrow_mut();
        let strikes = world.fault == Some(fault) && world.random.percent(FAULTY_PERCENT);
        if strikes {
            world.fault_hits += 1;
            world.note(|| format!("injected fault: {fault:?}"));
        }
        strikes
    }
}

/// The frequency of an injected fault.
const FAULTY_PERCENT: u64 = 20;
