//! The views of single verbs. A view of an answer without the members that it needs is none.

use std::fmt::Write as _;

use serde_json::Value;

use super::table::aligned;
use super::units::{bytes, date, milliseconds, seconds, share};

/// One column of a table: its head, and what a row has there.
pub(super) type Column = (&'static str, fn(&Value) -> String);

/// A table of `rows`; `none` where there are none.
pub(super) fn table(columns: &[Column], rows: &[Value], none: &str) -> String {
    if rows.is_empty() {
        return format!("{none}\n");
    }
    let head = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let row = |row: &Value| columns.iter().map(|(_, cell)| cell(row)).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(row)).collect();
    let lines = aligned(&lines);
    lines.iter().map(|line| line.clone() + "\n").collect()
}

/// A member as a number; 0 where there is none.
pub(super) fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or_default()
}

/// A member as it is; `-` where there is none.
pub(super) fn text(object: &Value, name: &str) -> String {
    match &object[name] {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "-".to_owned(),
    }
}

/// A number of things: `1 lane`, `2 lanes`.
fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Groups of servers: a row a server.
pub(super) fn upstreams(answer: &Value) -> Option<String> {
    let own = std::slice::from_ref(answer);
    let groups = match answer.get("upstreams") {
        Some(groups) => groups.as_array()?.as_slice(),
        None => own,
    };
    let mut rows = Vec::new();
    for group in groups {
        for peer in group["peers"].as_array()? {
            let mut row = peer.clone();
            row["upstream"] = group["name"].clone();
            rows.push(row);
        }
    }
    Some(table(PEER_COLUMNS, &rows, "no groups of upstream servers"))
}

const PEER_COLUMNS: &[Column] = &[
    ("UPSTREAM", |peer| text(peer, "upstream")),
    ("SERVER", |peer| text(peer, "address")),
    ("FROM", |peer| text(peer, "from")),
    ("STATE", |peer| {
        if peer["backup"] == true {
            format!("{}, backup", text(peer, "state"))
        } else {
            text(peer, "state")
        }
    }),
    ("WEIGHT", |peer| text(peer, "weight")),
    ("ACTIVE", |peer| text(peer, "active")),
    ("REQUESTS", |peer| text(peer, "requests")),
    ("FAILED", |peer| {
        share(number(peer, "failures"), number(peer, "requests"))
    }),
    ("RESPONSE", |peer| match &peer["response_ms"] {
        Value::Number(_) => milliseconds(number(peer, "response_ms")),
        _ => "-".to_owned(),
    }),
    ("LAST FAILURE", |peer| match &peer["last_failure"] {
        Value::String(reason) => {
            let ago = seconds(number(peer, "last_failure_ago_s"));
            format!("{reason}, {ago} ago")
        }
        _ => "-".to_owned(),
    }),
];

/// Zones of the cache: a row a zone.
pub(super) fn zones(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("ZONE", |zone| text(zone, "zone")),
        ("PLACE", |zone| text(zone, "place")),
        ("KEYS", |zone| text(zone, "keys")),
        ("BYTES", |zone| bytes(number(zone, "bytes"))),
        ("FULL", |zone| share(number(zone, "filled_ppm"), 1_000_000)),
        ("HITS", |zone| {
            share(number(zone, "hits"), number(zone, "requests"))
        }),
        ("REQUESTS", |zone| text(zone, "requests")),
        ("SAVED", |zone| bytes(number(zone, "saved_bytes"))),
        ("EVICTED", |zone| text(zone, "evicted")),
    ];
    let zones = answer["zones"].as_array()?;
    Some(table(columns, zones, "no cache zones"))
}

