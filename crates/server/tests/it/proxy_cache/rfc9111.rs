//! Tests of RFC 9111 over connections, section by section. The tests of the decisions are in the
//! cache crate.

use crate::support::cache;
use crate::support::cache::{Counting, DISK, MEMORY, ask, response, server, status};
use turnpike_testkit::{Origin, Server, Step};

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn s2_other_methods_do_not_hit_what_get_has_stored() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    assert_eq!(status(&ask(&server, "OPTIONS /a", "")), "");
    assert_eq!(
        status(&ask(&server, "GET /a", "")),
        "HIT",
        "OPTIONS is safe"
    );
    assert_eq!(origin.requests(), 2);
}

#[test]
fn s3_1_connection_fields_are_not_reused() {
    let fields = format!("{FRESH}Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n");
    let origin = Counting::start(&response(&fields, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let got = ask(&server, "GET /a", "");
    assert_eq!((status(&got), got.header("X-Kept")), ("HIT", Some("1")));
}

#[test]
fn s3_1_trailers_do_not_become_fields_of_the_head() {
    let text = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}X-A: 1\r\n\r\n\
         1\r\nx\r\n0\r\nX-A: 2\r\nX-T: 3\r\n\r\n"
    );
    let origin = Counting::start(&text);
    let server = server(&origin, MEMORY, "proxy_pass_trailers on;");
    ask(&server, "GET /a", "");
    let got = ask(&server, "GET /a", "");
    assert_eq!((status(&got), got.header("X-A")), ("HIT", Some("1")));
    assert_eq!((got.header("X-T"), got.text().as_str()), (None, "x"));
}

fn scripted(steps: Vec<Vec<Step>>) -> (Origin, Server) {
    scripted_with(steps, "")
}

