//! The master's life after start-up.
//!
//! ```text
//!  Starting ──first Ready──► Running ──QUIT──► Quitting ──last child gone──► exit
//!      │                        └──TERM, INT──► Stopping ────────┘   ▲
//!      └──first child gone──► exit 1                (kill after a second)
//! ```
//!
//! A reload is opened beside what is in force ([`Pending`]) and takes its place when the serving
//! process says Ready; until then, and when it fails, nothing has changed.

use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::epoll::{Epoll, EventBuffer, Interest};
use turnpike_lane::sys::process::{self, Ending};
use turnpike_lane::sys::signal::{Signal, SignalQueue};

use super::child::{Child, Server, State};
use super::daemon::Launcher;
use super::pid_file::PidFile;
use super::signals::{self, Request};
use super::site::{Failure, Site};
use crate::channel::{self, Reply};
use crate::paths::Paths;
use crate::settings::ProcessSettings;
use crate::{embedded, say};

/// How long a serving process may take to end at TERM before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// A serving process that lived shorter than this died of its start.
const LIFE_SHORT: Duration = Duration::from_millis(300);
/// How many such deaths in a row are answered at once: more is a loop, not an accident.
const RESTARTS_AT_ONCE: u32 = 5;
/// The pause before each restart in a loop.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Events taken at once: signals and at most a few children.
const EVENTS_MAX: usize = 16;

const SIGNALS_TOKEN: u64 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Starting,
    Running,
    Quitting,
    Stopping { kill_at: Instant },
}

/// A reload under way.
#[derive(Debug)]
struct Pending {
    site: Site,
    generation: u64,
    /// The child that must say Ready.
    token: u64,
}

/// A running master.
#[derive(Debug)]
pub(super) struct Master {
    paths: Paths,
    globals: Option<String>,
    log: ErrorLog,
    site: Site,
    pending: Option<Pending>,
    reload_again: bool,
    children: Vec<Child>,
    generation: u64,
    token: u64,
    phase: Phase,
    exit: Option<ExitCode>,
    short_lives: u32,
    restart_at: Option<Instant>,
    pid_file: Option<PidFile>,
    launcher: Option<Launcher>,
    daemonized: bool,
    master_process: bool,
    signals: SignalQueue,
    epoll: Epoll,
}

impl Master {
    /// Takes signals, and starts the first serving process.
    pub(super) fn start(
        paths: &Paths,
        globals: Option<&str>,
        site: Site,
        launcher: Option<Launcher>,
    ) -> io::Result<Master> {
        let numbers: Vec<i32> = signals::SIGNALS.iter().map(|row| row.number).collect();
        let signals = SignalQueue::new(&numbers)?;
        let epoll = Epoll::new()?;
        epoll.add(signals.as_fd(), Interest::READ, SIGNALS_TOKEN)?;
        let settings = &site.configuration.settings;
        let master_process = settings.master_process;
        if settings.daemon || !paths.embedded {
            process::set_thread_name(c"turnpike-master")?;
        }
        let mut master = Master {
            paths: paths.clone(),
            globals: globals.map(str::to_owned),
            log: site.log.with_console(),
            site,
            pending: None,
            reload_again: false,
            children: Vec::new(),
            generation: 0,
            token: SIGNALS_TOKEN,
            phase: Phase::Starting,
            exit: None,
            short_lives: 0,
            restart_at: None,
            pid_file: None,
            daemonized: launcher.is_some(),
            launcher,
            master_process,
            signals,
            epoll,
        };
        master.start_serving()?;
        Ok(master)
    }

    /// Serves until told to end.
    pub(super) fn run(&mut self) -> ExitCode {
        let mut events = EventBuffer::with_capacity(EVENTS_MAX);
        loop {
            if let Some(code) = self.exit {
                return code;
            }
            if let Err(error) = self.epoll.wait(&mut events, self.timeout_ms()) {
                self.log.event(
                    Level::Alert,
                    format_args!("epoll_wait() failed {}", Errno(&error)),
                );
                return ExitCode::FAILURE;
            }
            let tokens: Vec<u64> = events.iter().map(|event| event.token).collect();
            for token in tokens {
                if token == SIGNALS_TOKEN {
                    self.take_signals();
                } else {
                    self.take_reply(token);
                }
            }
            self.run_timers();
        }
    }

