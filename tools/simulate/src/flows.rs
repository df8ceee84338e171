//! Flows of UDP over the lanes of a process, and through a change of it. Whichever lane reads a
//! datagram, it gets to the server once, by the socket of its flow, and the answer to the client;
//! in their order, while one process has the flow.
//!
//! Lanes take their turns one by one, and each datagram is awaited before the next one is sent: the
//! seed decides who reads it. Only the links between processes have threads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::time::{Duration, Instant};

use turnpike_lane::event_loop::{AcceptSettings, EventLoop, LaneGate, Mailbox};
use turnpike_lane::gate::AcceptMode;
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_lane::sys::socket::{self, Kind};
use turnpike_protocols::{Apply, Command, LaneHandler, Plans, Process, Successors};
use turnpike_testkit::random::Random;

use crate::time::Time;

/// A flow ends when nothing was sent for so long, in milliseconds.
const TIMEOUT_MS: u64 = 5_000;

/// The end of a flow may be noticed later by this much: the wheel's slot, and a tick.
const LATE_MS: u64 = 400;

/// The longest real wait for a datagram, which the machine or the thread of a link passes on.
const PATIENCE: Duration = Duration::from_secs(5);

const CLIENTS: usize = 4;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A client sends datagrams, which that lane of the process that reads may read first.
    Ask {
        client: usize,
        lane: usize,
        datagrams: usize,
    },
    Pass {
        ms: u64,
    },
    /// Another process takes the place of this one.
    Succeed,
}

/// A run before it begins.
pub(crate) struct FlowScenario {
    lanes: usize,
    steps: Vec<Step>,
}

impl FlowScenario {
    pub(crate) fn new(random: &mut Random) -> FlowScenario {
        let lanes = 1 + random.index(3);
        let succeeds_at = random.percent(25).then(|| random.index(20));
        let step = |number| {
            if succeeds_at == Some(number) {
                return Step::Succeed;
            }
            match random.below(10) {
                0 => Step::Pass {
                    ms: TIMEOUT_MS + 2 * LATE_MS,
                },
                1 | 2 => Step::Pass {
                    ms: random.pick(&[1, 150, 2_000]),
                },
                _ => Step::Ask {
                    client: random.index(CLIENTS),
                    lane: random.index(lanes),
                    datagrams: random.pick(&[1, 1, 1, 5]),
                },
            }
        };
        FlowScenario {
            lanes,
            steps: (0..25).map(step).collect(),
        }
    }

    /// The text of the block.
    pub(crate) fn configuration(gate: SocketAddr, server: SocketAddr) -> String {
        format!(
            "stream {{ server {{ listen {gate} udp; proxy_pass {server}; \
             proxy_timeout {TIMEOUT_MS}ms; }} }}\n"
        )
    }
}

/// The sockets of a run.
pub(crate) struct FlowSockets {
    gate: Arc<OwnedFd>,
    pub(crate) gate_address: SocketAddr,
    server: UdpSocket,
    pub(crate) server_address: SocketAddr,
    clients: Vec<UdpSocket>,
}

impl FlowSockets {
    /// Sockets of this machine.
    ///
    /// # Errors
    /// Those of making them.
    pub(crate) fn new() -> io::Result<FlowSockets> {
        let bound = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        let (gate, server) = (bound()?, bound()?);
        let gate_address = gate.local_addr()?;
        let client = |_| {
            let client = bound()?;
            client.connect(gate_address)?;
            Ok(client)
        };
        Ok(FlowSockets {
            gate_address,
            server_address: server.local_addr()?,
            clients: (0..CLIENTS).map(client).collect::<io::Result<_>>()?,
            gate: Arc::new(gate.into()),
            server,
        })
    }

    /// Takes what a run that has failed left behind.
    fn clear(&self) {
        let mut buffer = [0; 64];
        let clients = self.clients.iter().map(AsFd::as_fd);
        for socket in clients.chain([self.gate.as_fd(), self.server.as_fd()]) {
            while socket::receive(socket, &mut buffer).is_ok() {}
        }
    }
}