/// Stored responses of a URL: a row a response; without any, why others were not stored.
pub(super) fn stored(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("ZONE", |one| text(one, "zone")),
        ("KEY", |one| text(one, "key")),
        ("STATUS", |one| text(one, "status")),
        ("BYTES", |one| bytes(number(one, "bytes"))),
        ("AGE", |one| seconds(number(one, "age_s"))),
        ("FRESH FOR", |one| match one["fresh_for_s"].as_i64() {
            Some(..=0) => "stale".to_owned(),
            _ => seconds(number(one, "fresh_for_s")),
        }),
        ("TAGS", |one| names(&one["tags"]).join(" ")),
        ("PLACE", |one| match &one["path"] {
            Value::String(path) => path.clone(),
            _ => "memory".to_owned(),
        }),
    ];
    let stored = answer["stored"].as_array()?;
    if !stored.is_empty() {
        return Some(table(columns, stored, ""));
    }
    let reasons: &[Column] = &[
        ("ZONE", |one| text(one, "zone")),
        ("NOT STORED", |one| text(one, "responses")),
        ("BECAUSE", |one| text(one, "reason")),
    ];
    let list = table(
        reasons,
        answer["not_stored"].as_array()?,
        "no response was refused",
    );
    Some(format!(
        "nothing is stored for this URL; of all responses since start:\n{list}"
    ))
}

/// Lanes: a row a lane.
pub(super) fn lanes(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("LANE", |lane| text(lane, "lane")),
        ("STATE", |lane| text(lane, "state")),
        ("OPEN", |lane| text(lane, "connections_active")),
        ("WRITING", |lane| text(lane, "connections_writing")),
        ("ACCEPTED", |lane| text(lane, "connections_accepted")),
        ("REQUESTS", |lane| text(lane, "requests")),
        ("RECEIVED", |lane| bytes(number(lane, "received_bytes"))),
        ("SENT", |lane| bytes(number(lane, "sent_bytes"))),
        ("RESCUES", |lane| text(lane, "lane_rescues")),
    ];
    let lanes = answer["lanes"].as_array()?;
    Some(table(columns, lanes, "no lanes"))
}

/// Listening sockets: a row a gate.
pub(super) fn gates(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("ADDRESS", |gate| text(gate, "address")),
        ("LANE", |gate| match &gate["lane"] {
            Value::Null => "all".to_owned(),
            lane => lane.to_string(),
        }),
        ("MODE", |gate| text(gate, "mode")),
        ("STEERING", |gate| text(gate, "steering")),
        ("QUEUED", |gate| text(gate, "queued")),
        ("QUEUE", |gate| text(gate, "queue_max")),
        ("SPARE", |gate| {
            if gate["spare"] == true {
                "yes".to_owned()
            } else {
                "no".to_owned()
            }
        }),
    ];
    let gates = answer["gates"].as_array()?;
    Some(table(columns, gates, "no listening sockets"))
}

/// Open connections: a row a lane, and one for all.
pub(super) fn connections(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("LANE", |row| text(row, "lane")),
        ("OPEN", |row| text(row, "active")),
        ("READING", |row| text(row, "reading")),
        ("WRITING", |row| text(row, "writing")),
        ("WAITING", |row| text(row, "waiting")),
        ("HTTP/2 REQUESTS", |row| text(row, "http_streams_waiting")),
    ];
    let mut rows = answer["lanes"].as_array()?.clone();
    let mut total = answer.get("total")?.clone();
    total["lane"] = "all".into();
    rows.push(total);
    Some(table(columns, &rows, ""))
}

/// Certificates: a row a certificate.
pub(super) fn certificates(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("CERTIFICATE", |one| text(one, "certificate")),
        ("NAMES", |one| text(one, "names")),
        ("EXPIRES", |one| date(number(one, "expires_unix_s"))),
        ("DAYS LEFT", |one| match one["days_left"].as_i64() {
            Some(..0) => "expired".to_owned(),
            _ => text(one, "days_left"),
        }),
    ];
    let certificates = answer["certificates"].as_array()?;
    Some(table(columns, certificates, "no certificates in use"))
}

/// The certificate that expires first, as a line of the state.
fn first_certificate(one: &Value) -> Option<String> {
    let when = match one["days_left"].as_i64()? {
        ..0 => "has expired".to_owned(),
        days => format!("expires in {}", count(days.unsigned_abs(), "day")),
    };
    let name = text(one, "certificate");
    Some(format!("certificate    {name} {when}, before all others"))
}

/// The last failure of an upstream server, as a line of the state.
fn last_failure(one: &Value) -> Option<String> {
    let server = one["server"].as_str()?;
    Some(format!(
        "upstreams      last failure: {server} of {}, {}, {} ago",
        text(one, "upstream"),
        text(one, "reason"),
        seconds(number(one, "ago_s")),
    ))
}

