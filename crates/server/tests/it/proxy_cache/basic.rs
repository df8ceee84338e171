//! Tests of `proxy_cache` with a client: hits, misses, reasons, stale responses and purges.

use std::time::Duration;

use turnpike_testkit::Server;

use crate::support::cache::{
    Counting, DISK, MEMORY, ask, command, response, server, status, wait_until,
};

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn a_response_is_fetched_once_and_reused() {
    for zone in [MEMORY, DISK] {
        let fields = format!("{FRESH}ETag: \"a\"\r\nX-Own: 1\r\nContent-Type: a/b\r\n");
        let origin = Counting::start(&response(&fields, "0123456789"));
        let server = server(&origin, zone, "");
        for expected in ["MISS", "HIT", "HIT"] {
            let got = ask(&server, "GET /a", "");
            assert_eq!(
                (status(&got), got.text().as_str()),
                (expected, "0123456789"),
                "{zone}"
            );
            assert_eq!(got.header("X-Own"), Some("1"));
            assert_eq!(got.header("Content-Type"), Some("a/b"));
            assert_eq!(got.header("Age").is_some(), expected == "HIT");
            assert_eq!(got.head.matches("Accept-Ranges").count(), 1);
        }
        let part = ask(&server, "GET /a", "Range: bytes=2-4\r\n");
        assert!(part.head.starts_with("HTTP/1.1 206 Partial Content\r\n"));
        assert_eq!(part.text(), "234");
        let unchanged = ask(&server, "GET /a", "If-None-Match: \"a\"\r\n");
        assert!(unchanged.head.starts_with("HTTP/1.1 304 Not Modified\r\n"));
        assert_eq!(status(&unchanged), "HIT");
        let head = ask(&server, "HEAD /a", "");
        assert_eq!(head.header("Content-Length"), Some("10"));
        assert_eq!((status(&head), origin.requests()), ("HIT", 1));
    }
}

#[test]
fn variables_know_the_fields_of_what_is_stored() {
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(&format!("{FRESH}X-Own: 1\r\n"), "x"));
        let directives = "add_header X-Seen $upstream_http_x_own; proxy_hide_header X-Own;";
        let server = server(&origin, zone, directives);
        for expected in ["MISS", "HIT", "HIT"] {
            let got = ask(&server, "GET /a", "");
            assert_eq!((status(&got), got.header("X-Own")), (expected, None));
            assert_eq!(got.header("X-Seen"), Some("1"), "{expected}");
        }
    }
}

#[test]
fn a_response_is_stored_completely_if_the_client_leaves() {
    let requests = [
        ("HEAD /a", ""),
        ("GET /a", "Range: bytes=0-1\r\n"),
        ("GET /a", "If-None-Match: \"a\"\r\n"),
    ];
    for zone in [MEMORY, DISK] {
        for (request, fields) in requests {
            // The body comes in pieces, so that it cannot come with its head.
            let body = "x".repeat(300_000);
            let origin = Counting::start(&response(&format!("{FRESH}ETag: \"a\"\r\n"), &body));
            let server = server(&origin, zone, "");
            let first = ask(&server, request, fields);
            assert_eq!(status(&first), "MISS", "{request} {fields}");
            assert!(
                origin.heads()[0].starts_with("GET /a "),
                "HEAD is asked as GET"
            );
            assert!(!origin.heads()[0].contains("Range") && !origin.heads()[0].contains("If-"));
            wait_until("the rest", || {
                let got = ask(&server, "GET /a", "");
                status(&got) == "HIT" && got.body.len() == body.len()
            });
        }
    }
}

/// Response fields, directives, request fields, and why the response is not stored.
const REASONS: &[(&str, &str, &str, &str)] = &[
    ("", "", "", "no-freshness"),
    ("Cache-Control: no-store\r\n", "", "", "no-store"),
    ("Cache-Control: private\r\n", "", "", "private"),
    ("Cache-Control: no-cache\r\n", "", "", "no-cache"),
    ("Cache-Control: max-age=0\r\n", "", "", "expired"),
    ("Cache-Control: max-age=x\r\n", "", "", "malformed"),
    ("X-Accel-Expires: 0\r\n", "", "", "x-accel-expires"),
    (
        "Cache-Control: max-age=9\r\nSet-Cookie: a=b\r\n",
        "",
        "",
        "set-cookie",
    ),
    (
        "Cache-Control: max-age=9\r\nVary: *\r\n",
        "",
        "",
        "vary-any",
    ),
    (FRESH, "", "Authorization: Basic eDp5\r\n", "authorization"),
    (FRESH, "proxy_no_cache $arg_no;", "", "configured"),
    (FRESH, "proxy_cache_min_uses 2;", "", "min-uses"),
    (
        FRESH,
        "proxy_cache_max_range_offset 10;",
        "Range: bytes=20-\r\n",
        "range-offset",
    ),
    (
        FRESH,
        "proxy_cache_honor_request on;",
        "Cache-Control: no-store\r\n",
        "request-no-store",
    ),
];

