//! What the serving process tells a lane.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use turnpike_lane::affinity::CpuSet;
use turnpike_lane::lot::{AcceptSettings, Lot, LotGate, Mailbox, Pulse};

use super::moving::{Heirs, Moving};
use super::{Connections, Ending};
use crate::lane::LanePlan;
use crate::plan::Plan;

/// A command to a lane.
pub enum Command {
    /// Serve by this plan from now on.
    Apply(Box<Apply>),
    /// Answers close their connections from now on; all else goes on.
    Announce,
    /// Finish: no new connections, requests are answered, what waits for one is closed soon.
    Quit,
    /// End when nothing is left to do: another plan has fewer lanes. What waits is handed to the
    /// other lanes, what runs is finished here.
    Leave(Box<Leave>),
    /// Take a connection of another lane over.
    Adopt(Box<Moving>),
    /// Accept from these gates too, whose lanes do not come to it; none of them any more when there
    /// are none. Before that, accept what waits, though nothing has told of it.
    Foster(Vec<LotGate>),
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
    /// Where the lane tells how it is, when that has changed.
    pub heartbeat: Option<Box<dyn Pulse>>,
    /// The CPUs that the lane is to run on from now on, when that has changed.
    pub cpus: Option<CpuSet>,
    /// Told when the plan is in force.
    pub done: SyncSender<()>,
}

/// What a lane that is to go needs to know.
pub struct Leave {
    /// The plan in force, in which the lane has no part.
    pub plan: Arc<Plan>,
    /// The lanes that stay, at least one.
    pub heirs: Vec<Arc<Mailbox<Command>>>,
    /// Told when it accepts no more and has handed over what waited.
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
                    self.every_plan(LanePlan::flush);
                    let _ = done.send(());
                }
                Command::Leave(leave) => self.leave(lot, *leave),
                Command::Adopt(moving) => self.adopt(lot, *moving),
                Command::Foster(gates) => self.foster(lot, gates),
                Command::Announce => self.lane.ending.set(true),
                Command::Quit => self.quit(lot),
                Command::Terminate => self.ending = Ending::Now,
            }
        }
    }

    /// Serves by another plan from now on.
    pub fn apply(&mut self, lot: &mut Lot, apply: Apply) {
        self.lane.guests.get_or_init(|| lot.guests());
        self.drain_gates(lot, |gate| {
            apply
                .gates
                .iter()
                .any(|kept| Arc::ptr_eq(&kept.socket, gate))
        });
        let old = std::mem::replace(&mut self.plan, LanePlan::new(apply.plan));
        self.old_plans.push(Rc::downgrade(&old));
        drop(old);
        self.lane.forget_plan();
        self.parked_take_plan();
        if apply.heartbeat.is_some() {
            lot.set_heartbeat(apply.heartbeat);
        }
        if let Some(cpus) = apply.cpus
            && let Err(error) = cpus.pin_this_thread()
        {
            let lane = self.lane.index;
            self.report(format_args!(
                "sched_setaffinity() failed for lane {lane} ({error})"
            ));
        }
        if let Err(error) = lot.set_gates(apply.gates, apply.accept) {
            self.watch_gate_failed(&error);
        }
        // Nobody waits any more only where the process is ending.
        let _ = apply.done.send(());
    }

    fn leave(&mut self, lot: &mut Lot, leave: Leave) {
        lot.set_heartbeat(None);
        self.ending = Ending::Leaving(Heirs::new(&leave.plan, leave.heirs));
        self.drain_gates(lot, |_| false);
        self.hand_over_waiting(lot);
        self.lane.forget_plan();
        let _ = leave.done.send(());
    }

    fn foster(&mut self, lot: &mut Lot, gates: Vec<LotGate>) {
        if !matches!(self.ending, Ending::No) {
            return;
        }
        if let Err(error) = lot.foster(gates) {
            self.watch_gate_failed(&error);
        }
        lot.look(self);
    }

    fn watch_gate_failed(&self, error: &std::io::Error) {
        self.report(format_args!(
            "epoll_ctl() failed for a listening socket ({error})"
        ));
    }

    fn quit(&mut self, lot: &mut Lot) {
        // Steering chooses this lane no more from here on.
        lot.set_heartbeat(None);
        // First, so that what is still queued is served as the last of its connections.
        self.ending = Ending::Draining {
            since_ms: lot.clock.now_ms(),
        };
        self.lane.ending.set(true);
        self.drain_gates(lot, |_| false);
        self.hurry_waiting(lot);
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
