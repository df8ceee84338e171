//! Tests of extensions of RFC 9111: targeted fields (RFC 9213), heuristics, normalised selection,
//! and stale responses for failures of servers (RFC 5861). Each test names its section.

use turnpike_wire::message::Head;

use crate::control::{CacheControl, Scope};
use crate::freshness::{
    Heuristic, RequestFacts, Rules, Timing, judge, may_replace_status, remove_withheld,
};
use crate::structured::{Value, dictionary};
use crate::vary::Selection;
use crate::why::WhyNotStored;

/// Sun, 06 Nov 1994 08:49:37 GMT, at the start of that second.
const NOW_MS: u64 = 784_111_777_000;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const A_DAY_AGO: &str = "Sat, 05 Nov 1994 08:49:37 GMT";
const IN_AN_HOUR: &str = "Sun, 06 Nov 1994 09:49:37 GMT";

type Fields<'a> = &'a [(&'a str, &'a str)];

fn judged(status: u16, fields: Fields, rules: &Rules) -> Result<Timing, WhyNotStored> {
    let asked = RequestFacts {
        sent_ms: NOW_MS,
        received_ms: NOW_MS,
        ..RequestFacts::default()
    };
    judge(&asked, &Head::of(status, fields), rules)
}

/// The seconds of freshness, or why not.
fn fresh_s(fields: Fields, rules: &Rules) -> Result<u64, WhyNotStored> {
    judged(200, fields, rules).map(|timing| (timing.fresh_until_ms - NOW_MS) / 1000)
}

/// Keys with their values.
type Members<'a> = Vec<(&'a str, Value)>;

