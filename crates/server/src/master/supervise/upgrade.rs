//! Another binary takes the place of this one: the side of the master that is there already.
//!
//! ```text
//!  USR2:     the new master starts beside this one, on the same sockets; who operates the server
//!            then ends one of them (WINCH and QUIT here, or QUIT there and HUP here)
//!
//!  upgrade:  Starting ─ready─► Opening ─accepting─► Pausing ─Ready─► Probing ─serving─► QUIT
//!               │  "go"            │  this side accepts no more, │ "probe"  │
//!               │                  │  what comes waits queued    │          │
//!               └──────────────────┴─────────────┴───────────────┴──────────┴──► backed out
//! ```
//!
//! A new master that was asked for by `upgrade` opens no socket to its lanes before they have
//! answered a request of its own; then it accepts, and is probed through the real sockets while
//! this side accepts nothing. Whatever fails on the way, or takes too long, ends it, and this side
//! goes on as before.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Interest;
use turnpike_lane::sys::process::Ending;
use turnpike_lane::sys::signal;
use turnpike_plan::control::{Arguments, number, text};

use super::Master;
use super::link::Link;
use super::state::Phase;
use crate::control::RequestError;
use crate::control::socket::{PrivateSocket, Ticket};
use crate::master::child::State;
use crate::master::inherit;
use crate::master::orphan::{self, old_path};
use crate::master::pid_file::PidFile;
use crate::master::systemd::State as Told;

/// How long an upgrade may take, unless it is asked for with another limit.
const UPGRADE_WAIT_S: u64 = 60;
/// Longest limit that can be asked for: an hour.
const UPGRADE_WAIT_S_MAX: u64 = 3_600;
/// How long the end of a process may be behind the end of its link.
const END_WAIT: Duration = Duration::from_secs(1);
/// How long a master that is backed out may take to end before it is killed.
const BACK_OUT_WAIT: Duration = Duration::from_secs(5);
/// The same for one that has accepted, and may still answer what it has: as long as most requests
/// take, and not so long that one which hangs keeps our names from us.
const BACK_OUT_DRAIN_WAIT: Duration = Duration::from_secs(30);

/// A master that was started from here.
#[derive(Debug)]
pub(super) struct Successor {
    process: i32,
    /// `None`: by USR2, and whoever sent it decides.
    watch: Option<Watch>,
}

/// An upgrade that decides by itself.
#[derive(Debug)]
struct Watch {
    link: Link,
    stage: UpgradeStage,
    /// When it must have got on.
    until: Instant,
    /// The other master says nothing more.
    has_hung_up: bool,
    since: Instant,
    ticket: Option<Ticket>,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UpgradeStage {
    /// The new master reads its configuration and checks itself.
    Starting,
    /// The new master may accept.
    Opening,
    /// The new master accepts; this side is to stop doing so, with this generation.
    Pausing(u64),
    /// The new master accepts alone, and is probed.
    Probing,
    /// The new master has failed, and is to end.
    BackedOut,
}

/// What is asked of the successor, and what it says.
pub(super) mod words {
    pub(crate) const GO: &str = "go";
    pub(crate) const PROBE: &str = "probe";
    pub(crate) const READY: &str = "ready";
    pub(crate) const ACCEPTING: &str = "accepting";
    pub(crate) const SERVING: &str = "serving";
}

/// The start.
impl Master {
    /// USR2.
    pub(super) fn change_binary(&mut self) {
        if let Err(failure) = self.start_successor(None, None) {
            self.log.event(Level::Alert, format_args!("{failure}"));
        }
    }

    /// Whether USR2 is out of place: another master is here already, before or after this one.
    pub(super) fn has_other_master(&self) -> bool {
        self.others.successor.is_some() || self.has_predecessor()
    }

    /// Whether an upgrade is under way that decides by itself.
    pub(super) fn is_upgrading(&self) -> bool {
        let successor = self.others.successor.as_ref();
        successor.is_some_and(|successor| successor.watch.is_some())
    }

