//! The control socket's requests: what the master answers itself, and what it passes on.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Event;
use turnpike_plan::control::Arguments;

use super::Master;
use super::state::Phase;
use crate::channel::{self, MasterCounts};
use crate::control::socket::{ControlSocket, PrivateSocket, Ticket};
use crate::control::{Home, LIFE_VERB, Request, RequestError, VERBS, family_verbs, find_verb};
use crate::master::child::State;
use crate::settings::ControlPath;
use turnpike_plan::product::{NGINX_VERSION, TURNPIKE_VERSION};

/// How long the serving process may take over its own verbs, which wait for nothing.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// How long a directive family's verb may take: a purge of a large cache on slow disks.
const FAMILY_ANSWER_WAIT: Duration = Duration::from_secs(600);
/// The code of a failure for want of a serving process.
const GONE: &str = "gone";

/// What the master reports about itself and its serving processes, and its clients.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) socket: ControlSocket,
    pub(super) asked: PendingQuestions,
    pub(super) counts: MasterCounts,
    started: SystemTime,
}

impl Control {
    pub(super) fn new() -> Control {
        Control {
            socket: ControlSocket::default(),
            asked: PendingQuestions::default(),
            counts: MasterCounts::default(),
            started: SystemTime::now(),
        }
    }
}

/// Requests that the serving process has in hand.
#[derive(Default, Debug)]
pub(super) struct PendingQuestions {
    questions: HashMap<u64, Question>,
    last: u64,
    /// Systemd was not told that the server lives, and the log knows it.
    is_life_doubted: bool,
}

impl PendingQuestions {
    /// Counts its questions from here on: answers to those of a master before are none of them.
    pub(super) fn count_from(&mut self, number: u64) {
        self.last = number;
    }
}

#[derive(Debug)]
struct Question {
    child: u64,
    until: Instant,
    what: Purpose,
}

/// What becomes of an answer.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The answer is passed on as it is.
    Pass(Ticket),
    /// The answer is a part of the whole server's status.
    Status(Ticket),
    /// The answer says whether the serving process serves.
    SelfCheck,
    /// The answer says whether systemd may be told that the server lives.
    Life,
}

/// The socket's life.
impl Master {
    /// Listens where the configuration says, or no more. `false`: it names a place that cannot be
    /// had; then nothing has changed.
    pub(super) fn place_control(&mut self) -> bool {
        let wanted = self.loaded.configuration.settings.control.clone();
        if self.control.socket.path() == wanted.path() {
            return true;
        }
        let old = match wanted.path() {
            None => self.control.socket.leave(&self.events.epoll),
            Some(path) => match self.control.socket.listen(path, &self.events.epoll) {
                Ok(old) => old,
                Err(error) => return self.control_failed(&wanted, &error),
            },
        };
        if let Some(old) = old {
            self.remove_socket(&old);
        }
        true
    }

    fn control_failed(&self, wanted: &ControlPath, error: &io::Error) -> bool {
        let is_named = matches!(wanted, ControlPath::Named(_));
        let (level, rest) = if is_named {
            (Level::Emerg, "")
        } else {
            (Level::Warn, ", there is no control socket")
        };
        let path = wanted.path().unwrap_or(Path::new("")).display();
        let error = Errno(error);
        let message = format_args!("listen on control socket \"{path}\" failed {error}{rest}");
        self.log.event(level, message);
        !is_named
    }

    /// Says what can still be said, and removes the socket's file.
    pub(super) fn close_control(&mut self) {
        self.control.socket.last_words();
        if let Some(old) = self.control.socket.leave(&self.events.epoll) {
            self.remove_socket(&old);
        }
    }

    pub(super) fn remove_socket(&self, socket: &PrivateSocket) {
        if let Err(error) = socket.remove() {
            let (path, error) = (socket.path().display(), Errno(&error));
            let message = format_args!("unlink() \"{path}\" failed {error}");
            self.log.event(Level::Alert, message);
        }
    }

