//! The express lane in the serving process: its memory, and when it answers.

use std::io;
use std::sync::Arc;

use turnpike_express::{Gate, Memory, Passed, Publisher};
use turnpike_http::plan::Plan;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::{ErrorLog, Level};

use crate::channel::{Extra, take_express};

/// What the serving process has of the express lane.
#[derive(Default)]
pub(super) struct ExpressLane {
    /// The program stays attached while its links are open here: a serving process that has lost
    /// its master goes on.
    passed: Option<Passed>,
    memory: Option<Arc<Memory>>,
    /// Of the configuration in force.
    publisher: Option<Arc<Publisher>>,
}

/// A program that another one took the place of, and its memory.
pub(super) struct Replaced(Option<Passed>, Option<Arc<Memory>>);

impl ExpressLane {
    /// Takes the program that a configuration brings, and maps its memory if it is another one.
    /// Returns what was in its place, if that is another one.
    pub(super) fn take(&mut self, extras: &mut Vec<Extra>, log: &ErrorLog) -> Option<Replaced> {
        let passed = take_express(extras)?;
        let is_same = |known: &Passed| known.is_same_program(&passed);
        if self.memory.is_some() && self.passed.as_ref().is_some_and(is_same) {
            self.passed = Some(passed);
            return None;
        }
        let mapped = passed.memory();
        let known = Replaced(self.passed.replace(passed), self.memory.clone());
        match mapped {
            Ok(memory) => self.memory = Some(Arc::new(memory)),
            Err(error) => log.event(
                Level::Warn,
                format_args!("the express lane does not work: mmap() failed ({error})"),
            ),
        }
        Some(known)
    }

    /// The configuration that brought another program is not served: the one before is kept.
    pub(super) fn put_back(&mut self, replaced: Replaced) {
        Replaced(self.passed, self.memory) = replaced;
    }

    /// A copy of the program, for another master.
    pub(super) fn passed(&self) -> io::Result<Option<Passed>> {
        self.passed.as_ref().map(Passed::try_clone).transpose()
    }

    /// The memory, where there is one.
    pub(super) fn memory(&self) -> Option<Arc<Memory>> {
        self.memory.clone()
    }

    /// A configuration comes into force, before lanes take it up: what the one before published is
    /// withdrawn.
    pub(super) fn begin(&mut self, plan: &Plan, publisher: Option<Arc<Publisher>>) {
        match (&publisher, &self.memory) {
            (Some(publisher), _) => publisher.begin(&gates(plan)),
            (None, Some(memory)) => memory.turn_off(),
            (None, None) => {}
        }
        self.publisher = publisher;
    }

    /// What the configuration in force publishes.
    pub(super) fn publisher(&self) -> Option<Arc<Publisher>> {
        self.publisher.clone()
    }

    /// This process accepts no more, or not for now; where another one has begun, that goes on.
    pub(super) fn end(&mut self) {
        if let Some(publisher) = self.publisher.take() {
            publisher.end();
        }
    }
}

/// The gates that clients connect to themselves. Those of plain HTTP, where requests are answered,
/// come first: there is room for some only.
fn gates(plan: &Plan) -> Vec<Gate> {
    let direct = plan.listens.iter().filter(|listen| !listen.proxy_protocol);
    let mut gates: Vec<Gate> = direct
        .filter_map(|listen| match &listen.address {
            ListenAddress::Tcp(address) => Some(Gate {
                address: *address,
                answers: !listen.tls,
            }),
            ListenAddress::Unix(_) | ListenAddress::Udp(_) => None,
        })
        .collect();
    gates.sort_by_key(|gate| !gate.answers);
    gates
}
