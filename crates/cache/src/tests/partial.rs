//! Tests of parts of responses: the requests that they answer, and the joining of parts. Each test
//! names its section.

use std::sync::Arc;

use turnpike_wire::message::Head;

use crate::freshness::{RequestFacts, Rules, judge};
use crate::partial::{Part, share_strong_validator};
use crate::stored::StoredBody;
use crate::vary::Selection;
use crate::why::WhyNotStored;
use crate::zone::{NewResponse, Zone};

const NOW_MS: u64 = 784_111_777_000;

fn head(range: &str, etag: &str) -> Head {
    Head::of(
        206,
        &[
            ("Content-Range", range),
            ("ETag", etag),
            ("Cache-Control", "max-age=60"),
        ],
    )
}

#[test]
fn rfc9110_s14_4_a_part_names_its_bytes() {
    let cases = [
        ("bytes 0-4/10", Some((0, 5, 10))),
        ("bytes 9-9/10", Some((9, 10, 10))),
        ("BYTES 0-9/10", Some((0, 10, 10))),
        ("bytes 0-4/*", None),
        ("bytes */10", None),
        ("bytes 5-4/10", None),
        ("bytes 0-10/10", None),
        ("bytes 0-4/99999999999999999999", None),
        ("lines 0-4/10", None),
        ("bytes 0-4", None),
        ("bytes x-4/10", None),
    ];
    for (range, expected) in cases {
        let part = Part::of(&head(range, "\"a\""));
        let found = part.map(|part| (part.bytes.start, part.bytes.end, part.total));
        assert_eq!(found, expected, "{range}");
    }
    let whole = Head::of(200, &[("Content-Range", "bytes 0-4/10")]);
    assert_eq!(Part::of(&whole), None);
    let many = Head::of(206, &[("Content-Type", "multipart/byteranges")]);
    assert_eq!(Part::of(&many), None);
}

#[test]
fn s3_3_a_part_answers_ranges_that_it_contains() {
    let part = Part::of(&head("bytes 10-19/30", "\"a\"")).unwrap();
    let last = Part::of(&head("bytes 20-29/30", "\"a\"")).unwrap();
    for (range, expected) in [
        ("bytes=10-19", Some(10..20)),
        ("bytes=12-12", Some(12..13)),
        ("bytes=9-12", None),
        ("bytes=12-20", None),
        ("bytes=12-", None),
        ("bytes=-5", None),
        ("bytes=10-11,13-14", None),
        ("bytes=13-12", None),
        ("lines=10-12", None),
        ("bytes=", None),
        ("bytes=a-b", None),
    ] {
        assert_eq!(part.wanted(range.as_bytes()), expected, "{range}");
    }
    for (range, expected) in [
        ("bytes=20-", Some(20..30)),
        ("bytes=25-99", Some(25..30)),
        ("bytes=-5", Some(25..30)),
        ("bytes=-0", None),
        ("bytes=-99", None),
        ("bytes=30-", None),
    ] {
        assert_eq!(last.wanted(range.as_bytes()), expected, "{range}");
    }
}

#[test]
fn s3_3_a_part_is_stored_if_its_range_is_known() {
    let asked = RequestFacts {
        sent_ms: NOW_MS,
        received_ms: NOW_MS,
        ..RequestFacts::default()
    };
    let rules = Rules::default();
    assert!(judge(&asked, &head("bytes 0-4/10", "\"a\""), &rules).is_ok());
    for range in ["bytes 0-4/*", "bytes */10", ""] {
        let refused = judge(&asked, &head(range, "\"a\""), &rules);
        assert_eq!(refused, Err(WhyNotStored::Partial), "{range}");
    }
}

