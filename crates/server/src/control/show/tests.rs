//! Answers and what people see of them.

use serde_json::{Value, json};

use super::{answer, units};

#[test]
fn numbers_have_units() {
    let bytes = [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.50 KiB"),
        (5 << 30, "5.00 GiB"),
    ];
    for (count, expected) in bytes {
        assert_eq!(units::bytes(count), expected);
    }
    for (count, expected) in [(850, "850 ms"), (1500, "1.50 s"), (125_000, "2m 5s")] {
        assert_eq!(units::milliseconds(count), expected);
    }
    for (count, expected) in [(0, "0s"), (42, "42s"), (185, "3m 5s"), (187_260, "2d 4h")] {
        assert_eq!(units::seconds(count), expected);
    }
    assert_eq!([units::share(1, 8), units::share(0, 0)], ["12.5 %", "-"]);
}

fn peer(address: &str, state: &str, requests: u64) -> Value {
    json!({
        "address": address, "from": "state", "state": state, "backup": false, "weight": 1,
        "active": 0,
        "requests": requests, "failures": 1, "response_ms": null,
        "last_failure": (state == "failed").then_some("status 502"), "last_failure_ago_s": 5,
    })
}

#[test]
fn a_row_is_a_server_or_a_zone_and_nothing_is_said_in_words() {
    let groups = json!({ "upstreams": [
        { "name": "a", "peers": [peer("10.0.0.1:80", "up", 4), peer("10.0.0.2:80", "down", 0)] },
        { "name": "b", "peers": [peer("unix:/s", "failed", 10)] },
    ] });
    let expected = "\
UPSTREAM  SERVER       FROM   STATE   WEIGHT  ACTIVE  REQUESTS  FAILED  RESPONSE  LAST FAILURE
a         10.0.0.1:80  state  up      1       0       4         25.0 %  -         -
a         10.0.0.2:80  state  down    1       0       0         -       -         -
b         unix:/s      state  failed  1       0       10        10.0 %  -         status 502, 5s ago
";
    assert_eq!(answer("upstream.list", &groups), expected);
    let one = &groups["upstreams"][1];
    assert_eq!(answer("upstream.down", one).lines().count(), 2);
    let zone = json!({ "zones": [{ "zone": "z", "place": "disk", "keys": 3, "bytes": 2048,
        "filled_ppm": 12, "hits": 3, "requests": 4, "saved_bytes": 1536, "evicted": 0 }] });
    let shown = answer("cache.list", &zone);
    assert!(
        shown.ends_with("z     disk   3     2.00 KiB  0.0 %  75.0 %  4         1.50 KiB  0\n"),
        "{shown}"
    );
    for (verb, members, expected) in [
        (
            "upstream.list",
            json!({ "upstreams": [] }),
            "no groups of upstream servers\n",
        ),
        ("cache.list", json!({ "zones": [] }), "no cache zones\n"),
    ] {
        assert_eq!(answer(verb, &members), expected);
    }
}

#[test]
fn the_status_has_rates_and_a_reload_says_what_became_of_zones() {
    let status = json!({ "uptime_s": 10, "generation": 3, "reloads": 1, "reloads_failed": 0,
        "serving": {
        "lanes": 1, "servers": 2, "listens": 0,
        "steering": { "127.0.0.1:443": "hash" }, "totals": {
            "requests": 400, "http_streams_waiting": 3, "http_streams_made_room": 2,
            "http_streams_refused": 1,
        },
        "upstream_failure": { "upstream": "b", "server": "10.0.0.2:80", "reason": "status 502",
            "ago_s": 65 },
        "caches": {
            "zones": [{ "zone": "hot", "requests": 6, "hits": 4, "saved_bytes": 30 }],
            "hosts": [{ "host": "a.example", "requests": 1, "hits": 0, "saved_bytes": 0 }],
        },
        "rates": { "seconds": 10.2, "requests_per_s": 40.0, "connections_per_s": 4.0,
            "received_bytes_per_s": 512.0, "sent_bytes_per_s": 2048.0, "server_errors_per_s": 0.2 },
    } });
    let shown = answer("status", &status);
    for line in [
        "generation     3; 1 reload since start, 0 failed\n",
        "serving        pid -: 1 lane, 2 servers, 0 listens; 0 restarts\n",
        "steering       127.0.0.1:443: hash\n",
        "HTTP/2         3 requests wait; for lack of room 2 closed, 1 refused\n",
        "requests       400, 40.0/s on average since start\n",
        "upstreams      last failure: 10.0.0.2:80 of b, status 502, 1m 5s ago\n",
        "cache          zone hot: 66.7 % of 6 requests hit, 30 B saved\n",
        "cache          host a.example: 0.0 % of 1 request hit, 0 B saved\n",
        "last 10 s      40.0 requests/s (0.50 % with 5xx), 4.0 connections/s, 512 B/s in, \
         2.00 KiB/s out\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let kind = json!({ "now": 1, "added": 0, "removed": 0, "changed": 0 });
    let report = json!({
        "servers": kind, "locations": kind, "listens": kind, "upstreams": kind,
        "upstream_servers": kind, "directives": kind,
        "zones": { "proxy_cache": { "kept": 1, "new": 0, "dropped": 0, "emptied": ["hot"],
            "reopened": ["disk"] } },
    });
    let shown = answer("reload", &report);
    for line in [
        "zones of proxy cache  3    0      0        2\n",
        "zones emptied, since a changed size or key makes a new zone: hot\n",
        "zones with new settings; what their folders hold stays: disk\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn gates_connections_and_verbs_are_rows() {
    let gates = json!({ "gates": [
        { "address": "127.0.0.1:80", "lane": null, "mode": "shared", "queued": 0,
            "queue_max": 511, "spare": false, "steering": null },
        { "address": "127.0.0.1:443", "lane": 3, "mode": "steered", "queued": null,
            "queue_max": null, "spare": true, "steering": "program" },
    ] });
    let expected = "\
ADDRESS        LANE  MODE     STEERING  QUEUED  QUEUE  SPARE
127.0.0.1:80   all   shared   -         0       511    no
127.0.0.1:443  3     steered  program   -       -      yes
";
    assert_eq!(answer("gates", &gates), expected);
    let counts = json!({
        "active": 3, "reading": 0, "writing": 1, "waiting": 2, "http_streams_waiting": 4,
    });
    let mut lane = counts.clone();
    lane["lane"] = 0.into();
    let expected = "\
LANE  OPEN  READING  WRITING  WAITING  HTTP/2 REQUESTS
0     3     0        1        2        4
all   3     0        1        2        4
";
    let connections = json!({ "lanes": [lane], "total": counts });
    assert_eq!(answer("connections", &connections), expected);
    let verbs = json!({ "verbs": [
        { "verb": "drain", "arguments": "", "summary": "Stops the server. It exits then." },
    ] });
    let expected = "VERB   WHAT IT DOES\ndrain  Stops the server.\n";
    assert!(answer("verbs", &verbs).starts_with(expected));
}

#[test]
fn an_answer_without_a_view_is_a_table_of_its_members() {
    assert_eq!(
        answer("generation", &json!({ "generation": 3 })),
        "generation  3\n"
    );
}
