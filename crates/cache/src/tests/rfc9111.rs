//! Tests of RFC 9111 for a shared cache: each test names its section.

use turnpike_wire::message::Head;

use crate::control::{CacheControl, SECONDS_MAX, Scope, delta_seconds};
use crate::freshness::{RequestFacts, Rules, Timing, judge, remove_withheld};
use crate::head::remove_unstorable;
use crate::validation::{self, HeadVerdict};
use crate::vary::Selection;
use crate::why::WhyNotStored;

/// Sun, 06 Nov 1994 08:49:37 GMT, at the start of that second.
const NOW_MS: u64 = 784_111_777_000;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const TEN_SECONDS_AGO: &str = "Sun, 06 Nov 1994 08:49:27 GMT";
const IN_AN_HOUR: &str = "Sun, 06 Nov 1994 09:49:37 GMT";

type Fields<'a> = &'a [(&'a str, &'a str)];

fn asked() -> RequestFacts {
    RequestFacts {
        sent_ms: NOW_MS,
        received_ms: NOW_MS,
        ..RequestFacts::default()
    }
}

fn judged(status: u16, fields: &[(&str, &str)]) -> Result<Timing, WhyNotStored> {
    judge(&asked(), &Head::of(status, fields), &Rules::default())
}

fn control(value: &str) -> CacheControl {
    CacheControl::parse(std::iter::once(value.as_bytes()))
}

/// The seconds of freshness on arrival.
fn fresh_s(fields: &[(&str, &str)]) -> u64 {
    (judged(200, fields).unwrap().fresh_until_ms - NOW_MS) / 1000
}

fn why(status: u16, fields: &[(&str, &str)]) -> WhyNotStored {
    judged(status, fields).unwrap_err()
}