    pub(super) fn next_control_deadline(&self) -> Option<Instant> {
        let questions = self
            .control
            .asked
            .questions
            .values()
            .map(|question| question.until);
        let clients = self.control.socket.next_deadline();
        let clients = clients.into_iter().chain(self.api.socket.next_deadline());
        questions.chain(clients).min()
    }

    pub(super) fn run_control_timers(&mut self, now: Instant) {
        self.control.socket.close_idle(now);
        self.api.socket.close_late(now);
        let late = |_: &u64, question: &mut Question| question.until <= now;
        let late: Vec<_> = self.control.asked.questions.extract_if(late).collect();
        for (_, question) in late {
            let message = "the serving process has not answered in time";
            self.conclude(question.what, Err(RequestError::new("timed_out", message)));
        }
    }
}

/// Requests.
impl Master {
    pub(super) fn take_control(&mut self, event: Event) {
        for (ticket, request) in self.control.socket.take(event, &self.events.epoll) {
            self.fulfil(ticket, &request);
        }
    }

    fn fulfil(&mut self, ticket: Ticket, request: &Request) {
        let is_own = find_verb(&request.verb).map(|verb| verb.home) == Some(Home::Master);
        if !is_own {
            self.pass_on(request, Purpose::Pass(ticket));
            return;
        }
        self.log.event(
            Level::Notice,
            format_args!("control: \"{}\" is requested", request.verb),
        );
        match request.verb.as_str() {
            "status" => self.pass_on(request, Purpose::Status(ticket)),
            "generation" => self.tell(&ticket, Ok(json!({ "generation": self.generation }))),
            "reload" => self.reload_for(ticket),
            "reopen" => {
                self.reopen();
                self.tell(&ticket, Ok(json!({})));
            }
            "drain" => {
                let timeout_ms = self.loaded.configuration.settings.shutdown_timeout_ms;
                self.tell(
                    &ticket,
                    Ok(json!({ "worker_shutdown_timeout_ms": timeout_ms })),
                );
                self.quit();
            }
            "upgrade" => self.upgrade(ticket, &request.arguments),
            "stop" => {
                self.tell(&ticket, Ok(json!({})));
                self.stop();
            }
            _ => self.tell(&ticket, Ok(verb_list())),
        }
    }

    /// Lets the serving processes show what the master counts.
    pub(super) fn tell_counts(&self) {
        for child in &self.serving.children {
            // A child that cannot be told is gone, and its end will be noticed.
            let _ = channel::send_counts(child.channel(), self.control.counts);
        }
    }

    pub(super) fn tell(&mut self, ticket: &Ticket, outcome: Result<Value, RequestError>) {
        self.tell_all(std::slice::from_ref(ticket), &outcome);
    }

    /// Tells everybody who waits for the same.
    pub(super) fn tell_all(&mut self, tickets: &[Ticket], outcome: &Result<Value, RequestError>) {
        for ticket in tickets {
            if ticket.is_of_api() {
                self.tell_api(ticket, outcome);
            } else {
                let socket = &mut self.control.socket;
                socket.answer(ticket, outcome, &self.events.epoll);
            }
        }
    }

    /// Asks the serving process: the one that serves, or else the one that finishes.
    pub(super) fn pass_on(&mut self, request: &Request, what: Purpose) {
        let rank = |state: State| match state {
            State::Serving => 0,
            State::Starting => 1,
            State::Leaving => 2,
        };
        let child = self
            .serving
            .children
            .iter()
            .min_by_key(|child| rank(child.state));
        let number = self.control.asked.last + 1;
        let sent = child.is_some_and(|child| {
            channel::send_ask(child.channel(), number, request.line().as_bytes()).is_ok()
        });
        let Some(child) = child.filter(|_| sent) else {
            self.conclude(what, Err(gone()));
            return;
        };
        let wait = match (&what, find_verb(&request.verb)) {
            (Purpose::Life, _) | (_, Some(_)) => ANSWER_WAIT,
            (_, None) => FAMILY_ANSWER_WAIT,
        };
        let question = Question {
            child: child.token,
            until: Instant::now() + wait,
            what,
        };
        self.control.asked.last = number;
        self.control.asked.questions.insert(number, question);
    }

