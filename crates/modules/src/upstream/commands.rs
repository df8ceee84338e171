//! Groups while the server runs: verbs of the control socket, and metrics.
//!
//! What is commanded holds until it is commanded otherwise, the group's lines in the configuration
//! change, or the server is stopped.

use std::collections::HashSet;
use std::sync::Arc;

use turnpike_lane::counters::{AnswerCounts, Kind};
use turnpike_lane::sys::process::unix_ms;
use turnpike_plan::builder::Builder;
use turnpike_plan::control::{
    Arguments, Command, CommandError, CommandRow, Value, json, number, required_text, text, texts,
};
use turnpike_plan::metrics::{self, Reader, Samples};
use turnpike_upstream::{FailReason, Group, Mode, Peer};

use super::all_groups::{AllGroups, NamedGroup};
use super::background::BackgroundTasks;
use super::changes::{Changes, Given};
use super::{state_file, status_zones, stream_metrics};

/// What a verb does.
#[derive(Clone, Copy)]
enum Verb {
    List,
    Mode(Mode),
    Weight,
    Set,
    Add,
    Remove,
    Reset,
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
        "upstream.set",
        "upstream=NAME servers=SERVER...",
        "Replaces all servers of a group at once; a server is an address with parameters as in \
         the configuration. Servers that stay keep their state.",
    ),
    row(
        "upstream.add",
        "upstream=NAME peer=ADDRESS [parameters=TEXT]",
        "Adds a server, with parameters as in the configuration.",
    ),
    row(
        "upstream.remove",
        "upstream=NAME peer=ADDRESS",
        "Removes a server.",
    ),
    row(
        "upstream.reset",
        "upstream=NAME",
        "Restores the servers, modes and weights of the configuration, or of the state file.",
    ),
];

const VERBS: [Verb; 9] = [
    Verb::List,
    Verb::Mode(Mode::Draining),
    Verb::Mode(Mode::Down),
    Verb::Mode(Mode::Up),
    Verb::Weight,
    Verb::Set,
    Verb::Add,
    Verb::Remove,
    Verb::Reset,
];

const PLAIN: metrics::Row = metrics::Row {
    name: "",
    kind: Kind::Gauge,
    unit: "requests",
    labels: &["upstream", "peer"],
    help: "",
};

/// The metrics: those of groups of `http`, of resolvers, and of groups of `stream`.
pub(super) const METRICS: &[metrics::Row] = &with::<15, 9, 24>(
    with::<12, 3, 15>(OF_REQUESTS, status_zones::METRICS),
    stream_metrics::METRICS,
);

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

const OF_REQUESTS: [metrics::Row; 12] = [
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
    metrics::Row {
        name: "upstream_last_failure_timestamp_seconds",
        unit: "seconds",
        labels: &["upstream", "peer", "reason"],
        help: "Unix time of the last failed attempt or health check of a server, with its reason.",
        ..PLAIN
    },
];

/// Adds when a server failed last and why, if it has ever failed.
pub(super) fn last_failure(
    row: &'static metrics::Row,
    group: &Group,
    peer: &Peer,
    samples: &mut Samples,
) {
    if let Some((reason, at_s)) = peer.state().last_failure() {
        let labels = [group.name(), peer.name(), &reason.sentence()];
        samples.number(row, &labels, at_s);
    }
}

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
    builder.service(groups);
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
                None => groups.iter().map(|named| describe(named)).collect(),
                Some(name) => vec![describe(find(&groups, name)?)],
            };
            return Ok(json!({ "upstreams": Value::Array(listed) }));
        }
        let named = find(&groups, required_text(arguments, "upstream")?)?;
        match self.verb {
            Verb::Set => set(named, arguments),
            Verb::Add => add(named, arguments),
            Verb::Reset => reset(named),
            Verb::List | Verb::Mode(_) | Verb::Weight | Verb::Remove => {
                self.change(named, arguments)
            }
        }?;
        Ok(describe(named))
    }
}

