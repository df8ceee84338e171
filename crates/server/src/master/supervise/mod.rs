//! The master's life after start-up.
//!
//! ```text
//!  Starting ──first Ready──► Running ──QUIT──► Quitting ──last child gone──► exit
//!      │                        └──TERM, INT──► Stopping ────────┘   ▲
//!      └──first child gone──► exit 1                (kill after a second)
//! ```
//!
//! A reload is opened beside what is in force ([`state::Pending`]) and takes its place when the
//! serving process says Ready; until then, and when it fails, nothing has changed.

mod adopt;
mod api;
mod control;
mod express;
mod link;
mod reload;
mod serving;
mod state;
mod succeed;
mod succession;
mod upgrade;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::libc;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::epoll::EventBuffer;
use turnpike_lane::sys::process;
use turnpike_lane::sys::signal::{self, Signal, SignalQueue};

use super::child::State;
use super::daemon::Launcher;
use super::express::Step;
use super::gates::GateSet;
use super::inherit::Inherited;
use super::loaded::LoadedConfiguration;
use super::orphan::Orphan;
use super::pid_file::PidFile;
use super::signals::{self, Request};
use super::systemd::{Manager, State as Told};
use super::watch::FileWatch;
use crate::channel::{self, End, SuccessionLinks};
use crate::control::api::{ApiAddress, ApiSocket};
use crate::control::socket::ControlSocket;
use crate::paths::Paths;
use adopt::Adoption;
use api::Api;
use control::Control;
use state::{Events, Lifecycle, Phase, Reloads, ServingProcesses, Starter, Steering};
use succeed::Predecessor;
use turnpike_plan::product::Product;
use upgrade::Successor;

/// How long a serving process may take to end at TERM before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// Between two attempts to steer sockets that another master still steers: it drains for seconds.
const STEER_PAUSE: Duration = Duration::from_secs(1);
/// Attempts once that master is gone: the kernel frees what it had a moment later.
const STEER_TRIES_MAX: u32 = 10;
/// Events taken at once: signals and at most a few children.
const EVENTS_MAX: usize = 16;

const SIGNALS_TOKEN: u64 = 0;

/// The master before this one.
#[derive(Debug)]
pub(super) enum Origin {
    /// There was none.
    Fresh,
    /// A master whose binary is being changed.
    Inherited(Inherited),
    /// A serving process whose master is gone.
    Adopted(Box<Orphan>),
}

/// A running master.
#[derive(Debug)]
pub(super) struct Master {
    paths: Paths,
    globals: Option<String>,
    log: ErrorLog,
    /// What is in force.
    loaded: LoadedConfiguration,
    /// The number of the last configuration that was sent.
    generation: u64,
    pid_file: Option<PidFile>,
    serving: ServingProcesses,
    reloads: Reloads,
    watch: FileWatch,
    control: Control,
    api: Api,
    adoption: Adoption,
    /// What is to be done with the express lane's program next, and when.
    express: Option<(Step, Instant)>,
    others: OtherMasters,
    starter: Starter,
    course: Lifecycle,
    events: Events,
}

/// Masters before and after this one.
#[derive(Debug)]
struct OtherMasters {
    /// A binary that was started to take this one's place.
    successor: Option<Successor>,
    /// The master whose place this one takes.
    predecessor: Option<Predecessor>,
    /// The links to the serving process of that one, for the first of this one.
    succession: SuccessionLinks,
    /// The master ends in favour of another one, which has its names and its sockets.
    is_succeeded: bool,
    steering: Steering,
}

impl Master {
    /// Takes signals, and starts the first serving process.
    pub(super) fn start(
        paths: &Paths,
        globals: Option<&str>,
        loaded: LoadedConfiguration,
        launcher: Option<Launcher>,
        origin: Origin,
        api: Option<ApiAddress>,
    ) -> io::Result<Master> {
        let numbers: Vec<i32> = signals::SIGNALS.iter().map(|row| row.number).collect();
        let signals = SignalQueue::new(&numbers)?;
        // A file or memory that reaches its limit is an error of that write, not the end of the
        // process. Serving processes inherit this.
        signal::ignore(libc::SIGXFSZ)?;
        let settings = &loaded.configuration.settings;
        let has_processes = settings.master_process;
        if settings.daemon || !paths.embedded {
            name_process(paths.product)?;
        }
        let is_fresh = matches!(origin, Origin::Fresh);
        let is_detached = launcher.is_some() || matches!(origin, Origin::Inherited(_));
        let (link_token, end_token) = (SIGNALS_TOKEN + 1, SIGNALS_TOKEN + 2);
        let events = Events::new(signals, SIGNALS_TOKEN, end_token)?;
        let (inherited, orphan) = match origin {
            Origin::Fresh => (None, None),
            Origin::Inherited(inherited) => (Some(inherited), None),
            Origin::Adopted(orphan) => (None, Some(orphan)),
        };
        let (mut succession, mut api_socket) = (SuccessionLinks::default(), None);
        let predecessor = inherited.map(|inherited| {
            succession = inherited.succession;
            api_socket = inherited.api;
            let link = inherited.link.map(|link| (link, link_token));
            Predecessor::new(inherited.parent, link, end_token, &events.epoll)
        });
        let mut master = Master {
            paths: paths.clone(),
            globals: globals.map(str::to_owned),
            log: loaded.log.with_console(settings.product.name()),
            loaded,
            generation: 0,
            pid_file: None,
            serving: ServingProcesses::new(has_processes),
            reloads: Reloads::default(),
            watch: FileWatch::default(),
            control: Control::new(),
            api: Api::new(api, api_socket),
            adoption: Adoption::default(),
            express: None,
            others: OtherMasters {
                successor: None,
                predecessor: predecessor.transpose()?,
                succession,
                is_succeeded: false,
                steering: Steering::first((!is_fresh).then(|| Instant::now() + STEER_PAUSE)),
            },
            starter: Starter {
                launcher,
                is_detached,
                manager: Manager::from_environment(),
            },
            course: Lifecycle::default(),
            events,
        };
        master.watch.begin(&master.loaded.configuration);
        match orphan {
            Some(orphan) => master.adopt(*orphan)?,
            None => master.start_serving()?,
        }
        Ok(master)
    }

