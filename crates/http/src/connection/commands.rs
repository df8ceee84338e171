//! What the serving process tells a lane.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use turnpike_lane::lot::{AcceptSettings, Lot, LotGate, Pulse};

use super::{Connections, Ending};
use crate::lane::LanePlan;
use crate::plan::Plan;

/// A command to a lane.
pub enum Command {
    /// Serve by this plan from now on.
    Apply(Box<Apply>),
    /// Finish: no new connections, idle ones are closed, requests are answered.
    Quit {
        /// When the rest is cut, in milliseconds from now; 0: never.
        timeout_ms: u64,
    },
    /// Write what is buffered.
    Flush {
        /// Told when it is done.
        done: SyncSender<()>,
    },
    /// End now.
    Terminate,
}

/// A plan with the gates that belong to it.
pub struct Apply {
    /// The plan; connections take it up at their next request.
    pub plan: Arc<Plan>,
    /// The lane's gates: [`LotGate::number`] is the index of the plan's listen.
    pub gates: Vec<LotGate>,
    /// How the lane accepts.
    pub accept: AcceptSettings,
    /// The lane's pulse for steered gates.
    pub heartbeat: Option<Box<dyn Pulse>>,
    /// Told when the plan is in force.
    pub done: SyncSender<()>,
}

impl Connections {
    /// Does what the mailbox says.
    pub(super) fn obey(&mut self, lot: &mut Lot) {
        let mailbox = self.mailbox.clone();
        let _ = mailbox.acknowledge();
        while let Some(command) = mailbox.receive() {
            match command {
                Command::Apply(apply) => self.apply(lot, *apply),
                Command::Flush { done } => {
                    self.plan.flush();
                    let _ = done.send(());
                }
                Command::Quit { timeout_ms } => self.quit(lot, timeout_ms),
                Command::Terminate => self.ending = Ending::Now,
            }
        }
    }

    /// Serves by another plan from now on.
    pub fn apply(&mut self, lot: &mut Lot, apply: Apply) {
        self.drain_gates(lot, |gate| {
            apply
                .gates
                .iter()
                .any(|kept| Arc::ptr_eq(&kept.socket, gate))
        });
        self.plan = LanePlan::new(apply.plan);
        self.lane.forget_plan();
        self.parked_take_plan();
        if apply.heartbeat.is_some() {
            lot.set_heartbeat(apply.heartbeat);
        }
        if let Err(error) = lot.set_gates(apply.gates, apply.accept) {
            self.report(format_args!(
                "epoll_ctl() failed for a listening socket ({error})"
            ));
        }
        // Nobody waits any more only where the process is ending.
        let _ = apply.done.send(());
    }

    fn quit(&mut self, lot: &mut Lot, timeout_ms: u64) {
        // Steering chooses this lane no more from here on.
        lot.set_heartbeat(None);
        self.drain_gates(lot, |_| false);
        let now_ms = lot.clock.now_ms();
        let deadline_ms = if timeout_ms == 0 {
            0
        } else {
            now_ms + timeout_ms
        };
        self.ending = Ending::Draining { deadline_ms };
        self.lane.ending.set(true);
        self.close_waiting(lot);
    }

    /// Accepts what is still queued on gates that go, so that their closing resets nothing.
    fn drain_gates(&mut self, lot: &mut Lot, stays: impl Fn(&Arc<std::os::fd::OwnedFd>) -> bool) {
        for gate in lot.close_gates() {
            if !stays(&gate.socket) {
                lot.accept_queued(self, &gate);
            }
        }
    }
}