impl Manage {
    /// Changes a server that is there.
    fn change(&self, named: &NamedGroup, arguments: &Arguments) -> Result<(), CommandError> {
        let group = &named.group;
        let name = required_text(arguments, "peer")?;
        let is_meant = |peer: &&Arc<Peer>| peer.name() == name || peer.server() == name;
        let peers = group.peers();
        let meant: Vec<&Arc<Peer>> = peers.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let message = format!("upstream \"{}\" has no peer \"{name}\"", group.name());
            return Err(CommandError::NotFound(message));
        }
        let names = meant.iter().map(|peer| peer.name().to_owned());
        let weight = match self.verb {
            Verb::Weight => Some(required_weight(arguments)?),
            _ => None,
        };
        named.change(|changes| {
            match (self.verb, weight) {
                (Verb::Mode(mode), _) => {
                    changes.modes.extend(names.map(|name| (name, mode)));
                }
                (Verb::Weight, Some(0)) => {
                    let names: Vec<String> = names.collect();
                    changes.weights.retain(|name, _| !names.contains(name));
                }
                (Verb::Weight, Some(weight)) => {
                    changes.weights.extend(names.map(|name| (name, weight)));
                }
                _ => {
                    let configured = group.configured();
                    let configured = configured.iter().filter(is_meant);
                    let configured = configured.map(|peer| peer.name().to_owned());
                    changes.remove(name, &configured.collect::<Vec<_>>());
                }
            }
            Ok(())
        })?;
        if let Verb::Mode(Mode::Up) = self.verb {
            meant.iter().for_each(|peer| peer.recover());
        }
        Ok(())
    }
}

fn required_weight(arguments: &Arguments) -> Result<u32, CommandError> {
    let weight = number(arguments, "weight")?;
    let weight = weight.and_then(|weight| u32::try_from(weight).ok());
    weight.ok_or_else(|| CommandError::Invalid("\"weight\" must be given".to_owned()))
}

/// Replaces all servers of a group.
fn set(named: &NamedGroup, arguments: &Arguments) -> Result<(), CommandError> {
    let invalid = CommandError::Invalid;
    let mut servers = Vec::new();
    for text in texts(arguments, "servers")? {
        servers.push(read(named, text.trim()).map_err(invalid)?);
    }
    let mut seen = HashSet::new();
    let mut addresses = servers.iter().flat_map(|given: &Given| &given.addresses);
    if let Some(twice) = addresses.find(|address| !seen.insert(*address)) {
        return Err(invalid(format!("\"{twice}\" is given twice")));
    }
    let is_backup = |given: &Given| given.parameters.split(' ').any(|word| word == "backup");
    if !servers.is_empty() && servers.iter().all(is_backup) {
        let name = named.group.name();
        return Err(invalid(format!("no servers in upstream \"{name}\"")));
    }
    named.change(|changes| {
        changes.replace(servers);
        Ok(())
    })
}

/// Adds a server to a group.
fn add(named: &NamedGroup, arguments: &Arguments) -> Result<(), CommandError> {
    let name = required_text(arguments, "peer")?;
    let parameters = text(arguments, "parameters")?.unwrap_or_default();
    let given = read(named, &format!("{name} {parameters}")).map_err(CommandError::Invalid)?;
    named.change(|changes| {
        let there = named.group.peers();
        let mut there = there.iter().map(|peer| peer.address());
        if there.any(|address| given.addresses.contains(address)) {
            return Err(CommandError::Invalid(format!("\"{name}\" exists already")));
        }
        changes.added.push(given);
        Ok(())
    })
}

/// Forgets what commands have changed in a group.
fn reset(named: &NamedGroup) -> Result<(), CommandError> {
    let configured = match named.state_file() {
        Some(file) => state_file::changes(file.read().map_err(CommandError::Failed)?),
        None => Changes::default(),
    };
    named.change(|changes| {
        *changes = configured;
        Ok(())
    })
}

