//! Tests of extensions of RFC 9111's core: targeted fields, Cache-Status, stale responses by their
//! own directives, heuristics, POST, and parts. Each test names its section.

use crate::support::cache::{Counting, DISK, MEMORY, ask, response, server, status, wait_until};
use turnpike_testkit::Server;

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn rfc9213_s2_2_the_targeted_field_is_followed_and_passed_on() {
    let cases = [
        (
            "",
            "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
            "HIT",
        ),
        (
            "",
            "CDN-Cache-Control: no-store\r\nCache-Control: max-age=600\r\n",
            "MISS",
        ),
        (
            "",
            "CDN-Cache-Control: max-age=\"6\"\r\nCache-Control: no-store\r\n",
            "MISS",
        ),
        (
            "proxy_ignore_headers CDN-Cache-Control;",
            "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
            "MISS",
        ),
    ];
    for (directives, fields, expected) in cases {
        let origin = Counting::start(&response(fields, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        let got = ask(&server, "GET /a", "");
        assert_eq!(status(&got), expected, "{fields}");
        assert!(got.header("CDN-Cache-Control").is_some());
    }
}

/// Directives, the origin's fields, a header of the request, and the value of Cache-Status.
const CACHE_STATUSES: &[(&str, &str, &str, &str)] = &[
    (
        "",
        FRESH,
        "GET /a",
        "turnpike; fwd=uri-miss; fwd-status=200; stored",
    ),
    (
        "",
        "Cache-Control: no-store\r\n",
        "GET /a",
        "turnpike; fwd=uri-miss; fwd-status=200; detail=no-store",
    ),
    (
        "proxy_cache_bypass $arg_b;",
        FRESH,
        "GET /a?b=1",
        "turnpike; fwd=bypass; fwd-status=200; stored",
    ),
    (
        "",
        FRESH,
        "PUT /a",
        "turnpike; fwd=method; fwd-status=200; detail=method",
    ),
    ("", FRESH, "OPTIONS /a", ""),
];

#[test]
fn rfc9211_s2_cache_status_describes_the_response() {
    for (directives, fields, request, expected) in CACHE_STATUSES {
        let origin = Counting::start(&response(fields, "x"));
        let directives = format!("proxy_cache_status on; {directives}");
        let server = server(&origin, MEMORY, &directives);
        let got = ask(&server, request, "Content-Length: 0\r\n");
        let cache_status = got.header("Cache-Status").unwrap_or_default();
        assert_eq!(cache_status, *expected, "{request} {fields}");
    }
    let origin = Counting::start(&response(
        &format!("{FRESH}Vary: X-A\r\nCache-Status: o; hit\r\n"),
        "x",
    ));
    let server = server(&origin, MEMORY, "proxy_cache_status \"my cache\";");
    ask(&server, "GET /a", "");
    let got = ask(&server, "GET /a", "");
    let lines: Vec<&str> = got
        .head
        .lines()
        .filter(|line| line.starts_with("Cache-Status"))
        .collect();
    assert_eq!(
        lines[0], "Cache-Status: o; hit",
        "the one nearer to the origin is first"
    );
    let (cache_status, ttl) = lines[1].rsplit_once('=').unwrap();
    assert_eq!(cache_status, "Cache-Status: \"my cache\"; hit; ttl");
    assert!((1..=600).contains(&ttl.parse::<i64>().unwrap()), "{ttl}");
    let got = ask(&server, "GET /a", "X-A: 1\r\n");
    let expected = "\"my cache\"; fwd=vary-miss; fwd-status=200; stored";
    assert!(got.head.contains(expected), "{}", got.head);
}

#[test]
fn rfc9211_s2_cache_status_shows_stale_responses_and_renewals() {
    let stored = "X-Accel-Expires: @1\r\nETag: \"a\"\r\n";
    let origin = Counting::start(&response(stored, "x"));
    let directives = "proxy_cache_status on; proxy_cache_revalidate on;
        proxy_cache_use_stale http_503;";
    let server = server(&origin, MEMORY, directives);
    ask(&server, "GET /a", "");
    origin.answer_with("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
    let got = ask(&server, "GET /a", "");
    let cache_status = got.header("Cache-Status").unwrap();
    assert!(
        cache_status.starts_with("turnpike; fwd=stale; fwd-status=503; ttl=-"),
        "{cache_status}"
    );
    origin.answer_with("HTTP/1.1 304 No\r\nETag: \"a\"\r\nX-Accel-Expires: 600\r\n\r\n");
    let got = ask(&server, "GET /a", "");
    let cache_status = got.header("Cache-Status").unwrap();
    assert!(
        cache_status.starts_with("turnpike; fwd=stale; fwd-status=304; stored; ttl="),
        "{cache_status}"
    );
}

#[test]
fn rfc5861_s3_a_response_is_renewed_in_the_background_by_its_directive() {
    let fields = "X-Accel-Expires: @1\r\nCache-Control: stale-while-revalidate=2145902155\r\n";
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(fields, "old"));
        let server = server(&origin, zone, "");
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
    let origin = Counting::start(&response(fields, "old"));
    let server = server(&origin, MEMORY, "proxy_cache_background_update off;");
    ask(&server, "GET /a", "");
    origin.answer_with(&response(FRESH, "new"));
    assert_eq!(
        status(&ask(&server, "GET /a", "")),
        "EXPIRED",
        "as nginx does it"
    );
}

#[test]
fn rfc5861_s4_a_response_replaces_failures_by_its_directive() {
    let cases = [("stale-if-error=2145902155", 200), ("max-stale=1", 503)];
    for (control, expected) in cases {
        let fields = format!("X-Accel-Expires: @1\r\nCache-Control: {control}\r\n");
        let origin = Counting::start(&response(&fields, "old"));
        let server = server(&origin, MEMORY, "");
        ask(&server, "GET /a", "");
        origin.answer_with("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(ask(&server, "GET /a", "").status, expected, "{control}");
    }
}

#[test]
fn s4_2_2_a_heuristic_is_used_if_configured() {
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (directives, expected) in [
        ("", "MISS"),
        ("proxy_cache_heuristic off;", "MISS"),
        ("proxy_cache_heuristic 0.1;", "HIT"),
        ("proxy_cache_heuristic 10% 1h;", "HIT"),
        ("proxy_cache_heuristic 0;", "MISS"),
    ] {
        let origin = Counting::start(&response(modified, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        assert_eq!(
            status(&ask(&server, "GET /a", "")),
            expected,
            "{directives}"
        );
    }
}

#[test]
fn wrong_settings_are_refused() {
    for (directive, message) in [
        (
            "proxy_cache_heuristic 1.5;",
            "invalid fraction \"1.5\" in \"proxy_cache_heuristic\"",
        ),
        ("proxy_cache_heuristic 0.1 x;", "invalid time value \"x\""),
        (
            "proxy_cache_invalidate off $arg_a;",
            "\"proxy_cache_invalidate\" takes \"on\", \"off\" or conditions, not both",
        ),
        (
            "proxy_cache_honor_request maybe;",
            "invalid value \"maybe\"",
        ),
        ("proxy_cache_status \"\u{e4}\";", "must be visible ASCII"),
    ] {
        let text = format!(
            "events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%; location / {{
                proxy_pass http://127.0.0.1:1; {directive} }} }} }}"
        );
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&text)
            .try_start();
        let error = started.err().unwrap().to_string();
        assert!(error.contains(message), "{directive}: {error}");
    }
}

fn post(server: &Server, path: &str, body: &str) -> turnpike_testkit::Response {
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    server.connect().round(text)
}

#[test]
fn rfc9110_s9_3_3_a_post_is_reused_if_the_key_has_its_content() {
    let directives = "proxy_cache_methods GET HEAD POST; proxy_cache_key $uri|$request_body;";
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, directives);
    let large = "y".repeat(100_000);
    for (body, expected) in [
        ("a", "MISS"),
        ("a", "HIT"),
        ("b", "MISS"),
        ("b", "HIT"),
        ("", ""),
        // The content is in a file, so the key does not have it.
        (large.as_str(), ""),
        (large.as_str(), ""),
    ] {
        let got = post(&server, "/a", body);
        assert_eq!(
            (got.status, status(&got)),
            (200, expected),
            "{}",
            body.len()
        );
    }
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
    assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    assert_eq!(status(&post(&server, "/a", "c")), "MISS");
    assert_eq!(
        status(&ask(&server, "GET /a", "")),
        "MISS",
        "section 4.4 of RFC 9111"
    );
}

#[test]
fn rfc9110_s9_3_3_a_stale_post_is_fetched_without_conditions() {
    let directives = "proxy_cache_methods POST; proxy_cache_key $uri|$request_body;
        proxy_cache_revalidate on;";
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "x"));
    let server = server(&origin, MEMORY, directives);
    for expected in ["MISS", "EXPIRED"] {
        assert_eq!(status(&post(&server, "/a", "a")), expected);
    }
    assert!(!origin.heads()[1].contains("If-"), "{}", origin.heads()[1]);
}

#[test]
fn rfc9110_s9_3_3_content_that_comes_late_is_waited_for() {
    let directives = "proxy_cache_methods POST; proxy_cache_key $uri|$request_body;";
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, directives);
    for (last, expected) in [("b", "MISS"), ("b", "HIT"), ("c", "MISS")] {
        let mut peer = server.connect();
        peer.send("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\na");
        std::thread::sleep(std::time::Duration::from_millis(50));
        peer.send(last);
        let got = peer.response();
        assert_eq!((got.status, status(&got)), (200, expected), "{last}");
    }
}