    /// Serves until told to end.
    pub(super) fn run(&mut self) -> ExitCode {
        let mut events = EventBuffer::with_capacity(EVENTS_MAX);
        loop {
            if let Some(code) = self.course.exit {
                return code;
            }
            if let Err(error) = self.events.epoll.wait(&mut events, self.timeout_ms()) {
                self.log.event(
                    Level::Alert,
                    format_args!("epoll_wait() failed {}", Errno(&error)),
                );
                return ExitCode::FAILURE;
            }
            for event in events.iter() {
                match event.token {
                    SIGNALS_TOKEN => self.take_signals(),
                    token if ApiSocket::is_ours(token) => self.take_api(event),
                    token if ControlSocket::is_ours(token) => self.take_control(event),
                    token if self.is_successor_link(token) => self.take_successor_link(),
                    token if self.is_predecessor_link(token) => self.take_predecessor_link(),
                    token if self.is_predecessor_end(token) => self.predecessor_ended(),
                    token if self.is_adopted_end(token) => self.adopted_ended(token),
                    token => self.take_reply(token),
                }
            }
            self.run_timers();
        }
    }

    fn timeout_ms(&self) -> i32 {
        let kill_at = match self.course.phase {
            Phase::Stopping { kill_at } => Some(kill_at),
            _ => None,
        };
        let timers = kill_at.into_iter().chain(self.serving.restart_at);
        let timers = timers.chain(self.course.drain_at);
        let timers = timers.chain(self.next_upgrade_deadline());
        let timers = timers.chain(self.starter.manager.next_sign());
        let timers = timers.chain(self.others.steering.next_at);
        let timers = timers.chain(self.express.map(|(_, at)| at));
        let timers = timers.chain(self.watch.next_at.filter(|_| self.is_settled()));
        let next = timers.chain(self.next_control_deadline()).min();
        let Some(next) = next else {
            return -1;
        };
        let wait = next.saturating_duration_since(Instant::now()).as_millis() + 1;
        i32::try_from(wait).unwrap_or(i32::MAX)
    }

    fn run_timers(&mut self) {
        let now = Instant::now();
        self.run_control_timers(now);
        self.run_upgrade_timer(now);
        if let Some(wait) = self.starter.manager.take_due_sign(now) {
            self.look_for_life(wait);
        }
        if self.others.steering.next_at.is_some_and(|at| at <= now) {
            self.steer_again(now);
        }
        if self.express.is_some_and(|(_, at)| at <= now) {
            self.step_express();
        }
        if self.is_settled() && self.watch.next_at.is_some_and(|at| at <= now) {
            self.look_at_files();
        }
        if self.serving.restart_at.is_some_and(|at| at <= now) {
            self.serving.restart_at = None;
            self.restart();
        }
        if self.course.drain_at.is_some_and(|at| at <= now) {
            self.drain();
        }
        if let Phase::Stopping { kill_at } = self.course.phase
            && kill_at <= now
        {
            self.course.phase = Phase::Stopping {
                kill_at: now + STOP_WAIT,
            };
            if !self.serving.has_processes {
                // A thread cannot be killed, and goes with the process.
                self.finish();
            }
            for child in &self.serving.children {
                child.kill();
            }
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.course.phase, Phase::Quitting | Phase::Stopping { .. })
    }
}

/// Signals.
impl Master {
    fn take_signals(&mut self) {
        // Bounded by the kinds of signals there are: the kernel queues each once.
        while let Ok(Some(signal)) = self.events.signals.next() {
            let Some(row) = signals::find(signal.number) else {
                continue;
            };
            let action = match row.request {
                Request::Drain if !self.starter.is_detached => "",
                Request::Upgrade if self.has_other_master() => ", ignoring",
                _ => row.action,
            };
            self.log_signal(signal, row.name, action);
            self.obey(row.request);
        }
    }