/// A process with its lanes.
pub(crate) struct Served {
    process: Process,
    lanes: Vec<(LaneHandler, EventLoop, Arc<Mailbox<Command>>)>,
}

impl Served {
    /// A process whose lanes read nothing yet.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn start(plans: &Plans, lanes: usize) -> io::Result<Served> {
        let process = Process::default();
        let lane = |number| {
            let mailbox = Arc::new(Mailbox::new()?);
            let apply = orders(plans, Vec::new());
            let (handler, event_loop) = LaneHandler::begin(number, &process, &mailbox, apply)?;
            Ok((handler, event_loop, mailbox))
        };
        let lanes = (0..lanes).map(lane).collect::<io::Result<_>>()?;
        Ok(Served { process, lanes })
    }

    /// Has the lanes read these gates, from their next turn on.
    pub(crate) fn apply(&self, plans: &Plans, gates: &[LaneGate]) {
        for (.., mailbox) in &self.lanes {
            let orders = orders(plans, gates.to_vec());
            mailbox.send(Command::Apply(Box::new(orders)));
        }
    }

    /// Lets every lane take a turn, beginning with that one.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn turns(&mut self, first: usize) -> io::Result<()> {
        let count = self.lanes.len();
        for place in (0..count).map(|place| (first + place) % count) {
            let (handler, event_loop, _) = &mut self.lanes[place];
            event_loop.turn(handler, 0)?;
        }
        Ok(())
    }
}

fn orders(plans: &Plans, gates: Vec<LaneGate>) -> Apply {
    Apply {
        plans: plans.clone(),
        gates,
        accept: AcceptSettings::default(),
        heartbeat: None,
        cpus: None,
        // Nobody waits for it.
        done: sync_channel(1).0,
    }
}

/// A run.
pub(crate) struct Flows<'a> {
    sockets: &'a FlowSockets,
    plans: &'a Plans,
    clock: Clock,
    /// The processes, the one that reads the gate last.
    served: Vec<Served>,
    /// Of each client: the address that the server saw last, and when.
    seen: BTreeMap<usize, (SocketAddr, u64)>,
    number: u64,
    pub(crate) problems: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) answered: u64,
}