fn scripted_with(steps: Vec<Vec<Step>>, directives: &str) -> (Origin, Server) {
    let origin = Origin::start(steps);
    let text = format!(
        "events {{ }}
        http {{
            access_log off;
            {MEMORY}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{
                    proxy_pass http://127.0.0.1:{};
                    proxy_cache Z;
                    add_header X-Cache $upstream_cache_status;
                    {directives}
                }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    (origin, server)
}

#[test]
fn s3_3_incomplete_responses_are_not_stored() {
    let cut = format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n{FRESH}\r\nonly this");
    let chunk =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n5\r\nabcde\r\n");
    let whole = response(FRESH, "whole");
    let script = |text: &str| vec![Step::ReadHead, Step::send(text)];
    let (origin, server) = scripted(vec![script(&cut), script(&chunk), script(&whole)]);
    for _ in 0..2 {
        server.exchange("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
    let got = ask(&server, "GET /a", "");
    assert_eq!((status(&got), got.text().as_str()), ("MISS", "whole"));
    assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    assert_eq!(origin.received().len(), 3);
}

#[test]
fn s3_5_authorized_responses_are_shared_only_if_they_allow_it() {
    let cases = [
        ("max-age=600", "MISS"),
        ("max-age=600, public", "HIT"),
        ("max-age=600, must-revalidate", "HIT"),
        ("s-maxage=600", "HIT"),
    ];
    for (control, expected) in cases {
        let origin = Counting::start(&response(&format!("Cache-Control: {control}\r\n"), "x"));
        let server = server(&origin, MEMORY, "");
        ask(&server, "GET /a", "Authorization: Basic eDp5\r\n");
        assert_eq!(status(&ask(&server, "GET /a", "")), expected, "{control}");
    }
}

#[test]
fn s4_a_response_from_the_cache_has_its_age() {
    let origin = Counting::start(&response(&format!("{FRESH}Age: 100\r\n"), "x"));
    let server = server(&origin, MEMORY, "");
    assert_eq!(ask(&server, "GET /a", "").header("Age"), Some("100"));
    let got = ask(&server, "GET /a", "");
    let age: u64 = got.header("Age").unwrap().parse().unwrap();
    assert!((100..600).contains(&age), "{age}");
    assert_eq!(got.head.matches("\nAge:").count(), 1);
}

#[test]
fn s4_2_3_and_s5_1_a_stored_response_keeps_its_date() {
    let date = "Sun, 06 Nov 2022 08:49:37 GMT";
    let fields = format!("Date: {date}\r\nETag: \"a\"\r\nCache-Control: max-age=999999999\r\n");
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(&fields, "x"));
        let server = server(&origin, zone, "");
        let passed = ask(&server, "GET /a", "");
        assert_ne!(passed.header("Date"), Some(date), "ours, as nginx's");
        for (condition, expected) in [("", 200), ("", 200), ("If-None-Match: \"a\"\r\n", 304)] {
            let got = ask(&server, "GET /a", condition);
            assert_eq!((got.status, status(&got)), (expected, "HIT"));
            assert_eq!(got.header("Date"), Some(date), "{expected}");
            assert_eq!(got.head.matches("\nDate:").count(), 1);
            let age: u64 = got.header("Age").unwrap().parse().unwrap();
            assert!(age > 100_000_000, "{age}");
        }
    }
}

#[test]
fn s5_1_neither_age_nor_date_count_if_the_lifetime_starts_again() {
    let date = "Sun, 06 Nov 2022 08:49:37 GMT";
    let fields = format!("Date: {date}\r\nCache-Control: max-age=999999999\r\n");
    let cases = [
        ("", true),
        ("expires 1h;", false),
        ("expires epoch;", true),
        ("add_header Cache-Control max-age=60;", false),
        ("add_header Cache-Control \"public, S-MaxAge=60\";", false),
        ("add_header Cache-Control public;", true),
        ("add_header Cache-Control $arg_none;", true),
    ];
    for (directives, kept) in cases {
        let origin = Counting::start(&response(&fields, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        for _ in 0..2 {
            let got = ask(&server, "GET /a", "");
            let own = format!("{}{directives}", got.head);
            assert_eq!(got.header("Age").is_some(), kept, "{own}");
            assert_eq!(got.header("Date") == Some(date), kept, "{own}");
            assert!(got.header("Date").is_some());
        }
    }
}

#[test]
fn s4_a_stored_response_answers_only_its_own_uri() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    for (target, expected) in [
        ("/a", "MISS"),
        ("/a", "HIT"),
        ("/A", "MISS"),
        ("/a?", "MISS"),
        ("/a?b=1", "MISS"),
        ("/a?b=2", "MISS"),
        ("/a/", "MISS"),
        ("/a?b=1", "HIT"),
    ] {
        let got = ask(&server, &format!("GET {target}"), "");
        assert_eq!(status(&got), expected, "{target}");
    }
}

#[test]
fn s4_a_response_stored_by_head_does_not_answer_get() {
    let origin = Counting::start(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n{FRESH}\r\n"
    ));
    let directives = "proxy_cache_convert_head off; proxy_cache_key $uri;";
    let server = server(&origin, MEMORY, directives);
    for expected in ["MISS", "HIT"] {
        let got = ask(&server, "HEAD /a", "");
        assert_eq!(
            (status(&got), got.header("Content-Length")),
            (expected, Some("4"))
        );
    }
    origin.answer_with(&response(FRESH, "body"));
    for expected in ["MISS", "HIT"] {
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), (expected, "body"));
    }
}

#[test]
fn s4_unsafe_requests_are_written_through() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for _ in 0..2 {
            let before = origin.requests();
            ask(&server, &format!("{method} /a"), "Content-Length: 0\r\n");
            assert_eq!(origin.requests(), before + 1, "{method}");
        }
    }
}

#[test]
fn s4_1_vary_selects() {
    let fields = format!("{FRESH}Vary: Accept-Language\r\n");
    let origin = Counting::start(&response(&fields, "x"));
    let server = server(&origin, MEMORY, "");
    let cases = [
        ("Accept-Language: de, en\r\n", "MISS"),
        ("Accept-Language: de,en\r\n", "HIT"),
        ("Accept-Language: de\r\nAccept-Language: en\r\n", "HIT"),
        ("Accept-Language: en;q=0.5, DE\r\n", "MISS"),
        ("Accept-Language: de;q=1.0, en;q=0.50\r\n", "HIT"),
        ("Accept-Language: en\r\n", "MISS"),
        ("", "MISS"),
        ("", "HIT"),
    ];
    for (field, expected) in cases {
        assert_eq!(status(&ask(&server, "GET /a", field)), expected, "{field}");
    }
}