/// A server as a command names it.
fn read(named: &NamedGroup, text: &str) -> Result<Given, String> {
    let given = Given::read(text, named.group.settings().balancer, named.default_port);
    given.map_err(String::from)
}

fn find<'a>(groups: &'a [Arc<NamedGroup>], name: &str) -> Result<&'a NamedGroup, CommandError> {
    let found = groups.iter().find(|named| named.name == name);
    let found = found.map(|named| &**named);
    found.ok_or_else(|| CommandError::NotFound(format!("there is no upstream \"{name}\"")))
}

fn describe(named: &NamedGroup) -> Value {
    let changes = named.changes();
    let describe = |peer: &Arc<Peer>| {
        let mut described = describe_peer(peer);
        described["from"] = named.origin(&changes, peer.address()).text().into();
        described
    };
    let peers: Vec<Value> = named.group.peers().iter().map(describe).collect();
    json!({ "name": named.name, "peers": peers })
}

fn describe_peer(peer: &Peer) -> Value {
    let state = peer.state();
    // An average of nothing is none: no request, or none that was answered.
    let average_ms = |time_ms: u64| (state.requests() > state.failures()).then_some(time_ms);
    let last = state.last_failure();
    let reason = last.map(|(reason, _)| reason.sentence());
    let ago_s = last.map(|(_, at_s)| (unix_ms() / 1000).saturating_sub(at_s));
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
        "last_failure": reason,
        "last_failure_ago_s": ago_s,
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
            last_failed,
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
                last_failure(last_failed, &group, &peer, samples);
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
    use turnpike_testkit::Folder;
    use turnpike_upstream::{
        Address, Balancer, Commanded, Group, GroupSettings, GroupStates, Mode,
    };
    use turnpike_upstream::{Peer, PeerSettings};

    use super::{AllGroups, Manage, NamedGroup, ROWS, VERBS, describe_peer};
    use crate::upstream::all_groups::GroupFacts;
    use crate::upstream::state_file::StateFile;

    /// A group `u` of servers with these ports.
    fn group(ports: &[u16]) -> (Arc<Group>, Vec<Address>) {
        let states = Arc::new(GroupStates::default());
        let addresses = ports
            .iter()
            .map(|port| Address::Inet(([127, 0, 0, 1], *port).into()));
        let addresses: Vec<Address> = addresses.collect();
        let settings = PeerSettings::default();
        let sources = addresses.iter().map(|address| {
            let name = address.to_string();
            let state = states.state(&name, 0, 1);
            vec![Arc::new(Peer::new(
                &name,
                address.clone(),
                settings.clone(),
                state,
            ))]
        });
        let sources = sources.collect();
        let group = Group::new("u", GroupSettings::default(), sources, states);
        (group, addresses)
    }

    /// The same for commands, with the file that `state` names.
    fn groups(ports: &[u16], state: Option<StateFile>) -> Arc<AllGroups> {
        let (group, addresses) = group(ports);
        let facts = GroupFacts {
            key: "upstream:u".to_owned(),
            lines: "lines".to_owned(),
            addresses,
            state,
        };
        AllGroups::with(NamedGroup::alone("u", group, facts))
    }

    #[test]
    fn a_server_that_was_never_asked_has_no_times() {
        let (group, _) = group(&[1]);
        let peer = describe_peer(&group.peers()[0]);
        assert_eq!(
            (&peer["header_ms"], &peer["response_ms"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(peer["state"], "up");
        assert_eq!(peer["last_failure"], Value::Null);
        group.command(Commanded {
            modes: [("127.0.0.1:1".to_owned(), Mode::Draining)].into(),
            ..Commanded::default()
        });
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
        let tasks = groups(&[1, 2], None);
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
    #[test]
    fn a_list_of_servers_is_replaced_and_restored() {
        let tasks = groups(&[1, 2], None);
        let tell = |verb: &str, arguments: Value| told(&tasks, verb, arguments);
        let set = |servers: Value| {
            tell(
                "upstream.set",
                json!({ "upstream": "u", "servers": servers }),
            )
        };
        let one = |name: &str| json!({ "upstream": "u", "peer": name });
        tell("upstream.down", one("127.0.0.1:2")).unwrap();
        tell("upstream.drain", one("127.0.0.1:1")).unwrap();
        type Told<'a> = Result<&'a [&'a str], &'a str>;
        let steps: &[(&str, Value, Told<'_>)] = &[
            (
                "a server that stays keeps its mode",
                json!(["127.0.0.1:2 weight=3", "127.0.0.1:4"]),
                Ok(&["127.0.0.1:2 down 3", "127.0.0.1:4 up 1"]),
            ),
            (
                "one that was away has lost it",
                json!("127.0.0.1:1"),
                Ok(&["127.0.0.1:1 up 1"]),
            ),
            ("none", json!([]), Ok(&[])),
            ("no list", json!(7), Err("\"servers\" must be a text")),
            (
                "twice",
                json!(["127.0.0.1:1", "127.0.0.1:1"]),
                Err("\"127.0.0.1:1\" is given twice"),
            ),
            (
                "backups",
                json!(["127.0.0.1:1 backup"]),
                Err("no servers in upstream \"u\""),
            ),
            (
                "a parameter",
                json!(["127.0.0.1:1 color=red"]),
                Err("invalid parameter \"color=red\""),
            ),
        ];
        for (what, servers, expected) in steps {
            let expected = expected.map(|lines| lines.iter().map(|line| line.to_string()));
            let expected = expected.map(Iterator::collect).map_err(str::to_owned);
            assert_eq!(set(servers.clone()), expected, "{what}");
        }
        let restored = tell("upstream.reset", json!({ "upstream": "u" }));
        assert_eq!(restored.unwrap(), ["127.0.0.1:1 up 1", "127.0.0.1:2 up 1"]);
    }

    #[test]
    fn servers_of_a_state_file_are_written_there() {
        let folder = Folder::create().unwrap();
        let file = |servers: &str| StateFile {
            path: folder.path().join("u.conf"),
            servers: StateFile::parse(folder.path(), servers.as_bytes(), Balancer::RoundRobin, 80)
                .unwrap(),
            balancer: Balancer::RoundRobin,
            default_port: 80,
        };
        let tasks = groups(&[], Some(file("# none\nserver 127.0.0.1:1 weight=2;\n")));
        let one = |name: &str| json!({ "upstream": "u", "peer": name });
        let steps = [
            (
                "upstream.add",
                one("127.0.0.1"),
                "server 127.0.0.1:1 weight=2;\nserver 127.0.0.1;\n",
            ),
            (
                "upstream.down",
                one("127.0.0.1:80"),
                "server 127.0.0.1:1 weight=2;\nserver 127.0.0.1 down;\n",
            ),
            (
                "upstream.weight",
                json!({ "upstream": "u", "peer": "127.0.0.1:1", "weight": 5 }),
                "server 127.0.0.1:1 weight=5;\nserver 127.0.0.1 down;\n",
            ),
            (
                "upstream.remove",
                one("127.0.0.1:80"),
                "server 127.0.0.1:1 weight=5;\n",
            ),
        ];
        for (verb, arguments, expected) in steps {
            told(&tasks, verb, arguments).unwrap();
            assert_eq!(folder.read("u.conf"), expected, "{verb}");
        }
        let listed = tasks.list()[0].group.peers().len();
        assert_eq!(listed, 1);
        let bad = json!({ "upstream": "u", "servers": ["127.0.0.1:1 route=a;b"] });
        let refused = "\"route=a;b\" cannot be written to a state file";
        assert_eq!(told(&tasks, "upstream.set", bad), Err(refused.to_owned()));
        folder.write("u.conf", "server 127.0.0.1:7;").unwrap();
        let reset = told(&tasks, "upstream.reset", json!({ "upstream": "u" }));
        assert_eq!(reset.unwrap(), ["127.0.0.1:7 up 1"]);
    }
}
