//! The lanes' threads.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use turnpike_http::counters::Doing;
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::event_loop::Mailbox;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::stack;
use turnpike_protocols::{Apply, Command, LaneHandler, Process};

use crate::service::Reporter;

/// Stack of a lane's thread in bytes. Nothing on it grows with the input.
const STACK_BYTES: usize = 1024 * 1024;

/// A running lane, as the main thread sees it.
pub(super) struct Lane {
    mailbox: Arc<Mailbox<Command>>,
    thread: JoinHandle<()>,
    /// The CPUs that it was last told to run on.
    pub(super) cpus: Option<CpuSet>,
    facts: Arc<OnceLock<Facts>>,
    end: Arc<LaneEnd>,
}

/// The end of a lane, which happens once: its thread ends, or it is given up.
struct LaneEnd {
    has_ended: AtomicBool,
    start: Start,
}

impl LaneEnd {
    /// The last lane that ends tells so.
    fn ended(&self) {
        if self.has_ended.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.start.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Another process may still ask for flows, also in vain.
            let reporter = self.start.reporter.clone();
            self.start
                .process
                .common
                .flows
                .at_end(move || reporter.drained());
        }
    }
}

/// What others may know of a running lane.
#[derive(Clone)]
pub(super) struct Facts {
    /// The thread's number.
    pub(super) thread: i32,
    /// The last request.
    pub(super) doing: Arc<Doing>,
}

/// What every lane is started with.
#[derive(Clone)]
pub(super) struct Start {
    /// What lanes share.
    pub(super) process: Arc<Process>,
    /// Lanes that run.
    pub(super) running: Arc<AtomicUsize>,
    /// Told when the last one ends.
    pub(super) reporter: Reporter,
    /// Where a lane that fails says why.
    pub(super) error_log: ErrorLog,
}

impl Lane {
    /// Starts a lane on its CPUs with its first plans.
    ///
    /// # Errors
    /// When there is no descriptor or thread for it.
    pub(super) fn start(
        index: usize,
        cpus: Option<CpuSet>,
        start: Start,
        apply: Apply,
    ) -> io::Result<Self> {
        let mailbox = Arc::new(Mailbox::new()?);
        let letters = mailbox.clone();
        let own_cpus = cpus.clone();
        let facts = Arc::new(OnceLock::new());
        let own_facts = facts.clone();
        start.running.fetch_add(1, Ordering::SeqCst);
        let end = Arc::new(LaneEnd {
            has_ended: AtomicBool::new(false),
            start: start.clone(),
        });
        let own_end = end.clone();
        let thread = thread::Builder::new()
            .name(format!("lane {index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                if let Err(error) = run(index, cpus, &start, &letters, &own_facts, apply) {
                    start
                        .error_log
                        .event(Level::Emerg, format_args!("lane {index} failed ({error})"));
                }
                letters.close();
                own_end.ended();
            })?;
        Ok(Self {
            mailbox,
            thread,
            cpus: own_cpus,
            facts,
            end,
        })
    }

    /// What is known of it, once it runs.
    pub(super) fn facts(&self) -> Option<&Facts> {
        self.facts.get()
    }

    /// Where it takes commands, for other lanes.
    pub(super) fn mailbox(&self) -> Arc<Mailbox<Command>> {
        self.mailbox.clone()
    }

    /// Whether it has nothing to do any more.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Has it take plans up.
    pub(super) fn apply(&self, apply: Apply) {
        self.send(Command::Apply(Box::new(apply)));
    }

    /// Sends a command. A lane that has ended takes none, and needs none.
    pub(super) fn send(&self, command: Command) {
        self.mailbox.send(command);
    }

    /// Gives it up: nothing waits for it any more, and its thread goes with the process.
    pub(super) fn give_up(&self) {
        self.end.ended();
    }

    /// Waits for its end, unless it is given up.
    pub(super) fn join(self) {
        if self.end.has_ended.load(Ordering::SeqCst) && !self.thread.is_finished() {
            return;
        }
        // A lane that panicked has said so; there is nothing else to learn from it.
        let _ = self.thread.join();
    }
}

/// Runs a lane to its end. Its first plans are moved into its handler: nothing else on the lane may
/// hold a plan for as long as the lane lives.
fn run(
    index: usize,
    cpus: Option<CpuSet>,
    start: &Start,
    mailbox: &Arc<Mailbox<Command>>,
    facts: &OnceLock<Facts>,
    apply: Apply,
) -> io::Result<()> {
    if let Some(cpus) = cpus
        && let Err(error) = cpus.pin_this_thread()
    {
        let message = format_args!("sched_setaffinity() failed for lane {index} ({error})");
        start.error_log.event(Level::Alert, message);
    }
    let (mut handler, mut event_loop) = LaneHandler::begin(index, &start.process, mailbox, apply)?;
    // It is set once: the lane has just begun.
    let _ = facts.set(Facts {
        thread: stack::thread_number(),
        doing: handler.protocols().http.doing(),
    });
    handler.run(&mut event_loop)
}