    /// `upgrade`.
    pub(super) fn upgrade(&mut self, ticket: Ticket, arguments: &Arguments) {
        let asked = text(arguments, "binary").and_then(|binary| {
            let wait_s = number(arguments, "timeout_s")?;
            Ok((binary.map(PathBuf::from), wait_s.unwrap_or(UPGRADE_WAIT_S)))
        });
        let outcome = match asked {
            Err(error) => Err(RequestError::from(error)),
            Ok(_) if self.has_other_master() || self.reloads.pending.is_some() => {
                let message = "another upgrade or a reload is under way";
                Err(RequestError::new("busy", message))
            }
            Ok(_) if self.course.phase != Phase::Running => {
                Err(RequestError::failed("the server is ending"))
            }
            Ok((binary, wait_s)) => {
                let wait = Duration::from_secs(wait_s.clamp(1, UPGRADE_WAIT_S_MAX));
                self.start_successor(binary, Some((ticket.clone(), wait)))
            }
        };
        if let Err(failure) = outcome {
            self.tell(&ticket, Err(failure));
        }
    }

    fn start_successor(
        &mut self,
        binary: Option<PathBuf>,
        watched: Option<(Ticket, Duration)>,
    ) -> Result<(), RequestError> {
        let failed = |what: &str, error: &io::Error| {
            RequestError::failed(format!("{what} failed {}", Errno(error)))
        };
        self.log
            .event(Level::Notice, format_args!("start new binary process"));
        let (mut watch, mut theirs) = (None, None);
        if let Some((ticket, wait)) = watched {
            let link = self.make_link();
            let (link, end) = link.map_err(|error| failed("socketpair()", &error))?;
            theirs = Some(end);
            let since = Instant::now();
            watch = Some(Watch {
                link,
                stage: UpgradeStage::Starting,
                until: since + wait,
                has_hung_up: false,
                since,
                ticket: Some(ticket),
            });
        }
        self.rename_files()
            .map_err(|error| failed("rename()", &error))?;
        let (ours, links) = self.succession_links();
        let given = self.paths.standard_input();
        let api = self.api.socket.copy();
        let started = api
            .and_then(|api| inherit::start(binary, &self.loaded.gates, theirs, api, &links, given));
        match started {
            Ok(process) => {
                self.api.socket.pause(&self.events.epoll);
                self.announce_successor(&ours);
                let message = format_args!("start new binary process {process}");
                self.log.event(Level::Notice, message);
                self.others.successor = Some(Successor { process, watch });
                Ok(())
            }
            Err(error) => {
                self.step_back();
                Err(failed("execve() while changing binary", &error))
            }
        }
    }

    fn make_link(&mut self) -> io::Result<(Link, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let token = self.events.new_token();
        self.events.epoll.add(ours.as_fd(), Interest::READ, token)?;
        Ok((Link::new(ours, token), OwnedFd::from(theirs)))
    }

    /// Renames the files whose names another master will use.
    fn rename_files(&mut self) -> io::Result<()> {
        let settings = &self.loaded.configuration.settings;
        if let Some(file) = &mut self.pid_file {
            file.rename(old_path(&settings.pid_file))?;
        }
        if let (Some(path), Some(place)) = (settings.control.path(), self.control.socket.place()) {
            place.rename(&old_path(path))?;
        }
        if let (Some(path), Some(socket)) = (&settings.adoption, &mut self.adoption.socket) {
            socket.rename(&old_path(path))?;
        }
        Ok(())
    }

    /// Takes the names back, also from a successor that has put its own files there, and opens anew
    /// what that one has removed.
    fn step_back(&mut self) {
        if let Err(error) = self.take_names_back() {
            let message = format_args!("rename() back failed {}", Errno(&error));
            self.log.event(Level::Alert, message);
        }
        self.place_control();
        self.api.socket.resume(&self.events.epoll);
    }

    fn take_names_back(&mut self) -> io::Result<()> {
        let settings = &self.loaded.configuration.settings;
        let own = self.adoption.socket.as_ref().map(PrivateSocket::path);
        if let Some(path) = &settings.adoption
            && own == Some(old_path(path).as_path())
        {
            // What the successor has left behind, should it have lost its master.
            orphan::send_away(path);
        }
        if let Some(file) = &mut self.pid_file {
            if file.is_in_place() {
                file.rename(settings.pid_file.clone())?;
            } else {
                *file = PidFile::create(&settings.pid_file)?;
            }
        }
        if let (Some(path), Some(place)) = (settings.control.path(), self.control.socket.place()) {
            if place.is_in_place() {
                place.rename(path)?;
            } else {
                // It is opened anew.
                drop(self.control.socket.leave(&self.events.epoll));
            }
        }
        if let (Some(path), Some(socket)) = (&settings.adoption, &mut self.adoption.socket) {
            if socket.is_in_place() {
                socket.rename(path)?;
            } else {
                self.adoption.socket = None;
            }
        }
        Ok(())
    }
}

/// The state that it is in.
impl Master {
    /// Whether an event is of the link to the successor.
    pub(super) fn is_successor_link(&self, token: u64) -> bool {
        let watch = self
            .others
            .successor
            .as_ref()
            .and_then(|s| s.watch.as_ref());
        watch.is_some_and(|watch| watch.link.token == token)
    }

