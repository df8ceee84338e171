//! The state of each lane for a plan: the states of the families, created when the lane takes the
//! plan.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// The state of a family on each lane for one plan: caches, buffers.
pub trait LaneState: Any {
    /// Called about every 100 ms, for periodic work.
    fn tick(&self, _now_ms: u64) {}
    /// Called to write buffered data: before logs are reopened, and at the end.
    fn flush(&self) {}
}

/// Makes a lane's state for a plan.
pub type LaneStateMaker = Box<dyn Fn() -> Box<dyn LaneState> + Send + Sync>;

/// The slot of a family's state in a [`LanePlan`].
pub struct LaneSlot<T> {
    index: usize,
    kind: PhantomData<fn() -> T>,
}

/// A plan on one lane, with the lane's state for it.
pub struct LanePlan<P> {
    plan: Arc<P>,
    states: Vec<Box<dyn LaneState>>,
}

/// A plan of a protocol, with states on lanes.
pub trait HasLaneStates {
    /// The makers of each lane's state for this plan, by slot.
    fn lane_states(&self) -> &[LaneStateMaker];
}

impl<T> LaneSlot<T> {
    /// The slot with that index among the states of a plan.
    pub fn new(index: usize) -> Self {
        Self {
            index,
            kind: PhantomData,
        }
    }
}

impl<T> Clone for LaneSlot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for LaneSlot<T> {}

impl<P: HasLaneStates> LanePlan<P> {
    /// Takes a plan on a lane: creates its states.
    pub fn new(plan: Arc<P>) -> Rc<Self> {
        let states = plan.lane_states().iter().map(|make| make()).collect();
        Rc::new(Self { plan, states })
    }

    /// A family's state on this lane.
    pub fn state<T: LaneState>(&self, slot: &LaneSlot<T>) -> &T {
        let state: &dyn Any = &*self.states[slot.index];
        match state.downcast_ref::<T>() {
            Some(state) => state,
            None => unreachable!("a slot is made together with the state it is for"),
        }
    }

    /// Flushes every state.
    pub fn flush(&self) {
        for state in &self.states {
            state.flush();
        }
    }

    /// Calls every state's `tick`.
    pub fn tick(&self, now_ms: u64) {
        for state in &self.states {
            state.tick(now_ms);
        }
    }
}

impl<P> Drop for LanePlan<P> {
    fn drop(&mut self) {
        for state in &self.states {
            state.flush();
        }
    }
}

impl<P> Deref for LanePlan<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.plan
    }
}
