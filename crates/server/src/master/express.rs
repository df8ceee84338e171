//! The express lane's program: the master loads and attaches it, since it has the privilege, and
//! hands it on: to the serving process, which keeps it attached should the master die, and to the
//! master of another binary.
//!
//! ```text
//!  absent ─► answering ◄─── on ───┐
//!               │ off             │
//!               ▼                 │
//!           draining: the lanes answer, ─3 s─► only what takes connections over is
//!           the program ends what it has begun  attached, ─140 s─► nothing is
//! ```
//!
//! A serving process that dies changes nothing here: what it has published ends with its second,
//! and connections wait at the listening sockets until another one has started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use turnpike_express::{
    Arrival, Attempt, Counts, Installation, Passed, Program, ProgramSettings, Proof, Refusal,
};
use turnpike_lane::log::{ErrorLog, Level};

/// Between two attempts where the kernel has refused to attach the program: whatever is in its
/// place ends by somebody's hand.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks at whether what the program sends from a driver arrives.
const PROOF_LOOK: Duration = Duration::from_millis(200);
/// How long a driver is not tried whose frames have not arrived, first and at most: clients that
/// never meant to connect may have been all there were.
const DISTRUST_FIRST: Duration = Duration::from_secs(60);
const DISTRUST_MAX: Duration = Duration::from_secs(3600);
/// How long the program stays in the driver once it answers no more: as long as clients take to
/// acknowledge the last answers, and connections are marked that were passed on.
const DRIVER_WAIT: Duration = Duration::from_secs(3);
/// How long connections are taken over that have begun with a cookie: a little more than a cookie
/// is good for, two times 2^36 ns.
const COOKIE_WAIT: Duration = Duration::from_secs(140);

/// The program, shared by the configurations that have it.
#[derive(Debug)]
pub(super) struct Express(Mutex<Held>);

#[derive(Debug)]
struct Held {
    installation: Installation,
    /// Another process has loaded it, and it was not seen yet whether it suits.
    is_taken: bool,
    /// What the log has of each interface that the program is not attached to.
    told: BTreeMap<String, String>,
    trust: Trust,
    /// How long drivers are not tried the next time that they lose what is sent.
    distrust: Duration,
}

/// Whether what the program sends from drivers arrives.
#[derive(Debug)]
enum Trust {
    /// Nothing was seen of it yet.
    Open(Proof),
    Given,
    /// None did, and drivers are not tried until then.
    Refused(Instant),
}

/// What is to be done with the program next, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The program is wanted where it could not be attached.
    Attach,
    /// The program is no longer wanted, and connections that have begun are still handed over.
    DetachDrivers,
    Detach,
}

impl Step {
    /// What is to be done first; `None`: all is as it is wanted.
    pub(super) fn first(express: Option<&Express>, is_wanted: bool) -> Option<(Step, Instant)> {
        let held = express?.held();
        let (step, wait) = match is_wanted {
            true => match held.pause() {
                Some(pause) => (Step::Attach, pause),
                None => return None,
            },
            false if !held.installation.is_attached() => return None,
            false => (Step::DetachDrivers, DRIVER_WAIT),
        };
        Some((step, Instant::now() + wait))
    }

    /// Does it; returns the next one, and whether the serving process must be given new links.
    pub(super) fn run(self, express: &Express, log: &ErrorLog) -> (Option<(Step, Instant)>, bool) {
        let mut held = express.held();
        let (next, is_new) = match self {
            Step::Attach => {
                let is_new = held.attach(log) | held.prove(log);
                (held.pause().map(|pause| (Step::Attach, pause)), is_new)
            }
            Step::DetachDrivers => {
                held.installation.detach_drivers();
                (Some((Step::Detach, COOKIE_WAIT)), false)
            }
            Step::Detach => {
                held.installation.detach();
                (None, false)
            }
        };
        let next = next.map(|(step, wait)| (step, Instant::now() + wait));
        (next, is_new)
    }
}

impl Express {
    /// What another process has passed; `None`: this binary does not understand it.
    pub(super) fn take(passed: Passed) -> Option<Arc<Express>> {
        let express = Express::of(Installation::take(passed)?);
        express.held().is_taken = true;
        Some(express)
    }

    fn of(installation: Installation) -> Arc<Express> {
        Arc::new(Express(Mutex::new(Held {
            installation,
            is_taken: false,
            told: BTreeMap::new(),
            trust: Trust::Open(Proof::new(Counts::default())),
            distrust: DISTRUST_FIRST,
        })))
    }

