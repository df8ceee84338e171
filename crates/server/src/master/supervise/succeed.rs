//! The side of the new master in a change of binary: it shows that it serves before the one before
//! it lets go.
//!
//! ```text
//!  Checking ──answered──► Held ──"go"──► Opening ──Ready──► Accepting ──"probe"──► done
//!     lanes have only a socket of our own      lanes have every socket   each is asked through
//! ```

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use turnpike_lane::gate::{Gate, ListenAddress, ListenOptions};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Interest;
use turnpike_lane::sys::process::{self, ProcessHandle};
use turnpike_plan::control::Arguments;

use super::control::Purpose;
use super::link::Link;
use super::state::Phase;
use super::upgrade::words;
use super::{Master, STEER_PAUSE, STEER_TRIES_MAX};
use crate::channel::{Bundle, CHECK_GATES_FROM, ListeningSocket, take_express};
use crate::control::{Request, RequestError};
use crate::master::orphan;

/// The master before this one.
#[derive(Debug)]
pub(super) struct Predecessor {
    process: i32,
    /// By which its end is noticed, and the handle's number in the event queue.
    handle: Option<(ProcessHandle, u64)>,
    trial: Option<Trial>,
}

/// What it wants to see.
#[derive(Debug)]
struct Trial {
    link: Link,
    stage: TakeoverStage,
    /// Where lanes are asked before they have other sockets.
    check: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TakeoverStage {
    Checking,
    Held,
    Opening(u64),
    Accepting,
}

impl Predecessor {
    /// The master that has started this one, with its link if it waits for us.
    ///
    /// # Errors
    /// When it cannot be watched.
    pub(super) fn new(
        process: i32,
        link: Option<(UnixStream, u64)>,
        token: u64,
        epoll: &turnpike_lane::sys::epoll::Epoll,
    ) -> io::Result<Predecessor> {
        // One that is gone already is dismissed when this one is up.
        let handle = ProcessHandle::open(process).ok();
        if let Some(handle) = &handle {
            epoll.add(handle.as_fd(), Interest::READ, token)?;
        }
        let handle = handle.map(|handle| (handle, token));
        let Some((stream, token)) = link else {
            return Ok(Predecessor {
                process,
                handle,
                trial: None,
            });
        };
        stream.set_nonblocking(true)?;
        epoll.add(stream.as_fd(), Interest::READ, token)?;
        let trial = Trial {
            link: Link::new(stream, token),
            stage: TakeoverStage::Checking,
            check: Vec::new(),
        };
        Ok(Predecessor {
            process,
            handle,
            trial: Some(trial),
        })
    }
}

impl Master {
    /// Whether the master before this one still runs.
    pub(super) fn has_predecessor(&self) -> bool {
        let parent = process::parent_process();
        self.others
            .predecessor
            .as_ref()
            .is_some_and(|predecessor| predecessor.process == parent)
    }

    /// Whether an event says that the master before this one has ended.
    pub(super) fn is_predecessor_end(&self, token: u64) -> bool {
        let handle = self
            .others
            .predecessor
            .as_ref()
            .and_then(|p| p.handle.as_ref());
        handle.is_some_and(|(_, own)| *own == token)
    }

    /// The master before this one has ended.
    pub(super) fn predecessor_ended(&mut self) {
        let handle = self
            .others
            .predecessor
            .as_mut()
            .and_then(|p| p.handle.take());
        if let Some((handle, _)) = handle {
            // It was added when this one was started.
            let _ = self.events.epoll.delete(handle.as_fd());
        }
        if self.course.phase == Phase::Running {
            self.dismiss_predecessor();
            if self.is_settled() {
                self.loaded.gates.renew_express();
                self.hand_express_again();
            }
        }
    }

