//! Groups while the server runs: verbs of the control socket, and metrics.
//!
//! A mode or weight that was commanded holds until it is commanded otherwise or the process ends;
//! a reload does not change it. Servers that were added last until the next reload. Nothing is
//! written to a file: what should outlive the process belongs in the configuration.

use std::sync::Arc;

use turnpike_lane::counters::{AnswerCounts, Kind};
use turnpike_plan::builder::Builder;
use turnpike_plan::control::{
    Arguments, Command, CommandError, CommandRow, Value, json, number, required_text, text,
};
use turnpike_plan::metrics::{self, Reader, Samples};
use turnpike_upstream::{FailReason, Group, Mode, Peer};

use super::all_groups::{AllGroups, NamedGroup};
use super::background::BackgroundTasks;
use super::{servers, stream_metrics};

/// What a verb does.
#[derive(Clone, Copy)]
enum Verb {
    List,
    Mode(Mode),
    Weight,
    Add,
    Remove,
}

const fn row(name: &'static str, arguments: &'static str, summary: &'static str) -> CommandRow {
    CommandRow {
        name,
        arguments,
        summary,
    }
}

/// The verbs, in the order of [`VERBS`].
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "upstream.list",
        "[upstream=NAME]",
        "Shows the groups and the state of their servers.",
    ),
    row(
        "upstream.drain",
        "upstream=NAME peer=ADDRESS",
        "Stops new requests to a server, except those of sessions bound to it.",
    ),
    row(
        "upstream.down",
        "upstream=NAME peer=ADDRESS",
        "Stops all new requests to a server.",
    ),
    row(
        "upstream.up",
        "upstream=NAME peer=ADDRESS",
        "Enables requests to a server again and clears its failures.",
    ),
    row(
        "upstream.weight",
        "upstream=NAME peer=ADDRESS weight=NUMBER",
        "Changes the weight of a server; 0 restores the configured weight.",
    ),
    row(
        "upstream.add",
        "upstream=NAME peer=ADDRESS [parameters=TEXT]",
        "Adds a server until the next reload, with parameters as in the configuration.",
    ),
    row(
        "upstream.remove",
        "upstream=NAME peer=ADDRESS",
        "Removes a server until the next reload.",
    ),
];

const VERBS: [Verb; 7] = [
    Verb::List,
    Verb::Mode(Mode::Draining),
    Verb::Mode(Mode::Down),
    Verb::Mode(Mode::Up),
    Verb::Weight,
    Verb::Add,
    Verb::Remove,
];

const PLAIN: metrics::Row = metrics::Row {
    name: "",
    kind: Kind::Gauge,
    unit: "requests",
    labels: &["upstream", "peer"],
    help: "",
};

/// The metrics: those of groups of `http`, then those of groups of `stream`.
pub(super) const METRICS: &[metrics::Row] =
    &with::<11, 8, 19>(OF_REQUESTS, stream_metrics::METRICS);

const fn with<const N: usize, const M: usize, const ALL: usize>(
    first: [metrics::Row; N],
    second: [metrics::Row; M],
) -> [metrics::Row; ALL] {
    let mut all = [PLAIN; ALL];
    let mut at = 0;
    while at < N + M {
        all[at] = if at < N { first[at] } else { second[at - N] };
        at += 1;
    }
    all
}

const OF_REQUESTS: [metrics::Row; 11] = [
    metrics::Row {
        name: "upstream_requests",
        kind: Kind::Counter,
        help: "Attempts to pass a request to a server.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_failures",
        kind: Kind::Counter,
        labels: &["upstream", "peer", "reason"],
        help: "Failed attempts and failed health checks of a server, by reason.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_active",
        help: "Active requests of a server.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_available",
        unit: "servers",
        help: "Whether a server can take requests at the moment: 1 or 0.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_responses",
        kind: Kind::Counter,
        unit: "responses",
        labels: &["upstream", "peer", "class"],
        help: "Complete responses of a server, by class of status.",
    },
    metrics::Row {
        name: "upstream_sent_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes of requests sent to a server that answered completely.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_received_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes of complete responses received from a server.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_response_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        help: "Time until the end of a complete response of a server, in whole milliseconds.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_queued",
        labels: &["upstream"],
        help: "Requests that wait for a server of the group (queue).",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_queue_refused",
        kind: Kind::Counter,
        labels: &["upstream"],
        help: "Requests that found the queue full.",
        ..PLAIN
    },
    metrics::Row {
        name: "upstream_retries_refused",
        kind: Kind::Counter,
        labels: &["upstream"],
        help: "Retries that the budget of the group did not allow (retry_budget).",
        ..PLAIN
    },
];

/// Offers the verbs, and the metrics of the plan's groups of `http`.
pub(super) fn offer<S>(builder: &mut Builder<'_, S>) {
    offer_verbs(builder);
    let tasks = builder.store::<BackgroundTasks>().clone();
    builder.metrics(Arc::new(Counts(tasks)));
}

