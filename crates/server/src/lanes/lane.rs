//! The lanes' threads.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use turnpike_http::connection::{Apply, Command, Connections};
use turnpike_http::counters::{AllCounters, Doing};
use turnpike_http::lane::{LanePlan, LaneShared};
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::event_loop::{self, EventLoop, Mailbox};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::stack;
use turnpike_stream::directory::FlowDirectory;
use turnpike_stream::own_connections::OwnConnections;

use super::handler::{LaneHandler, StreamPlans, StreamSources};
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
    stream_plans: Arc<StreamPlans>,
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
            self.start.flows.at_end(move || reporter.drained());
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
    /// Counters of all lanes.
    pub(super) counters: Arc<AllCounters>,
    /// Which lane has a flow of UDP.
    pub(super) flows: Arc<FlowDirectory>,
    /// What sessions of all lanes have opened to addresses of ours.
    pub(super) own_connections: Arc<OwnConnections>,
    /// Lanes that run.
    pub(super) running: Arc<AtomicUsize>,
    /// Told when the last one ends.
    pub(super) reporter: Reporter,
    /// Where a lane that fails says why.
    pub(super) error_log: ErrorLog,
}

impl Lane {
    /// Starts a lane on its CPUs with its first plan.
    ///
    /// # Errors
    /// When there is no descriptor or thread for it.
    pub(super) fn start(
        index: usize,
        cpus: Option<CpuSet>,
        start: Start,
        (apply, stream): (Apply, Arc<turnpike_stream::plan::Plan>),
    ) -> io::Result<Self> {
        let mailbox = Arc::new(Mailbox::new()?);
        let letters = mailbox.clone();
        let own_cpus = cpus.clone();
        let facts = Arc::new(OnceLock::new());
        let own_facts = facts.clone();
        let stream_plans = Arc::new(StreamPlans::default());
        let sources = StreamSources {
            plans: stream_plans.clone(),
            flows: start.flows.clone(),
            own_connections: start.own_connections.clone(),
            mailbox: mailbox.clone(),
        };
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
                if let Err(error) = run(
                    index,
                    cpus,
                    &start,
                    &letters,
                    &own_facts,
                    FirstPlans {
                        apply,
                        stream,
                        sources,
                    },
                ) {
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
            stream_plans,
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

    /// Has it take up a plan, and the plan of stream of the same number.
    pub(super) fn apply(&self, apply: Apply, stream: Arc<turnpike_stream::plan::Plan>) {
        self.stream_plans.add(stream);
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

/// The plans that a lane begins with, and where those of stream come from later. They are moved
/// into its handlers: nothing else on the lane may hold a plan for as long as the lane lives.
struct FirstPlans {
    apply: Apply,
    stream: Arc<turnpike_stream::plan::Plan>,
    sources: StreamSources,
}

fn run(
    index: usize,
    cpus: Option<CpuSet>,
    start: &Start,
    mailbox: &Arc<Mailbox<Command>>,
    facts: &OnceLock<Facts>,
    plans: FirstPlans,
) -> io::Result<()> {
    if let Some(cpus) = cpus
        && let Err(error) = cpus.pin_this_thread()
    {
        let message = format_args!("sched_setaffinity() failed for lane {index} ({error})");
        start.error_log.event(Level::Alert, message);
    }
    let shared = LaneShared::new(index, start.counters.clone());
    // It is set once: the lane has just begun.
    let _ = facts.set(Facts {
        thread: stack::thread_number(),
        doing: shared.progress.doing().clone(),
    });
    let mut event_loop = EventLoop::new(shared.clock.clone(), mailbox.as_fd())?;
    let FirstPlans {
        apply,
        stream,
        sources,
    } = plans;
    let plan = LanePlan::new(apply.plan.clone());
    let connections = Connections::new(shared.clone(), plan, mailbox.clone());
    let returned = connections.returned();
    let mut handler = LaneHandler::new(shared, connections, stream, sources);
    handler.http().apply(&mut event_loop, apply);
    event_loop::run(&mut event_loop, &mut handler, &returned)
}
