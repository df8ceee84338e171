//! The express lane in the serving process: its memory, and when it answers.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use turnpike_express::{Gate, Memory, Publisher};
use turnpike_http::plan::Plan;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::{ErrorLog, Level};

use crate::channel::{EXPRESS_ARRAYS, EXPRESS_LINK, Extra};

/// What the serving process has of the express lane.
#[derive(Default)]
pub(super) struct ExpressLane {
    memory: Option<Arc<Memory>>,
    /// The program stays attached while one of these is open: a serving process that has lost its
    /// master goes on.
    links: Vec<OwnedFd>,
    /// Of the configuration in force.
    publisher: Option<Arc<Publisher>>,
}

impl ExpressLane {
    /// Maps the memory, which the first configuration that wants it brings.
    pub(super) fn take(&mut self, extras: &mut Vec<Extra>, log: &ErrorLog) {
        let arrays = EXPRESS_ARRAYS.map(|name| take_extra(extras, name));
        let links = std::iter::from_fn(|| take_extra(extras, EXPRESS_LINK));
        let links: Vec<OwnedFd> = links.collect();
        let [Some(answers), Some(settings), Some(counters), Some(drops)] = arrays else {
            return;
        };
        if self.memory.is_some() {
            return;
        }
        let arrays = [&answers, &settings, &counters, &drops];
        match Memory::map(arrays.map(|array| array.as_fd())) {
            Ok(memory) => {
                self.memory = Some(Arc::new(memory));
                self.links = links;
            }
            Err(error) => log.event(
                Level::Warn,
                format_args!("the express lane does not work: mmap() failed ({error})"),
            ),
        }
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

    /// This process serves no more; where another one has begun, that goes on.
    pub(super) fn end(&mut self) {
        if let Some(publisher) = self.publisher.take() {
            publisher.end();
        }
    }
}

fn take_extra(extras: &mut Vec<Extra>, name: &str) -> Option<OwnedFd> {
    let place = extras.iter().position(|extra| extra.name == name)?;
    Some(extras.remove(place).descriptor)
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
