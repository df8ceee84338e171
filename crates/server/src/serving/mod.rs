//! The serving process: takes bundles from the master, gives them to the service, and ends when
//! told to. Without its master it goes on until it has another one.
//!
//! The main thread only waits for orders; lanes are the service's threads.

mod orphan;
mod privileges;

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, stdin};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::Value;
use turnpike_conf::Errors;
use turnpike_lane::log::{Errno, ErrorLog, Level, LogSet};
use turnpike_lane::sys::epoll::{Epoll, EventBuffer, Interest};
use turnpike_lane::sys::process::{self, Stream, monotonic_ns};
use turnpike_lane::sys::signal::{self, Signal, SignalQueue};
use turnpike_lane::sys::stack;
use turnpike_plan::product::Product;

use crate::adoption;
use crate::channel::{self, Bundle, Log, Order, Reply};
use crate::configuration::Configuration;
use crate::control::{Request, answer_line};
use crate::error_output;
use crate::lanes;
use crate::service::{Generation, Report, Reporter, Service};

use orphan::{ADOPTION_TOKEN, Adoption};

/// Signals that a person may send to the serving process itself.
const SIGNALS: &[(i32, &str, &str)] = &[
    (libc::SIGTERM, "SIGTERM", ", exiting"),
    (libc::SIGINT, "SIGINT", ", exiting"),
    (libc::SIGQUIT, "SIGQUIT", ", shutting down"),
    (libc::SIGWINCH, "SIGWINCH", ""),
    (libc::SIGUSR1, "SIGUSR1", ", reopening logs"),
    (libc::SIGHUP, "SIGHUP", ", ignoring"),
    (libc::SIGUSR2, "SIGUSR2", ", ignoring"),
];

const CHANNEL_TOKEN: u64 = 0;
const SIGNALS_TOKEN: u64 = 1;
const REPORTS_TOKEN: u64 = 2;

/// Events taken at once: one for each token, and one to spare.
const EVENTS_MAX: usize = 5;

/// Reloads whose connections are to be closed after a while, at most: so many within one
/// `worker_shutdown_timeout`. One more takes the place of the last before it, whose connections are
/// closed with its own.
const CUTS_MAX: usize = 256;

/// How long a process with a lane that is given up finishes what the others are at: that lane takes
/// a CPU meanwhile, and most downloads and WebSockets have ended or come back elsewhere by then.
const STUCK_DRAIN_MAX: Duration = Duration::from_secs(300);

/// How long the end waits, when the time of a graceful end has passed, for requests to be logged.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// Runs a serving process; the channel to the master is its standard input.
///
/// Its name in `/proc/PID/comm` is nginx's where the program is called so: tools look for that.
pub fn process_main(product: Product) -> ExitCode {
    let started = take_channel().and_then(|channel| {
        let numbers: Vec<i32> = SIGNALS.iter().map(|(number, ..)| *number).collect();
        let signals = SignalQueue::new(&numbers)?;
        // The master takes it, and has left it blocked: here it ends the process with a core file.
        signal::unblock(&[libc::SIGABRT])?;
        process::set_thread_name(match product {
            Product::Turnpike => c"turnpike-serve",
            Product::Nginx => c"nginx",
        })?;
        // Without it a silent lane is rescued all the same, and only its stack is not told.
        let _ = stack::prepare();
        Serving::new(channel, Some(signals))
    });
    match started.and_then(Serving::run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            crate::standard_error::write_standard_error(&format!(
                "turnpike: [alert] the serving process failed {}\n",
                Errno(&error)
            ));
            ExitCode::FAILURE
        }
    }
}

/// Serves in a thread of the master (`master_process off`): no signals, no other user.
pub fn thread_main(channel: OwnedFd) {
    if let Err(error) = Serving::new(channel, None).and_then(Serving::run) {
        crate::standard_error::write_standard_error(&format!(
            "turnpike: [alert] the serving thread failed {}\n",
            Errno(&error)
        ));
    }
}

/// Takes the channel from descriptor 0 and puts `/dev/null` there, as a server has it.
fn take_channel() -> io::Result<OwnedFd> {
    let channel = stdin().as_fd().try_clone_to_owned()?;
    let null: OwnedFd = OpenOptions::new().read(true).open("/dev/null")?.into();
    process::redirect(Stream::Input, null.as_fd())?;
    Ok(channel)
}