#[test]
fn s1_2_2_delta_seconds_that_overflow_are_a_long_time() {
    assert_eq!(delta_seconds(b"60"), Some(60));
    assert_eq!(delta_seconds(b"99999999999999999999999"), Some(SECONDS_MAX));
    assert_eq!(delta_seconds(b"4294967296"), Some(SECONDS_MAX));
    for text in ["", "-1", "1.5", "1s", "+1", " 1"] {
        assert_eq!(delta_seconds(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn s3_a_final_status_is_needed_and_partial_ones_are_not_kept() {
    let fields = [("Cache-Control", "max-age=60")];
    for status in [100, 103, 304] {
        assert_eq!(why(status, &fields), WhyNotStored::Status);
    }
    for status in [200, 203, 301, 404, 410, 500, 599] {
        assert!(judged(status, &fields).is_ok(), "{status}");
    }
}

#[test]
fn s3_no_store_and_private_are_not_stored() {
    let cases = [
        ("no-store", WhyNotStored::NoStore),
        ("max-age=60, no-store", WhyNotStored::NoStore),
        ("private", WhyNotStored::Private),
        ("PRIVATE, max-age=60", WhyNotStored::Private),
        ("public, private, max-age=60", WhyNotStored::Private),
        // A list that names no field, or has no end, must not let the response be stored.
        ("max-age=60, private=\"\"", WhyNotStored::Private),
        ("max-age=60, private=\" , \"", WhyNotStored::Private),
        ("max-age=60, private=\"X-A", WhyNotStored::Private),
        ("max-age=60, private=", WhyNotStored::Private),
        // An argument without an end hides no directive behind it.
        ("max-age=60, x=\"a, no-store", WhyNotStored::NoStore),
        ("max-age=60, x=\"a, private", WhyNotStored::Private),
        ("x=\"a, y=\"b\", z=\"c, no-store", WhyNotStored::NoStore),
    ];
    for (value, expected) in cases {
        assert_eq!(why(200, &[("Cache-Control", value)]), expected, "{value}");
    }
}

#[test]
fn s3_the_response_or_the_configuration_gives_the_lifetime() {
    assert_eq!(why(200, &[]), WhyNotStored::NoFreshness);
    assert_eq!(
        why(200, &[("Cache-Control", "public")]),
        WhyNotStored::NoFreshness
    );
    assert!(judged(200, &[("Expires", IN_AN_HOUR), ("Date", DATE)]).is_ok());
    let rules = Rules {
        valid: vec![(404, 5), (0, 60)],
        ..Rules::default()
    };
    for (status, seconds) in [(404, 5), (200, 60), (418, 60)] {
        let timing = judge(&asked(), &Head::response(status, b""), &rules).unwrap();
        assert_eq!(timing.fresh_until_ms, NOW_MS + seconds * 1000, "{status}");
    }
}

#[test]
fn s3_1_fields_of_one_connection_are_not_stored_and_all_others_are() {
    let mut head = Head::of(
        200,
        &[
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("TE", "trailers"),
            ("Proxy-Connection", "keep-alive"),
            ("Proxy-Authenticate", "Basic"),
            ("Proxy-Authentication-Info", "x"),
            ("Proxy-Authorization", "x"),
            ("X-Unknown", "stays"),
            ("Content-Type", "text/plain"),
        ],
    );
    remove_unstorable(&mut head);
    let kept = [("X-Unknown", "stays"), ("Content-Type", "text/plain")];
    assert!(
        head.fields.iter().eq(kept
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    );
}

#[test]
fn s3_2_a_304_replaces_fields_except_those_of_the_stored_bytes() {
    let stored = Head::of(
        200,
        &[
            ("Content-Type", "text/plain"),
            ("Content-Encoding", "br"),
            ("Content-Length", "5"),
            ("X-A", "old"),
            ("X-A", "older"),
            ("X-B", "kept"),
        ],
    );
    let update = Head::of(
        304,
        &[
            ("Content-Type", "text/html"),
            ("Content-Length", "0"),
            ("Content-Encoding", "gzip"),
            ("Content-Range", "bytes 0-1/2"),
            ("Connection", "close"),
            ("x-a", "new"),
            ("X-C", "added"),
        ],
    );
    let expected = Head::of(
        200,
        &[
            ("Content-Encoding", "br"),
            ("Content-Length", "5"),
            ("X-B", "kept"),
            ("Content-Type", "text/html"),
            ("x-a", "new"),
            ("X-C", "added"),
        ],
    );
    assert_eq!(validation::freshened(&stored, &update), expected);
}

#[test]
fn s3_5_responses_to_authorized_requests_must_be_shareable() {
    let authorized = RequestFacts {
        authorized: true,
        ..asked()
    };
    let cases = [
        ("max-age=60", Some(WhyNotStored::Authorization)),
        (
            "proxy-revalidate, max-age=60",
            Some(WhyNotStored::Authorization),
        ),
        ("max-age=60, public", None),
        ("max-age=60, must-revalidate", None),
        ("s-maxage=60", None),
    ];
    for (value, expected) in cases {
        let head = Head::of(200, &[("Cache-Control", value)]);
        assert_eq!(
            judge(&authorized, &head, &Rules::default()).err(),
            expected,
            "{value}"
        );
    }
    let rules = Rules {
        valid: vec![(200, 60)],
        ..Rules::default()
    };
    let refused = judge(&authorized, &Head::response(200, b""), &rules);
    assert_eq!(refused, Err(WhyNotStored::Authorization));
}

/// A request with these fields, in the cache's format.
fn request<'a>(fields: &'a [(&'a str, &'a str)]) -> impl Fn(&[u8], &mut Vec<u8>) -> bool + 'a {
    move |name, out| {
        let mut found = false;
        for (own, value) in fields {
            if own.as_bytes().eq_ignore_ascii_case(name) {
                if found {
                    out.extend_from_slice(b", ");
                }
                out.extend_from_slice(value.as_bytes());
                found = true;
            }
        }
        found
    }
}

#[test]
fn s4_1_the_selecting_fields_of_both_requests_must_match() {
    let head = Head::of(200, &[("Vary", "Accept-Language, X-A")]);
    let first = [("Accept-Language", "de, en"), ("X-A", "1")];
    let selection = Selection::of(&head, &request(&first)).unwrap();
    let cases: &[(Fields, bool)] = &[
        (&first, true),
        (&[("x-a", "1"), ("accept-language", "de,en")], true),
        (
            &[
                ("Accept-Language", "de"),
                ("Accept-Language", "en"),
                ("X-A", "1"),
            ],
            true,
        ),
        (&[("Accept-Language", "en, de"), ("X-A", "1")], false),
        (&[("Accept-Language", "de, en")], false),
        (&[], false),
    ];
    for (fields, expected) in cases {
        assert_eq!(selection.matches(&request(fields)), *expected, "{fields:?}");
    }
    let absent = Selection::of(&head, &request(&[])).unwrap();
    assert!(absent.matches(&request(&[])), "absent in both is a match");
    assert!(
        !absent.matches(&request(&[("X-A", "")])),
        "absent is not empty"
    );
}

#[test]
fn s4_1_vary_with_a_star_never_matches() {
    for value in ["*", "Accept, *", " * "] {
        let head = Head::of(200, &[("Vary", value)]);
        let refused = Selection::of(&head, &request(&[]));
        assert_eq!(refused, Err(WhyNotStored::VaryAny), "{value}");
    }
}

#[test]
fn s4_2_dates_are_read_in_any_case_and_only_in_gmt() {
    for value in [
        "sun, 06 NOV 1994 09:49:37 gmt",
        "Sunday, 06-Nov-94 09:49:37 GMT",
        "Sun Nov  6 09:49:37 1994",
    ] {
        let fields = [
            ("Expires", value),
            ("Date", "SUN, 06 nov 1994 08:49:37 GMT"),
        ];
        assert_eq!(fresh_s(&fields), 3600, "{value}");
    }
    for value in [
        "Sun, 06 Nov 1994 09:49:37 EST",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "Sun, 06 Nov 1994 09:49:37",
    ] {
        assert_eq!(
            why(200, &[("Expires", value)]),
            WhyNotStored::Expired,
            "{value}"
        );
    }
}

#[test]
fn s4_2_1_the_first_of_s_maxage_max_age_and_expires_holds() {
    let cases: &[(Fields, u64)] = &[
        (
            &[
                ("Cache-Control", "max-age=5, s-maxage=7"),
                ("Expires", IN_AN_HOUR),
            ],
            7,
        ),
        (
            &[("Cache-Control", "max-age=5"), ("Expires", IN_AN_HOUR)],
            5,
        ),
        (&[("Expires", IN_AN_HOUR), ("Date", DATE)], 3600),
        (&[("Expires", IN_AN_HOUR)], 3600),
        (&[("Expires", IN_AN_HOUR), ("Expires", "0")], 3600),
        (&[("Cache-Control", "max-age=5, max-age=50")], 5),
        (
            &[
                ("Cache-Control", "max-age=5"),
                ("Cache-Control", "max-age=50"),
            ],
            5,
        ),
    ];
    for (fields, seconds) in cases {
        assert_eq!(fresh_s(fields), *seconds, "{fields:?}");
    }
}

#[test]
fn s4_2_1_a_malformed_lifetime_is_stale() {
    for value in [
        "max-age=x",
        "max-age=-1",
        "max-age",
        "s-maxage=\"\"",
        "max-age=1.5",
    ] {
        assert_eq!(
            why(200, &[("Cache-Control", value)]),
            WhyNotStored::Malformed,
            "{value}"
        );
    }
}

#[test]
fn s4_2_1_the_strictest_of_conflicting_directives_counts() {
    for (value, expected) in [
        ("max-age=60, no-cache", WhyNotStored::NoCache),
        ("public, no-store, max-age=60", WhyNotStored::NoStore),
        ("s-maxage=60, private", WhyNotStored::Private),
    ] {
        assert_eq!(why(200, &[("Cache-Control", value)]), expected, "{value}");
    }
}

#[test]
fn s4_2_2_the_configuration_does_not_override_an_explicit_time() {
    let rules = Rules {
        valid: vec![(0, 1000)],
        ..Rules::default()
    };
    for (fields, seconds) in [
        ([("Cache-Control", "max-age=5"), ("Date", DATE)], 5),
        ([("Expires", IN_AN_HOUR), ("Date", DATE)], 3600),
    ] {
        let timing = judge(&asked(), &Head::of(200, &fields), &rules).unwrap();
        assert_eq!(timing.fresh_until_ms, NOW_MS + seconds * 1000, "{fields:?}");
    }
    let expired = Head::of(200, &[("Expires", "0")]);
    let refused = judge(&asked(), &expired, &rules);
    assert_eq!(refused, Err(WhyNotStored::Expired));
}

#[test]
fn s4_2_2_there_is_no_heuristic_by_default() {
    let fields = [("Last-Modified", TEN_SECONDS_AGO), ("Date", DATE)];
    assert_eq!(why(200, &fields), WhyNotStored::NoFreshness);
}

#[test]
fn s4_2_3_the_age_is_the_larger_of_apparent_and_announced() {
    let cases: &[(Fields, u64, u64)] = &[
        (&[("Cache-Control", "max-age=60")], 0, 0),
        (&[("Cache-Control", "max-age=60"), ("Age", "20")], 0, 20),
        (&[("Cache-Control", "max-age=60"), ("Age", "20")], 3, 23),
        (
            &[("Cache-Control", "max-age=60"), ("Date", TEN_SECONDS_AGO)],
            0,
            9,
        ),
        (
            &[
                ("Cache-Control", "max-age=60"),
                ("Date", TEN_SECONDS_AGO),
                ("Age", "4"),
            ],
            0,
            9,
        ),
        (
            &[("Cache-Control", "max-age=60"), ("Date", IN_AN_HOUR)],
            0,
            0,
        ),
    ];
    for (fields, delay_s, age_s) in cases {
        let asked = RequestFacts {
            sent_ms: NOW_MS - delay_s * 1000,
            ..asked()
        };
        let timing = judge(&asked, &Head::of(200, fields), &Rules::default()).unwrap();
        assert_eq!(timing.age_s(NOW_MS), *age_s, "{fields:?}");
        assert_eq!(
            timing.age_s(NOW_MS + 5000),
            age_s + 5,
            "residence counts: {fields:?}"
        );
        assert!(timing.is_fresh(NOW_MS + (50 - age_s) * 1000));
        assert!(!timing.is_fresh(NOW_MS + (61 - age_s) * 1000), "{fields:?}");
    }
}

#[test]
fn s4_2_4_stale_responses_are_not_used_if_that_is_prohibited() {
    let cases = [
        ("max-age=1", true),
        ("max-age=1, must-revalidate", false),
        ("max-age=1, proxy-revalidate", false),
        ("s-maxage=1", false),
    ];
    for (value, allowed) in cases {
        let timing = judged(200, &[("Cache-Control", value)]).unwrap();
        assert_eq!(timing.configuration_may_serve_stale(), allowed, "{value}");
    }
    let timing = judged(
        200,
        &[(
            "Cache-Control",
            "max-age=1, must-revalidate, stale-while-revalidate=9",
        )],
    );
    assert!(!timing.unwrap().may_serve_while_revalidating(NOW_MS + 2000));
}

#[test]
fn s4_3_4_a_304_is_about_the_response_whose_validator_it_names() {
    let stored = Head::of(200, &[("ETag", "\"a\""), ("Last-Modified", DATE)]);
    let cases: &[(Fields, bool)] = &[
        (&[("ETag", "\"a\"")], true),
        (&[("ETag", "W/\"a\"")], true),
        (&[("ETag", "\"b\"")], false),
        (&[("Last-Modified", DATE)], true),
        (&[("Last-Modified", IN_AN_HOUR)], false),
        (&[], true),
    ];
    for (fields, expected) in cases {
        let update = Head::of(304, fields);
        assert_eq!(
            validation::is_about(&stored, &update),
            *expected,
            "{fields:?}"
        );
    }
}

#[test]
fn s4_3_5_a_head_response_updates_or_invalidates() {
    let stored = Head::of(200, &[("ETag", "\"a\""), ("Content-Length", "5")]);
    let cases: &[(Fields, HeadVerdict)] = &[
        (
            &[("ETag", "\"a\""), ("Content-Length", "5")],
            HeadVerdict::Update,
        ),
        (&[("Cache-Control", "max-age=1")], HeadVerdict::Update),
        (&[("ETag", "\"b\"")], HeadVerdict::Invalidate),
        (&[("Content-Length", "6")], HeadVerdict::Invalidate),
        (&[("Last-Modified", DATE)], HeadVerdict::Invalidate),
    ];
    for (fields, expected) in cases {
        assert_eq!(
            validation::judge_head(&stored, &Head::of(200, fields)),
            *expected
        );
    }
}

#[test]
fn s4_4_unsafe_methods_invalidate_unless_they_fail() {
    let cases: &[(&str, u16, bool)] = &[
        ("POST", 200, true),
        ("PUT", 204, true),
        ("DELETE", 302, true),
        ("X-UNKNOWN", 200, true),
        ("POST", 404, false),
        ("POST", 500, false),
        ("GET", 200, false),
        ("HEAD", 200, false),
        ("OPTIONS", 200, false),
        ("TRACE", 200, false),
    ];
    for (method, status, expected) in cases {
        let found = validation::invalidates(method.as_bytes(), *status);
        assert_eq!(found, *expected, "{method} {status}");
    }
}

#[test]
fn s5_1_an_age_that_cannot_be_read_is_ignored_and_the_first_holds() {
    for (value, age_s) in [("x", 0), ("-5", 0), ("7, 9", 7), ("", 0)] {
        let fields = [("Cache-Control", "max-age=60"), ("Age", value)];
        assert_eq!(
            judged(200, &fields).unwrap().age_s(NOW_MS),
            age_s,
            "{value}"
        );
    }
}

#[test]
fn s5_2_directives_are_read_in_any_case_and_either_form() {
    for value in [
        "max-age=60",
        "MAX-AGE=60",
        "max-age=\"60\"",
        "max-age = 60",
        ",, max-age=60,",
    ] {
        assert_eq!(control(value).max_age, Some(60), "{value}");
    }
    let fields =
        |names: &[&str]| Scope::Fields(names.iter().map(|name| name.as_bytes().to_vec()).collect());
    let read = control("private=\"X-A, x-b\", no-cache=Set-Cookie, foo=\"a, no-store\", x");
    assert_eq!(read.private, fields(&["x-a", "x-b"]));
    assert_eq!(read.no_cache, fields(&["set-cookie"]));
    assert!(!read.no_store, "inside of quotes it is no directive");
}

#[test]
fn s5_2_1_request_directives_are_obeyed_if_configured() {
    let timing = judged(200, &[("Cache-Control", "max-age=60"), ("Age", "20")]).unwrap();
    let stale = judged(200, &[("Cache-Control", "max-age=1, must-revalidate")]).unwrap();
    let cases = [
        ("", &timing, 0, true),
        ("no-cache", &timing, 0, false),
        ("no-store", &timing, 0, false),
        ("max-age=30", &timing, 0, true),
        ("max-age=10", &timing, 0, false),
        ("min-fresh=30", &timing, 0, true),
        ("min-fresh=50", &timing, 0, false),
        ("", &timing, 50, false),
        ("max-stale", &timing, 50, true),
        ("max-stale=20", &timing, 50, true),
        ("max-stale=5", &timing, 50, false),
        ("max-stale", &stale, 50, false),
    ];
    for (value, timing, after_s, expected) in cases {
        let now_ms = NOW_MS + after_s * 1000;
        let allowed = validation::request_allows(&control(value), timing, now_ms);
        assert_eq!(allowed, expected, "{value} after {after_s} s");
    }
}

#[test]
fn s5_2_1_5_no_store_of_a_request_is_obeyed() {
    let asked = RequestFacts {
        no_store: true,
        ..asked()
    };
    let head = Head::of(200, &[("Cache-Control", "max-age=60")]);
    assert_eq!(
        judge(&asked, &head, &Rules::default()),
        Err(WhyNotStored::RequestNoStore)
    );
}

#[test]
fn s5_2_2_1_a_response_is_fresh_for_its_max_age() {
    let timing = judged(200, &[("Cache-Control", "max-age=10")]).unwrap();
    assert!(timing.is_fresh(NOW_MS + 9999));
    assert!(!timing.is_fresh(NOW_MS + 10_000));
    assert_eq!(
        why(200, &[("Cache-Control", "max-age=0")]),
        WhyNotStored::Expired
    );
}

#[test]
fn s5_2_2_2_must_revalidate_is_obeyed() {
    let timing = judged(200, &[("Cache-Control", "max-age=1, must-revalidate")]).unwrap();
    assert!(timing.is_fresh(NOW_MS));
    assert!(!timing.configuration_may_serve_stale());
    assert!(!timing.may_serve_if_error(NOW_MS + 2000));
}

#[test]
fn s5_2_2_3_must_understand_overrides_no_store() {
    let value = "must-understand, no-store, max-age=60";
    assert!(judged(200, &[("Cache-Control", value)]).is_ok());
    let refused = why(299, &[("Cache-Control", value)]);
    assert_eq!(refused, WhyNotStored::NotUnderstood);
}

#[test]
fn s5_2_2_4_no_cache_prevents_storing_the_response_or_its_fields() {
    assert_eq!(
        why(200, &[("Cache-Control", "no-cache, max-age=9")]),
        WhyNotStored::NoCache
    );
    let mut head = Head::of(
        200,
        &[
            (
                "Cache-Control",
                "max-age=60, no-cache=\"Set-Cookie, X-Mine\"",
            ),
            ("Set-Cookie", "a=b"),
            ("x-mine", "1"),
            ("X-All", "1"),
        ],
    );
    assert!(judge(&asked(), &head, &Rules::default()).is_ok());
    remove_withheld(&mut head, &Rules::default());
    assert_eq!(head.value(b"set-cookie"), None);
    assert_eq!(head.value(b"x-mine"), None);
    assert_eq!(head.value(b"x-all"), Some(&b"1"[..]));
}

#[test]
fn s5_2_2_5_no_store_overrides_times_and_configuration() {
    let rules = Rules {
        valid: vec![(0, 1000)],
        ..Rules::default()
    };
    let head = Head::of(200, &[("Cache-Control", "s-maxage=60, No-Store")]);
    assert_eq!(judge(&asked(), &head, &rules), Err(WhyNotStored::NoStore));
}

#[test]
fn s5_2_2_7_private_is_for_one_user() {
    for value in ["private", "private, s-maxage=60"] {
        let head = Head::of(200, &[("Cache-Control", value)]);
        let refused = judge(&asked(), &head, &Rules::default());
        assert_eq!(refused, Err(WhyNotStored::Private), "{value}");
    }
}

#[test]
fn s5_2_2_7_private_with_fields_keeps_the_rest() {
    let mut head = Head::of(
        200,
        &[
            ("Cache-Control", "max-age=60, private=X-Mine"),
            ("X-Mine", "1"),
        ],
    );
    assert!(judge(&asked(), &head, &Rules::default()).is_ok());
    remove_withheld(&mut head, &Rules::default());
    assert_eq!(head.value(b"x-mine"), None);
}

#[test]
fn s5_2_2_8_proxy_revalidate_is_obeyed() {
    let timing = judged(200, &[("Cache-Control", "max-age=1, proxy-revalidate")]).unwrap();
    assert!(!timing.configuration_may_serve_stale());
}

#[test]
fn s5_2_2_9_public_allows_sharing_but_gives_no_lifetime() {
    let authorized = RequestFacts {
        authorized: true,
        ..asked()
    };
    let head = Head::of(200, &[("Cache-Control", "public"), ("Expires", IN_AN_HOUR)]);
    assert!(judge(&authorized, &head, &Rules::default()).is_ok());
    let fields = [("Cache-Control", "public")];
    assert_eq!(why(200, &fields), WhyNotStored::NoFreshness);
}

#[test]
fn s5_2_2_10_s_maxage_applies_and_implies_proxy_revalidate() {
    let fields = [
        ("Cache-Control", "s-maxage=10, max-age=0"),
        ("Expires", "0"),
    ];
    assert_eq!(fresh_s(&fields), 10);
    let timing = judged(200, &fields).unwrap();
    assert!(!timing.configuration_may_serve_stale());
    let by_origin = judged(200, &[("Cache-Control", "s-maxage=1, stale-if-error=9")]).unwrap();
    assert!(
        by_origin.may_serve_if_error(NOW_MS + 2000),
        "the origin allows it itself"
    );
}

#[test]
fn s5_2_3_unknown_directives_are_ignored() {
    assert_eq!(
        fresh_s(&[("Cache-Control", "max-age=5, community=\"UCI\", x=1, y")]),
        5
    );
}

#[test]
fn s5_3_a_malformed_expires_is_in_the_past() {
    for value in ["0", "never", "Sun, 06 Nov 1994", TEN_SECONDS_AGO] {
        let fields = [("Expires", value), ("Date", DATE)];
        assert_eq!(why(200, &fields), WhyNotStored::Expired, "{value}");
    }
}

#[test]
fn s5_4_pragma_of_a_response_is_ignored() {
    assert_eq!(
        fresh_s(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=5")]),
        5
    );
}

#[test]
fn rfc5861_stale_responses_are_used_as_long_as_they_allow() {
    let value = "max-age=10, stale-while-revalidate=5, stale-if-error=20";
    let timing = judged(200, &[("Cache-Control", value)]).unwrap();
    for (after_s, revalidating, error) in [(11, true, true), (16, false, true), (31, false, false)]
    {
        let now_ms = NOW_MS + after_s * 1000;
        assert_eq!(
            timing.may_serve_while_revalidating(now_ms),
            revalidating,
            "{after_s}"
        );
        assert_eq!(timing.may_serve_if_error(now_ms), error, "{after_s}");
    }
}

#[test]
fn nginx_x_accel_expires_overrides_all_fields_except_cookies() {
    let cases: &[(Fields, Result<u64, WhyNotStored>)] = &[
        (
            &[("X-Accel-Expires", "5"), ("Cache-Control", "no-cache")],
            Ok(5),
        ),
        (
            &[("X-Accel-Expires", "0"), ("Cache-Control", "max-age=9")],
            Err(WhyNotStored::AccelExpires),
        ),
        (
            &[("X-Accel-Expires", "5"), ("Set-Cookie", "a=b")],
            Err(WhyNotStored::SetCookie),
        ),
        (&[("X-Accel-Expires", "@784111787")], Ok(10)),
        (
            &[("X-Accel-Expires", "x"), ("Cache-Control", "max-age=9")],
            Ok(9),
        ),
    ];
    for (fields, expected) in cases {
        let found = judged(200, fields).map(|timing| (timing.fresh_until_ms - NOW_MS) / 1000);
        assert_eq!(found, *expected, "{fields:?}");
    }
    assert!(
        judged(200, &[("X-Accel-Expires", "@60")]).is_ok(),
        "stored, though stale"
    );
}
