//! The contract between a lane and the protocols that it serves. They are equals: each has gates,
//! sockets and a plan of its own, and knows nothing of the others. A lane calls the one whose gate
//! or socket has an event, and all of them at the end of each turn.

use std::any::Any;
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use turnpike_lane::clock::Clock;
use turnpike_lane::event_loop::{EventLoop, Owner};
use turnpike_lane::flows::{FlowDirectory, ForwardedDatagram, LaneFlows};
use turnpike_lane::gate::{AcceptMode, ListenAddress, ListenOptions};
use turnpike_lane::handshakes::Handshakes;
use turnpike_lane::log::ErrorLog;
use turnpike_lane::random::Random;
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::PeerAddress;

use crate::builder::Offers;
use crate::passed::{PassedConnection, Receiver};

/// Numbers that a lane takes from the process at a time: large enough that lanes seldom meet.
const SERIAL_BLOCK: u64 = 64;

/// A protocol on one lane: its connections, sessions or flows. It must not block.
pub trait Protocol: Receiver + Sized {
    /// What a configuration means for it.
    type Plan: ProtocolPlan;
    /// What its connections on all lanes of the process share.
    type Process: Default + Send + Sync + 'static;
    /// A connection on its way to another lane.
    type Moving: Send + 'static;
    /// The link to the process that takes its connections over.
    type Successor: Send + Sync + 'static;
    /// A command that no other protocol knows.
    type Command: Send + 'static;

    /// Whether its connections are sessions, which last as long as their clients like. They leave a
    /// few of the lane's places to other protocols, and those that find none are refused at once.
    const HAS_SESSIONS: bool = false;

    /// Nothing is served yet. `owner` is the number of this protocol.
    fn new(
        lane: Rc<LaneCommon>,
        owner: Owner,
        process: &Arc<Self::Process>,
        plan: Arc<Self::Plan>,
    ) -> Self;

    /// A connection was accepted at the plan's listen of that place.
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    );
    /// A connection was accepted at that place and closed, since the lane may hold no more than
    /// `connections_max`; only where it has sessions.
    fn refused(&mut self, _place: u32, _connections_max: usize) {}
    /// Datagrams wait at the gate of that place; they are to be read. `room`: sessions that may
    /// begin.
    fn datagrams(
        &mut self,
        _event_loop: &mut EventLoop,
        _place: u32,
        _gate: &Arc<OwnedFd>,
        _room: usize,
    ) {
    }
    /// A datagram of a flow of this lane came to another one, or was left unread. `room` is what
    /// is left of it: a session that begins takes one.
    fn forwarded(
        &mut self,
        _event_loop: &mut EventLoop,
        _datagram: ForwardedDatagram,
        _room: &mut usize,
    ) {
    }
    /// A parked connection has input; see `turnpike_lane::event_loop::EventHandler::ready`.
    fn ready(&mut self, _event_loop: &mut EventLoop, _token: u32, _closed: bool) {}
    /// A watched socket has input for a parked connection.
    fn watched_socket_ready(&mut self, _event_loop: &mut EventLoop, _token: u32) {}
    /// A socket to which the protocol gave that number has an event.
    fn numbered_socket_ready(&mut self, _event_loop: &mut EventLoop, _number: u64, _event: Event) {}
    /// The deadline of a timer to which the protocol gave that number has passed.
    fn numbered_timer_due(&mut self, _event_loop: &mut EventLoop, _number: u64) {}
    /// The deadline of a parked connection may have passed.
    fn due(&mut self, _event_loop: &mut EventLoop, _token: u32) {}
    /// All events of a turn were handled.
    fn turn_ended(&mut self, event_loop: &mut EventLoop);
    /// Called about every 100 ms while there are connections, otherwise every second.
    fn tick(&mut self, event_loop: &mut EventLoop);

    /// Serves by another plan from now on. All that came by gates of the one before was accepted.
    fn take_plan(&mut self, event_loop: &mut EventLoop, plan: Arc<Self::Plan>);
    /// Writes what is buffered.
    fn flush(&mut self);
    /// Does what another protocol does not know.
    fn obey(&mut self, event_loop: &mut EventLoop, command: Self::Command);
    /// Closes what began up to that time, in monotonic milliseconds.
    fn cut(&mut self, event_loop: &mut EventLoop, until_ms: u64);

    /// The process is about to end: clients are told.
    fn announce_end(&mut self, _event_loop: &mut EventLoop) {}
    /// The process ends: what was begun is finished, and what waits goes to the successor, if there
    /// is one. Gates are still open; see [`Protocol::gates_closed`].
    fn drain(&mut self, _event_loop: &mut EventLoop, _successor: Option<Arc<Self::Successor>>) {}
    /// The lane ends, since the plan has fewer: what waits moves to others that serve by it.
    fn leave(&mut self, _event_loop: &mut EventLoop, _plan: &Self::Plan) {}
    /// No more is accepted: the lane drains or leaves.
    fn gates_closed(&mut self, _event_loop: &mut EventLoop) {}
    /// Takes the connections that are to move to another lane.
    fn take_moving(&mut self) -> Vec<Self::Moving> {
        Vec::new()
    }
    /// One of these was taken by another lane.
    fn was_moved(&mut self) {}
    /// No other lane takes this one any more: it is served here to its end.
    fn keep(&mut self, event_loop: &mut EventLoop, moving: Self::Moving);
    /// Takes a connection of another lane over, or of the process before.
    fn adopt(&mut self, event_loop: &mut EventLoop, moving: Self::Moving);

    /// Takes the connections that are passed to other addresses of ours.
    fn take_passed(&mut self) -> Vec<PassedConnection> {
        Vec::new()
    }
    /// Closes connections that may be closed, for new ones. `false`: there are none.
    fn make_room(&mut self, _event_loop: &mut EventLoop) -> bool {
        false
    }

    /// How many connections count against the lane's limit.
    fn connections(&self) -> usize;
    /// How many futures run on the lane's runtime.
    fn driven(&self) -> usize;
    /// What has to end before the lane may: connections, and work beside them.
    fn held(&self) -> usize {
        self.connections()
    }
    /// How many gates the plan in force has.
    fn gates(&self) -> usize;
    /// The error log of the server at that place, for what concerns no connection.
    fn gate_log(&self, place: u32) -> Option<&ErrorLog>;
}