/// ```text
///  Serving ──Announce──► Announced ──Quit──► Draining ──deadline──► Cutting ──late──► Ended
///     ├──Quit─────────────────────────────────┘ └─Drained─────────────┴───Drained────►▲
///     └──Stop, first bundle refused───────────────────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Serving,
    Announced,
    Draining { until: Option<Instant> },
    Cutting { until: Instant },
    Ended { well: bool },
}

struct Serving {
    channel: OwnedFd,
    signals: Option<SignalQueue>,
    epoll: Epoll,
    reporter: Reporter,
    service: Box<dyn Service>,
    logs: LogSet,
    log: ErrorLog,
    shutdown_timeout: Option<Duration>,
    /// Reloads after which connections are closed that were accepted before: when, and up to what
    /// time they were accepted, in monotonic milliseconds.
    cuts: VecDeque<(Instant, u64)>,
    has_served: bool,
    /// The limit of descriptors that was asked for last.
    limited: Option<u64>,
    /// When the service looks after its lanes next.
    look_at: Option<Instant>,
    adoption: Adoption,
    phase: Phase,
}

impl Serving {
    fn new(channel: OwnedFd, signals: Option<SignalQueue>) -> io::Result<Serving> {
        let epoll = Epoll::new()?;
        let reporter = Reporter::new()?;
        epoll.add(channel.as_fd(), Interest::READ, CHANNEL_TOKEN)?;
        epoll.add(reporter.descriptor(), Interest::READ, REPORTS_TOKEN)?;
        if let Some(signals) = &signals {
            epoll.add(signals.as_fd(), Interest::READ, SIGNALS_TOKEN)?;
        }
        Ok(Serving {
            channel,
            signals,
            epoll,
            service: lanes::service(reporter.clone()),
            reporter,
            logs: LogSet::new(),
            log: ErrorLog::console("turnpike"),
            shutdown_timeout: None,
            cuts: VecDeque::new(),
            has_served: false,
            limited: None,
            look_at: None,
            adoption: Adoption::new(),
            phase: Phase::Serving,
        })
    }

    /// Whether it ended as it should.
    fn run(mut self) -> io::Result<bool> {
        let mut events = EventBuffer::with_capacity(EVENTS_MAX);
        loop {
            match self.phase {
                Phase::Ended { well } => return Ok(well),
                Phase::Draining { until: Some(until) } if until <= Instant::now() => self.cut_all(),
                Phase::Cutting { until } if until <= Instant::now() => self.stop(),
                Phase::Serving
                | Phase::Announced
                | Phase::Draining { .. }
                | Phase::Cutting { .. } => {
                    self.epoll.wait(&mut events, self.timeout_ms())?;
                    let tokens: Vec<u64> = events.iter().map(|event| event.token).collect();
                    for token in tokens {
                        self.take(token)?;
                    }
                    self.look();
                    self.cut_old();
                }
            }
        }
    }

    fn timeout_ms(&self) -> i32 {
        let until = match self.phase {
            Phase::Draining { until } => until,
            Phase::Cutting { until } => Some(until),
            Phase::Serving | Phase::Announced | Phase::Ended { .. } => None,
        };
        let cut = self.cuts.front().map(|(when, _)| *when);
        let Some(next) = until.into_iter().chain(self.look_at).chain(cut).min() else {
            return -1;
        };
        let wait = next.saturating_duration_since(Instant::now()).as_millis() + 1;
        i32::try_from(wait).unwrap_or(i32::MAX)
    }

    /// Has the service look after its lanes when it is time. While draining nothing is accepted.
    fn look(&mut self) {
        if self.is_serving() && self.look_at.is_some_and(|at| at <= Instant::now()) {
            self.look_at = self.service.look().map(|wait| Instant::now() + wait);
        }
        if !self.is_serving() {
            self.look_at = None;
        }
    }

    fn take(&mut self, token: u64) -> io::Result<()> {
        match token {
            _ if matches!(self.phase, Phase::Ended { .. }) => Ok(()),
            CHANNEL_TOKEN => self.take_order(),
            SIGNALS_TOKEN => self.take_signals(),
            ADOPTION_TOKEN => {
                self.meet();
                Ok(())
            }
            _ => {
                self.take_reports();
                Ok(())
            }
        }
    }

