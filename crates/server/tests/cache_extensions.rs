//! What the cache does beyond RFC 9111's core. Each test bears the section's number.

#![allow(clippy::unwrap_used)]

#[path = "support/cache.rs"]
mod support;

use support::{Counting, DISK, MEMORY, ask, response, server, status, wait_until};
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

#[test]
fn rfc5861_s3_a_response_is_renewed_behind_the_back_by_its_own_word() {
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
fn rfc5861_s4_a_response_stands_for_failures_by_its_own_word() {
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
fn s4_2_2_a_heuristic_is_used_where_it_is_asked_for() {
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
