//! What a lane has at hand for its sessions.

use std::cell::Cell;
use std::rc::Rc;

use turnpike_lane::clock::Clock;

use crate::plan::Plan;

/// A plan of stream servers as one lane holds it.
pub type LanePlan = turnpike_plan::lane::LanePlan<Plan>;

/// A lane's own things, whatever the plan.
pub struct LaneShared {
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// Gives the number of a new connection, unique in the process.
    next_serial: Box<dyn Fn() -> u64>,
    random: Cell<u64>,
}

impl LaneShared {
    /// A lane's own things.
    pub fn new(clock: Rc<Clock>, seed: u64, next_serial: impl Fn() -> u64 + 'static) -> Rc<Self> {
        Rc::new(Self {
            clock,
            next_serial: Box::new(next_serial),
            random: Cell::new(seed | 1),
        })
    }

    /// The number of a new connection.
    pub(crate) fn next_serial(&self) -> u64 {
        (self.next_serial)()
    }

    /// A random number, good enough for a choice of peers, not for secrets (xorshift64*).
    pub fn random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