    fn take_order(&mut self) -> io::Result<()> {
        match channel::receive_order(self.channel.as_fd())? {
            Some(Order::Apply(bundle)) => self.apply(*bundle),
            Some(Order::Reopen(logs)) => self.reopen(logs),
            Some(Order::Ask { number, request }) => self.ask(number, &request),
            Some(Order::Counts(counts)) => {
                self.adoption.facts.counts = counts;
                self.service.counts(counts);
            }
            Some(Order::Adoption(listener)) => self.be_found_at(listener),
            Some(Order::Succession(links)) => self.service.be_succeeded(links, &self.log),
            Some(Order::Announce) => self.announce(),
            Some(Order::Quit) => self.quit(),
            Some(Order::Stop) => self.stop(),
            None => self.lose_master()?,
        }
        Ok(())
    }

    fn apply(&mut self, bundle: Bundle) {
        let generation = bundle.generation;
        let reply = match self.try_apply(bundle) {
            Ok(report) => {
                self.has_served = true;
                self.look_at = Some(Instant::now());
                // The master closes at once what nothing uses.
                self.take_reports();
                let report = report.to_string();
                Reply::Ready { generation, report }
            }
            Err(message) => {
                if !self.has_served {
                    self.phase = Phase::Ended { well: false };
                }
                Reply::Refused {
                    generation,
                    message,
                }
            }
        };
        // A master that is gone is noticed by what comes from it.
        let _ = channel::send_reply(self.channel.as_fd(), &reply);
    }

    fn try_apply(&mut self, bundle: Bundle) -> Result<Value, String> {
        let loader = Box::new(bundle.loader());
        let globals = bundle.globals.as_deref();
        let configuration = Configuration::load(loader, &bundle.paths, globals);
        let configuration = configuration.map_err(|errors: Errors| errors.to_string())?;
        let mut logs = LogSet::new();
        for Log { path, descriptor } in bundle.logs {
            match self.logs.file(&path) {
                Some(file) => logs.insert(file),
                None => logs.adopt(&path, descriptor),
            }
        }
        let settings = &configuration.settings;
        let log = ErrorLog::from_specs(&settings.error_logs, &logs);
        if !self.has_served && self.signals.is_some() {
            let (rights, limited) = (&bundle.rights, &mut self.limited);
            privileges::settle(&settings.process, &rights.capabilities, limited, &log)?;
            self.adoption.facts.unchangeable =
                adoption::unchangeable(&settings.process, std::env::vars_os(), rights);
            let writable: Vec<PathBuf> = rights.folders.iter().cloned().collect();
            privileges::confine(&settings.process, &writable, &log)?;
        } else if self.signals.is_some() {
            privileges::limit_again(&settings.process, &mut self.limited, &log);
        }
        if self.signals.is_some() {
            error_output::lead_to_log(&configuration, &logs, &log);
        }
        let shutdown_timeout = settings.shutdown_timeout_ms.map(Duration::from_millis);
        // Before the first connection of the new configuration.
        let now_ms = monotonic_ns() / 1_000_000;
        let report = self.service.apply(Generation {
            number: bundle.generation,
            configuration,
            listening_sockets: bundle.listening_sockets,
            logs: logs.clone(),
            error_log: log.clone(),
            extras: bundle.extras,
        })?;
        (self.logs, self.log) = (logs, log);
        self.adoption.facts.generation = bundle.generation;
        self.adoption.facts.prefix = bundle.paths.prefix;
        self.cut_later(now_ms);
        self.shutdown_timeout = shutdown_timeout;
        Ok(report)
    }

    /// Plans the end of the connections that were accepted up to that time, where the
    /// configuration that they came by gives them a time.
    fn cut_later(&mut self, until_ms: u64) {
        let Some(timeout) = self.shutdown_timeout else {
            return;
        };
        if self.cuts.len() == CUTS_MAX {
            self.cuts.pop_back();
        }
        let when = Instant::now() + timeout;
        let place = self.cuts.partition_point(|(other, _)| *other <= when);
        self.cuts.insert(place, (when, until_ms));
    }

    /// Closes the connections whose time after a reload has passed.
    fn cut_old(&mut self) {
        let now = Instant::now();
        while let Some((_, until_ms)) = self.cuts.pop_front_if(|(when, _)| *when <= now) {
            self.service.cut(until_ms);
        }
    }