    /// The master before this one is gone: should it have been killed, its serving process still
    /// serves on the same sockets, and its names are still there.
    pub(super) fn dismiss_predecessor(&self) {
        if self.others.predecessor.is_none() || self.has_predecessor() {
            return;
        }
        let settings = &self.loaded.configuration.settings;
        let places = [Some(settings.pid_file.as_path()), settings.control.path()];
        if let Some(path) = &settings.adoption {
            orphan::send_away(&orphan::old_path(path));
        }
        let places = places.into_iter().chain([settings.adoption.as_deref()]);
        for path in places.flatten() {
            // It has removed them itself where it could.
            let _ = fs::remove_file(orphan::old_path(path));
        }
    }

    /// Puts our steering program in charge once the one of the master before is gone.
    pub(super) fn steer_again(&mut self, now: Instant) {
        self.others.steering.next_at = None;
        if self.is_ending() {
            return;
        }
        let mut wanting = true;
        if !self.has_predecessor() && self.reloads.pending.is_none() {
            self.others.steering.tries += 1;
            let changed;
            (changed, wanting) = self.loaded.steer_again();
            if changed {
                self.hand_serving_again();
            }
        }
        wanting &= self.others.steering.tries < STEER_TRIES_MAX;
        self.others.steering.next_at = wanting.then(|| now + STEER_PAUSE);
    }

    fn trial(&mut self) -> Option<&mut Trial> {
        self.others.predecessor.as_mut()?.trial.as_mut()
    }

    /// The bundle of a serving process that starts. On trial its lanes get sockets of our own, one
    /// each, for us to ask them.
    pub(super) fn first_bundle(&mut self) -> io::Result<Bundle> {
        let mut bundle = self.loaded.bundle(self.generation)?;
        let links = std::mem::take(&mut self.others.succession);
        bundle.extras.extend(links.into_extras());
        let lanes = self.loaded.configuration.settings.process.lanes;
        let has_listen = !bundle.listening_sockets.is_empty();
        let Some(trial) = self.trial() else {
            return Ok(bundle);
        };
        if !matches!(trial.stage, TakeoverStage::Checking | TakeoverStage::Held) {
            return Ok(bundle);
        }
        bundle.listening_sockets.clear();
        // The master before this one has it until then.
        take_express(&mut bundle.extras);
        trial.check.clear();
        for lane in (0..lanes).take_while(|_| has_listen) {
            let (descriptor, address) = check_socket()?;
            trial.check.push(json!({ "address": address, "listen": 0 }));
            bundle.listening_sockets.push(ListeningSocket {
                listen: 0,
                gate: CHECK_GATES_FROM + lane as u64,
                lane: Some(lane),
                steering: None,
                descriptor,
            });
        }
        Ok(bundle)
    }

    /// A serving process is ready. `true`: the start is not over with that.
    pub(super) fn on_trial(&mut self, generation: u64) -> bool {
        let is_ending = self.is_ending();
        let Some(trial) = self.trial() else {
            return false;
        };
        match trial.stage {
            TakeoverStage::Checking => {
                let check = std::mem::take(&mut trial.check);
                self.self_check(&check);
                true
            }
            TakeoverStage::Held => true,
            // It was told to end meanwhile, and is to have no names.
            TakeoverStage::Opening(_) if is_ending => true,
            TakeoverStage::Opening(expected) if expected == generation => {
                self.up();
                if self.course.phase == Phase::Running
                    && let Some(trial) = self.trial()
                {
                    trial.stage = TakeoverStage::Accepting;
                    trial.link.say(words::ACCEPTING);
                }
                true
            }
            TakeoverStage::Opening(_) | TakeoverStage::Accepting => false,
        }
    }

    fn self_check(&mut self, places: &[Value]) {
        let mut arguments = Arguments::new();
        arguments.insert("places".to_owned(), Value::from(places));
        let request = Request {
            id: Value::Null,
            verb: "self_check".to_owned(),
            arguments,
        };
        self.pass_on(&request, Purpose::SelfCheck);
    }