#[test]
fn a_reason_is_given_when_a_response_is_not_stored() {
    for (fields, directives, asked, why) in REASONS {
        let origin = Counting::start(&response(fields, "x"));
        let server = server(&origin, MEMORY, directives);
        let got = ask(&server, "GET /a?no=1", asked);
        assert_eq!(got.header("X-Why"), Some(*why), "{fields}{directives}");
    }
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    assert_eq!(ask(&server, "GET /a", "").header("X-Why"), None);
    let big = "x".repeat(17 << 20);
    origin.answer_with(&response(FRESH, &big));
    assert_eq!(
        ask(&server, "GET /big", "").header("X-Why"),
        Some("too-large")
    );
}

#[test]
fn stale_responses_are_used_if_allowed() {
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response("X-Accel-Expires: @1\r\n", "old"));
        let server = server(&origin, zone, "proxy_cache_use_stale error http_503;");
        assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
        origin.refuse(true);
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), ("STALE", "old"));
        origin.refuse(false);
        let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
        origin.answer_with(busy);
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), ("STALE", "old"));
        origin.answer_with(&response(FRESH, "new"));
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), ("EXPIRED", "new"));
        assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    }
}

#[test]
fn a_stale_response_is_renewed_in_the_background() {
    let fields = "X-Accel-Expires: @1\r\nCache-Control: stale-while-revalidate=2145902155\r\n";
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(fields, "old"));
        let server = server(&origin, zone, "proxy_cache_background_update on;");
        assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
        origin.answer_with(&response(FRESH, "new"));
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), ("STALE", "old"));
        wait_until("the renewal", || {
            let got = ask(&server, "GET /a", "");
            status(&got) == "HIT" && got.text() == "new"
        });
        assert_eq!(origin.requests(), 2);
    }
}

#[test]
fn a_stale_response_is_validated() {
    let fields =
        "X-Accel-Expires: @1\r\nETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(fields, "body"));
        let server = server(&origin, zone, "proxy_cache_revalidate on;");
        ask(&server, "GET /a", "");
        origin.answer_with("HTTP/1.1 304 Not Modified\r\nX-Accel-Expires: 600\r\nX-New: 1\r\n\r\n");
        let got = ask(&server, "GET /a", "");
        assert_eq!(
            (status(&got), got.text().as_str()),
            ("REVALIDATED", "body"),
            "{zone}"
        );
        let head = &origin.heads()[1];
        assert!(head.contains("If-None-Match: \"a\"\r\n"), "{head}");
        assert!(
            head.contains("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            "{head}"
        );
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.header("X-New")), ("HIT", Some("1")));
        assert_eq!(got.text(), "body");
    }
}

#[test]
fn variants_are_separate_and_purged_together() {
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(&format!("{FRESH}Vary: X-A\r\n"), "x"));
        let server = server(&origin, zone, "");
        for (value, expected) in [("1", "MISS"), ("2", "MISS"), ("1", "HIT"), ("2", "HIT")] {
            let got = ask(&server, "GET /a", &format!("X-A: {value}\r\n"));
            assert_eq!(status(&got), expected, "{value}");
        }
        let key = format!("http://127.0.0.1:{}/a", origin.port());
        let line = format!(r#"{{"id":1,"verb":"cache.purge","key":"{key}"}}"#);
        let answer = command(&server, &line);
        assert_eq!(answer["result"]["responses"], 2, "{answer}");
        for value in ["1", "2"] {
            let got = ask(&server, "GET /a", &format!("X-A: {value}\r\n"));
            assert_eq!(status(&got), "MISS");
        }
    }
}