#[test]
fn rfc9651_s4_2_2_dictionaries_are_read_or_refused_whole() {
    let text = |text: &str| Value::Text(text.as_bytes().to_vec());
    let cases: &[(&str, Option<Members>)] = &[
        ("", Some(vec![])),
        ("a", Some(vec![("a", Value::Boolean(true))])),
        (
            "a=?0, b=-5;x;y=1 ,\tc=tok/en",
            Some(vec![
                ("a", Value::Boolean(false)),
                ("b", Value::Integer(-5)),
                ("c", text("tok/en")),
            ]),
        ),
        ("a=1, a=2", Some(vec![("a", Value::Integer(2))])),
        (r#"a="x\"y""#, Some(vec![("a", text("x\"y"))])),
        ("a=1.5, b=:YQ==:, c=@5, d=(1 \"x\";q 2.0)", {
            let names = ["a", "b", "c", "d"];
            Some(names.map(|name| (name, Value::Other)).to_vec())
        }),
        ("A=1", None),
        ("a=", None),
        ("a=1,", None),
        ("a b", None),
        ("a=\"x", None),
        ("a=1234567890123456", None),
        ("a=1, &&", None),
        ("a=(1", None),
        ("a=?2", None),
    ];
    for (field, expected) in cases {
        let expected = expected.as_ref().map(|members| {
            let owned = |(key, value): &(&str, Value)| (key.as_bytes().to_vec(), value.clone());
            members.iter().map(owned).collect::<Vec<_>>()
        });
        assert_eq!(dictionary(field.as_bytes()), expected, "{field}");
    }
}

#[test]
fn rfc9213_s2_2_the_targeted_field_takes_the_place_of_cache_control_and_expires() {
    let rules = Rules::default();
    let cases: &[(Fields, Result<u64, WhyNotStored>)] = &[
        (
            &[
                ("CDN-Cache-Control", "max-age=60"),
                ("Cache-Control", "no-store"),
            ],
            Ok(60),
        ),
        (
            &[
                ("CDN-Cache-Control", "no-store"),
                ("Cache-Control", "max-age=60"),
            ],
            Err(WhyNotStored::NoStore),
        ),
        (
            &[
                ("CDN-Cache-Control", "private"),
                ("Cache-Control", "max-age=60"),
            ],
            Err(WhyNotStored::Private),
        ),
        (
            &[("CDN-Cache-Control", "public"), ("Expires", IN_AN_HOUR)],
            Err(WhyNotStored::NoFreshness),
        ),
        (
            &[
                ("CDN-Cache-Control", "max-age=5"),
                ("CDN-Cache-Control", "s-maxage=7"),
            ],
            Ok(7),
        ),
        (
            &[("CDN-Cache-Control", "max-age=60;x=1"), ("Expires", "0")],
            Ok(60),
        ),
        (
            &[("X-Accel-Expires", "9"), ("CDN-Cache-Control", "no-store")],
            Ok(9),
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(fresh_s(fields, &rules), *expected, "{fields:?}");
    }
}

#[test]
fn rfc9213_s2_1_a_targeted_field_that_is_empty_or_wrong_is_ignored() {
    for value in [
        "",
        "max-age=\"60\"",
        "max-age=60.0",
        "max-age=-1",
        "max-age",
        "max-age=60, &&",
        "Max-Age=60",
    ] {
        let fields = [("CDN-Cache-Control", value), ("Cache-Control", "max-age=5")];
        assert_eq!(fresh_s(&fields, &Rules::default()), Ok(5), "{value}");
    }
    let fields = [
        ("CDN-Cache-Control", "max-age=60"),
        ("Cache-Control", "max-age=5"),
    ];
    let only_targeted = Rules {
        ignore_cdn_cache_control: true,
        ..Rules::default()
    };
    assert_eq!(fresh_s(&fields, &only_targeted), Ok(5));
    let both = Rules {
        ignore_cache_control: true,
        ..Rules::default()
    };
    assert_eq!(fresh_s(&fields, &both), Err(WhyNotStored::NoFreshness));
}

#[test]
fn rfc9213_s2_1_fields_are_withheld_by_the_targeted_field() {
    let mut head = Head::of(
        200,
        &[
            ("CDN-Cache-Control", "max-age=60, private=\"X-Mine, X-Own\""),
            ("Cache-Control", "private=X-All"),
            ("X-Mine", "1"),
            ("X-Own", "1"),
            ("X-All", "1"),
        ],
    );
    remove_withheld(&mut head, &Rules::default());
    assert_eq!((head.value(b"x-mine"), head.value(b"x-own")), (None, None));
    assert_eq!(head.value(b"x-all"), Some(&b"1"[..]));
    let whole = CacheControl::parse_targeted([&b"no-cache, private=?0"[..]].into_iter());
    let whole = whole.unwrap();
    assert_eq!((whole.no_cache, whole.private), (Scope::Whole, Scope::None));
}

#[test]
fn s4_2_2_a_heuristic_applies_only_without_an_explicit_time() {
    let rules = Rules {
        heuristic: Some(Heuristic {
            fraction_ppm: 100_000,
            seconds_max: 7200,
        }),
        valid: vec![(200, 3)],
        ..Rules::default()
    };
    let cases: &[(u16, Fields, Result<u64, WhyNotStored>)] = &[
        (
            200,
            &[("Last-Modified", A_DAY_AGO), ("Date", DATE)],
            Ok(7200),
        ),
        (200, &[("Last-Modified", A_DAY_AGO)], Ok(7200)),
        (
            200,
            &[("Last-Modified", A_DAY_AGO), ("Cache-Control", "max-age=5")],
            Ok(5),
        ),
        (
            200,
            &[("Last-Modified", A_DAY_AGO), ("Expires", "0")],
            Err(WhyNotStored::Expired),
        ),
        (
            200,
            &[("Last-Modified", A_DAY_AGO), ("Cache-Control", "no-store")],
            Err(WhyNotStored::NoStore),
        ),
        (200, &[("Last-Modified", DATE)], Ok(3)),
        (200, &[], Ok(3)),
        (200, &[("Last-Modified", IN_AN_HOUR)], Ok(3)),
        (
            302,
            &[("Last-Modified", A_DAY_AGO)],
            Err(WhyNotStored::NoFreshness),
        ),
        (
            302,
            &[("Last-Modified", A_DAY_AGO), ("Cache-Control", "public")],
            Ok(7200),
        ),
    ];
    for (status, fields, expected) in cases {
        let found =
            judged(*status, fields, &rules).map(|timing| (timing.fresh_until_ms - NOW_MS) / 1000);
        assert_eq!(found, *expected, "{status} {fields:?}");
    }
}

#[test]
fn s4_1_equivalent_fields_select_the_same_response() {
    let cases = [
        ("Accept-Encoding", "gzip, br", "br,gzip", true),
        ("Accept-Encoding", "GZIP;q=1.0, br", "br;q=1, x-gzip", true),
        ("Accept-Encoding", "gzip, deflate;q=0", "gzip", true),
        ("Accept-Encoding", "gzip;q=0.50", "gzip; q=0.5", true),
        ("Accept-Encoding", "gzip;q=0.5, br", "br, gzip;q=0.5", true),
        ("Accept-Encoding", "gzip;q=0.5, br", "br;q=0.5, gzip", false),
        ("Accept-Encoding", "gzip, identity;q=0", "gzip", false),
        ("Accept-Encoding", "gzip, *;q=0", "gzip", false),
        ("Accept-Encoding", "*, br;q=0", "*", false),
        ("Accept-Encoding", "gzip", "br", false),
        ("Accept-Encoding", "", "identity", false),
        ("Accept-Language", "de, EN;q=0.8", "en;q=0.80,DE", true),
        ("Accept-Language", "de-AT;q=1.000", "DE-at", true),
        ("Accept-Language", "de, en", "en, de", false),
        ("Accept-Language", "de, en;q=0", "de", false),
        ("Accept-Language", "de;level=1", "de", false),
        ("X-Own", "b, a", "a, b", false),
        ("X-Own", "A", "a", false),
    ];
    for (name, one, other, expected) in cases {
        let head = Head::of(200, &[("Vary", name)]);
        let asks = |value: &'static str| {
            move |own: &[u8], out: &mut Vec<u8>| {
                out.extend_from_slice(value.as_bytes());
                own.eq_ignore_ascii_case(name.as_bytes())
            }
        };
        let selection = Selection::of(&head, &asks(one)).unwrap();
        assert!(selection.matches(&asks(one)), "{name}: {one}");
        let same = selection.matches(&asks(other));
        assert_eq!(same, expected, "{name}: {one} | {other}");
    }
}

#[test]
fn rfc5861_s4_a_response_may_replace_a_status_if_it_allows_that() {
    let rules = Rules::default();
    let cases = [
        ("max-age=1, stale-if-error=9", 503, true),
        ("max-age=1, stale-if-error=9", 502, true),
        ("max-age=1, stale-if-error=9", 504, true),
        // As in nginx.
        ("max-age=1, stale-if-error=9", 500, false),
        ("max-age=1, stale-if-error=9", 404, false),
        ("max-age=1, stale-if-error=9, must-revalidate", 503, false),
        ("max-age=1, stale-while-revalidate=9", 503, false),
    ];
    for (control, status, expected) in cases {
        let fields = [("Cache-Control", control)];
        let timing = judged(200, &fields, &rules).unwrap();
        let head = Head::of(200, &fields);
        let allowed = may_replace_status(&head, &timing, &rules, status);
        assert_eq!(allowed, expected, "{control} {status}");
    }
}

#[test]
fn rfc9110_s9_3_3_post_needs_an_explicit_time() {
    let asked = RequestFacts {
        sent_ms: NOW_MS,
        received_ms: NOW_MS,
        explicit_only: true,
        ..RequestFacts::default()
    };
    let rules = Rules {
        valid: vec![(0, 60)],
        ..Rules::default()
    };
    let plain = judge(&asked, &Head::response(200, b""), &rules);
    assert_eq!(plain, Err(WhyNotStored::NoFreshness));
    for field in [("Cache-Control", "max-age=5"), ("Expires", IN_AN_HOUR)] {
        assert!(judge(&asked, &Head::of(200, &[field]), &rules).is_ok());
    }
}