#[test]
fn s4_2_4_stale_responses_are_not_sent_if_prohibited() {
    let cases = [
        ("X-Accel-Expires: @1\r\n", 200),
        (
            "Cache-Control: max-age=0, stale-while-revalidate=600\r\n",
            200,
        ),
        (
            "Cache-Control: max-age=0, stale-while-revalidate=600, must-revalidate\r\n",
            504,
        ),
        (
            "Cache-Control: max-age=0, stale-while-revalidate=600, proxy-revalidate\r\n",
            504,
        ),
    ];
    for (fields, expected) in cases {
        let origin = Counting::start(&response(fields, "x"));
        let server = server(&origin, MEMORY, "proxy_cache_use_stale error;");
        ask(&server, "GET /a", "");
        origin.refuse(true);
        assert_eq!(ask(&server, "GET /a", "").status, expected, "{fields}");
    }
}

#[test]
fn s4_2_4_stale_responses_are_not_sent_without_permission() {
    let fields = "Cache-Control: max-age=0, stale-if-error=0, stale-while-revalidate=1\r\n\
                  Age: 100\r\n";
    let origin = Counting::start(&response(fields, "x"));
    let server = server(&origin, MEMORY, "");
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
    origin.refuse(true);
    let got = ask(&server, "GET /a", "");
    assert_eq!((got.status, status(&got)), (502, "EXPIRED"));
}

