//! A test of a hanging lane: the effect on connections that come meanwhile.
//!
//! Two real lanes share one reuseport address; one of them hangs in the middle of a turn. Plain
//! reuseport still gives it half of the connections, which wait; steering detects its missing
//! heartbeat and gives it none.

#![allow(clippy::unwrap_used)]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use turnpike_lane::clock::Clock;
use turnpike_lane::event_loop::{
    self, AcceptSettings, EventHandler, EventLoop, GateNumber, LaneGate, Mailbox, Owner,
};
use turnpike_lane::gate::{AcceptMode, Gate, ListenAddress, ListenOptions, Reuseport};
use turnpike_lane::steering::{KernelBoard, LaneBoard, Level, SteerRules, Steering};
use turnpike_lane::sys::socket::{Kind, PeerAddress};

const LANES: usize = 2;
/// With this many, the hash gives the hanging lane none only once in 2^200 runs.
const CONNECTIONS: usize = 200;
/// Longer than the maximum age of a heartbeat.
const UNTIL_STALE: Duration = Duration::from_millis(100);
/// An answer that is missing after this long of silence counts as held up.
const SILENCE: Duration = Duration::from_millis(400);
/// The same if every answer must come: a busy machine may stall for seconds.
const LONG_SILENCE: Duration = Duration::from_secs(30);

/// The signals between the test and the lanes.
#[derive(Default)]
struct Signals {
    /// Whether lane 1 must hang at its next connection.
    hang: AtomicBool,
    hangs: AtomicBool,
    ended: AtomicBool,
    served: [AtomicUsize; LANES],
}

/// Answers every connection with one byte, and hangs on request.
struct Greeter {
    lane: usize,
    signals: Arc<Signals>,
    mailbox: Arc<Mailbox<()>>,
}