/// Verbs: a line a verb, with the first sentence about it.
pub(super) fn verbs(answer: &Value) -> Option<String> {
    let columns: &[Column] = &[
        ("VERB", |verb| text(verb, "verb")),
        ("WHAT IT DOES", |verb| {
            let summary = text(verb, "summary");
            let first = summary.split_inclusive(". ").next().unwrap_or_default();
            first.trim_end().to_owned()
        }),
    ];
    let verbs = answer["verbs"].as_array()?;
    let list = table(columns, verbs, "no verbs");
    Some(format!(
        "{list}\nturnpike VERB --help shows the arguments.\n"
    ))
}

/// The state of the server, a line a subject.
pub(super) fn status(answer: &Value) -> Option<String> {
    let serving = answer.get("serving")?;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "turnpike {}, {}, for {} (since {})",
        text(answer, "version"),
        text(answer, "phase"),
        seconds(number(answer, "uptime_s")),
        date(number(answer, "started_unix_s")),
    );
    let _ = writeln!(
        out,
        "configuration  {}, prefix {}",
        text(answer, "configuration"),
        text(answer, "prefix"),
    );
    let _ = writeln!(
        out,
        "generation     {}; {} since start, {} failed",
        text(answer, "generation"),
        count(number(answer, "reloads"), "reload"),
        text(answer, "reloads_failed"),
    );
    let _ = writeln!(out, "master         pid {}", text(answer, "pid"));
    if !serving.is_object() {
        out.push_str("serving        no process at this moment\n");
        return Some(out);
    }
    let _ = writeln!(
        out,
        "serving        pid {}: {}, {}, {}; {}",
        text(serving, "pid"),
        count(number(serving, "lanes"), "lane"),
        count(number(serving, "servers"), "server"),
        count(number(serving, "listens"), "listen"),
        count(number(answer, "serving_restarts"), "restart"),
    );
    out.push_str(&steering(serving));
    let totals = &serving["totals"];
    let _ = writeln!(
        out,
        "connections    {} open of at most {}: {} reading, {} writing, {} waiting; {} accepted",
        text(totals, "connections_active"),
        text(serving, "connections_max"),
        text(totals, "connections_reading"),
        text(totals, "connections_writing"),
        text(totals, "connections_waiting"),
        text(totals, "connections_accepted"),
    );
    let _ = writeln!(out, "{}", streams(totals));
    let _ = writeln!(out, "{}", requests(answer, totals));
    let _ = writeln!(
        out,
        "traffic        {} received, {} sent",
        bytes(number(totals, "received_bytes")),
        bytes(number(totals, "sent_bytes")),
    );
    let rates = rates(&serving["rates"]);
    let certificate = first_certificate(&serving["certificate"]);
    let failure = last_failure(&serving["upstream_failure"]);
    let lines = rates.into_iter().chain(certificate).chain(failure);
    for line in lines.chain(caches(&serving["caches"])) {
        let _ = writeln!(out, "{line}");
    }
    Some(out)
}

/// The use of the caches: a line for each zone, then for each host.
fn caches(caches: &Value) -> impl Iterator<Item = String> {
    ["zone", "host"].into_iter().flat_map(move |kind| {
        let rows = caches[format!("{kind}s")].as_array().into_iter().flatten();
        rows.map(move |row| {
            format!(
                "cache          {kind} {}: {} of {} hit, {} saved",
                text(row, kind),
                share(number(row, "hits"), number(row, "requests")),
                count(number(row, "requests"), "request"),
                bytes(number(row, "saved_bytes")),
            )
        })
    })
}

/// How the kernel chooses among the sockets of each address that it is told how: a line for each.
fn steering(serving: &Value) -> String {
    let levels = serving["steering"].as_object().into_iter().flatten();
    let line = |(address, level): (&String, &Value)| {
        let level = level.as_str().unwrap_or("-");
        format!("steering       {address}: {level}\n")
    };
    levels.map(line).collect()
}

/// The requests since the start.
fn requests(answer: &Value, totals: &Value) -> String {
    let uptime_s = number(answer, "uptime_s").max(1) as f64;
    let requests = number(totals, "requests");
    let average = requests as f64 / uptime_s;
    format!("requests       {requests}, {average:.1}/s on average since start")
}