#[test]
fn requests_purge_if_allowed() {
    let directives = "
        proxy_cache_methods GET HEAD POST;
        proxy_cache_key $uri;
        proxy_cache_purge $http_x_purge;";
    let fields = format!("{FRESH}Cache-Tag: red, blue\r\n");
    let origin = Counting::start(&response(&fields, "x"));
    let server = server(&origin, MEMORY, directives);
    let fill = || {
        for path in ["/a/1", "/a/2", "/b"] {
            ask(&server, &format!("GET {path}"), "");
        }
    };
    let cases = [
        ("PURGE /a/1", "", 204, ["MISS", "HIT", "HIT"]),
        ("PURGE /none", "", 404, ["HIT", "HIT", "HIT"]),
        ("PURGE /a*", "", 204, ["MISS", "MISS", "HIT"]),
        (
            "PURGE /x",
            "Cache-Tag: blue\r\n",
            204,
            ["MISS", "MISS", "MISS"],
        ),
        (
            "PURGE /x",
            "Surrogate-Key: green\r\n",
            404,
            ["HIT", "HIT", "HIT"],
        ),
        (
            "PURGE /b",
            "Soft-Purge: 1\r\n",
            204,
            ["HIT", "HIT", "EXPIRED"],
        ),
    ];
    for (request, more, expected, statuses) in cases {
        fill();
        let got = ask(&server, request, &format!("X-Purge: 1\r\n{more}"));
        assert_eq!(got.status, expected, "{request} {more}");
        for (path, expected) in ["/a/1", "/a/2", "/b"].iter().zip(statuses) {
            let got = ask(&server, &format!("GET {path}"), "");
            assert_eq!(status(&got), expected, "{path} after {request} {more}");
        }
    }
    ask(&server, "PURGE /b", "");
    let heads = origin.heads();
    let passed = heads
        .last()
        .is_some_and(|head| head.starts_with("PURGE /b "));
    assert!(passed, "without leave it is a request like others");
}