    pub(super) fn take_successor_link(&mut self) {
        let Some(watch) = self.watch() else {
            return;
        };
        let (lines, ended) = watch.link.read();
        for line in lines {
            self.successor_said(&line);
        }
        let watch = self
            .others
            .successor
            .as_mut()
            .and_then(|s| s.watch.as_mut());
        if let Some(watch) = watch.filter(|_| ended) {
            // It was added when the link was made.
            let _ = self.events.epoll.delete(watch.link.descriptor());
            if watch.stage != UpgradeStage::BackedOut {
                // Its process has most likely ended; how it has is told in a moment.
                watch.has_hung_up = true;
                watch.until = watch.until.min(Instant::now() + END_WAIT);
            }
        }
    }

    fn watch(&mut self) -> Option<&mut Watch> {
        self.others.successor.as_mut()?.watch.as_mut()
    }

    fn successor_said(&mut self, line: &str) {
        let Some(watch) = self.watch() else {
            return;
        };
        match (watch.stage, line) {
            (UpgradeStage::BackedOut, _) => {}
            (UpgradeStage::Starting, words::READY) => {
                watch.stage = UpgradeStage::Opening;
                watch.link.say(words::GO);
            }
            (UpgradeStage::Opening, words::ACCEPTING) => self.pause(),
            (UpgradeStage::Probing, words::SERVING) => self.succeeded(),
            (_, line) => self.back_out(line.trim_start_matches("failed ")),
        }
    }

    /// Accepts nothing, so that what comes is the successor's.
    fn pause(&mut self) {
        self.generation += 1;
        let generation = self.generation;
        let bundle = self.loaded.bundle(generation);
        let mut children = self.serving.children.iter_mut();
        let child = children.find(|child| child.state == State::Serving);
        let none = child.is_none();
        let sent = bundle.and_then(|mut bundle| {
            bundle.listening_sockets.clear();
            child.map_or(Ok(()), |child| child.apply(&bundle))
        });
        if let Err(error) = sent {
            self.back_out(&format!("pausing failed {}", Errno(&error)));
        } else if let Some(watch) = self.watch() {
            watch.stage = UpgradeStage::Pausing(generation);
            if none {
                self.paused(generation);
            }
        }
    }

    /// The serving process has taken this generation up.
    pub(super) fn paused(&mut self, generation: u64) {
        if let Some(watch) = self.watch()
            && watch.stage == UpgradeStage::Pausing(generation)
        {
            watch.stage = UpgradeStage::Probing;
            watch.link.say(words::PROBE);
        }
    }

    fn succeeded(&mut self) {
        let Some(successor) = &mut self.others.successor else {
            return;
        };
        let process = successor.process;
        let Some(watch) = successor.watch.take() else {
            return;
        };
        let took_ms = watch.since.elapsed().as_millis() as u64;
        let message = format_args!(
            "upgraded: process {process} serves, after {took_ms}ms; this one finishes and exits"
        );
        self.log.event(Level::Notice, message);
        if let Some(ticket) = &watch.ticket {
            let old = std::process::id();
            let report = json!({ "old_pid": old, "new_pid": process, "took_ms": took_ms });
            self.tell(ticket, Ok(report));
        }
        if std::mem::take(&mut self.reloads.is_asked_again) {
            self.pass_reload_on(process);
        }
        self.leave();
    }

    /// Has the successor do the reload that was asked for during the upgrade.
    fn pass_reload_on(&mut self, process: i32) {
        // It fails only when the process is gone: then this one's names are for the next.
        let _ = signal::send(process, nix::libc::SIGHUP);
        let tickets = std::mem::take(&mut self.reloads.tickets);
        let message = format!("process {process} has taken over meanwhile, and reloads now");
        self.tell_all(&tickets, &Err(RequestError::failed(message)));
    }