/// The requests of HTTP/2 that wait, which have a limit of their own.
fn streams(totals: &Value) -> String {
    format!(
        "HTTP/2         {} requests wait; for lack of room {} closed, {} refused",
        text(totals, "http_streams_waiting"),
        text(totals, "http_streams_made_room"),
        text(totals, "http_streams_refused"),
    )
}

/// What happens at present, as far back as the server looks; `None` right after its start.
fn rates(rates: &Value) -> Option<String> {
    let rate = |name: &str| rates[name].as_f64();
    let requests = rate("requests_per_s")?;
    let errors = rate("server_errors_per_s")?;
    let failed = if requests > 0.0 {
        format!("{:.2} %", errors / requests * 100.0)
    } else {
        "-".to_owned()
    };
    Some(format!(
        "last {:<10}{requests:.1} requests/s ({failed} with 5xx), {:.1} connections/s, {}/s in, \
         {}/s out",
        format!("{:.0} s", rate("seconds")?),
        rate("connections_per_s")?,
        bytes(rate("received_bytes_per_s")? as u64),
        bytes(rate("sent_bytes_per_s")? as u64),
    ))
}

/// What a reload has changed: a row for each kind of thing.
pub(super) fn reload(answer: &Value) -> Option<String> {
    const KINDS: [&str; 6] = [
        "servers",
        "locations",
        "listens",
        "upstreams",
        "upstream_servers",
        "directives",
    ];
    let columns: &[Column] = &[
        ("", |row| text(row, "kind").replace('_', " ")),
        ("NOW", |row| text(row, "now")),
        ("ADDED", |row| text(row, "added")),
        ("REMOVED", |row| text(row, "removed")),
        ("CHANGED", |row| text(row, "changed")),
    ];
    let zones = answer["zones"].as_object()?;
    let mut rows: Vec<Value> = Vec::new();
    for kind in KINDS {
        let mut row = answer.get(kind)?.clone();
        row["kind"] = kind.into();
        rows.push(row);
    }
    for (owner, zone) in zones {
        let (kept, new) = (number(zone, "kept"), number(zone, "new"));
        let mut row = zone.clone();
        row["kind"] = format!("zones of {owner}").into();
        row["now"] = (kept + new).into();
        row["added"] = new.into();
        row["removed"] = zone["dropped"].clone();
        let replaced = ["reopened", "emptied"].map(|kind| names(&zone[kind]).len() as u64);
        row["now"] = (kept + new + replaced.iter().sum::<u64>()).into();
        row["changed"] = replaced.iter().sum::<u64>().into();
        rows.push(row);
    }
    let (lanes, connections) = (&answer["lanes"], &answer["connections"]);
    Some(format!(
        "generation {} is active after {}\n\n{}\n{}\
         lanes        {} (before {})\n\
         connections  {} kept, {} moved, {} closed, {} reset\n",
        text(answer, "generation"),
        milliseconds(number(answer, "took_ms")),
        table(columns, &rows, ""),
        replaced_zones(zones.values()),
        text(lanes, "now"),
        text(lanes, "before"),
        text(connections, "kept"),
        text(connections, "moved"),
        text(connections, "closed"),
        text(connections, "reset"),
    ))
}

/// The texts of a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// What became of zones whose settings were changed, a line for each case.
fn replaced_zones<'a>(zones: impl Iterator<Item = &'a Value> + Clone) -> String {
    let all = |kind: &str| zones.clone().flat_map(|zone| names(&zone[kind])).collect();
    let mut out = String::new();
    let cases: [(&str, Vec<&str>); 2] = [
        (
            "emptied, since a changed size or key makes a new zone",
            all("emptied"),
        ),
        (
            "with new settings; what their folders hold stays",
            all("reopened"),
        ),
    ];
    for (what, zones) in cases.iter().filter(|(_, zones)| !zones.is_empty()) {
        let _ = writeln!(out, "zones {what}: {}", zones.join(", "));
    }
    if out.is_empty() { out } else { out + "\n" }
}

/// What a drain waits for.
pub(super) fn drain(answer: &Value) -> Option<String> {
    let limit = match &answer.get("worker_shutdown_timeout_ms")? {
        Value::Null => "without a limit of time (worker_shutdown_timeout)".to_owned(),
        limit => format!("at most {}", milliseconds(limit.as_u64()?)),
    };
    Some(format!(
        "draining: the server ends when its last request is done, {limit}; --wait waits for it\n"
    ))
}
