//! Connections of QUIC over the lanes of a process, through a network that loses datagrams, repeats
//! and reorders them, and gives clients other addresses. Whichever lane reads a datagram, every
//! body comes whole.
//!
//! The gate is a socket of this machine; what is between it and the clients is simulated, as is the
//! time: a datagram is on its way for some milliseconds, and the seed decides which lane reads it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use turnpike_lane::event_loop::LaneGate;
use turnpike_lane::gate::AcceptMode;
use turnpike_lane::sys::socket::{self, Kind};
use turnpike_protocols::Plans;
use turnpike_testkit::random::Random;

use crate::content;
use crate::flows::{Clock, Served};
use crate::quic_client::{QuicClient, SEED_BYTES};

const CLIENTS: usize = 3;

/// Addresses that a client has, one after the other.
const ADDRESSES: usize = 3;

/// The most requests of a client.
const REQUESTS_MAX: usize = 4;

/// A part of a body, in bytes, and how many parts there may be: lanes that take their turns one by
/// one answer at once or not at all, so a body is smaller than what a connection writes ahead.
const PART_BYTES: usize = 3_500;
const PARTS: [usize; 3] = [0, 1, 3];

/// Milliseconds that a datagram is on its way; one that is late, much longer.
const ON_ITS_WAY_MS: u64 = 20;
const LATE_MS: u64 = 150;

/// The longest step of time, in milliseconds: a lane's own deadlines are not known here.
const STEP_MS_MAX: u64 = 10;

/// When streams that are not whole count as lost, in milliseconds. The keys of a handshake are not
/// the seed's, so what the network does to a run is not the same each time: nobody gives up before,
/// and ten packets lost one after the other, each sent again after twice the time, are made up for.
const END_MS: u64 = 1_800_000;

/// The largest datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// A run before it begins.
pub(crate) struct QuicScenario {
    lanes: usize,
    /// Of a hundred datagrams, those that are lost, come twice, or come late.
    lost_percent: u64,
    repeated_percent: u64,
    late_percent: u64,
    /// Of a hundred turns of a client, those in which it gets another address.
    moves_percent: u64,
    /// What each client asks for: the numbers of parts.
    wanted: Vec<Vec<usize>>,
}

impl QuicScenario {
    pub(crate) fn new(random: &mut Random) -> QuicScenario {
        QuicScenario {
            lanes: 1 + random.index(3),
            lost_percent: random.pick(&[0, 0, 1, 5, 15]),
            repeated_percent: random.pick(&[0, 0, 10]),
            late_percent: random.pick(&[0, 10, 30]),
            moves_percent: random.pick(&[0, 0, 2, 10]),
            wanted: (0..1 + random.index(CLIENTS))
                .map(|_| {
                    let count = 1 + random.index(REQUESTS_MAX);
                    (0..count).map(|_| random.pick(&PARTS)).collect()
                })
                .collect(),
        }
    }

    /// The text of the block. `folder` has the certificate.
    pub(crate) fn configuration(gate: SocketAddr, folder: &Path) -> String {
        let folder = folder.display();
        let part = String::from_utf8_lossy(&part()).into_owned();
        let locations = PARTS.map(|count| {
            let parts = "$part".repeat(count);
            format!("location = /{count} {{ return 200 \"{parts}\"; }}\n")
        });
        let locations = locations.concat();
        format!(
            "http {{ access_log off; client_header_timeout {END_MS}ms; \
             keepalive_timeout {END_MS}ms; server {{ listen {gate} quic; \
             ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem; \
             set $part \"{part}\"; {locations} }} }}\n"
        )
    }
}

fn part() -> Vec<u8> {
    content::body(1, PART_BYTES)
}

/// The sockets of a run.
pub(crate) struct QuicSockets {
    gate: Arc<OwnedFd>,
    pub(crate) gate_address: SocketAddr,
    /// Of each client, one for each of its addresses.
    clients: Vec<Vec<UdpSocket>>,
}

impl QuicSockets {
    /// Sockets of this machine.
    ///
    /// # Errors
    /// Those of making them.
    pub(crate) fn new() -> io::Result<QuicSockets> {
        let bound = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        let gate = bound()?;
        let gate_address = gate.local_addr()?;
        let address = |_| {
            let socket = bound()?;
            socket.connect(gate_address)?;
            Ok(socket)
        };
        let client = |_| (0..ADDRESSES).map(address).collect();
        Ok(QuicSockets {
            gate_address,
            clients: (0..CLIENTS).map(client).collect::<io::Result<_>>()?,
            gate: Arc::new(gate.into()),
        })
    }

    /// Takes what a run has left behind.
    fn clear(&self) {
        let mut buffer = [0; 64];
        let clients = self.clients.iter().flatten();
        let clients = clients.map(|client| client.as_fd());
        for socket in clients.chain([self.gate.as_fd()]) {
            while socket::receive(socket, &mut buffer).is_ok() {}
        }
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy)]
enum To {
    /// The gate, from that address of a client.
    Gate {
        client: usize,
        address: usize,
    },
    Client(usize),
}

/// The datagrams that are on their way, by when they come and by their numbers.
struct Network {
    random: Random,
    on_their_way: BTreeMap<(u64, u64), (To, Vec<u8>)>,
    number: u64,
}