#[test]
fn rfc9110_s9_3_3_a_post_is_stored_for_get_by_content_location() {
    let cases = [
        ("Content-Location: /a\r\n", FRESH, "HIT"),
        ("Content-Location: http://x/a\r\n", FRESH, "HIT"),
        ("Content-Location: /b\r\n", FRESH, "MISS"),
        ("Content-Location: http://y/a\r\n", FRESH, "MISS"),
        ("", FRESH, "MISS"),
        ("Content-Location: /a\r\n", "", "MISS"),
    ];
    for (place, fresh, expected) in cases {
        let directives = "proxy_cache_methods POST; proxy_cache_valid any 10m;";
        let origin = Counting::start(&response(&format!("{place}{fresh}"), "posted"));
        let server = server(&origin, MEMORY, directives);
        for asked in 1..=2 {
            assert_eq!(post(&server, "/a", "1").text(), "posted");
            assert_eq!(
                origin.requests(),
                asked,
                "POST is never answered from there"
            );
        }
        origin.answer_with(&response(FRESH, "got"));
        assert_eq!(
            status(&ask(&server, "GET /a", "")),
            expected,
            "{place}{fresh}"
        );
    }
}

/// A 206 with these bytes of ten.
fn part(first: usize, last: usize, tag: &str) -> String {
    let body = &"0123456789"[first..=last];
    format!(
        "HTTP/1.1 206 Partial\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/10\r\n\
         ETag: {tag}\r\n{FRESH}\r\n{body}",
        body.len()
    )
}