    fn timeout_ms(&self) -> i32 {
        let kill_at = match self.phase {
            Phase::Stopping { kill_at } => Some(kill_at),
            _ => None,
        };
        let next = kill_at.into_iter().chain(self.restart_at).min();
        let Some(next) = next else {
            return -1;
        };
        let wait = next.saturating_duration_since(Instant::now()).as_millis() + 1;
        i32::try_from(wait).unwrap_or(i32::MAX)
    }

    fn run_timers(&mut self) {
        let now = Instant::now();
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            self.restart();
        }
        if let Phase::Stopping { kill_at } = self.phase
            && kill_at <= now
        {
            self.phase = Phase::Stopping {
                kill_at: now + STOP_WAIT,
            };
            if !self.master_process {
                // A thread cannot be killed, and goes with the process.
                self.finish();
            }
            for child in &self.children {
                child.kill();
            }
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Quitting | Phase::Stopping { .. })
    }
}

/// Signals.
impl Master {
    fn take_signals(&mut self) {
        // Bounded by the kinds of signals there are: the kernel queues each once.
        while let Ok(Some(signal)) = self.signals.next() {
            let Some(row) = signals::find(signal.number) else {
                continue;
            };
            let action = match row.request {
                Request::Drain if !self.daemonized => "",
                Request::Upgrade => ", ignoring",
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
            Request::Quit => self.quit(),
            Request::Reload if self.is_ending() => {}
            Request::Reload => self.reload(),
            Request::Reopen => self.reopen(),
            Request::Drain if self.daemonized => self.end_children(true),
            Request::Drain => {}
            Request::Upgrade => {
                let message = format_args!("starting a new binary is not supported yet");
                self.log.event(Level::Error, message);
            }
            Request::Reap => self.reap(),
        }
    }

    fn stop(&mut self) {
        if matches!(self.phase, Phase::Stopping { .. }) {
            return;
        }
        self.phase = Phase::Stopping {
            kill_at: Instant::now() + STOP_WAIT,
        };
        self.begin_end(false);
    }

    fn quit(&mut self) {
        if self.is_ending() {
            return;
        }
        self.phase = Phase::Quitting;
        self.begin_end(true);
    }

    fn begin_end(&mut self, graceful: bool) {
        self.pending = None;
        self.restart_at = None;
        self.end_children(graceful);
        if self.children.is_empty() {
            self.finish();
        }
    }

    fn end_children(&mut self, graceful: bool) {
        for child in &mut self.children {
            if child.state == State::Leaving && graceful {
                continue;
            }
            child.state = State::Leaving;
            // A child that cannot be told is gone, or is killed when its time is up.
            let _ = channel::send_end(child.channel(), graceful);
        }
    }

    fn reopen(&mut self) {
        self.log
            .event(Level::Notice, format_args!("reopening logs"));
        let logs = match self.site.reopen_logs() {
            Ok(logs) => logs,
            Err(error) => {
                self.log
                    .event(Level::Alert, format_args!("dup() failed {}", Errno(&error)));
                return;
            }
        };
        self.site.lead_stderr();
        for child in &self.children {
            if let Err(error) = channel::send_reopen(child.channel(), &logs) {
                self.log.event(
                    Level::Alert,
                    format_args!("sendmsg() failed {}", Errno(&error)),
                );
            }
        }
    }
}

/// Serving processes.
impl Master {
    /// Starts a server for the configuration in force.
    fn start_serving(&mut self) -> io::Result<()> {
        self.log
            .event(Level::Notice, format_args!("start worker processes"));
        self.generation += 1;
        let child = self.spawn(&self.site.configuration.settings.process.clone())?;
        let bundle = self.site.bundle(self.generation)?;
        let sent = channel::send_apply(child.channel(), &bundle);
        self.children.push(child);
        if let Err(error) = sent {
            // Its end will be noticed, and answered like any other.
            self.log.event(
                Level::Alert,
                format_args!("sendmsg() failed {}", Errno(&error)),
            );
        }
        Ok(())
    }

    fn spawn(&mut self, settings: &ProcessSettings) -> io::Result<Child> {
        self.token += 1;
        let child = if self.master_process {
            let child = Child::process(self.token, settings)?;
            let message = format_args!("start worker process {}", child.number());
            self.log.event(Level::Notice, message);
            child
        } else {
            Child::thread(self.token)?
        };
        self.epoll
            .add(child.channel(), Interest::READ, child.token)?;
        Ok(child)
    }

    fn restart(&mut self) {
        if let Err(error) = self.start_serving() {
            let message = format_args!("could not respawn worker process {}", Errno(&error));
            self.log.event(Level::Alert, message);
            self.restart_at = Some(Instant::now() + RESTART_PAUSE);
        }
    }

