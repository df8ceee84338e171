//! What a lane has at hand for its sessions.

use std::cell::{OnceCell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::clock::Clock;
use turnpike_lane::handshakes::Handshakes;
use turnpike_lane::pipes::Pipes;
use turnpike_lane::random::Random;
use turnpike_lane::sys::datagram::Batch;

use crate::own_connections::OwnConnections;
use crate::plan::Plan;

/// A plan of stream servers as one lane holds it.
pub type LanePlan = turnpike_plan::lane::LanePlan<Plan>;

/// A lane's own things, whatever the plan.
pub struct LaneShared {
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// Gives the number of a new connection, unique in the process.
    next_serial: Box<dyn Fn() -> u64>,
    /// TLS handshakes of this turn, those of other protocols included.
    pub(crate) handshakes: Rc<Handshakes>,
    /// What sessions of all lanes have opened to addresses of ours.
    pub(crate) own_connections: Arc<OwnConnections>,
    random: Random,
    /// For all datagrams of the lane; made with the first.
    batch: OnceCell<RefCell<Batch>>,
    pub pipes: Rc<Pipes>,
    /// For bytes of connections between a read and the write that follows it.
    buffer: RefCell<Vec<u8>>,
}

impl LaneShared {
    /// A lane's own things.
    pub fn new(
        clock: Rc<Clock>,
        handshakes: Rc<Handshakes>,
        own_connections: Arc<OwnConnections>,
        seed: u64,
        next_serial: impl Fn() -> u64 + 'static,
    ) -> Rc<Self> {
        Rc::new(Self {
            clock,
            next_serial: Box::new(next_serial),
            handshakes,
            own_connections,
            random: Random::new(seed),
            batch: OnceCell::new(),
            pipes: Rc::default(),
            buffer: RefCell::default(),
        })
    }

    /// The number of a new connection.
    pub(crate) fn next_serial(&self) -> u64 {
        (self.next_serial)()
    }

    /// Memory to receive datagrams into. It must be given back before anything waits.
    pub fn batch(&self) -> RefMut<'_, Batch> {
        self.batch.get_or_init(RefCell::default).borrow_mut()
    }

    /// Memory to receive bytes into, which holds none. It must be given back before anything waits.
    pub fn buffer(&self) -> RefMut<'_, Vec<u8>> {
        let mut buffer = self.buffer.borrow_mut();
        buffer.clear();
        buffer
    }

    /// A random number; see [`Random`].
    pub fn random(&self) -> u64 {
        self.random.next()
    }
}