    /// The time of a graceful end has passed: connections are closed, and their requests logged.
    fn cut_all(&mut self) {
        let until = Instant::now() + CUT_GRACE;
        self.phase = Phase::Cutting { until };
        self.service.cut(u64::MAX);
    }

    fn ask(&mut self, number: u64, request: &[u8]) {
        match Request::parse(request) {
            Ok(request) => self.service.ask(number, request),
            Err((_, failure)) => self.reporter.answered(number, Err(failure)),
        }
    }

    fn reopen(&mut self, logs: Vec<Log>) {
        self.service.flush_logs();
        for Log { path, descriptor } in logs {
            if self.logs.file(&path).is_some() {
                self.logs.adopt(&path, descriptor);
            }
        }
    }

    fn take_signals(&mut self) -> io::Result<()> {
        let mut received = Vec::new();
        if let Some(signals) = &self.signals {
            // Bounded by the kinds of signals there are: the kernel queues each once.
            while let Some(signal) = signals.next()? {
                received.push(signal);
            }
        }
        for Signal {
            number,
            sender_process,
        } in received
        {
            let row = SIGNALS.iter().find(|(known, ..)| *known == number);
            let (_, name, action) = row.copied().unwrap_or((number, "", ""));
            let message =
                format_args!("signal {number} ({name}) received from {sender_process}{action}");
            self.log.event(Level::Notice, message);
            match number {
                _ if matches!(self.phase, Phase::Ended { .. }) => {}
                libc::SIGTERM | libc::SIGINT => self.stop(),
                libc::SIGQUIT => self.quit(),
                libc::SIGUSR1 => self.reopen_itself(),
                _ => {}
            }
        }
        Ok(())
    }

    fn reopen_itself(&mut self) {
        self.service.flush_logs();
        for file in self.logs.files() {
            if let Err(error) = file.reopen() {
                let (path, error) = (file.path().display(), Errno(&error));
                self.log.event(
                    Level::Emerg,
                    format_args!("open() \"{path}\" failed {error}"),
                );
            }
        }
    }

    fn take_reports(&mut self) {
        for report in self.reporter.take() {
            match report {
                Report::Released(generation) => {
                    // A master that is gone need not know.
                    let reply = Reply::Released { generation };
                    let _ = channel::send_reply(self.channel.as_fd(), &reply);
                }
                Report::Answer { number, outcome } => {
                    let outcome = answer_line(&Value::Null, &outcome);
                    // Nor need it know an answer.
                    let reply = Reply::Answer { number, outcome };
                    let _ = channel::send_reply(self.channel.as_fd(), &reply);
                }
                Report::GatesClosed(gates) => {
                    let generation = self.adoption.facts.generation;
                    let reply = Reply::GatesClosed { generation, gates };
                    let _ = channel::send_reply(self.channel.as_fd(), &reply);
                }
                Report::Stuck => {
                    // Without a master nobody can start another process, and this one goes on.
                    let _ = channel::send_reply(self.channel.as_fd(), &Reply::Stuck);
                }
                Report::DatagramsFree if self.is_serving() => self.service.read_datagrams(),
                Report::DatagramsFree => {}
                Report::Drained if self.is_serving() => {}
                Report::Drained => self.stop(),
            }
        }
    }

    fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Serving | Phase::Announced)
    }

    /// Answers close their connections from now on; connections are still accepted, until whoever
    /// sends them here has noticed.
    fn announce(&mut self) {
        if self.phase == Phase::Serving {
            self.phase = Phase::Announced;
            self.service.announce_quit();
        }
    }

    fn quit(&mut self) {
        if !self.is_serving() {
            return;
        }
        self.log
            .event(Level::Notice, format_args!("gracefully shutting down"));
        let limit = self.service.has_given_up().then_some(STUCK_DRAIN_MAX);
        let timeout = [self.shutdown_timeout, limit].into_iter().flatten().min();
        let until = timeout.map(|timeout| Instant::now() + timeout);
        self.phase = Phase::Draining { until };
        self.forget_adoption();
        self.service.quit();
    }

    fn stop(&mut self) {
        self.log.event(Level::Notice, format_args!("exiting"));
        self.service.stop();
        self.service.flush_logs();
        self.service.finish();
        self.log.event(Level::Notice, format_args!("exit"));
        self.phase = Phase::Ended { well: true };
    }
}
