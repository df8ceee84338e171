//! Verbs of the control socket that the service answers: its own, and those that directive families
//! offer with the plan in force.

use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use turnpike_http::counters::{COUNTERS, HttpCounters, WatchedGate};
use turnpike_lane::pool::PoolRefusal;
use turnpike_lane::steering::Level;
use turnpike_lane::sys::process::unix_ms;
use turnpike_lane::sys::socket_option;
use turnpike_plan::background::run_command;
use turnpike_plan::control::{Arguments, Command, text};
use turnpike_plan::metrics::{Format, Kind, Samples, write_json, write_prometheus};
use turnpike_plan::protocol::ProtocolPlan as _;
use turnpike_protocols::Plans;

use super::self_check::SelfCheck;
use super::service::LaneService;
use super::{caches, certificates, upstream_failures};
use crate::control::{LIFE_VERB, Request, RequestError};
use crate::service::Reporter;

/// Counts of what clients did: `status` leaves the server's own questions out, each of which is a
/// connection with one request.
const OF_CLIENTS: [&str; 3] = ["connections_accepted", "connections_handled", "requests"];

/// The waiting requests of HTTP/2 connections, which have a limit of their own.
const STREAMS: &str = "http_streams_waiting";

impl LaneService {
    /// Answers, or lets a thread answer.
    pub(super) fn answer(&mut self, number: u64, request: Request) {
        let Request {
            verb, arguments, ..
        } = request;
        let outcome = match verb.as_str() {
            "status" => Ok(self.status()),
            "lanes" => Ok(self.lane_list()),
            "gates" => Ok(self.gate_list()),
            "metrics" => self.metrics(&arguments),
            "connections" => Ok(self.connection_counts()),
            "certificates" => Ok(certificates::list(&self.family_samples())),
            LIFE_VERB => self.life(),
            "requests" => match self.requests(number, &arguments) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            _ => match self.command(&verb) {
                Some(command) => {
                    run(self.reporter.clone(), number, command, arguments);
                    return;
                }
                None => Err(RequestError::unknown_verb(&verb)),
            },
        };
        self.reporter.answered(number, outcome);
    }

    fn command(&self, verb: &str) -> Option<Arc<dyn Command>> {
        let plan = self.plan.as_ref()?;
        if verb == "self_check" {
            let listens = plan.http.listens.iter();
            let proxied = listens
                .map(|listen| (!listen.quic).then_some(listen.proxy_protocol))
                .collect();
            let answered = self.self_checks.clone();
            return Some(Arc::new(SelfCheck { proxied, answered }));
        }
        plan.command(verb)
    }

    fn status(&mut self) -> Value {
        let rates = self.rates.read(&self.counters);
        self.rates.note(&self.counters);
        let own = self.self_checks.load(Ordering::Relaxed);
        let mut totals = Map::new();
        for entry in COUNTERS {
            let mut total = self.counters.total(entry.counter);
            if OF_CLIENTS.contains(&entry.row.name) {
                total = total.saturating_sub(own);
            }
            totals.insert(entry.row.name.to_owned(), total.into());
        }
        let verbs = self.plan.as_ref().map(Plans::verbs).unwrap_or_default();
        let samples = self.family_samples();
        json!({
            "pid": std::process::id(),
            "generation": self.plan.as_ref().map(|plan| plan.generation),
            "lanes": self.lanes.len(),
            "servers": self.plan.as_ref().map(Plans::server_count),
            "listens": self.plan.as_ref().map(|plan| plan.listens().count()),
            "verbs": verbs,
            "connections_max": self.connections_max(),
            "steering": self.steering(),
            "certificate": certificates::first(&samples),
            "upstream_failure": upstream_failures::last(&samples),
            "caches": caches::used(&samples),
            "totals": totals,
            "rates": rates,
        })
    }

    /// How the kernel chooses among the sockets of each address, where it is told how.
    fn steering(&self) -> Value {
        let Some(plan) = &self.plan else {
            return json!({});
        };
        let level = |(listen, level): (&usize, &Level)| {
            let address = plan.listens().nth(*listen)?.address.to_string();
            Some((address, level.name().into()))
        };
        Value::Object(self.steering_levels.iter().filter_map(level).collect())
    }

    /// The connections that all lanes can have, those to upstream servers and listening sockets
    /// among them.
    fn connections_max(&self) -> Option<usize> {
        let plan = self.plan.as_ref()?;
        let each = plan.http.events.connections_max;
        Some(each.saturating_mul(self.lanes.len()))
    }

    /// Whether some lane comes round: this thread does, or it would not answer.
    fn life(&self) -> Result<Value, RequestError> {
        if self.is_stuck() {
            Err(RequestError::failed(
                "no lane works, nor the one started for them",
            ))
        } else {
            Ok(json!({}))
        }
    }