impl EventHandler for Greeter {
    fn accepted(&mut self, _: &mut EventLoop, _: GateNumber, socket: OwnedFd, _: PeerAddress) {
        if self.lane == 1 && self.signals.hang.load(SeqCst) {
            self.signals.hangs.store(true, SeqCst);
            while self.signals.hang.load(SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            self.signals.hangs.store(false, SeqCst);
        }
        self.signals.served[self.lane].fetch_add(1, SeqCst);
        let _ = TcpStream::from(socket).write_all(b"!");
    }
    fn ready(&mut self, _: &mut EventLoop, _: u32, _: bool) {}
    fn watched_socket_ready(&mut self, _event_loop: &mut EventLoop, _token: u32) {}

    fn due(&mut self, _: &mut EventLoop, _: u32) {}
    fn turn_ended(&mut self, _: &mut EventLoop) {}
    fn tick(&mut self, _: &mut EventLoop) {}
    fn commands(&mut self, _: &mut EventLoop) {
        let _ = self.mailbox.acknowledge();
    }
    fn connections(&self) -> usize {
        0
    }
    fn driven(&self) -> usize {
        0
    }
    fn make_room(&mut self, _: &mut EventLoop) -> bool {
        false
    }
    fn accept_failed(&mut self, _: &mut EventLoop, _: GateNumber, error: &io::Error) {
        panic!("accept failed: {error}");
    }
    fn finished(&self) -> bool {
        self.signals.ended.load(SeqCst)
    }
}

struct Running {
    address: SocketAddr,
    signals: Arc<Signals>,
    mailboxes: Vec<Arc<Mailbox<()>>>,
    threads: Vec<JoinHandle<()>>,
    _steering: Option<Steering>,
}

impl Running {
    /// Two lanes, steered or by the hash. `None` if this machine does not permit steering.
    fn start(steered: bool) -> Option<Running> {
        let options = ListenOptions {
            reuseport: Reuseport::Hash,
            ..ListenOptions::default()
        };
        let anywhere = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let gates = Gate::open_group(&anywhere, &options, LANES, &mut Vec::new()).unwrap();
        let ListenAddress::Tcp(address) = gates[0].address().clone() else {
            unreachable!()
        };
        let mut board = None;
        let mut steering = None;
        if steered {
            let kernel = KernelBoard::create();
            let chosen = Steering::begin(
                &gates,
                &[],
                kernel.as_ref().map_err(|reason| *reason),
                SteerRules::default(),
            );
            if chosen.level() != Level::Program {
                assert!(!chosen.reasons().is_empty(), "a fallback has a reason");
                return None;
            }
            board = Some(LaneBoard::map(kernel.unwrap().as_fd()).unwrap());
            steering = Some(chosen);
        }
        let signals = Arc::new(Signals::default());
        let mut running = Running {
            address,
            signals: signals.clone(),
            mailboxes: Vec::new(),
            threads: Vec::new(),
            _steering: steering,
        };
        for (lane, gate) in gates.into_iter().enumerate() {
            let mailbox = Arc::new(Mailbox::new().unwrap());
            running.mailboxes.push(mailbox.clone());
            let (signals, board) = (signals.clone(), board.clone());
            let gate = Arc::new(gate.into_descriptor());
            running.threads.push(thread::spawn(move || {
                serve(
                    lane,
                    gate,
                    board,
                    Greeter {
                        lane,
                        signals,
                        mailbox,
                    },
                );
            }));
        }
        Some(running)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// Hangs lane 1 and waits until it hangs.
    fn hang(&self) -> Vec<TcpStream> {
        self.signals.hang.store(true, SeqCst);
        let mut opened = Vec::new();
        while !self.signals.hangs.load(SeqCst) {
            opened.push(self.connect());
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(UNTIL_STALE);
        opened
    }

    fn end(self) {
        self.signals.ended.store(true, SeqCst);
        for mailbox in &self.mailboxes {
            mailbox.send(());
        }
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn serve(lane: usize, gate: Arc<OwnedFd>, board: Option<Arc<LaneBoard>>, mut greeter: Greeter) {
    let mailbox = greeter.mailbox.clone();
    let mut event_loop = EventLoop::new(Rc::new(Clock::new()), mailbox.as_fd()).unwrap();
    if let Some(pulse) = board.and_then(|board| board.pulse(lane)) {
        event_loop.set_heartbeat(Some(Box::new(pulse)));
    }
    let gates = vec![LaneGate {
        number: GateNumber {
            owner: Owner(0),
            place: 0,
        },
        socket: gate,
        mode: AcceptMode::Reuseport,
        kind: Kind::Stream,
    }];
    event_loop
        .set_gates(
            gates,
            AcceptSettings {
                multi_accept: true,
                ..AcceptSettings::default()
            },
        )
        .unwrap();
    event_loop::run(&mut event_loop, &mut greeter, &Rc::new(Notify::new())).unwrap();
}

/// Removes the answered connections, until all are answered or none has been for a while.
fn drop_answered(waiting: &mut Vec<TcpStream>, silence: Duration) {
    let mut last = Instant::now();
    while !waiting.is_empty() && last.elapsed() < silence {
        let before = waiting.len();
        waiting.retain_mut(|stream| stream.read(&mut [0]).is_err());
        if waiting.len() < before {
            last = Instant::now();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The number of connections that wait for a hanging lane.
fn held_up(running: Running, silence: Duration) -> usize {
    let mut first = running.hang();
    let mut waiting: Vec<TcpStream> = (0..CONNECTIONS).map(|_| running.connect()).collect();
    drop_answered(&mut waiting, silence);
    let held_up = waiting.len();
    running.signals.hang.store(false, SeqCst);
    // They are delayed but not lost: once the lane continues, all get an answer.
    waiting.append(&mut first);
    drop_answered(&mut waiting, LONG_SILENCE);
    assert_eq!(waiting.len(), 0, "connections were never answered");
    running.end();
    held_up
}

#[test]
fn plain_reuseport_gives_connections_to_a_hanging_lane() {
    let running = Running::start(false).unwrap();
    assert_ne!(held_up(running, SILENCE), 0);
}

#[test]
fn steering_gives_no_connection_to_a_hanging_lane() {
    if let Some(running) = Running::start(true) {
        assert_eq!(held_up(running, LONG_SILENCE), 0);
    }
}