    /// The upgrade is given up: this side goes on, the other one ends.
    fn back_out(&mut self, why: &str) {
        let process = self
            .others
            .successor
            .as_ref()
            .map(|successor| successor.process);
        let (Some(watch), Some(process)) = (self.watch(), process) else {
            return;
        };
        // One that has accepted may still answer what it has.
        let number = match watch.stage {
            UpgradeStage::Starting => nix::libc::SIGTERM,
            _ => nix::libc::SIGQUIT,
        };
        // It fails only when the process is gone, which is what is wanted.
        let _ = signal::send(process, number);
        self.give_up(why);
    }

    /// This side goes on alone.
    fn give_up(&mut self, why: &str) {
        let Some(watch) = self.watch() else {
            return;
        };
        let stage = std::mem::replace(&mut watch.stage, UpgradeStage::BackedOut);
        let wait = match stage {
            UpgradeStage::Starting | UpgradeStage::BackedOut => BACK_OUT_WAIT,
            UpgradeStage::Opening | UpgradeStage::Pausing(_) | UpgradeStage::Probing => {
                BACK_OUT_DRAIN_WAIT
            }
        };
        watch.until = Instant::now() + wait;
        let ticket = watch.ticket.take();
        if stage == UpgradeStage::BackedOut {
            return;
        }
        let message = format!(
            "{why}; backed out, process {} continues",
            std::process::id()
        );
        self.log
            .event(Level::Error, format_args!("upgrade failed: {message}"));
        self.step_back();
        self.resume();
        if let Some(ticket) = ticket {
            self.tell(&ticket, Err(RequestError::failed(message)));
        }
    }

    /// Accepts again, with the kernel choosing as our configuration wants it.
    fn resume(&mut self) {
        self.loaded.open_again();
        // The successor may have said that it is the main process.
        self.starter.manager.notify(Told::Ready);
        let mut children = self.serving.children.iter();
        match children.position(|child| child.state == State::Serving) {
            // The successor may have had the express lane answer for it, and have taken the memory
            // with what commands change.
            Some(index) => self.hand_again(index),
            None if self
                .serving
                .children
                .iter()
                .all(|child| child.state == State::Leaving) =>
            {
                self.restart();
            }
            None => {}
        }
    }

    /// HUP while another master is there: this one is to serve again, by the configuration that it
    /// has, as nginx's does.
    pub(super) fn come_back(&mut self) {
        self.resume();
    }

    pub(super) fn next_upgrade_deadline(&self) -> Option<Instant> {
        let watch = self.others.successor.as_ref()?.watch.as_ref()?;
        Some(watch.until)
    }

    pub(super) fn run_upgrade_timer(&mut self, now: Instant) {
        let Some(watch) = self.watch().filter(|watch| watch.until <= now) else {
            return;
        };
        if watch.stage == UpgradeStage::BackedOut {
            watch.until = now + BACK_OUT_WAIT;
            self.kill_successor();
        } else if watch.has_hung_up {
            self.back_out("the new binary has ended the upgrade");
        } else {
            self.back_out("the new binary does not serve in time");
        }
    }

    /// With the processes that it has started: they might hold on to our sockets.
    fn kill_successor(&self) {
        let Some(successor) = &self.others.successor else {
            return;
        };
        let process = successor.process;
        let children = format!("/proc/{process}/task/{process}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace();
        for process in children
            .filter_map(|number| number.parse().ok())
            .chain([process])
        {
            // It fails only when the process is gone, which is what is wanted.
            let _ = signal::send(process, nix::libc::SIGKILL);
        }
    }

    /// A process has ended. `true`: it was the successor.
    pub(super) fn successor_ended(&mut self, process: i32, ending: Ending) -> bool {
        let was_it = |successor: &&mut Successor| successor.process == process;
        if self.others.successor.as_mut().filter(was_it).is_none() {
            return false;
        }
        let how = match ending {
            Ending::Signal { number, .. } => format!("on signal {number}"),
            Ending::Status(code) => format!("with code {code}"),
        };
        let message = format_args!("new binary process {process} exited {how}");
        self.log.event(Level::Notice, message);
        self.give_up(&format!("the new binary process has exited {how}"));
        self.others.successor = None;
        if self.others.is_succeeded {
            // Its names, and what it served with, are for whoever comes after it.
            return true;
        }
        self.step_back();
        self.place_adoption();
        if !self.is_ending() {
            self.resume();
            self.reload_if_asked();
        }
        true
    }

    /// Ends gracefully in favour of the successor.
    fn leave(&mut self) {
        if !self.is_ending() {
            self.course.phase = Phase::Quitting;
            self.begin_end();
            self.drain();
        }
    }
}