fn range(server: &Server, range: &str, more: &str) -> turnpike_testkit::Response {
    ask(server, "GET /a", &format!("Range: bytes={range}\r\n{more}"))
}

#[test]
fn s3_3_stored_parts_answer_ranges_that_they_contain() {
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&part(4, 9, "\"a\""));
        let server = server(&origin, zone, "proxy_cache_max_range_offset 2;");
        let got = range(&server, "4-", "");
        assert_eq!(
            (got.status, status(&got), got.text().as_str()),
            (206, "MISS", "456789")
        );
        for (asked, more, text, content) in [
            ("4-9", "", "456789", "bytes 4-9/10"),
            ("5-6", "", "56", "bytes 5-6/10"),
            ("-3", "", "789", "bytes 7-9/10"),
            ("5-5", "If-Range: \"a\"\r\n", "5", "bytes 5-5/10"),
        ] {
            let got = range(&server, asked, more);
            assert_eq!((got.status, status(&got)), (206, "HIT"), "{asked}");
            assert_eq!(
                (got.text().as_str(), got.header("Content-Range")),
                (text, Some(content))
            );
            let length = text.len().to_string();
            assert_eq!(got.header("Content-Length"), Some(length.as_str()));
            assert!(got.header("Age").is_some());
        }
        assert_eq!(origin.requests(), 1);
        let sent = &origin.heads()[0];
        assert!(sent.contains("Range: bytes=4-\r\n"), "{sent}");
        // Neither for the whole, nor for a request for another version.
        origin.answer_with(&response(FRESH, "0123456789"));
        assert_eq!(
            status(&range(&server, "5-5", "If-Range: \"b\"\r\n")),
            "MISS"
        );
        assert_eq!(ask(&server, "GET /a", "").status, 200);
        assert_eq!(range(&server, "0-4", "").text(), "01234");
    }
}

#[test]
fn s3_4_parts_become_the_whole() {
    let origin = Counting::start(&part(4, 9, "\"a\""));
    let directives = "proxy_set_header Range $http_range; proxy_cache_max_range_offset 0;";
    let server = server(&origin, MEMORY, directives);
    assert_eq!(range(&server, "4-9", "").text(), "456789");
    origin.answer_with(&part(0, 4, "\"a\""));
    assert_eq!(range(&server, "0-4", "").text(), "01234");
    let got = ask(&server, "GET /a", "");
    assert_eq!(
        (got.status, status(&got), got.text().as_str()),
        (200, "HIT", "0123456789")
    );
    assert_eq!(got.header("Content-Range"), None);
    assert_eq!(range(&server, "2-6", "").text(), "23456");
    assert_eq!(origin.requests(), 2);
}