#[test]
fn s3_4_only_a_strong_validator_shows_that_parts_match() {
    let modified = Head::of(206, &[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    let tagged = |tag| Head::of(206, &[("ETag", tag)]);
    assert!(share_strong_validator(&tagged("\"a\""), &tagged("\"a\"")));
    assert!(!share_strong_validator(&tagged("\"a\""), &tagged("\"b\"")));
    assert!(!share_strong_validator(
        &tagged("W/\"a\""),
        &tagged("W/\"a\"")
    ));
    assert!(!share_strong_validator(&modified, &modified));
}

fn store(zone: &Zone, range: &str, etag: &str, body: &str) -> Result<(), WhyNotStored> {
    let asked = RequestFacts {
        sent_ms: NOW_MS,
        received_ms: NOW_MS,
        ..RequestFacts::default()
    };
    let head = head(range, etag);
    let entry = NewResponse {
        key: b"k".as_slice().into(),
        host: b"h".as_slice().into(),
        timing: judge(&asked, &head, &Rules::default())?,
        head,
        selection: Selection::default(),
        for_head: false,
        status_only: false,
        purge_sequence: zone.purge_sequence(),
    };
    zone.store_memory(entry, body.as_bytes().into()).map(|_| ())
}

fn nothing(_: &[u8], _: &mut Vec<u8>) -> bool {
    false
}

/// The stored bytes that answer a range.
fn found(zone: &Zone, range: &str) -> Option<String> {
    let (variant, bytes) = zone.find_part(b"k", range.as_bytes(), &nothing, NOW_MS)?;
    let start = variant.part.as_ref()?.bytes.start;
    let StoredBody::Memory(body) = &variant.body else {
        return None;
    };
    let bytes = &body[(bytes.start - start) as usize..(bytes.end - start) as usize];
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[test]
fn s3_4_and_rfc9110_s15_3_7_3_matching_parts_are_joined() {
    let zone = Zone::memory("z", 1 << 20);
    store(&zone, "bytes 0-2/10", "\"a\"", "012").unwrap();
    store(&zone, "bytes 6-9/10", "\"a\"", "6789").unwrap();
    assert_eq!(found(&zone, "bytes=0-2").as_deref(), Some("012"));
    assert_eq!(found(&zone, "bytes=7-8").as_deref(), Some("78"));
    assert_eq!(found(&zone, "bytes=2-6"), None);
    assert!(zone.find(b"k", false, &nothing, NOW_MS).is_none());
    store(&zone, "bytes 2-4/10", "\"a\"", "234").unwrap();
    assert_eq!(found(&zone, "bytes=1-4").as_deref(), Some("1234"));
    store(&zone, "bytes 4-7/10", "\"a\"", "4567").unwrap();
    let whole = zone
        .find(b"k", false, &nothing, NOW_MS)
        .expect("it is whole");
    assert_eq!(whole.head.status, 200);
    assert_eq!(whole.head.value(b"content-range"), None);
    assert_eq!(whole.head.value(b"content-length"), Some(&b"10"[..]));
    let StoredBody::Memory(body) = &whole.body else {
        panic!("in memory")
    };
    assert_eq!(**body, *b"0123456789");
}

#[test]
fn s3_4_parts_that_do_not_match_are_never_joined() {
    for (tag, total) in [("\"b\"", 10), ("W/\"a\"", 10), ("\"a\"", 11)] {
        let zone = Zone::memory("z", 1 << 20);
        store(&zone, "bytes 0-4/10", "\"a\"", "01234").unwrap();
        let last = total - 1;
        let rest = "x".repeat(total - 5);
        store(&zone, &format!("bytes 5-{last}/{total}"), tag, &rest).unwrap();
        assert!(zone.find(b"k", false, &nothing, NOW_MS).is_none(), "{tag}");
        assert_eq!(found(&zone, "bytes=0-4"), None, "of an earlier time: {tag}");
        assert_eq!(found(&zone, "bytes=5-6").as_deref(), Some("xx"));
    }
}

#[test]
fn s3_3_content_of_another_length_than_its_range_is_refused() {
    let zone = Zone::memory("z", 1 << 20);
    let refused = store(&zone, "bytes 0-4/10", "\"a\"", "0123");
    assert_eq!(refused, Err(WhyNotStored::Truncated));
    let none: Option<Arc<_>> = zone.find(b"k", false, &nothing, NOW_MS);
    assert!(none.is_none());
}
