//! What serves requests, as the serving process sees it: a [`Service`] that is handed one
//! [`Generation`] after another.
//!
//! Nothing here knows a request, and nothing behind it knows a process.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use turnpike_express::Passed;
use turnpike_lane::log::{ErrorLog, LogSet};
use turnpike_lane::sys::descriptor::Waker;

use crate::channel::{Extra, ListeningSocket, MasterCounts, SuccessionLinks};
use crate::configuration::Configuration;
use crate::control::{Request, RequestError};

/// A configuration and its descriptors, ready to be served.
#[derive(Debug)]
pub struct Generation {
    /// Counts up; what [`Reporter::released`] takes.
    pub number: u64,
    /// The checked configuration.
    pub configuration: Configuration,
    /// The listening sockets. Those that the service has already (same [`ListeningSocket::gate`])
    /// come again as further descriptors of the same socket and can be dropped; those that it has
    /// and that do not come again are to be closed once their queues are empty.
    pub listening_sockets: Vec<ListeningSocket>,
    /// The open log files: all of this configuration's.
    pub logs: LogSet,
    /// The main context's error log.
    pub error_log: ErrorLog,
    /// Other descriptors that were passed.
    pub extras: Vec<Extra>,
}

/// What serves requests. Called by the serving process's main thread only; lanes are the
/// service's own threads, started at the first [`Service::apply`], when privileges are dropped.
pub trait Service {
    /// Serves this configuration from now on, and tells what that has changed. It must be in force
    /// when this returns, so that the master may close what the one before it needed.
    ///
    /// # Errors
    /// Why it cannot be served, in words for the log; then the one before must still be served.
    fn apply(&mut self, generation: Generation) -> Result<Value, String>;

    /// Carries out a verb of the control socket; [`Reporter::answered`] is due once, from any
    /// thread, with `number`. Must not wait: what takes time gets a thread of its own.
    fn ask(&mut self, number: u64, request: Request);

    /// Looks after its threads: whether one has gone silent. Returns when to look again; `None`
    /// when there is nothing to look after before the next [`Service::apply`].
    fn look(&mut self) -> Option<Duration> {
        None
    }

    /// What another master must have to go on with this service.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    fn holdings(&self) -> std::io::Result<Holdings>;

    /// What only the master knows, for the metrics.
    fn counts(&mut self, counts: MasterCounts);

    /// Writes buffered log lines: the files behind them are about to be replaced.
    fn flush_logs(&mut self);

    /// Lets every answer from now on say that its connection is closed; all else goes on.
    fn announce_quit(&mut self);

    /// Another serving process is to follow, which is at the other ends of these links: at the end
    /// it gets the connections that wait for a request, and flows of UDP stay with this service.
    fn be_succeeded(&mut self, links: SuccessionLinks, log: &ErrorLog);

    /// Reads datagrams, which a process before had been left.
    fn read_datagrams(&mut self);

    /// Stops accepting, lets connections finish what they are at, and closes those that begin
    /// nothing any more; then [`Reporter::drained`] is due. Called once.
    fn quit(&mut self);

    /// Closes the connections that were accepted up to that time, in monotonic milliseconds,
    /// whatever they are at; requests that this ends are logged.
    fn cut(&mut self, until_ms: u64);

    /// Closes all connections and ends all threads before it returns.
    fn stop(&mut self);

    /// Whether a thread of the service is given up, which ends with the process only.
    fn has_given_up(&self) -> bool {
        false
    }

    /// Completes what the background services still have to do, after [`Service::stop`]. It blocks
    /// for a second or two at most for each of them.
    fn finish(&mut self);
}

/// Copies of what a service holds of its master's.
#[derive(Debug, Default)]
pub struct Holdings {
    /// The listening sockets in the order of the configuration in force, each with its number.
    pub gates: Vec<(u64, OwnedFd)>,
    /// The board of the steering program.
    pub board: Option<OwnedFd>,
    /// The program of the express lane.
    pub express: Option<Passed>,
    /// What commands have changed.
    pub changes: Option<String>,
}

/// What a service tells the serving process's main thread.
#[derive(Clone, PartialEq, Debug)]
pub enum Report {
    /// Nothing uses the generation of this number any more.
    Released(u64),
    /// The process before reads datagrams no more; [`Service::read_datagrams`] is due.
    DatagramsFree,
    /// Nothing is left to finish after [`Service::quit`].
    Drained,
    /// Nothing uses the listening sockets of these numbers, which the configuration has no more.
    GatesClosed(Vec<u64>),
    /// A thread is given up: another process has to take this one's place.
    Stuck,
    /// A question was answered.
    Answer {
        /// The question's number.
        number: u64,
        /// What was done, or why not.
        outcome: Result<Value, RequestError>,
    },
}

/// Takes reports from any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter(Arc<Inbox>);

#[derive(Debug)]
struct Inbox {
    reports: Mutex<Vec<Report>>,
    waker: Waker,
}

impl Reporter {
    /// A reporter with an empty inbox.
    ///
    /// # Errors
    /// Those of `eventfd(2)`.
    pub fn new() -> std::io::Result<Reporter> {
        let inbox = Inbox {
            reports: Mutex::default(),
            waker: Waker::new()?,
        };
        Ok(Reporter(Arc::new(inbox)))
    }

    /// The last user of this generation is gone; due once for every generation that another one
    /// has replaced.
    pub fn released(&self, generation: u64) {
        self.report(Report::Released(generation));
    }

    /// The process before reads datagrams no more.
    pub fn datagrams_free(&self) {
        self.report(Report::DatagramsFree);
    }

    /// Nothing is left to finish.
    pub fn drained(&self) {
        self.report(Report::Drained);
    }

    /// Nothing uses these listening sockets, which the configuration has no more.
    pub fn gates_closed(&self, numbers: Vec<u64>) {
        self.report(Report::GatesClosed(numbers));
    }

    /// A thread is given up.
    pub fn stuck(&self) {
        self.report(Report::Stuck);
    }

    /// A question is answered.
    pub fn answered(&self, number: u64, outcome: Result<Value, RequestError>) {
        self.report(Report::Answer { number, outcome });
    }

    /// Becomes readable with a report.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0.waker)
    }

    /// Takes all reports.
    pub fn take(&self) -> Vec<Report> {
        // A spurious wake is harmless, and so is a lost drain.
        let _ = self.0.waker.drain();
        std::mem::take(
            &mut *self
                .0
                .reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn report(&self, report: Report) {
        self.0
            .reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(report);
        // It fails only when the descriptor is broken, which no report can mend.
        let _ = self.0.waker.wake();
    }
}