    fn log_signal(&self, signal: Signal, name: &str, action: &str) {
        let Signal {
            number,
            sender_process,
        } = signal;
        let log = &self.log;
        if sender_process == 0 {
            let message = format_args!("signal {number} ({name}) received{action}");
            log.event(Level::Notice, message);
        } else {
            let message =
                format_args!("signal {number} ({name}) received from {sender_process}{action}");
            log.event(Level::Notice, message);
        }
    }

    fn obey(&mut self, request: Request) {
        match request {
            Request::Stop => self.stop(),
            Request::Abort => self.abort(),
            Request::Quit => self.quit(),
            Request::Reload if self.is_ending() => {}
            Request::Reload => self.reload(),
            Request::Reopen => self.reopen(),
            Request::Drain if self.starter.is_detached => self.end_children(End::Drained),
            Request::Drain => {}
            Request::Upgrade if self.has_other_master() => {
                let message = "the changing binary signal is ignored: you should shutdown or \
                               terminate before either old or new binary's process";
                self.log.event(Level::Crit, format_args!("{message}"));
            }
            Request::Upgrade => self.change_binary(),
            Request::Reap => self.reap(),
        }
    }

    fn stop(&mut self) {
        if matches!(self.course.phase, Phase::Stopping { .. }) {
            return;
        }
        self.course.phase = Phase::Stopping {
            kill_at: Instant::now() + STOP_WAIT,
        };
        self.begin_end();
        self.end_children(End::Stopped);
    }

    /// Ends at once, and not alone: a serving process that does not work is not to be taken over by
    /// the next start. A core file tells what it was doing.
    fn abort(&mut self) {
        for child in &self.serving.children {
            child.signal(nix::libc::SIGABRT);
        }
        self.stop();
        self.course.has_failed = true;
    }

    fn quit(&mut self) {
        if self.is_ending() {
            return;
        }
        self.course.phase = Phase::Quitting;
        self.begin_end();
        let delay_ms = self.loaded.configuration.settings.shutdown_delay_ms;
        let delay_ms = delay_ms.filter(|delay_ms| *delay_ms > 0);
        // Where another master has the same sockets, whoever connects is served.
        match delay_ms.filter(|_| !self.has_other_master()) {
            Some(delay_ms) => {
                let message = format_args!(
                    "accepting connections for {delay_ms}ms more, to be shut down then"
                );
                self.log.event(Level::Notice, message);
                self.end_children(End::Announced);
                self.course.drain_at = Some(Instant::now() + Duration::from_millis(delay_ms));
            }
            None => self.drain(),
        }
    }

    /// Lets go of all sockets, and has what is running finished. Whoever comes now is refused,
    /// instead of waiting at a socket that nobody accepts from, to be reset at the end.
    fn drain(&mut self) {
        self.course.drain_at = None;
        self.give_way();
        if self.others.is_succeeded {
            // The other one's. What is queued there while this one drains is not to be reset when
            // it ends, should that one be gone by then.
            self.loaded.gates = GateSet::default();
        } else if !self.has_other_master() {
            self.loaded.let_gates_go();
        }
        self.end_children(End::Drained);
    }

    /// Another master may be started from now on, and is not to wait for this one.
    fn give_way(&mut self) {
        if let Some(file) = &self.pid_file {
            file.release();
        }
        if let Some(socket) = self.adoption.socket.take() {
            self.remove_socket(&socket);
        }
    }

    fn begin_end(&mut self) {
        // Another master goes on as the service's main process, and has said so.
        if !self.has_other_master() {
            self.starter.manager.notify(Told::Stopping);
        }
        self.others.is_succeeded |= self.others.successor.is_some();
        self.reloads.pending = None;
        self.serving.restart_at = None;
        self.course.drain_at = None;
        self.others.steering.next_at = None;
    }

    /// Tells the serving processes to end; without any, this process does.
    fn end_children(&mut self, end: End) {
        for child in &mut self.serving.children {
            if child.state == State::Leaving && end != End::Stopped {
                continue;
            }
            if end != End::Announced {
                child.state = State::Leaving;
            }
            // A child that cannot be told is gone, or is killed when its time is up.
            let _ = channel::send_end(child.channel(), end);
        }
        if self.is_ending() && self.serving.children.is_empty() {
            self.finish();
        }
    }

    fn reopen(&mut self) {
        self.log
            .event(Level::Notice, format_args!("reopening logs"));
        let logs = match self.loaded.reopen_logs() {
            Ok(logs) => logs,
            Err(error) => {
                self.log
                    .event(Level::Alert, format_args!("dup() failed {}", Errno(&error)));
                return;
            }
        };
        self.loaded.lead_stderr();
        for child in &self.serving.children {
            if let Err(error) = channel::send_reopen(child.channel(), &logs) {
                self.log.event(
                    Level::Alert,
                    format_args!("sendmsg() failed {}", Errno(&error)),
                );
            }
        }
    }
}

/// Gives the process its name in `/proc/PID/comm`: nginx's where the program is called so, since
/// pgrep, start-stop-daemon and monit look for that.
fn name_process(product: Product) -> io::Result<()> {
    process::set_thread_name(match product {
        Product::Turnpike => c"turnpike-master",
        Product::Nginx => c"nginx",
    })
}