    fn reap(&mut self) {
        loop {
            let (process, ending) = match process::reap_child() {
                Ok(Some(ended)) => ended,
                Ok(None) => return,
                Err(error) => {
                    let message = format_args!("waitpid() failed {}", Errno(&error));
                    self.log.event(Level::Alert, message);
                    return;
                }
            };
            self.log_ending(process, ending);
            let is_it =
                |child: &Child| matches!(child.server, Server::Process(own) if own == process);
            if let Some(index) = self.children.iter().position(is_it) {
                self.drain_replies(index);
                let child = self.children.remove(index);
                self.child_gone(&child);
            }
        }
    }

    fn log_ending(&self, process: i32, ending: Ending) {
        match ending {
            Ending::Signal(number) => {
                let message = format_args!("worker process {process} exited on signal {number}");
                self.log.event(Level::Alert, message);
            }
            Ending::Status(code) => {
                let message = format_args!("worker process {process} exited with code {code}");
                self.log.event(Level::Notice, message);
            }
        }
    }

    /// What a child said before it ended may still be unread.
    fn drain_replies(&mut self, index: usize) {
        let (token, state) = (self.children[index].token, self.children[index].state);
        if state == State::Starting {
            self.take_reply(token);
        }
    }

    fn child_gone(&mut self, child: &Child) {
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.token == child.token)
        {
            self.pending = None;
            let message = format_args!("the new configuration was not taken over");
            self.log.event(Level::Emerg, message);
            self.reload_if_asked();
        }
        if self.is_ending() {
            if self.children.is_empty() {
                self.finish();
            }
            return;
        }
        if self.phase == Phase::Starting {
            self.exit = Some(ExitCode::FAILURE);
            return;
        }
        let replaced = self
            .children
            .iter()
            .any(|other| other.state != State::Leaving);
        if child.state == State::Leaving || replaced {
            return;
        }
        self.short_lives = match child.started.elapsed() < LIFE_SHORT {
            true => self.short_lives + 1,
            false => 0,
        };
        if self.short_lives > RESTARTS_AT_ONCE {
            self.restart_at = Some(Instant::now() + RESTART_PAUSE);
        } else {
            self.restart();
        }
    }

    fn take_reply(&mut self, token: u64) {
        let Some(index) = self.children.iter().position(|child| child.token == token) else {
            return;
        };
        match channel::receive_reply(self.children[index].channel()) {
            Ok(Some(Reply::Ready { generation })) => self.ready(index, generation),
            Ok(Some(Reply::Refused { message, .. })) => self.refused(index, &message),
            Ok(Some(Reply::Released { generation })) => {
                let message = format_args!("worker generation {generation} exited with code 0");
                self.log.event(Level::Notice, message);
            }
            Ok(None) => self.channel_closed(index),
            Err(error) => {
                self.log.event(
                    Level::Alert,
                    format_args!("recvmsg() failed {}", Errno(&error)),
                );
                self.children[index].kill();
                self.channel_closed(index);
            }
        }
    }

    /// A process's end comes as a signal too; a thread's is this.
    fn channel_closed(&mut self, index: usize) {
        // It was added when the child was started.
        let _ = self.epoll.delete(self.children[index].channel());
        if let Server::Thread(handle) = &mut self.children[index].server {
            if let Some(handle) = handle.take() {
                // A panic of the thread has been printed where it happened.
                let _ = handle.join();
            }
            let child = self.children.remove(index);
            self.child_gone(&child);
        }
    }