#[test]
fn what_is_stored_for_a_url_is_shown_or_why_nothing_is() {
    let show = |server: &Server, url: &str| {
        let line = format!(r#"{{"id":1,"verb":"cache.show","url":"{url}"}}"#);
        command(server, &line)["result"].clone()
    };
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(&format!("{FRESH}Cache-Tag: red\r\n"), "body"));
        let server = server(&origin, zone, "");
        ask(&server, "GET /a?b=1", "");
        let answer = show(&server, "https://any.example/a?b=1");
        let stored = answer["stored"].as_array().unwrap();
        let [one] = stored.as_slice() else {
            panic!("{answer}");
        };
        let key = format!("http://127.0.0.1:{}/a?b=1", origin.port());
        assert_eq!((&one["zone"], &one["key"]), (&"Z".into(), &key.into()));
        assert_eq!((&one["bytes"], &one["status"]), (&4.into(), &200.into()));
        assert_eq!(one["tags"], serde_json::json!(["red"]));
        assert_eq!(one["path"].is_null(), zone == MEMORY);
        assert!(one["fresh_for_s"].as_i64().unwrap() > 0, "{one}");
        // Without a key that ends so, those that have it somewhere.
        assert_eq!(show(&server, "?b=")["stored"], answer["stored"]);
        assert_eq!(show(&server, "/none")["stored"], serde_json::json!([]));
    }
    let origin = Counting::start(&response("Cache-Control: no-store\r\n", "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let reasons = show(&server, "/a")["not_stored"].clone();
    let expected = serde_json::json!([{ "zone": "Z", "reason": "no-store", "responses": 1 }]);
    assert_eq!(reasons, expected);
}

#[test]
fn the_control_socket_purges_by_host_and_tag_and_lists() {
    let fields = format!("{FRESH}Surrogate-Key: red blue\r\n");
    let origin = Counting::start(&response(&fields, "x"));
    let server = server(&origin, MEMORY, "proxy_cache_background_update on;");
    let purge = |arguments: &str| {
        ask(&server, "GET /a", "");
        let line = format!(r#"{{"id":1,"verb":"cache.purge",{arguments}}}"#);
        command(&server, &line)["result"]["keys"].clone()
    };
    assert_eq!(purge(r#""host":"y""#), 0);
    assert_eq!(purge(r#""host":"X""#), 1);
    assert_eq!(purge(r#""tag":"blue","zone":"Z""#), 1);
    assert_eq!(purge(r#""prefix":"http://127""#), 1);
    assert_eq!(purge(r#""all":true,"soft":"on""#), 1);
    assert_eq!(status(&ask(&server, "GET /a", "")), "EXPIRED");
    let list = command(&server, r#"{"id":1,"verb":"cache.list"}"#);
    assert_eq!(list["result"]["zones"][0]["keys"], 1, "{list}");
    let wrong = command(
        &server,
        r#"{"id":1,"verb":"cache.purge","zone":"other","all":true}"#,
    );
    assert_eq!(wrong["error"]["code"], "not_found");
    let wrong = command(&server, r#"{"id":1,"verb":"cache.purge"}"#);
    assert_eq!(wrong["error"]["code"], "invalid");
}

#[test]
fn a_client_that_goes_away_leaves_the_response_to_the_others() {
    let body = "x".repeat(2_000_000);
    let origin = Counting::start(&response(FRESH, &body));
    origin.delay(Duration::from_millis(50));
    let server = server(
        &origin,
        MEMORY,
        "proxy_cache_lock on; proxy_cache_lock_timeout 60s;",
    );
    let mut peer = server.connect();
    peer.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    origin_has_been_asked(&origin);
    drop(peer);
    wait_until("the response", || {
        status(&ask(&server, "GET /a", "")) == "HIT"
    });
}

fn origin_has_been_asked(origin: &Counting) {
    wait_until("a request", || origin.requests() > 0);
}

#[test]
fn what_the_cache_does_is_counted() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    for _ in 0..3 {
        ask(&server, "GET /a", "");
    }
    origin.answer_with(&response("Cache-Control: no-store\r\n", "x"));
    ask(&server, "GET /b", "");
    let answer = command(&server, r#"{"id":1,"verb":"metrics"}"#);
    let text = answer.to_string().replace("\\\"", "\"");
    for line in [
        r#"cache_answers_total{zone="Z",status="HIT"} 2"#,
        r#"cache_answers_total{zone="Z",status="MISS"} 2"#,
        r#"cache_not_stored_total{zone="Z",reason="no-store"} 1"#,
        r#"cache_keys{zone="Z"} 1"#,
    ] {
        assert!(text.contains(line), "{line} in\n{answer}");
    }
}

/// What the module ngx_cache_purge says, and the answers to PURGE and to GET after it.
const MODULE_RULES: &[(&str, &str, &str, u16, &str)] = &[
    ("a method", "PURGE from 127.0.0.1", "PURGE", 200, "MISS"),
    ("everybody", "on from all", "PURGE", 200, "MISS"),
    (
        "a network",
        "BAN from 10.0.0.0/8 127.0.0.0/8",
        "BAN",
        200,
        "MISS",
    ),
    ("nobody here", "PURGE from 10.0.0.1", "PURGE", 403, "HIT"),
];

#[test]
fn requests_purge_as_in_the_known_module() {
    for (what, rule, method, expected, after) in MODULE_RULES {
        let origin = Counting::start(&response(FRESH, "x"));
        let directives = format!("proxy_cache_key $uri; proxy_cache_purge {rule};");
        let server = server(&origin, MEMORY, &directives);
        ask(&server, "GET /a", "");
        let got = ask(&server, &format!("{method} /a"), "");
        assert_eq!(got.status, *expected, "{what}");
        if *expected == 200 {
            assert_eq!(got.header("Content-Type"), Some("text/html"), "{what}");
            assert!(
                got.text().contains("<br>Key: /a\r\n"),
                "{what}: {}",
                got.text()
            );
            let again = ask(&server, &format!("{method} /a"), "");
            assert_eq!(again.status, 404, "{what}");
        }
        assert_eq!(status(&ask(&server, "GET /a", "")), *after, "{what}");
    }
}

#[test]
fn a_location_purges_the_key_that_it_names() {
    let origin = Counting::start(&response(FRESH, "x"));
    let directives = "proxy_cache_key $uri;
        location ~ ^/purge(/.*) { proxy_cache_purge Z $1; }
        location ~ ^/refused(/.*) { deny all; proxy_cache_purge Z $1; }";
    let server = server(&origin, MEMORY, directives);
    for path in ["/a", "/%3Cb%3E"] {
        ask(&server, &format!("GET {path}"), "");
    }
    assert_eq!(ask(&server, "GET /refused/a", "").status, 403);
    assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    assert_eq!(ask(&server, "GET /purge/a", "").status, 200);
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
    let got = ask(&server, "GET /purge/%3Cb%3E", "");
    assert!(got.text().contains("Key: /&lt;b&gt;"), "{}", got.text());
    assert_eq!(ask(&server, "GET /purge/%3Cb%3E", "").status, 404);
}

/// What a match by `^(a+)+$` needs another thread for, and what no thread finishes.
const HEAVY: &str = "aaaaaaaaaaaaaaaaaaaab";
const ENDLESS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";

#[test]
fn nothing_is_stored_where_a_rule_has_no_verdict() {
    for zone in [MEMORY, DISK] {
        for condition in ["", "proxy_set_header X-Other $skip;"] {
            let origin = Counting::start(&response(FRESH, "mine"));
            let map = r#"map $arg_m $skip { default ""; "~^(a+)+$" 1; }"#;
            let directives = format!("proxy_cache_key $uri; proxy_no_cache $skip; {condition}");
            let server = server(&origin, &format!("{zone} {map}"), &directives);
            let got = ask(&server, &format!("GET /a?m={ENDLESS}"), "");
            assert_eq!(got.status, 500, "{zone}");
            assert_eq!(status(&ask(&server, "GET /a", "")), "MISS", "{zone}");
            assert_eq!(status(&ask(&server, "GET /a", "")), "HIT", "{zone}");
        }
    }
}

#[test]
fn a_purge_waits_for_the_matches_of_its_key() {
    let origin = Counting::start(&response(FRESH, "x"));
    let map = "map $arg_m $suffix { default ''; '~^(a+)+$' -y; '~^(a+)+b$' -x; }";
    let zone = format!("{MEMORY} {map}");
    let directives = "proxy_cache_key $uri$suffix; proxy_cache_purge PURGE;
        location ~ ^/purge(/.*) { proxy_cache_purge Z $1$suffix; }";
    let server = server(&origin, &zone, directives);
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
    for (request, expected) in [
        (format!("GET /purge/a?m={HEAVY}"), 404),
        (format!("PURGE /a?m={HEAVY}"), 404),
    ] {
        assert_eq!(ask(&server, &request, "").status, expected, "{request}");
        assert_eq!(status(&ask(&server, "GET /a", "")), "HIT", "{request}");
    }
    assert_eq!(ask(&server, "GET /purge/a", "").status, 200);
}

/// Directives, and the values of Server and Date that each response has, where they are the
/// origin's.
const OWN_FIELDS: &[(&str, [bool; 2])] = &[
    ("", [false, false]),
    ("proxy_pass_header Server;", [true, false]),
    ("proxy_pass_header Date;", [false, true]),
    (
        "proxy_pass_header Server; proxy_pass_header Date; gzip on; gzip_min_length 1;",
        [true, true],
    ),
];

#[test]
fn a_field_of_the_origin_takes_the_place_of_our_own_in_every_hit() {
    const DATE: &str = "Mon, 14 Nov 2022 10:00:00 GMT";
    let fields = format!(
        "Server: origin\r\nDate: {DATE}\r\nX-Accel-Expires: 600\r\nContent-Type: text/html\r\n"
    );
    for (zone, (directives, passed)) in [MEMORY, DISK].iter().flat_map(|zone| {
        let cases = OWN_FIELDS.iter();
        cases.map(move |case| (zone, case))
    }) {
        let origin = Counting::start(&response(&fields, "0123456789"));
        let server = server(&origin, zone, directives);
        for fields in [
            "",
            "",
            "",
            "Range: bytes=2-3\r\n",
            "Accept-Encoding: gzip\r\n",
        ] {
            let got = ask(&server, "GET /a", fields);
            for (name, origins, passed) in
                [("Server", "origin", passed[0]), ("Date", DATE, passed[1])]
            {
                let prefix = format!("{name}: ");
                let values = got
                    .head
                    .lines()
                    .filter_map(|line| line.strip_prefix(&*prefix));
                let values: Vec<&str> = values.collect();
                assert_eq!(values.len(), 1, "{directives} {fields}: {}", got.head);
                // A stored response has the date at which it was made.
                let is_origins = values[0] == origins;
                assert!(is_origins || !passed, "{directives} {fields}: {}", got.head);
            }
        }
    }
}