#[test]
fn s4_3_1_stored_validators_are_sent_and_the_clients_are_not() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let fields = format!("X-Accel-Expires: @1\r\nETag: \"a\"\r\nLast-Modified: {date}\r\n");
    let origin = Counting::start(&response(&fields, "x"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    let own = "If-None-Match: \"b\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
    ask(&server, "GET /a", own);
    let heads = origin.heads();
    assert!(!heads[0].contains("If-"), "{}", heads[0]);
    let lines: Vec<&str> = heads[1]
        .lines()
        .filter(|line| line.starts_with("If-"))
        .collect();
    let since = format!("If-Modified-Since: {date}");
    assert_eq!(lines, [since.as_str(), "If-None-Match: \"a\""]);
}

#[test]
fn s4_3_2_conditions_for_the_origin_reach_it() {
    let origin = Counting::start("HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n");
    let server = server(&origin, MEMORY, "");
    let fields = "If-Match: \"a\"\r\nIf-None-Match: *\r\nContent-Length: 0\r\n";
    assert_eq!(ask(&server, "PUT /a", fields).status, 412);
    let head = &origin.heads()[0];
    assert!(head.contains("\r\nIf-Match: \"a\"\r\n"), "{head}");
    assert!(head.contains("\r\nIf-None-Match: *\r\n"), "{head}");
}

#[test]
fn s4_3_2_without_last_modified_the_date_is_compared_with() {
    let date = "Date: Sun, 06 Nov 2022 08:49:37 GMT\r\nCache-Control: max-age=999999999\r\n";
    let origin = Counting::start(&response(date, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    for (since, expected) in [
        ("Sun, 06 Nov 2022 08:49:36 GMT", 200),
        ("Sun, 06 Nov 2022 08:49:37 GMT", 304),
        ("never", 200),
    ] {
        // The default is to compare for equality, as in nginx.
        let got = ask(
            &server,
            "GET /a",
            &format!("If-Modified-Since: {since}\r\n"),
        );
        assert_eq!(got.status, expected, "{since}");
        assert_eq!(got.header("Last-Modified"), None);
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn s4_3_2_conditions_are_evaluated_against_the_stored_response() {
    let fields = format!("{FRESH}ETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    let origin = Counting::start(&response(&fields, "0123456789"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let cases = [
        ("If-None-Match: \"a\"\r\n", 304),
        ("If-None-Match: W/\"a\", \"b\"\r\n", 304),
        ("If-None-Match: \"b\"\r\n", 200),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", 200),
        (
            "If-None-Match: \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n",
            304,
        ),
        (
            "If-None-Match: \"b\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            200,
        ),
        ("If-Match: \"b\"\r\n", 412),
        ("Range: bytes=0-1\r\nIf-Range: \"a\"\r\n", 206),
        ("Range: bytes=0-1\r\nIf-Range: \"b\"\r\n", 200),
        ("Range: bytes=20-\r\n", 416),
    ];
    for (field, expected) in cases {
        assert_eq!(ask(&server, "GET /a", field).status, expected, "{field}");
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn s4_3_3_a_full_response_to_a_validation_replaces_the_stored_one() {
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "old"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    origin.answer_with(&response(&format!("{FRESH}ETag: \"b\"\r\n"), "new"));
    for expected in ["EXPIRED", "HIT"] {
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.text().as_str()), (expected, "new"));
    }
}

#[test]
fn s4_3_2_a_weak_tag_is_no_condition_for_a_range() {
    let origin = Counting::start(&response(
        &format!("{FRESH}ETag: W/\"a\"\r\n"),
        "0123456789",
    ));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let fields = "Range: bytes=0-1\r\nIf-Range: W/\"a\"\r\n";
    assert_eq!(ask(&server, "GET /a", fields).status, 200);
}

#[test]
fn s4_3_3_a_5xx_to_a_validation_is_passed_on_unless_stale_ones_are_permitted() {
    let cases = [
        ("", 500, "EXPIRED"),
        ("proxy_cache_use_stale http_500;", 200, "STALE"),
    ];
    for (directives, code, expected) in cases {
        let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "x"));
        let directives = format!("proxy_cache_revalidate on; {directives}");
        let server = server(&origin, MEMORY, &directives);
        ask(&server, "GET /a", "");
        origin.answer_with("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        let got = ask(&server, "GET /a", "");
        assert_eq!((got.status, status(&got)), (code, expected), "{directives}");
    }
}

#[test]
fn s4_3_4_a_304_updates_the_stored_head() {
    let stored = "X-Accel-Expires: @1\r\nETag: \"a\"\r\nX-A: old\r\nContent-Type: text/a\r\n";
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response(stored, "body"));
        let server = server(&origin, zone, "proxy_cache_revalidate on;");
        ask(&server, "GET /a", "");
        origin.answer_with(&format!(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-A: new\r\nContent-Type: text/b\r\n\
             X-Accel-Expires: 600\r\n{FRESH}\r\n"
        ));
        for expected in ["REVALIDATED", "HIT"] {
            let got = ask(&server, "GET /a", "");
            assert_eq!(
                (status(&got), got.text().as_str()),
                (expected, "body"),
                "{zone}"
            );
            assert_eq!(got.header("X-A"), Some("new"));
            assert_eq!(got.header("Content-Type"), Some("text/b"));
            assert_eq!(got.head.matches("X-A").count(), 1, "{}", got.head);
        }
        assert_eq!(origin.requests(), 2);
    }
}

#[test]
fn s4_3_4_a_304_for_something_else_renews_nothing() {
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "old"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    origin.answer_with("HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n");
    // It also sends this without a conditional request.
    assert_eq!(ask(&server, "GET /a", "").status, 502);
    assert_eq!(origin.requests(), 3);
    origin.answer_with(&response(FRESH, "new"));
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
}

/// Fields of the stored response, and of the 304 that is not about it.
const MISMATCHES: &[(&str, &str)] = &[
    ("ETag: \"a\"\r\n", "ETag: \"b\"\r\n"),
    ("ETag: \"a-gzip\"\r\n", "ETag: \"a\"\r\n"),
    (
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "ETag: \"a\"\r\n",
    ),
    (
        "ETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
    ),
];

#[test]
fn s4_3_3_a_304_for_something_else_is_asked_again_without_conditions() {
    // The second answer comes on the connection of the first, and on another.
    for ending in ["", "Connection: close\r\n"] {
        for (stored, renewed) in MISMATCHES {
            let not_modified = format!("HTTP/1.1 304 Not Modified\r\n{renewed}{ending}\r\n");
            let old = response(&format!("X-Accel-Expires: @1\r\n{stored}{ending}"), "old");
            let new = response(&format!("{FRESH}{renewed}"), "new");
            let steps = [old, not_modified, new].map(|text| [Step::ReadHead, Step::send(text)]);
            let scripts = match ending {
                "" => vec![steps.concat()],
                _ => steps.iter().map(|steps| steps.to_vec()).collect(),
            };
            let (origin, server) = scripted_with(scripts, "proxy_cache_revalidate on;");
            ask(&server, "GET /a", "");
            for expected in ["EXPIRED", "HIT"] {
                let got = ask(&server, "GET /a", "");
                let found = (got.status, status(&got), got.text());
                assert_eq!(found, (200, expected, "new".to_owned()), "{renewed}");
            }
            let asked = String::from_utf8(origin.received().concat()).unwrap();
            let conditional = asked.split("\r\n\r\n").map(|head| head.contains("\r\nIf-"));
            let conditional: Vec<bool> = conditional.collect();
            assert_eq!(conditional, [false, true, false, false], "{asked}");
        }
    }
}

#[test]
fn s4_3_5_a_head_response_that_differs_makes_the_stored_one_stale() {
    let origin = Counting::start(&response(&format!("{FRESH}ETag: \"a\"\r\n"), "x"));
    let server = server(
        &origin,
        MEMORY,
        "proxy_cache_convert_head off; proxy_cache_bypass $arg_b; proxy_cache_key $uri;",
    );
    ask(&server, "GET /a", "");
    assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    origin.answer_with(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n{FRESH}ETag: \"b\"\r\n\r\n"
    ));
    ask(&server, "HEAD /a?b=1", "");
    origin.answer_with(&response(FRESH, "y"));
    assert_eq!(status(&ask(&server, "GET /a", "")), "EXPIRED");
}

#[test]
fn s4_4_unsafe_requests_invalidate_unless_they_fail() {
    let none = "HTTP/1.1 STATUS\r\nContent-Length: 0\r\n\r\n";
    for (method, answer, expected) in [
        ("POST", "200 OK", "MISS"),
        ("POST", "303 See", "MISS"),
        ("POST", "404 No", "HIT"),
        ("PUT", "204 Done", "MISS"),
        ("DELETE", "204 Done", "MISS"),
        ("UNKNOWN", "200 OK", "MISS"),
        ("OPTIONS", "200 OK", "HIT"),
    ] {
        let origin = Counting::start(&response(FRESH, "x"));
        let server = server(&origin, MEMORY, "");
        ask(&server, "GET /a", "");
        origin.answer_with(&none.replace("STATUS", answer));
        ask(&server, &format!("{method} /a"), "Content-Length: 0\r\n");
        origin.answer_with(&response(FRESH, "x"));
        let got = ask(&server, "GET /a", "");
        assert_eq!(status(&got), expected, "{method} {answer}");
    }
}

#[test]
fn s4_4_the_configuration_says_whose_requests_invalidate() {
    let cases = [
        ("", "", "MISS"),
        ("proxy_cache_invalidate on;", "", "MISS"),
        ("proxy_cache_invalidate off;", "", "HIT"),
        ("proxy_cache_invalidate $http_x_editor;", "", "HIT"),
        (
            "proxy_cache_invalidate $http_x_editor;",
            "X-Editor: 0\r\n",
            "HIT",
        ),
        (
            "proxy_cache_invalidate $http_x_editor;",
            "X-Editor: 1\r\n",
            "MISS",
        ),
    ];
    for (directives, field, expected) in cases {
        let origin = Counting::start(&response(FRESH, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        let fields = format!("{field}Content-Length: 0\r\n");
        assert_eq!(ask(&server, "POST /a", &fields).status, 200);
        let got = ask(&server, "GET /a", "");
        assert_eq!(status(&got), expected, "{directives} {field}");
    }
}

#[test]
fn s4_4_nothing_is_invalid_before_the_server_has_answered_with_success() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    origin.delay(std::time::Duration::from_millis(500));
    let mut editor = server.connect();
    editor.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    cache::wait_until("the request", || origin.requests() == 2);
    assert_eq!(status(&ask(&server, "GET /a", "")), "HIT");
    assert_eq!(editor.response().status, 200);
    origin.delay(std::time::Duration::ZERO);
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
}

#[test]
fn s4_4_a_success_that_leads_to_a_page_of_ours_invalidates_too() {
    let redirect = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: @page\r\nContent-Length: 0\r\n\r\n";
    let other = "HTTP/1.1 303 See\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    let directives = "proxy_intercept_errors on; error_page 303 =200 @page; }
        location @page { return 200 page;";
    for answer in [redirect, other] {
        let origin = Counting::start(&response(FRESH, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        origin.answer_with(answer);
        let got = ask(&server, "POST /a", "Content-Length: 0\r\n");
        assert_eq!(got.text(), "page", "{answer}");
        origin.answer_with(&response(FRESH, "x"));
        assert_eq!(status(&ask(&server, "GET /a", "")), "MISS", "{answer}");
    }
}

#[test]
fn s5_2_1_5_what_a_request_forbids_to_store_is_not_stored() {
    let cases = [
        ("", "MISS", Some("request-no-store")),
        ("proxy_cache_lock on;", "MISS", Some("request-no-store")),
        (
            "proxy_cache_honor_request no-store;",
            "MISS",
            Some("request-no-store"),
        ),
        (
            "proxy_cache_honor_request on;",
            "MISS",
            Some("request-no-store"),
        ),
        ("proxy_cache_honor_request off;", "HIT", None),
    ];
    for (directives, expected, why) in cases {
        let origin = Counting::start(&response(FRESH, "x"));
        let server = server(&origin, MEMORY, directives);
        let got = ask(&server, "GET /a", "Cache-Control: No-Store\r\n");
        assert_eq!(
            (status(&got), got.header("X-Why")),
            ("MISS", why),
            "{directives}"
        );
        let got = ask(&server, "GET /a", "");
        assert_eq!(status(&got), expected, "{directives}");
    }
    // What others have had stored is sent: the directive is about this response only.
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let got = ask(&server, "GET /a", "Cache-Control: no-store\r\n");
    assert_eq!(status(&got), "HIT");
}

#[test]
fn s5_2_1_5_a_request_that_forbids_to_store_renews_nothing() {
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "old"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    origin.answer_with(&response(FRESH, "new"));
    let got = ask(&server, "GET /a", "Cache-Control: no-store\r\n");
    assert_eq!((status(&got), got.text().as_str()), ("EXPIRED", "new"));
    assert_eq!(status(&ask(&server, "GET /a", "")), "EXPIRED");
}

#[test]
fn s5_2_2_7_fields_of_a_304_are_withheld_too() {
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "x"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    origin.answer_with(
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-Mine: 1\r\nX-All: 1\r\n\
         X-Accel-Expires: 600\r\nCache-Control: max-age=600, private=\"X-Mine\"\r\n\r\n",
    );
    assert_eq!(status(&ask(&server, "GET /a", "")), "REVALIDATED");
    let got = ask(&server, "GET /a", "");
    assert_eq!((status(&got), got.header("X-All")), ("HIT", Some("1")));
    assert_eq!(got.header("X-Mine"), None);
}

#[test]
fn s5_2_directives_are_passed_on_in_both_directions() {
    let control = "max-age=600, x-own=\"a, b\", no-transform";
    let origin = Counting::start(&response(&format!("Cache-Control: {control}\r\n"), "x"));
    let server = server(&origin, MEMORY, "");
    let asked = "Cache-Control: max-stale=5, x-theirs\r\n";
    for expected in ["MISS", "HIT"] {
        let got = ask(&server, "GET /a", asked);
        assert_eq!(
            (status(&got), got.header("Cache-Control")),
            (expected, Some(control))
        );
    }
    assert!(origin.heads()[0].contains(asked), "{}", origin.heads()[0]);
}

#[test]
fn s5_2_1_7_only_if_cached_asks_nobody() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "proxy_cache_honor_request on;");
    let only = "Cache-Control: only-if-cached\r\n";
    assert_eq!(ask(&server, "GET /a", only).status, 504);
    assert_eq!(origin.requests(), 0);
    ask(&server, "GET /a", "");
    assert_eq!(status(&ask(&server, "GET /a", only)), "HIT");
    let anew = ask(&server, "GET /a", "Cache-Control: no-cache\r\n");
    assert_eq!((status(&anew), origin.requests()), ("EXPIRED", 2));
}

#[test]
fn s5_2_2_5_and_s5_2_2_7_what_is_not_for_all_is_given_to_nobody_else() {
    for (control, why) in [
        ("no-store", "no-store"),
        ("private, max-age=600", "private"),
    ] {
        let origin = Counting::start(&response(&format!("Cache-Control: {control}\r\n"), "x"));
        let directives = "proxy_cache_valid any 10m; proxy_cache_lock on;";
        let server = server(&origin, MEMORY, directives);
        for asked in 1..=2 {
            let got = ask(&server, "GET /a", "");
            assert_eq!((status(&got), got.header("X-Why")), ("MISS", Some(why)));
            assert_eq!(origin.requests(), asked);
        }
    }
}

#[test]
fn s5_2_2_6_what_must_not_be_transformed_is_not_compressed() {
    let directives = "gzip on; gzip_min_length 0; gzip_types text/plain;";
    for (control, coding) in [
        ("no-transform, max-age=600", None),
        ("max-age=600", Some("gzip")),
    ] {
        let fields = format!("Cache-Control: {control}\r\nContent-Type: text/plain\r\n");
        let origin = Counting::start(&response(&fields, "text"));
        let server = server(&origin, MEMORY, directives);
        for expected in ["MISS", "HIT"] {
            let got = ask(&server, "GET /a", "Accept-Encoding: gzip\r\n");
            assert_eq!(
                (status(&got), got.header("Content-Encoding")),
                (expected, coding)
            );
        }
    }
}

#[test]
fn s5_2_2_4_and_s5_2_2_7_named_fields_are_withheld() {
    for directive in ["no-cache", "private"] {
        let fields = format!(
            "Cache-Control: max-age=600, {directive}=\"X-Mine\"\r\nX-Mine: 1\r\nX-All: 1\r\n"
        );
        let origin = Counting::start(&response(&fields, "x"));
        let server = server(&origin, MEMORY, "");
        assert_eq!(ask(&server, "GET /a", "").header("X-Mine"), Some("1"));
        let got = ask(&server, "GET /a", "");
        assert_eq!((status(&got), got.header("X-All")), ("HIT", Some("1")));
        assert_eq!(got.header("X-Mine"), None, "{directive}");
    }
}

#[test]
fn s3_3_a_part_of_what_is_stored_is_a_206() {
    let origin = Counting::start(&response(FRESH, "0123456789"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "");
    let got = ask(&server, "GET /a", "Range: bytes=2-3\r\n");
    assert_eq!((status(&got), got.status), ("HIT", 206));
    assert_eq!(got.header("Content-Range"), Some("bytes 2-3/10"));
    assert_eq!(got.text(), "23");
}

#[test]
fn s4_the_most_recent_response_is_used() {
    let vary = format!("{FRESH}Vary: X-A\r\n");
    let origin = Counting::start(&response(&vary, "old"));
    let directives = "proxy_cache_bypass $arg_b; proxy_cache_key $uri;";
    let server = server(&origin, MEMORY, directives);
    ask(&server, "GET /a", "X-A: 1\r\n");
    origin.answer_with(&response(&vary, "new"));
    ask(&server, "GET /a?b=1", "X-A: 1\r\n");
    let got = ask(&server, "GET /a", "X-A: 1\r\n");
    assert_eq!((status(&got), got.text().as_str()), ("HIT", "new"));
}

#[test]
fn s4_1_a_response_without_vary_takes_the_place_of_all() {
    let vary = format!("{FRESH}Vary: X-A\r\n");
    let origin = Counting::start(&response(&vary, "old"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /a", "X-A: 1\r\n");
    origin.answer_with(&response(FRESH, "new"));
    ask(&server, "GET /a", "X-A: 2\r\n");
    for value in ["1", "2", "3"] {
        let got = ask(&server, "GET /a", &format!("X-A: {value}\r\n"));
        assert_eq!(
            (status(&got), got.text().as_str()),
            ("HIT", "new"),
            "{value}"
        );
    }
}

#[test]
fn s4_3_2_a_304_that_the_client_did_not_ask_for_is_a_200() {
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "body"));
    let server = server(&origin, MEMORY, "proxy_cache_revalidate on;");
    ask(&server, "GET /a", "");
    let renewed = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-A: new\r\n\r\n";
    origin.answer_with(renewed);
    let got = ask(&server, "GET /a", "If-None-Match: \"b\"\r\n");
    assert_eq!((got.status, got.text().as_str()), (200, "body"));
    assert_eq!(
        (status(&got), got.header("X-A")),
        ("REVALIDATED", Some("new"))
    );
}

#[test]
fn s4_4_location_of_another_origin_invalidates_nothing() {
    let origin = Counting::start(&response(FRESH, "x"));
    let server = server(&origin, MEMORY, "");
    ask(&server, "GET /b", "");
    origin.answer_with(
        "HTTP/1.1 201 Created\r\nLocation: http://elsewhere/b\r\nContent-Location: \
         http://elsewhere/b\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(ask(&server, "POST /a", "Content-Length: 0\r\n").status, 201);
    assert_eq!(status(&ask(&server, "GET /b", "")), "HIT");
}