    fn ready(&mut self, index: usize, generation: u64) {
        let child = &mut self.children[index];
        if child.state == State::Starting {
            child.state = State::Serving;
        }
        let message = format_args!("worker generation {generation} started");
        self.log.event(Level::Notice, message);
        if self.phase == Phase::Starting {
            self.up();
        } else if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.generation == generation)
        {
            self.commit();
        }
    }

    fn refused(&mut self, index: usize, message: &str) {
        for line in message.lines() {
            self.log.event(Level::Emerg, format_args!("{line}"));
        }
        let child = &self.children[index];
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.token == child.token)
        {
            self.pending = None;
            self.reload_if_asked();
        }
    }

    /// The first serving process is ready: everything accepts, and may be told of.
    fn up(&mut self) {
        let settings = &self.site.configuration.settings;
        let named = settings.pid_file_named;
        if named || !self.paths.embedded {
            match self
                .paths
                .open_with_folder(&settings.pid_file, PidFile::create)
            {
                Ok(file) => self.pid_file = Some(file),
                Err(error) => {
                    let path = settings.pid_file.display();
                    let (level, rest) = match named {
                        true => (Level::Emerg, ""),
                        false => (Level::Warn, ", no pid file is written"),
                    };
                    let error = Errno(&error);
                    let message = format_args!("open() \"{path}\" failed {error}{rest}");
                    self.log.event(level, message);
                    if named {
                        self.phase = Phase::Stopping {
                            kill_at: Instant::now() + STOP_WAIT,
                        };
                        self.exit = Some(ExitCode::FAILURE);
                        self.end_children(false);
                        return;
                    }
                }
            }
        }
        self.phase = Phase::Running;
        if self.paths.embedded {
            say(embedded::INVITATION);
        }
        self.site.lead_stderr();
        self.log = self.site.log.clone();
        if let Some(launcher) = self.launcher.take() {
            launcher.release();
        }
        self.reload_if_asked();
    }

    fn finish(&mut self) {
        if let Some(pid_file) = self.pid_file.take() {
            pid_file.remove(&self.log);
        }
        self.log.event(Level::Notice, format_args!("exit"));
        self.site
            .gates
            .unlink_except(&Default::default(), &self.log);
        self.exit = Some(ExitCode::SUCCESS);
    }
}

/// Reload.
impl Master {
    fn reload(&mut self) {
        if self.pending.is_some() || self.phase == Phase::Starting {
            self.reload_again = true;
            return;
        }
        self.log.event(Level::Notice, format_args!("reconfiguring"));
        let globals = self.globals.clone();
        let opened = Site::open(&self.paths, globals.as_deref(), Some(&self.site), &self.log);
        let site = match opened {
            Ok(site) => site,
            Err(Failure::Files | Failure::Gate(_)) => return,
        };
        if let Err(error) = self.hand_over(site) {
            self.pending = None;
            let message = format_args!(
                "the new configuration was not handed over {}",
                Errno(&error)
            );
            self.log.event(Level::Emerg, message);
        }
    }

    /// Gives a configuration to the serving process, or to a new one when the running one cannot
    /// become what it asks for.
    fn hand_over(&mut self, site: Site) -> io::Result<()> {
        self.generation += 1;
        let bundle = site.bundle(self.generation)?;
        let new = &site.configuration.settings.process;
        let same = *new == self.site.configuration.settings.process;
        let serving = self
            .children
            .iter()
            .position(|child| child.state == State::Serving);
        let index = match serving.filter(|_| same || !self.master_process) {
            Some(index) => index,
            None => {
                let new = new.clone();
                self.log
                    .event(Level::Notice, format_args!("start worker processes"));
                let child = self.spawn(&new)?;
                self.children.push(child);
                self.children.len() - 1
            }
        };
        let child = &self.children[index];
        let (generation, token) = (self.generation, child.token);
        self.restart_at = None;
        self.pending = Some(Pending {
            site,
            generation,
            token,
        });
        channel::send_apply(child.channel(), &bundle)
    }

    /// The new configuration is being served: what only the old one needed is closed.
    fn commit(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let old = std::mem::replace(&mut self.site, pending.site);
        self.log = self.site.log.clone();
        for child in &mut self.children {
            if child.token != pending.token && child.state != State::Leaving {
                child.state = State::Leaving;
                // A child that cannot be told is gone, and its end will be noticed.
                let _ = channel::send_end(child.channel(), true);
            }
        }
        old.gates.unlink_except(&self.site.gates, &self.log);
        drop(old);
        self.site.lead_stderr();
        self.move_pid_file();
        self.reload_if_asked();
    }

    /// A reload was asked for while another one was under way.
    fn reload_if_asked(&mut self) {
        if std::mem::take(&mut self.reload_again) && !self.is_ending() {
            self.reload();
        }
    }

    fn move_pid_file(&mut self) {
        let path = &self.site.configuration.settings.pid_file;
        let Some(old) = self.pid_file.take_if(|file| file.path() != path) else {
            return;
        };
        match self.paths.open_with_folder(path, PidFile::create) {
            Ok(file) => {
                old.remove(&self.log);
                self.pid_file = Some(file);
            }
            Err(error) => {
                let (name, error) = (path.display(), Errno(&error));
                self.log.event(
                    Level::Emerg,
                    format_args!("open() \"{name}\" failed {error}"),
                );
                self.pid_file = Some(old);
            }
        }
    }
}