impl<'a> Flows<'a> {
    pub(crate) fn new(sockets: &'a FlowSockets, plans: &'a Plans, clock: Clock) -> Flows<'a> {
        Flows {
            sockets,
            plans,
            clock,
            served: Vec::new(),
            seen: BTreeMap::new(),
            number: 0,
            problems: Vec::new(),
            trace: Vec::new(),
            answered: 0,
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn run(&mut self, scenario: &FlowScenario) -> io::Result<()> {
        self.sockets.clear();
        let first = Served::start(self.plans, scenario.lanes)?;
        self.served.push(first);
        self.serve()?;
        for step in &scenario.steps {
            // What follows a problem says nothing more, and a wait for nothing is long.
            if !self.problems.is_empty() {
                return Ok(());
            }
            let now_ms = self.clock.now_ms();
            self.trace.push(format!("{now_ms:>7} ms  {step:?}"));
            match *step {
                Step::Ask {
                    client,
                    lane,
                    datagrams,
                } => self.ask(client, lane, datagrams)?,
                Step::Pass { ms } => self.pass(ms)?,
                Step::Succeed => self.succeed(scenario.lanes)?,
            }
        }
        self.end()
    }

    /// Has the lanes of the last process read the gate.
    fn serve(&mut self) -> io::Result<()> {
        let number = self.plans.gate_number(0);
        let gate = number.map(|number| LaneGate {
            number,
            socket: Arc::clone(&self.sockets.gate),
            mode: AcceptMode::Shared,
            kind: Kind::Datagram,
        });
        let gates: Vec<LaneGate> = gate.into_iter().collect();
        if let Some(served) = self.served.last() {
            served.apply(self.plans, &gates);
        }
        self.turns(0)
    }

    /// Lets every lane take a turn, beginning with that one of the process that reads.
    fn turns(&mut self, first: usize) -> io::Result<()> {
        let mut served = self.served.iter_mut().rev();
        served.try_for_each(|served| served.turns(first))
    }

    fn ask(&mut self, client: usize, lane: usize, datagrams: usize) -> io::Result<()> {
        let mut wanted = VecDeque::new();
        for _ in 0..datagrams {
            self.number += 1;
            let text = format!("{client} {}", self.number);
            self.sockets.clients[client].send(text.as_bytes())?;
            wanted.push_back(text);
        }
        while !wanted.is_empty() {
            let Some((got, peer)) =
                self.await_datagram(lane, |sockets, buffer| sockets.server.recv_from(buffer))?
            else {
                self.problems
                    .push(format!("{wanted:?} did not get to the server"));
                return Ok(());
            };
            // Of a flow that has ended in another process, one may be overtaken on its way back.
            let may_overtake = self.served.len() > 1;
            match wanted.iter().position(|text| *text == got) {
                Some(place) if place == 0 || may_overtake => {
                    wanted.remove(place);
                }
                _ => {
                    let problem = format!("the server got \"{got}\", not {wanted:?}");
                    self.problems.push(problem);
                    return Ok(());
                }
            }
            self.note_peer(client, peer);
            if !self.answer(&got, client, lane, peer)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The server answers a datagram; `false`: the answer does not come.
    fn answer(
        &mut self,
        text: &str,
        client: usize,
        lane: usize,
        peer: SocketAddr,
    ) -> io::Result<bool> {
        let answer = format!("to {text}");
        self.sockets.server.send_to(answer.as_bytes(), peer)?;
        let got = self.await_datagram(lane, |sockets, buffer| {
            let count = sockets.clients[client].recv(buffer)?;
            Ok((count, peer))
        })?;
        let has_come = got.as_ref().is_some_and(|(got, _)| *got == answer);
        if has_come {
            self.answered += 1;
        } else {
            let problem = format!("the answer to \"{text}\" was {got:?}");
            self.problems.push(problem);
        }
        Ok(has_come)
    }

    /// A flow stays with its session as long as that lasts.
    fn note_peer(&mut self, client: usize, peer: SocketAddr) {
        let now_ms = self.clock.now_ms();
        if let Some((before, at_ms)) = self.seen.insert(client, (peer, now_ms))
            && before != peer
            && now_ms < at_ms + TIMEOUT_MS
        {
            self.problems
                .push(format!("the flow of client {client} was begun anew"));
        }
    }

    fn await_datagram(
        &mut self,
        lane: usize,
        receive: impl Fn(&FlowSockets, &mut [u8]) -> io::Result<(usize, SocketAddr)>,
    ) -> io::Result<Option<(String, SocketAddr)>> {
        let mut buffer = [0; 64];
        let begun = Instant::now();
        loop {
            self.turns(lane)?;
            if let Ok((count, peer)) = receive(self.sockets, &mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                return Ok(Some((text, peer)));
            }
            if begun.elapsed() > PATIENCE {
                return Ok(None);
            }
        }
    }

    fn pass(&mut self, ms: u64) -> io::Result<()> {
        // In steps, as a lane looks at its time.
        let mut left_ms = ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(100);
            self.clock.pass_ms(step_ms);
            left_ms -= step_ms;
            self.turns(0)?;
        }
        Ok(())
    }

    /// Another process begins to read the gate, and leaves flows to the one before.
    fn succeed(&mut self, lanes: usize) -> io::Result<()> {
        let next = Served::start(self.plans, lanes)?;
        let Some(before) = self.served.last() else {
            return Ok(());
        };
        let (link, end) = descriptor::packet_pair()?;
        let (free, is_free) = channel();
        before.process.common.flows.add_successor(link)?;
        let told = move || {
            // Nobody waits any more only where the run has failed.
            let _ = free.send(());
        };
        next.process.common.flows.follow(end, told)?;
        for (.., mailbox) in &before.lanes {
            let successors = Successors::default();
            mailbox.send(Command::Quit { successors });
        }
        self.turns(0)?;
        if let Some(before) = self.served.last() {
            before.process.common.flows.hand_over()?;
        }
        if is_free.recv_timeout(PATIENCE).is_err() {
            self.problems
                .push("the gate was not left to the next process".to_owned());
        }
        self.served.push(next);
        self.serve()
    }

    /// All flows end; nothing may be left of them.
    fn end(&mut self) -> io::Result<()> {
        self.pass(TIMEOUT_MS + 2 * LATE_MS)?;
        let flows = |served: &Served| served.process.common.flows.flows();
        let begun = Instant::now();
        // Links end by their threads.
        while self.served.len() > 1
            && self.served.iter().map(flows).sum::<usize>() > 0
            && begun.elapsed() < PATIENCE
        {
            std::thread::yield_now();
        }
        for (number, served) in self.served.iter().enumerate() {
            let sessions: usize = served
                .lanes
                .iter()
                .map(|(handler, ..)| handler.sessions())
                .sum();
            for (count, what) in [(sessions, "sessions"), (flows(served), "flows")] {
                if count > 0 {
                    self.problems
                        .push(format!("{count} {what} were left in process {number}"));
                }
            }
        }
        Ok(())
    }
}

/// The time of a run, and its faults.
#[derive(Clone)]
pub(crate) struct Clock {
    time: Rc<RefCell<Time>>,
    random: Rc<RefCell<Random>>,
    fault: Option<Fault>,
    pub(crate) fault_hits: Rc<Cell<u64>>,
}

impl Clock {
    pub(crate) fn new(random: Random, fault: Option<Fault>) -> Clock {
        Clock {
            time: Rc::new(RefCell::new(Time::new())),
            random: Rc::new(RefCell::new(random)),
            fault,
            fault_hits: Rc::default(),
        }
    }

    /// The milliseconds since the run's beginning.
    pub(crate) fn now_ms(&self) -> u64 {
        self.time.borrow_mut().now_ms()
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&self, ms: u64) {
        self.time.borrow_mut().pass_ms(ms);
    }
}

impl simulation::World for Clock {
    fn now_ns(&mut self) -> u64 {
        self.time.borrow_mut().now_ns()
    }

    fn unix_ms(&mut self) -> u64 {
        self.time.borrow_mut().unix_ms()
    }

    fn act(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    fn pass_ms(&mut self, _: u64) -> u64 {
        0
    }

    fn pause_ms(&mut self, most_ms: u64) -> u64 {
        most_ms
    }

    fn spurious(&mut self) -> Option<u64> {
        None
    }

    fn registered(&mut self, _: RawFd, _: Option<u64>) {}

    fn may_send(&mut self, _: RawFd, bytes: usize) -> io::Result<usize> {
        Ok(bytes)
    }

    fn sent(&mut self, _: RawFd, _: &io::Result<usize>) {}

    fn received(&mut self, _: RawFd, result: io::Result<usize>, _: bool) -> io::Result<usize> {
        result
    }

    fn accepted(&mut self, _: RawFd) {}

    fn may_connect(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn connected(&mut self, _: RawFd, _: &[u8]) {}

    fn is_faulty(&mut self, fault: Fault) -> bool {
        let strikes = self.fault == Some(fault) && self.random.borrow_mut().percent(FAULTY_PERCENT);
        self.fault_hits
            .set(self.fault_hits.get() + u64::from(strikes));
        strikes
    }
}

/// The frequency of an injected fault.
const FAULTY_PERCENT: u64 = 5;