/// What a configuration means for one protocol.
pub trait ProtocolPlan: Send + Sync + 'static {
    /// The work that the families of its directives offer beside the lanes.
    fn offers(&self) -> &Offers;
    /// The addresses that are listened at, in the order of their places.
    fn listens(&self) -> impl ExactSizeIterator<Item = PlanListen<'_>>;
    /// How many server blocks there are.
    fn server_count(&self) -> usize;
    /// Keeps something until nobody holds the plan any more.
    fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>);
}

/// An address that is listened at.
#[derive(Clone, Copy)]
pub struct PlanListen<'p> {
    pub address: &'p ListenAddress,
    /// Socket options.
    pub options: &'p ListenOptions,
    /// How lanes share it.
    pub mode: AcceptMode,
}

/// What the lanes of a process share, whatever they serve.
#[derive(Default)]
pub struct ProcessCommon {
    /// Which lane has a flow of datagrams.
    pub flows: Arc<FlowDirectory>,
    /// Numbers of connections so far.
    serials: Arc<AtomicU64>,
}

/// What the protocols of a lane share.
pub struct LaneCommon {
    /// Number of the lane, from 0.
    pub index: usize,
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// TLS handshakes of this turn.
    pub handshakes: Rc<Handshakes>,
    /// Notified when a future ends or gives something back.
    pub ended: Rc<Notify>,
    /// The flows of the lane, as others know them.
    pub flows: Rc<LaneFlows>,
    random: Random,
    serials: Arc<AtomicU64>,
    /// The next connection number, and the end of the block it is from.
    own_serials: Cell<(u64, u64)>,
    sessions: Cell<usize>,
}

impl LaneCommon {
    /// For the lane of that number; `wake` wakes it, from any thread.
    pub fn new(
        index: usize,
        process: &ProcessCommon,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Rc<Self> {
        let clock = Rc::new(Clock::new());
        let seed = clock.now_ms() ^ ((index as u64 + 1) << 32) ^ u64::from(std::process::id());
        let ended = Rc::<Notify>::default();
        Rc::new(Self {
            index,
            clock,
            handshakes: Rc::new(Handshakes::new(Rc::clone(&ended))),
            ended,
            flows: Rc::new(LaneFlows::new(Arc::clone(&process.flows), wake)),
            random: Random::new(seed),
            serials: Arc::clone(&process.serials),
            own_serials: Cell::new((0, 0)),
            sessions: Cell::new(0),
        })
    }

    /// The number of a new connection, unique in the process.
    pub fn next_serial(&self) -> u64 {
        let (mut next, mut end) = self.own_serials.get();
        if next == end {
            next = self.serials.fetch_add(SERIAL_BLOCK, Ordering::Relaxed) + 1;
            end = next + SERIAL_BLOCK;
        }
        self.own_serials.set((next + 1, end));
        next
    }

    /// A random number; see [`Random`].
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// How many sessions the lane has; see [`Protocol::HAS_SESSIONS`].
    pub fn sessions(&self) -> usize {
        self.sessions.get()
    }

    /// Notes how many sessions the lane has.
    pub fn note_sessions(&self, count: usize) {
        self.sessions.set(count);
    }
}