    /// Asks the serving process for a sign of life, to be passed on to systemd, which waits so
    /// long. A master that lives is of no use to a client.
    pub(super) fn look_for_life(&mut self, wait: Duration) {
        let mut questions = self.control.asked.questions.values();
        if questions.any(|question| matches!(question.what, Purpose::Life)) {
            return;
        }
        let request = Request {
            id: Value::Null,
            verb: LIFE_VERB.to_owned(),
            arguments: Arguments::new(),
        };
        self.pass_on(&request, Purpose::Life);
        let mut questions = self.control.asked.questions.values_mut();
        if let Some(own) = questions.find(|question| matches!(question.what, Purpose::Life)) {
            own.until = own.until.min(Instant::now() + wait);
        }
    }

    fn told_of_life(&mut self, outcome: Result<Value, RequestError>) {
        let failure = match outcome {
            // Another one is about to be started.
            Err(failure) if failure.code != GONE => failure,
            Ok(_) | Err(_) => {
                self.control.asked.is_life_doubted = false;
                self.starter.manager.give_sign();
                return;
            }
        };
        if !std::mem::replace(&mut self.control.asked.is_life_doubted, true) {
            self.log.event(
                Level::Alert,
                format_args!("{failure}; the watchdog of systemd is no longer notified"),
            );
        }
    }

    /// The serving process has answered.
    pub(super) fn answered(&mut self, number: u64, outcome: &str) {
        // Without a question its time was over.
        let Some(question) = self.control.asked.questions.remove(&number) else {
            return;
        };
        let answer: Value = serde_json::from_str(outcome).unwrap_or_default();
        let outcome = match answer.get("error") {
            Some(error) => Err(RequestError::from_value(error)),
            None => Ok(answer["result"].clone()),
        };
        self.conclude(question.what, outcome);
    }

    /// A serving process is gone, and with it what it was asked.
    pub(super) fn unanswered(&mut self, child: u64) {
        let lost = |_: &u64, question: &mut Question| question.child == child;
        let lost: Vec<_> = self.control.asked.questions.extract_if(lost).collect();
        for (_, question) in lost {
            self.conclude(question.what, Err(gone()));
        }
    }

    fn conclude(&mut self, what: Purpose, outcome: Result<Value, RequestError>) {
        match what {
            Purpose::Pass(ticket) => self.tell(&ticket, outcome),
            Purpose::SelfCheck => self.self_checked(outcome),
            Purpose::Life => self.told_of_life(outcome),
            Purpose::Status(ticket) => {
                let status = self.status(outcome.ok());
                self.tell(&ticket, Ok(status));
            }
        }
    }

    fn status(&self, serving: Option<Value>) -> Value {
        let phase = match self.course.phase {
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Quitting => "draining",
            Phase::Stopping { .. } => "stopping",
        };
        let started = self
            .control
            .started
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let uptime = self.control.started.elapsed().unwrap_or_default();
        let paths = &self.paths;
        json!({
            "version": TURNPIKE_VERSION,
            "nginx_version": NGINX_VERSION,
            "pid": std::process::id(),
            "phase": phase,
            "generation": self.generation,
            "configuration": paths.name(),
            "prefix": paths.prefix.to_string_lossy(),
            "started_unix_s": started.as_secs(),
            "uptime_s": uptime.as_secs(),
            "reloads": self.control.counts.reloads,
            "reloads_failed": self.control.counts.reloads_failed,
            "serving_restarts": self.control.counts.restarts,
            "serving_cores": self.control.counts.cores,
            "serving": serving,
        })
    }
}

fn gone() -> RequestError {
    RequestError::new(GONE, "there is no serving process to ask")
}

fn verb_list() -> Value {
    let own = VERBS.iter().map(|verb| verb.row);
    let verbs = own.chain(family_verbs().copied());
    let verbs: Vec<Value> = verbs
        .map(|row| json!({ "verb": row.name, "arguments": row.arguments, "summary": row.summary }))
        .collect();
    json!({ "verbs": verbs })
}