impl Network {
    fn send(&mut self, scenario: &QuicScenario, now_ms: u64, to: To, bytes: &[u8]) {
        if self.random.percent(scenario.lost_percent) {
            return;
        }
        let copies = 1 + usize::from(self.random.percent(scenario.repeated_percent));
        for _ in 0..copies {
            let mut ms = 1 + self.random.below(ON_ITS_WAY_MS);
            if self.random.percent(scenario.late_percent) {
                ms += self.random.below(LATE_MS);
            }
            self.number += 1;
            let key = (now_ms + ms, self.number);
            self.on_their_way.insert(key, (to, bytes.to_vec()));
        }
    }

    /// The next one that has come.
    fn next(&mut self, now_ms: u64) -> Option<(To, Vec<u8>)> {
        let first = self.on_their_way.first_entry()?;
        (first.key().0 <= now_ms).then(|| first.remove())
    }
}

/// A run.
pub(crate) struct Quic<'a> {
    sockets: &'a QuicSockets,
    scenario: &'a QuicScenario,
    clock: Clock,
    served: Served,
    network: Network,
    begun: Instant,
    clients: Vec<(QuicClient, usize)>,
    pub(crate) problems: Vec<String>,
    pub(crate) answered: u64,
}

impl<'a> Quic<'a> {
    /// A run whose clients have sent nothing yet.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn new(
        sockets: &'a QuicSockets,
        scenario: &'a QuicScenario,
        plans: &Plans,
        clock: Clock,
        mut random: Random,
    ) -> io::Result<Quic<'a>> {
        sockets.clear();
        let mut served = Served::start(plans, scenario.lanes)?;
        let number = plans.gate_number(0);
        let gate = number.map(|number| LaneGate {
            number,
            socket: Arc::clone(&sockets.gate),
            mode: AcceptMode::Shared,
            kind: Kind::Datagram,
        });
        served.apply(plans, &gate.into_iter().collect::<Vec<_>>());
        served.turns(0)?;
        let begun = Instant::now();
        let remote = sockets.gate_address;
        let part = part();
        let client = |wanted: &Vec<usize>| {
            let mut seed = [0; SEED_BYTES];
            seed.fill_with(|| random.below(256) as u8);
            let wanted = wanted.iter().map(|count| (*count, part.repeat(*count)));
            let client = QuicClient::new(seed, remote, begun, wanted.collect());
            let client = client.ok_or_else(|| io::Error::other("no client of QUIC"));
            client.map(|client| (client, 0))
        };
        let clients = scenario.wanted.iter().map(client);
        let clients = clients.collect::<io::Result<_>>()?;
        Ok(Quic {
            sockets,
            scenario,
            clock,
            served,
            network: Network {
                random,
                on_their_way: BTreeMap::new(),
                number: 0,
            },
            begun,
            clients,
            problems: Vec::new(),
            answered: 0,
        })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        while self.clock.now_ms() < END_MS {
            self.step()?;
            let mut clients = self.clients.iter();
            if clients.all(|(client, _)| client.is_done() || client.problem.is_some()) {
                break;
            }
        }
        for (number, (client, _)) in self.clients.iter_mut().enumerate() {
            if !client.is_done() {
                let why = client.problem.take().unwrap_or_default();
                let missing = client.missing();
                let problem = format!(
                    "client {number} of QUIC: bodies of {missing:?} bytes are missing {why}"
                );
                self.problems.push(problem);
            }
            self.answered += client.answered();
            client.leave(self.begun);
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.begun + Duration::from_millis(self.clock.now_ms())
    }

    /// Lets everybody act, and time pass until something comes or is due.
    fn step(&mut self) -> io::Result<()> {
        let (now_ms, now) = (self.clock.now_ms(), self.now());
        while let Some((to, bytes)) = self.network.next(now_ms) {
            match to {
                To::Client(client) => self.clients[client].0.receive(&bytes, now),
                To::Gate { client, address } => {
                    self.sockets.clients[client][address].send(&bytes)?;
                    // Who reads it is the seed's choice; who has the connection has the next turn.
                    let first = self.network.random.index(self.scenario.lanes);
                    self.served.turns(first)?;
                }
            }
        }
        let first = self.network.random.index(self.scenario.lanes);
        self.served.turns(first)?;
        self.collect(now_ms);
        for (number, (client, address)) in self.clients.iter_mut().enumerate() {
            client.run(now);
            let may_move = client.is_confirmed && !client.is_done();
            if may_move && self.network.random.percent(self.scenario.moves_percent) {
                *address = (*address + 1) % ADDRESSES;
            }
            while let Some(bytes) = client.next_datagram(now) {
                let to = To::Gate {
                    client: number,
                    address: *address,
                };
                self.network.send(self.scenario, now_ms, to, &bytes);
            }
        }
        let come = self.network.on_their_way.keys().next();
        let come_ms = come.map(|(ms, _)| *ms);
        let due = self
            .clients
            .iter_mut()
            .filter_map(|(client, _)| client.due());
        let due_ms = due.min().map(|due| {
            let after = due.saturating_duration_since(self.begun);
            after.as_nanos().div_ceil(1_000_000) as u64
        });
        let next_ms = come_ms.into_iter().chain(due_ms).min();
        let step_ms = next_ms.map_or(STEP_MS_MAX, |next_ms| next_ms.saturating_sub(now_ms));
        self.clock.pass_ms(step_ms.clamp(1, STEP_MS_MAX));
        Ok(())
    }

    /// Takes what the lanes have sent.
    fn collect(&mut self, now_ms: u64) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        for (client, sockets) in self.sockets.clients.iter().enumerate() {
            for socket in sockets {
                while let Ok(count) = socket.recv(&mut buffer) {
                    let to = To::Client(client);
                    self.network
                        .send(self.scenario, now_ms, to, &buffer[..count]);
                }
            }
        }
    }
}