    pub(super) fn self_checked(&mut self, outcome: Result<Value, RequestError>) {
        let Some(trial) = self.trial() else {
            return;
        };
        match (outcome, trial.stage) {
            (Err(failure), _) => self.fail_trial(&failure.message),
            (Ok(_), TakeoverStage::Checking) => {
                trial.stage = TakeoverStage::Held;
                trial.link.say(words::READY);
            }
            (Ok(_), _) => {
                trial.link.say(words::SERVING);
                let message = format_args!("the new binary has taken over");
                self.log.event(Level::Notice, message);
                if let Some(predecessor) = &mut self.others.predecessor {
                    predecessor.trial = None;
                }
            }
        }
    }

    /// Whether an event is of the link to the predecessor.
    pub(super) fn is_predecessor_link(&self, token: u64) -> bool {
        let trial = self
            .others
            .predecessor
            .as_ref()
            .and_then(|p| p.trial.as_ref());
        trial.is_some_and(|trial| trial.link.token == token)
    }

    pub(super) fn take_predecessor_link(&mut self) {
        let Some(trial) = self.trial() else {
            return;
        };
        let (lines, ended) = trial.link.read();
        for line in lines {
            let Some(trial) = self.trial() else {
                return;
            };
            match (trial.stage, line.as_str()) {
                (TakeoverStage::Held, words::GO) => self.open_gates(),
                (TakeoverStage::Accepting, words::PROBE) => {
                    let places = self.gate_places();
                    self.self_check(&places);
                }
                _ => self.fail_trial("the masters do not understand each other"),
            }
        }
        let Some(trial) = self.trial().filter(|_| ended) else {
            return;
        };
        match trial.stage {
            // It says so when it gives this one up: it is gone, and this one has every socket.
            TakeoverStage::Opening(_) | TakeoverStage::Accepting => {
                let message = "the old binary's master is gone; this one continues without it";
                self.log.event(Level::Alert, format_args!("{message}"));
                if let Some(predecessor) = &mut self.others.predecessor {
                    predecessor.trial = None;
                }
            }
            TakeoverStage::Checking | TakeoverStage::Held => {
                self.fail_trial("the old binary's master has ended the upgrade");
            }
        }
    }

    /// Gives the lanes every socket.
    fn open_gates(&mut self) {
        self.generation += 1;
        let generation = self.generation;
        if let Some(trial) = self.trial() {
            trial.stage = TakeoverStage::Opening(generation);
        }
        let sent = self.loaded.bundle(generation).and_then(|bundle| {
            let child = self.serving.children.first_mut();
            child.map_or(Ok(()), |child| child.apply(&bundle))
        });
        if let Err(error) = sent {
            self.fail_trial(&format!("opening failed {}", Errno(&error)));
        }
    }

    fn gate_places(&self) -> Vec<Value> {
        let mut places = Vec::new();
        for (listen, address) in self.loaded.gates.addresses().enumerate() {
            let address = address.to_string();
            places.push(json!({ "address": address, "listen": listen }));
        }
        places
    }

    /// The new server does not serve: the master before it goes on.
    fn fail_trial(&mut self, why: &str) {
        self.log.event(
            Level::Emerg,
            format_args!("this binary does not serve: {why}"),
        );
        let trial = self
            .others
            .predecessor
            .as_mut()
            .and_then(|p| p.trial.take());
        let mut has_accepted = false;
        if let Some(mut trial) = trial {
            trial.link.say(&format!("failed {why}"));
            has_accepted = matches!(
                trial.stage,
                TakeoverStage::Opening(_) | TakeoverStage::Accepting
            );
        }
        if has_accepted {
            self.quit();
        } else {
            self.stop();
        }
        self.course.has_failed = true;
    }

    /// The code to end with.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.course.has_failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn check_socket() -> io::Result<(OwnedFd, String)> {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let gate = Gate::open(&address, &ListenOptions::default(), &mut Vec::new())
        .map_err(|failure| failure.error)?;
    let address = gate.address().to_string();
    Ok((gate.into_descriptor(), address))
}
