//! What a lane does with the commands of the serving process.

use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{EventLoop, LaneGate};

use super::commands::{Apply, Command, Leave};
use super::connections::{Connections, Ending};
use super::slot::Slot;
use super::successor_link::SuccessorLink;
use super::successors::Successors;
use crate::lane::LanePlan;

impl Connections {
    /// Does what the mailbox says.
    pub(super) fn obey(&mut self, event_loop: &mut EventLoop) {
        let mailbox = self.mailbox.clone();
        let _ = mailbox.acknowledge();
        while let Some(command) = mailbox.receive() {
            match command {
                Command::Apply(apply) => self.apply(event_loop, *apply),
                Command::Flush { done } => {
                    self.every_plan(LanePlan::flush);
                    let _ = done.send(());
                }
                Command::Leave(leave) => self.leave(event_loop, *leave),
                Command::Adopt(moving) => self.adopt(event_loop, *moving),
                Command::AdoptGates(gates) => self.adopt_gates(event_loop, gates),
                Command::Announce => {
                    self.lane.shutdown.drain();
                    self.tell_of_end(event_loop);
                }
                Command::Quit { successor } => self.quit(event_loop, successor),
                Command::Cut { until_ms } => self.cut(event_loop, until_ms),
                Command::ListRequests { to } => {
                    // Who asked may have given up.
                    let _ = to.send(self.request_list(event_loop.clock.now_ms()));
                }
                Command::CloseRequest { id, to } => {
                    if self.close_request(event_loop, id) {
                        let _ = to.send(());
                    }
                }
                Command::Terminate => self.ending = Ending::Now,
            }
        }
    }

    /// Serves by another plan from now on.
    pub fn apply(&mut self, event_loop: &mut EventLoop, apply: Apply) {
        self.lane
            .watched_sockets
            .get_or_init(|| event_loop.watched_sockets());
        self.drain_gates(event_loop, |gate| {
            apply
                .gates
                .iter()
                .any(|kept| Arc::ptr_eq(&kept.socket, gate))
        });
        let old = std::mem::replace(&mut self.plan, LanePlan::new(apply.plan));
        self.old_plans.push(Rc::downgrade(&old));
        drop(old);
        self.lane.use_plan(&self.plan);
        self.parked_take_plan();
        if apply.heartbeat.is_some() {
            event_loop.set_heartbeat(apply.heartbeat);
        }
        if let Some(cpus) = apply.cpus
            && let Err(error) = cpus.pin_this_thread()
        {
            let lane = self.lane.index;
            self.report(format_args!(
                "sched_setaffinity() failed for lane {lane} ({error})"
            ));
        }
        if let Err(error) = event_loop.set_gates(apply.gates, apply.accept) {
            self.watch_gate_failed(&error);
        }
        // Nobody waits any more only where the process is ending.
        let _ = apply.done.send(());
    }

    fn leave(&mut self, event_loop: &mut EventLoop, leave: Leave) {
        event_loop.set_heartbeat(None);
        self.ending = Ending::Leaving(Successors::new(&leave.plan, leave.successors));
        self.lane.shutdown.leave();
        self.tell_of_end(event_loop);
        self.drain_gates(event_loop, |_| false);
        self.hand_over_waiting(event_loop);
        self.lane.forget_exchanges();
        let _ = leave.done.send(());
    }

    fn adopt_gates(&mut self, event_loop: &mut EventLoop, gates: Vec<LaneGate>) {
        if !matches!(self.ending, Ending::No) {
            return;
        }
        if let Err(error) = event_loop.adopt_gates(gates) {
            self.watch_gate_failed(&error);
        }
        event_loop.look(self);
    }

    fn watch_gate_failed(&self, error: &std::io::Error) {
        self.report(format_args!(
            "epoll_ctl() failed for a listening socket ({error})"
        ));
    }

    fn quit(&mut self, event_loop: &mut EventLoop, successor: Option<Arc<SuccessorLink>>) {
        // Steering chooses this lane no more from here on.
        event_loop.set_heartbeat(None);
        // First, so that what is still queued is served as the last of its connections.
        self.ending = Ending::Draining {
            since_ms: event_loop.clock.now_ms(),
            successor,
        };
        self.lane.shutdown.drain();
        self.drain_gates(event_loop, |_| false);
        self.give_to_successor(event_loop);
        self.hurry_waiting(event_loop);
        self.tell_of_end(event_loop);
    }

    /// Lets connections see that the lane ends: those that serve many requests tell their clients.
    fn tell_of_end(&mut self, event_loop: &mut EventLoop) {
        self.end_parked_http2(event_loop);
        for (_, slot) in &self.slots {
            if let Slot::Driven(driven) = slot {
                driven.watch.event(false);
            }
        }
    }

    /// Accepts what is still queued on gates that go, so that their closing resets nothing.
    fn drain_gates(
        &mut self,
        event_loop: &mut EventLoop,
        stays: impl Fn(&Arc<std::os::fd::OwnedFd>) -> bool,
    ) {
        for gate in event_loop.close_gates() {
            if !stays(&gate.socket) {
                event_loop.accept_queued(self, &gate);
            }
        }
    }
}