/// Offers the verbs, which are about the groups of all protocols.
pub(super) fn offer_verbs<S>(builder: &mut Builder<'_, S>) {
    let groups = AllGroups::of(builder);
    for (row, verb) in ROWS.iter().zip(VERBS) {
        let groups = groups.clone();
        builder.command(row, Arc::new(Manage { groups, verb }));
    }
}

/// Carries a verb out.
struct Manage {
    groups: Arc<AllGroups>,
    verb: Verb,
}

impl Command for Manage {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let groups = self.groups.list();
        if let Verb::List = self.verb {
            let wanted = text(arguments, "upstream")?;
            let listed = match wanted {
                None => groups.iter().map(describe).collect(),
                Some(name) => vec![describe(find(&groups, name)?)],
            };
            return Ok(json!({ "upstreams": Value::Array(listed) }));
        }
        let named = find(&groups, required_text(arguments, "upstream")?)?;
        let group = &named.1;
        let name = required_text(arguments, "peer")?;
        if let Verb::Add = self.verb {
            let words = text(arguments, "parameters")?.unwrap_or_default();
            let words: Vec<&str> = words.split_ascii_whitespace().collect();
            let peers = servers::commanded(name, &words, group.states(), &group.peers());
            group.add(peers.map_err(CommandError::Invalid)?);
            return Ok(describe(named));
        }
        let peers = group.peers();
        let mut wanted = peers
            .iter()
            .filter(|peer| peer.name() == name || peer.server() == name)
            .peekable();
        if wanted.peek().is_none() {
            let message = format!("upstream \"{}\" has no peer \"{name}\"", group.name());
            return Err(CommandError::NotFound(message));
        }
        let weight = number(arguments, "weight")?;
        for peer in wanted {
            self.change(group, peer, weight)?;
        }
        group.refresh();
        Ok(describe(named))
    }
}

impl Manage {
    fn change(&self, group: &Group, peer: &Peer, weight: Option<u64>) -> Result<(), CommandError> {
        match self.verb {
            Verb::Mode(mode) => peer.command_mode(Some(mode)),
            Verb::Weight => {
                let weight = weight.and_then(|weight| u32::try_from(weight).ok());
                let missing = || CommandError::Invalid("\"weight\" must be given".to_owned());
                peer.command_weight(weight.ok_or_else(missing)?);
            }
            Verb::Remove => {
                group.remove(peer.state().id());
            }
            Verb::List | Verb::Add => {}
        }
        Ok(())
    }
}

fn find<'a>(groups: &'a [NamedGroup], name: &str) -> Result<&'a NamedGroup, CommandError> {
    let found = groups.iter().find(|(known, _)| known == name);
    found.ok_or_else(|| CommandError::NotFound(format!("there is no upstream \"{name}\"")))
}

fn describe((name, group): &NamedGroup) -> Value {
    let peers: Vec<Value> = group
        .peers()
        .iter()
        .map(|peer| describe_peer(peer))
        .collect();
    json!({ "name": name, "peers": peers })
}

fn describe_peer(peer: &Peer) -> Value {
    let state = peer.state();
    // An average of nothing is none: no request, or none that was answered.
    let average_ms = |time_ms: u64| (state.requests() > state.failures()).then_some(time_ms);
    json!({
        "address": peer.name(),
        "server": peer.server(),
        "state": peer.condition(),
        "mode": peer.mode().text(),
        "available": peer.is_available_now(),
        "healthy": state.is_healthy(),
        "backup": peer.settings().backup,
        "weight": peer.weight(),
        "max_conns": peer.settings().max_conns,
        "active": state.active(),
        "requests": state.requests(),
        "fails": state.fails(),
        "failures": state.failures(),
        "header_ms": average_ms(state.header_ms()),
        "response_ms": average_ms(state.response_ms()),
    })
}

/// Reads the metrics.
struct Counts(BackgroundTasks);

