//! Another plan, and the end: what connections do when their lane is told of it.

use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;

use super::connections::{Connections, Ending};
use super::moving::SuccessorLink;
use super::slot::Slot;
use crate::lane::LanePlan;
use crate::plan::resolved::Plan;

impl Connections {
    /// Serves by another plan from now on.
    pub(super) fn serve_by(&mut self, event_loop: &mut EventLoop, plan: Arc<Plan>) {
        self.lane
            .watched_sockets
            .get_or_init(|| event_loop.watched_sockets());
        let old = std::mem::replace(&mut self.plan, LanePlan::new(plan));
        self.old_plans.push(Rc::downgrade(&old));
        drop(old);
        self.lane.use_plan(&self.plan);
        self.parked_take_plan();
        self.http3_takes_plan();
        self.keep_quic_gates(event_loop);
    }

    /// The lane goes; those that stay serve by this plan.
    pub(super) fn begin_leave(&mut self, event_loop: &mut EventLoop, plan: &Plan) {
        let listens = plan.listens.iter();
        self.ending = Ending::Leaving {
            addresses: listens.map(|listen| listen.address.clone()).collect(),
        };
        self.lane.shutdown.leave();
        self.tell_of_end(event_loop);
    }

    /// The process ends. What is still queued at gates is served as the last of its connections.
    pub(super) fn begin_drain(
        &mut self,
        event_loop: &mut EventLoop,
        successor: Option<Arc<SuccessorLink>>,
    ) {
        self.ending = Ending::Draining {
            since_ms: event_loop.clock.now_ms(),
            successor,
        };
        self.lane.shutdown.drain();
    }

    /// What waits moves on, or has not long any more.
    pub(super) fn hurry(&mut self, event_loop: &mut EventLoop) {
        match &self.ending {
            Ending::No => {}
            Ending::Leaving { .. } => {
                self.hand_over_waiting(event_loop);
                self.lane.forget_exchanges();
            }
            Ending::Draining { .. } => {
                self.give_to_successor(event_loop);
                self.hurry_waiting(event_loop);
                self.keep_quic_gates(event_loop);
                self.tell_of_end(event_loop);
            }
        }
    }

    /// Lets connections see that the lane ends: those that serve many requests tell their clients.
    pub(super) fn tell_of_end(&mut self, event_loop: &mut EventLoop) {
        self.end_parked_http2(event_loop);
        self.end_http3(event_loop);
        for (_, slot) in self.slots.iter() {
            if let Slot::Driven(driven) = slot {
                driven.watch.event(false);
            }
        }
    }
}
