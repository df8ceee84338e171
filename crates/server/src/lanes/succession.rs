//! Flows of UDP while the serving process changes: one process at a time reads the datagrams of an
//! address, the one that was there first. The other one is told whose flows stay with that one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::sync_channel;

use turnpike_http::connection::Apply;
use turnpike_lane::log::{ErrorLog, Level};

use super::service::LaneService;
use crate::channel::FLOWS_NAME;
use crate::service::Generation;

impl LaneService {
    /// Leaves datagrams to the process before this one, where the first configuration brings a link
    /// to it, until that one reads them no more.
    pub(super) fn follow_predecessor(&mut self, generation: &mut Generation) {
        let mut extras = generation.extras.iter();
        let place = extras.position(|extra| extra.name == FLOWS_NAME);
        let Some(link) = place.map(|place| generation.extras.remove(place)) else {
            return;
        };
        let reporter = self.reporter.clone();
        let free = move || reporter.datagrams_free();
        match self.flows.follow(link.descriptor, free) {
            Ok(()) => self.are_datagrams_held = true,
            Err(error) => log_failure(&generation.error_log, &error),
        }
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
                plan: plan.http.clone(),
                gates: self.lane_gates[index].clone(),
                accept: self.accept_settings(&plan, index),
                heartbeat: None,
                cpus: None,
                done: done.clone(),
            };
            lane.apply(apply, plan.stream.clone());
        }
        self.apply_to_standby_lane(&plan);
        self.plan = Some(plan);
        self.show_gates();
    }

    /// Another process is at the other end of this link, which is to read the datagrams.
    pub(super) fn add_successor(&mut self, link: OwnedFd, log: &ErrorLog) {
        if let Err(error) = self.flows.add_successor(link) {
            log_failure(log, &error);
        }
    }

    /// No lane reads datagrams any more.
    pub(super) fn hand_flows_over(&self, log: &ErrorLog) {
        if let Err(error) = self.flows.hand_over() {
            log_failure(log, &error);
        }
    }
}

fn log_failure(log: &ErrorLog, error: &io::Error) {
    let message = format_args!(
        "cannot start the thread that keeps flows of UDP with their process ({error}); they begin \
         anew in the next one"
    );
    log.event(Level::Alert, message);
}
