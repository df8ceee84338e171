//! What a lane has at hand for its sessions.

use std::cell::{OnceCell, RefCell, RefMut};
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::clock::Clock;
use turnpike_lane::handshakes::Handshakes;
use turnpike_lane::pipes::Pipes;
use turnpike_lane::sys::datagram::Batch;
use turnpike_lane::sys::process;
use turnpike_plan::protocol::LaneCommon;

use crate::own_connections::OwnConnections;
use crate::plan::Plan;

/// Part of the process's descriptors that sessions leave to HTTP's connections, files and logs, and
/// how many that are at most.
const SPARE_DESCRIPTORS_PART: u64 = 16;
const SPARE_DESCRIPTORS_MAX: u64 = 256;

/// A plan of stream servers as one lane holds it.
pub type LanePlan = turnpike_plan::lane::LanePlan<Plan>;

/// A lane's own things, whatever the plan.
pub struct LaneShared {
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// What the lane's protocols share.
    common: Rc<LaneCommon>,
    /// TLS handshakes of this turn, those of other protocols included.
    pub(crate) handshakes: Rc<Handshakes>,
    /// What sessions of all lanes have opened to addresses of ours.
    pub(crate) own_connections: Arc<OwnConnections>,
    /// The first number of a descriptor that sessions leave to others, and the limit above it.
    spare_descriptors_from: RawFd,
    descriptors_max: u64,
    /// For all datagrams of the lane; made with the first.
    batch: OnceCell<RefCell<Batch>>,
    pub pipes: Rc<Pipes>,
    /// For bytes of connections between a read and the write that follows it.
    buffer: RefCell<Vec<u8>>,
}

impl LaneShared {
    /// A lane's own things.
    pub(crate) fn new(common: Rc<LaneCommon>, own_connections: Arc<OwnConnections>) -> Rc<Self> {
        let descriptors_max = process::usage().files_max;
        let spare = (descriptors_max / SPARE_DESCRIPTORS_PART).min(SPARE_DESCRIPTORS_MAX);
        let spare_from = descriptors_max.saturating_sub(spare);
        Rc::new(Self {
            clock: Rc::clone(&common.clock),
            handshakes: Rc::clone(&common.handshakes),
            common,
            own_connections,
            spare_descriptors_from: RawFd::try_from(spare_from).unwrap_or(RawFd::MAX),
            descriptors_max,
            batch: OnceCell::new(),
            pipes: Rc::default(),
            buffer: RefCell::default(),
        })
    }

    /// Whether a session may keep a socket that was just opened. The error is the limit: all
    /// descriptors but a few are in use, since the kernel gives the lowest number that is free.
    ///
    /// # Errors
    /// The limit of open descriptors.
    pub fn may_keep(&self, opened: BorrowedFd<'_>) -> Result<(), u64> {
        if opened.as_raw_fd() < self.spare_descriptors_from {
            Ok(())
        } else {
            Err(self.descriptors_max)
        }
    }

    /// The number of a new connection.
    pub(crate) fn next_serial(&self) -> u64 {
        self.common.next_serial()
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

    /// A random number; see [`LaneCommon::random`].
    pub fn random(&self) -> u64 {
        self.common.random()
    }
}