impl Reader for Counts {
    fn read(&self, samples: &mut Samples) {
        let [
            requests,
            failures,
            active,
            available,
            responses,
            sent,
            received,
            times,
            queued,
            queue_refused,
            retries_refused,
            ..,
        ] = METRICS
        else {
            return;
        };
        for group in self.0.groups() {
            for peer in group.peers() {
                let (labels, state) = ([group.name(), peer.name()], peer.state());
                samples.number(requests, &labels, state.requests());
                let counts = FailReason::WORDS.iter().zip(state.failures_by_reason());
                for (reason, count) in counts {
                    samples.number(failures, &[group.name(), peer.name(), reason], count);
                }
                samples.number(active, &labels, u64::from(state.active()));
                samples.number(available, &labels, u64::from(peer.is_available_now()));
                let answers = state.answers();
                let counts = AnswerCounts::CLASSES.iter().zip(answers.by_class());
                for (class, count) in counts {
                    samples.number(responses, &[group.name(), peer.name(), class], count);
                }
                samples.number(sent, &labels, answers.request_bytes());
                samples.number(received, &labels, answers.response_bytes());
                samples.distribution(times, &labels, answers.times());
            }
            let name = [group.name()];
            samples.number(queued, &name, group.queued() as u64);
            samples.number(queue_refused, &name, group.queue_refused());
            samples.number(retries_refused, &name, group.retries_refused());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use turnpike_plan::control::{Command, Value, json};
    use turnpike_upstream::{Group, GroupSettings, GroupStates, Mode};

    use turnpike_http::exchange::Exchange;

    use super::{AllGroups, Manage, ROWS, VERBS, describe_peer};
    use crate::upstream::servers;

    #[test]
    fn a_server_that_was_never_asked_has_no_times() {
        let states = std::sync::Arc::new(GroupStates::default());
        let source = servers::commanded("127.0.0.1:1", &[], &states, &[]).unwrap();
        let group = Group::new("u", GroupSettings::default(), vec![source], states);
        let peer = describe_peer(&group.peers()[0]);
        assert_eq!(
            (&peer["header_ms"], &peer["response_ms"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(peer["state"], "up");
        group.peers()[0].command_mode(Some(Mode::Draining));
        assert_eq!(describe_peer(&group.peers()[0])["state"], "draining");
    }

    /// What a verb answers: `address mode weight` of each server, or the error.
    fn told(groups: &Arc<AllGroups>, verb: &str, arguments: Value) -> Result<Vec<String>, String> {
        let at = ROWS.iter().position(|row| row.name == verb).unwrap();
        let manage = Manage {
            groups: groups.clone(),
            verb: VERBS[at],
        };
        let Value::Object(arguments) = arguments else {
            panic!("no object");
        };
        let answer = manage.run(&arguments).map_err(|error| error.to_string())?;
        let group = match answer.get("upstreams") {
            Some(list) => list[0].clone(),
            None => answer,
        };
        let line = |peer: &Value| {
            let (address, mode) = (peer["address"].as_str(), peer["mode"].as_str());
            format!("{} {} {}", address.unwrap(), mode.unwrap(), peer["weight"])
        };
        Ok(group["peers"]
            .as_array()
            .unwrap()
            .iter()
            .map(line)
            .collect())
    }

    #[test]
    fn servers_are_told_what_to_do() {
        let tasks = Arc::new(AllGroups::default());
        let states = std::sync::Arc::new(GroupStates::default());
        let sources = ["127.0.0.1:1", "127.0.0.1:2"]
            .map(|name| servers::commanded(name, &[], &states, &[]).unwrap());
        let settings = GroupSettings::default();
        let group = Group::new("u", settings, sources.into(), states);
        tasks.add::<Exchange>(&group);
        let one = json!({ "upstream": "u", "peer": "127.0.0.1:1" });
        let list = || told(&tasks, "upstream.list", json!({})).unwrap();
        assert_eq!(list(), ["127.0.0.1:1 up 1", "127.0.0.1:2 up 1"]);
        for (verb, first) in [
            ("upstream.drain", "127.0.0.1:1 draining 1"),
            ("upstream.down", "127.0.0.1:1 down 1"),
            ("upstream.up", "127.0.0.1:1 up 1"),
        ] {
            let after = told(&tasks, verb, one.clone()).unwrap();
            assert_eq!(after, [first, "127.0.0.1:2 up 1"]);
        }
        let weight = |weight: Value| {
            let peer = "127.0.0.1:2";
            json!({ "upstream": "u", "peer": peer, "weight": weight })
        };
        told(&tasks, "upstream.weight", weight(json!("5"))).unwrap();
        assert_eq!(list()[1], "127.0.0.1:2 up 5");
        told(&tasks, "upstream.weight", weight(json!(0))).unwrap();
        assert_eq!(list()[1], "127.0.0.1:2 up 1");
        let three = json!({ "upstream": "u", "peer": "127.0.0.1:3", "parameters": "weight=2" });
        told(&tasks, "upstream.add", three.clone()).unwrap();
        assert_eq!(list()[2], "127.0.0.1:3 up 2");
        told(&tasks, "upstream.remove", one.clone()).unwrap();
        assert_eq!(list(), ["127.0.0.1:2 up 1", "127.0.0.1:3 up 2"]);
        let cases = [
            ("upstream.add", three, "\"127.0.0.1:3\" exists already"),
            (
                "upstream.up",
                one,
                "upstream \"u\" has no peer \"127.0.0.1:1\"",
            ),
            (
                "upstream.list",
                json!({ "upstream": "v" }),
                "there is no upstream \"v\"",
            ),
            (
                "upstream.down",
                json!({ "upstream": "u" }),
                "\"peer\" must be given",
            ),
            (
                "upstream.weight",
                weight(json!(null)),
                "\"weight\" must be given",
            ),
        ];
        for (verb, arguments, expected) in cases {
            assert_eq!(
                told(&tasks, verb, arguments),
                Err(expected.to_owned()),
                "{verb}"
            );
        }
    }
}
