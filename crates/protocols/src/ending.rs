//! What a lane does with the commands of the serving process: other plans and gates, and its end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use turnpike_lane::event_loop::{EventLoop, LaneGate};
use turnpike_lane::log::Level;

use crate::commands::{Apply, Command, Leave, RoundRobin};
use crate::handler::LaneHandler;
use crate::list::Successors;

/// Whether the lane goes on.
pub(crate) enum Ending {
    /// The lane or process serves.
    No,
    /// The lane finishes what it is at; these lanes take what waits.
    Leaving(RoundRobin),
    /// The lane finishes what was begun.
    Draining,
    /// The lane ends now.
    Now,
}

impl LaneHandler {
    /// Does what the mailbox says.
    pub(crate) fn obey(&mut self, event_loop: &mut EventLoop) {
        let mailbox = Arc::clone(&self.mailbox);
        let _ = mailbox.acknowledge();
        while let Some(command) = mailbox.receive() {
            match command {
                Command::Apply(apply) => self.apply(event_loop, *apply),
                Command::Flush { done } => {
                    self.protocols.flush();
                    let _ = done.send(());
                }
                Command::Leave(leave) => self.leave(event_loop, *leave),
                Command::Adopt(moving) => self.protocols.adopt(event_loop, moving),
                Command::AdoptGates(gates) => self.adopt_gates(event_loop, gates),
                Command::Announce => self.protocols.announce_end(event_loop),
                Command::Quit { successors } => self.quit(event_loop, successors),
                Command::Cut { until_ms } => self.protocols.cut(event_loop, until_ms),
                Command::Own(command) => self.protocols.obey(event_loop, command),
                Command::Terminate => self.ending = Ending::Now,
            }
        }
    }

    /// Serves by other plans from now on.
    pub(crate) fn apply(&mut self, event_loop: &mut EventLoop, apply: Apply) {
        // By the plans before: to these their numbers belong.
        self.drain_gates(event_loop, |gate| {
            apply
                .gates
                .iter()
                .any(|kept| Arc::ptr_eq(&kept.socket, gate))
        });
        self.protocols.take_plans(event_loop, apply.plans);
        if apply.heartbeat.is_some() {
            event_loop.set_heartbeat(apply.heartbeat);
        }
        if let Some(cpus) = apply.cpus
            && let Err(error) = cpus.pin_this_thread()
        {
            let lane = self.common.index;
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
        self.ending = Ending::Leaving(RoundRobin::new(leave.successors));
        self.protocols.leave(event_loop, &leave.plans);
        self.drain_gates(event_loop, |_| false);
        self.protocols.gates_closed(event_loop);
        self.give_moving(event_loop);
        let _ = leave.done.send(());
    }

    fn quit(&mut self, event_loop: &mut EventLoop, successors: Successors) {
        // Steering chooses this lane no more from here on.
        event_loop.set_heartbeat(None);
        // First, so that what is still queued is served as the last of its connections.
        self.ending = Ending::Draining;
        self.protocols.drain(event_loop, successors);
        self.drain_gates(event_loop, |_| false);
        self.protocols.gates_closed(event_loop);
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

    /// Gives connections of a lane that goes to those that stay.
    pub(crate) fn give_moving(&mut self, event_loop: &mut EventLoop) {
        if let Ending::Leaving(lanes) = &self.ending {
            self.protocols.give_moving(event_loop, lanes);
        }
    }

    /// Accepts what is still queued on gates that go, so that their closing resets nothing.
    fn drain_gates(&mut self, event_loop: &mut EventLoop, stays: impl Fn(&Arc<OwnedFd>) -> bool) {
        for gate in event_loop.close_gates() {
            if !stays(&gate.socket) {
                event_loop.accept_queued(self, &gate);
            }
        }
    }

    fn watch_gate_failed(&self, error: &io::Error) {
        self.report(format_args!(
            "epoll_ctl() failed for a listening socket ({error})"
        ));
    }

    /// Writes what concerns the lane to the error log of the first server.
    fn report(&self, message: std::fmt::Arguments<'_>) {
        if let Some(log) = self.protocols.first_log() {
            log.event(Level::Warn, message);
        }
    }
}
