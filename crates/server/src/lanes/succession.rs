//! What changes hands while the serving process changes. Connections that wait for a request move
//! to the process after. Datagrams of an address are read by one process at a time, the one that
//! was there first; the other one is told whose flows stay with that one.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use turnpike_http::connection::{SuccessorLink, offer, take_connections};
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_protocols::{Apply, Moving, RoundRobin, Successors};

use super::lane::Lane;
use super::service::LaneService;
use crate::channel::SuccessionLinks;
use crate::service::Generation;

/// The lanes that take what the process before gives away. The thread that receives it gives it to
/// them in turn.
#[derive(Default)]
pub(super) struct Adopters(Mutex<RoundRobin>);

impl Adopters {
    fn lanes(&self) -> MutexGuard<'_, RoundRobin> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneService {
    /// Leaves datagrams to the process before this one, where the first configuration brings a link
    /// to it, until that one reads them no more. Keeps the link by which it gives connections, for
    /// [`LaneService::take_connections`].
    pub(super) fn follow_predecessor(&mut self, generation: &mut Generation) {
        let links = SuccessionLinks::take(&mut generation.extras);
        if let Some(link) = links.flows {
            let reporter = self.reporter.clone();
            let free = move || reporter.datagrams_free();
            match self.process.common.flows.follow(link, free) {
                Ok(()) => self.are_datagrams_held = true,
                Err(error) => log_flows_failed(&generation.error_log, &error),
            }
        }
        if links.connections.is_some() {
            self.predecessor = links.connections;
        }
    }

    /// Takes the connections that the process before gives away, now that there are lanes that
    /// serve. The offer is made before anybody can learn that they do: the process before looks for
    /// it once, when it is told to end.
    pub(super) fn take_connections(&mut self, log: &ErrorLog) {
        let (Some(link), Some(plan)) = (self.predecessor.take(), &self.plan) else {
            return;
        };
        let listens = plan.http.listens.iter().map(|listen| &listen.address);
        let (adopters, thread_log) = (Arc::clone(&self.adopters), log.clone());
        self.choose_adopters();
        let thread = thread::Builder::new().name("connections".to_owned());
        let started = offer(link.as_fd(), listens).and_then(|()| {
            thread.spawn(move || {
                let lost = |count| {
                    let message = format_args!(
                        "{count} connections of the serving process before could not be taken \
                         over and were closed"
                    );
                    thread_log.event(Level::Alert, message);
                };
                let give = |moving| adopters.lanes().give(Moving::Http(moving)).is_ok();
                if let Err(error) = take_connections(link.as_fd(), give, lost) {
                    let message = format_args!(
                        "recvmsg() failed {}, no more connections of the serving process before \
                         are taken over",
                        Errno(&error)
                    );
                    thread_log.event(Level::Alert, message);
                }
            })
        });
        if let Err(error) = started {
            let message = format_args!(
                "connections of the serving process before cannot be taken over {}; that one \
                 closes them",
                Errno(&error)
            );
            log.event(Level::Alert, message);
        }
    }

    /// Has the lanes that work take what comes from the process before; all of them, if none does.
    pub(super) fn choose_adopters(&self) {
        // No thread receives connections.
        if Arc::strong_count(&self.adopters) == 1 {
            return;
        }
        let lanes = self.lanes.iter().enumerate();
        let working = lanes.filter(|(lane, _)| !self.watchdog.is_silent(*lane));
        let mut mailboxes: Vec<_> = working.map(|(_, lane)| lane.mailbox()).collect();
        if mailboxes.is_empty() {
            mailboxes = self.lanes.iter().map(Lane::mailbox).collect();
        }
        self.adopters.lanes().replace(mailboxes);
    }

    /// Lanes read datagrams from now on.
    pub(super) fn open_datagram_gates(&mut self) {
        if !std::mem::take(&mut self.are_datagrams_held) {
            return;
        }
        let Some(plan) = self.plan.take() else {
            return;
        };
        let lanes = self.lanes.len();
        self.lane_gates = self.gates_of_lanes(lanes, &plan, &self.listening_sockets);
        // Nobody waits for them.
        let (done, _) = sync_channel(lanes);
        for (index, lane) in self.lanes.iter().enumerate() {
            let apply = Apply {
                plans: plan.clone(),
                gates: self.lane_gates[index].clone(),
                accept: self.accept_settings(&plan, index),
                heartbeat: None,
                cpus: None,
                done: done.clone(),
            };
            lane.apply(apply);
        }
        self.apply_to_standby_lane(&plan);
        self.plan = Some(plan);
        self.show_gates();
    }

    /// Another process is at the other ends of these links, which is to read the datagrams and to
    /// take the connections. One that was to follow before that has failed.
    pub(super) fn add_successor(&mut self, links: SuccessionLinks, log: &ErrorLog) {
        self.successor = links.connections;
        if let Some(link) = links.flows
            && let Err(error) = self.process.common.flows.add_successor(link)
        {
            log_flows_failed(log, &error);
        }
    }

    /// The process that takes this one's connections, if it serves by now.
    pub(super) fn ready_successors(&mut self) -> Successors {
        let link = self.successor.take();
        Successors {
            http: link.and_then(SuccessorLink::new).map(Arc::new),
            ..Successors::default()
        }
    }

    /// No lane reads datagrams any more.
    pub(super) fn hand_flows_over(&self, log: &ErrorLog) {
        if let Err(error) = self.process.common.flows.hand_over() {
            log_flows_failed(log, &error);
        }
    }
}

fn log_flows_failed(log: &ErrorLog, error: &io::Error) {
    let message = format_args!(
        "cannot start the thread that keeps flows of UDP with their process ({error}); they begin \
         anew in the next one"
    );
    log.event(Level::Alert, message);
}