    /// The program as it is wished for: `old`, where that is there, else a new one. The log
    /// says what the kernel refuses.
    pub(super) fn place(
        old: Option<Arc<Express>>,
        wish: &ProgramSettings,
        log: &ErrorLog,
    ) -> Option<Arc<Express>> {
        let Some(old) = old else {
            return match Installation::new(wish) {
                Ok(installation) => {
                    let express = Express::of(installation);
                    express.held().attach(log);
                    Some(express)
                }
                Err(refusal) => {
                    say(log, &refusal);
                    None
                }
            };
        };
        let mut held = old.held();
        if held.is_taken {
            drop(held);
            return Some(old.settle(wish, log));
        }
        if held.installation.wish() != wish {
            log.event(
                Level::Warn,
                format_args!(
                    "\"express_interface\", \"express_mode\", \"express_objects\" and \
                     \"express_memory\" keep their values until the server is restarted"
                ),
            );
        }
        held.attach(log);
        drop(held);
        Some(old)
    }

    /// This one, where it is what this binary would load for the wish; else a new one in its place.
    fn settle(self: Arc<Express>, wish: &ProgramSettings, log: &ErrorLog) -> Arc<Express> {
        let mut held = self.held();
        held.is_taken = false;
        let installation = &held.installation;
        if installation.is_of_this_binary() && installation.wish() == wish {
            held.attach(log);
            drop(held);
            return self;
        }
        let replaced = Installation::new(wish).map(|mut new| {
            // Without the keys connections that have just begun there are lost, and no others.
            let _ = new.replace(installation);
            new
        });
        drop(held);
        match replaced {
            Ok(installation) => {
                let express = Express::of(installation);
                express.held().attach(log);
                express
            }
            Err(refusal) => {
                say(log, &refusal);
                self
            }
        }
    }

    /// Copies for another process.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn pass(&self) -> std::io::Result<Passed> {
        self.held().installation.pass()
    }

    /// Puts the program back where the master of another binary has put its own.
    pub(super) fn renew(&self) {
        self.held().installation.renew();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Attaches the program where it is not; each interface's state is told once. Returns whether
    /// something was attached.
    fn attach(&mut self, log: &ErrorLog) -> bool {
        let mut is_new = false;
        for Attempt { interface, outcome } in self.installation.attach() {
            match outcome {
                Ok(is_native) => {
                    let how = if is_native {
                        "in the driver"
                    } else {
                        "behind the driver (generic XDP)"
                    };
                    log.event(
                        Level::Notice,
                        format_args!("the express lane answers on \"{interface}\" {how}"),
                    );
                    self.told.remove(&interface);
                    is_new = true;
                }
                Err(refusal) => {
                    let text = refusal.to_string();
                    if self.told.insert(interface, text.clone()).as_ref() != Some(&text) {
                        say(log, &refusal);
                    }
                }
            }
        }
        is_new
    }

    /// When there is something to do next, where there is.
    fn pause(&self) -> Option<Duration> {
        let proof = match &self.trust {
            Trust::Open(_) if self.installation.runs_in_driver() => Some(PROOF_LOOK),
            Trust::Open(_) | Trust::Given => None,
            Trust::Refused(until) => Some(until.saturating_duration_since(Instant::now())),
        };
        let missing = (!self.installation.is_complete()).then_some(RETRY_PAUSE);
        proof.into_iter().chain(missing).min()
    }

    /// Sees whether what the program sends from drivers arrives, and takes it off them where it
    /// does not; tries them again later. Returns whether something was attached.
    fn prove(&mut self, log: &ErrorLog) -> bool {
        let now = Instant::now();
        let Ok(counts) = self.installation.proof_counts() else {
            return false;
        };
        match &mut self.trust {
            Trust::Open(proof) if self.installation.runs_in_driver() => {
                match proof.judge(counts, now) {
                    Arrival::Unknown => return false,
                    Arrival::Seen => {
                        self.trust = Trust::Given;
                        return false;
                    }
                    Arrival::Missing => {}
                }
            }
            Trust::Refused(until) if now >= *until => {
                self.trust = Trust::Open(Proof::new(counts));
                self.installation.trust_drivers();
                return self.attach(log);
            }
            Trust::Open(_) | Trust::Given | Trust::Refused(_) => return false,
        }
        log.event(
            Level::Alert,
            format_args!(
                "the express lane has answered in the driver, and no answer arrives (veth needs a \
                 program at its other end): it is taken off the driver for {} s",
                self.distrust.as_secs()
            ),
        );
        self.trust = Trust::Refused(now + self.distrust);
        self.distrust = (self.distrust * 2).min(DISTRUST_MAX);
        self.installation.leave_drivers();
        self.attach(log)
    }
}

/// Says of a configuration that is tested why the express lane would not work here. Whether another
/// program is on an interface is not judged: it may be that of the server that runs already.
pub(super) fn tell(wish: &ProgramSettings, log: &ErrorLog) {
    let found = Program::load(wish.objects).and_then(|_| {
        let mut interfaces = wish.interfaces.iter();
        interfaces.try_for_each(|name| turnpike_express::find_interface(name).map(|_| ()))
    });
    if let Err(refusal) = found {
        say(log, &refusal);
    }
}

fn say(log: &ErrorLog, refusal: &Refusal) {
    log.event(
        Level::Warn,
        format_args!("the express lane does not work: {refusal}; the lanes answer all requests"),
    );
}