    fn lane_list(&self) -> Value {
        let lane = |(number, counters): &(usize, Arc<HttpCounters>)| {
            let mut members = Map::new();
            members.insert("lane".to_owned(), (*number).into());
            members.insert("state".to_owned(), self.lane_state(*number).into());
            for entry in COUNTERS {
                let value = (entry.counter)(counters).value();
                members.insert(entry.row.name.to_owned(), value.into());
            }
            Value::Object(members)
        };
        let lanes = self.counters.numbered();
        let lanes: Vec<Value> = lanes.iter().map(lane).collect();
        json!({ "lanes": lanes })
    }

    /// The metrics of the families in force.
    fn family_samples(&self) -> Samples {
        let readers = self
            .plan
            .as_ref()
            .map(|plan| &plan.http.offers().readers[..]);
        Samples::of(readers.unwrap_or_default())
    }

    fn metrics(&self, arguments: &Arguments) -> Result<Value, RequestError> {
        let mut samples = self.family_samples();
        samples.read(&*self.counters);
        let format = match text(arguments, "format")? {
            None | Some("prometheus") => Format::Prometheus,
            Some("openmetrics") => Format::OpenMetrics,
            Some("json") => return Ok(write_json(&samples, unix_ms())),
            Some(other) => {
                let message = format!("\"{other}\" is not a format of metrics");
                return Err(RequestError::new("invalid", &message));
            }
        };
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = write_prometheus(&samples, format, &mut page);
        Ok(json!({ "text": page }))
    }

    /// Has the metrics tell of the gates in force.
    pub(super) fn show_gates(&self) {
        let Some(plan) = &self.plan else {
            return;
        };
        let gate = |(listen, lane, socket): &(usize, Option<usize>, Arc<OwnedFd>)| {
            let address = plan.listens().nth(*listen)?.address.to_string();
            Some(WatchedGate::new(address, *lane, socket))
        };
        self.counters
            .watch_gates(self.listening_sockets.iter().filter_map(gate).collect());
        self.counters
            .set_process(|process| process.generation = plan.generation);
    }

    fn connection_counts(&self) -> Value {
        let gauges = || {
            let rows = COUNTERS
                .iter()
                .filter(|entry| entry.row.kind == Kind::Gauge);
            rows.filter_map(|entry| match entry.row.name {
                STREAMS => Some((STREAMS, entry)),
                name => Some((name.strip_prefix("connections_")?, entry)),
            })
        };
        let mut total = Map::new();
        for (name, entry) in gauges() {
            total.insert(name.to_owned(), self.counters.total(entry.counter).into());
        }
        let lane = |(number, counters): &(usize, Arc<HttpCounters>)| {
            let mut members = Map::new();
            members.insert("lane".to_owned(), (*number).into());
            for (name, entry) in gauges() {
                members.insert(name.to_owned(), (entry.counter)(counters).value().into());
            }
            Value::Object(members)
        };
        let lanes = self.counters.numbered();
        let lanes: Vec<Value> = lanes.iter().map(lane).collect();
        json!({ "total": total, "lanes": lanes })
    }

    fn gate_list(&self) -> Value {
        let Some(plan) = &self.plan else {
            return json!({ "gates": [] });
        };
        let mut before = vec![0; plan.listens().count()];
        let gate = |(number, lane, socket): &(usize, Option<usize>, Arc<OwnedFd>)| {
            let listen = plan.listens().nth(*number)?;
            let wanted = if listen.mode.has_gate_per_lane() {
                self.lanes.len()
            } else {
                1
            };
            let before = before.get_mut(*number)?;
            *before += 1;
            // A unix socket does not tell.
            let queue = socket_option::tcp_info(socket.as_fd()).ok();
            Some(json!({
                "address": listen.address.to_string(),
                "mode": listen.mode.name(),
                "proxy_protocol": plan.http.listens.get(*number).map(|one| one.proxy_protocol),
                "steering": self.steering_levels.get(number).map(|level| level.name()),
                "lane": lane,
                "spare": *before > wanted,
                "queued": queue.as_ref().map(|info| info.accept_queue),
                "queue_max": queue.as_ref().map(|info| info.accept_queue_max),
            }))
        };
        let gates: Vec<Value> = self.listening_sockets.iter().filter_map(gate).collect();
        json!({ "gates": gates })
    }
}

/// Has a thread carry a command out and answer.
fn run(reporter: Reporter, number: u64, command: Arc<dyn Command>, arguments: Arguments) {
    let work = move || command.run(&arguments).map_err(RequestError::from);
    run_work(reporter, number, work);
}

/// Has a thread do work and answer with its outcome.
pub(super) fn run_work(
    reporter: Reporter,
    number: u64,
    work: impl FnOnce() -> Result<Value, RequestError> + Send + 'static,
) {
    let teller = reporter.clone();
    let work = move || {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let outcome = outcome.unwrap_or_else(|_| {
            Err(RequestError::failed(
                "the command failed because of an internal error of the server",
            ))
        });
        teller.answered(number, outcome);
    };
    let refusal = match run_command(work) {
        Ok(()) => return,
        Err(PoolRefusal::Full) => RequestError::new("busy", "too many commands are running"),
        Err(PoolRefusal::NoThread(error)) => {
            RequestError::failed(format!("no thread could be started ({error})"))
        }
    };
    reporter.answered(number, Err(refusal));
}
