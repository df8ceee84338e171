//! Tests of exchanges within and above the limit.

use std::path::{Path, PathBuf};

/// The findings for an exchange with these fields and for `parts`, which are in another file.
fn findings(fields: &str, parts: &str) -> Vec<String> {
    findings_with(fields, parts, "pub struct LaneShared { a: u8 }")
}

/// The same, with what exchanges of a lane share.
fn findings_with(fields: &str, parts: &str, lane: &str) -> Vec<String> {
    let exchange = format!("struct Early; pub struct Exchange {{ {fields} }}");
    let far = "struct Far {}".to_owned();
    let files = [
        (PathBuf::from(super::EXCHANGE_FILE), exchange),
        (PathBuf::from("crates/http/src/parts.rs"), parts.to_owned()),
        (PathBuf::from(super::LANE_FILE), lane.to_owned()),
        (PathBuf::from("crates/wire/src/a.rs"), far),
    ];
    let names: Vec<PathBuf> = files.iter().map(|(file, _)| file.clone()).collect();
    let read = |file: &Path| {
        let mut files = files.iter();
        files.find_map(|(name, text)| (name == file).then(|| text.clone()))
    };
    let found = super::check(&names, &read);
    found.into_iter().map(|finding| finding.text).collect()
}

/// Whether there are no findings, or where `expected` is not empty, the first begins with it.
fn assert_found(name: &str, found: &[String], expected: &str) {
    match expected {
        "" => assert!(found.is_empty(), "{name}: {found:?}"),
        expected => {
            let first = found.first().map_or("", String::as_str);
            assert!(first.starts_with(expected), "{name}: {found:?}");
        }
    }
}

#[test]
fn how_many_fields_an_exchange_and_a_part_have() {
    let fields = |count: usize, kind: &str| -> String {
        let fields = (0..count).map(|number| format!("pub a{number}: {kind},"));
        fields.collect()
    };
    let part = |count: usize| {
        let fields = (0..count).map(|number| format!("a{number}: Map<u8, fn(u8) -> u8>,"));
        format!("struct Part {{ {} }}", fields.collect::<String>())
    };
    let cases = [
        (fields(12, "Part"), part(1), ""),
        (
            fields(13, "Rc<Part>"),
            part(1),
            "Exchange has 13 fields, at most 12",
        ),
        (fields(1, "Part"), part(0), ""),
        (fields(1, "Part"), part(15), ""),
        (
            fields(1, "Part"),
            part(16),
            "Part has 16 fields, at most 15",
        ),
    ];
    for (fields, parts, expected) in cases {
        assert_found(&fields, &findings(&fields, &parts), expected);
    }
}

/// The fields of an exchange, its parts, and the findings.
const CASES: &[(&str, &str, &str)] = &[
    (
        "pub a: Box<Part>",
        "struct Part { /* pub x: u8, */ a: [u8; 2], pub b: u8, c: u8 }",
        "field b of Part, a part of Exchange, is not private",
    ),
    (
        "pub a: Part",
        "struct Part { a: u8, #[cfg(any(x, y))] pub(in crate::a) b: u8 }",
        "field b of Part, a part of Exchange, is not private",
    ),
    (
        "pub a: Vec<u8>",
        "struct Part {}",
        "field a of Exchange is no part of its own",
    ),
    // A type of a crate below.
    (
        "pub a: Far",
        "",
        "field a of Exchange is no part of its own",
    ),
    // Objects that the lane shares.
    (
        "pub a: Rc<LaneShared>, pub b: Rc<LanePlan>",
        "struct LaneShared { pub a: u8 } struct LanePlan { pub a: u8 }",
        "",
    ),
    // Another struct with the same prefix.
    (
        "pub a: Part",
        "struct PartOther { pub a: u8 } struct Part<'a> { a: &'a u8 }",
        "",
    ),
];

#[test]
fn fields_are_private_to_their_owner() {
    for (fields, parts, expected) in CASES {
        assert_found(fields, &findings(fields, parts), expected);
    }
}

#[test]
fn an_exchange_that_is_nowhere_is_a_finding() {
    let found = super::check(&[], &|_: &Path| None);
    assert_eq!(found.len(), 1);
}

#[test]
fn what_exchanges_of_a_lane_share_has_a_limit_too() {
    let many: String = (0..13).map(|number| format!("a{number}: u8,")).collect();
    let many = format!("struct LaneShared {{ {many} }}");
    let cases = [
        ("struct LaneShared { pub a: Open }", ""),
        (
            "struct LaneShared { pub a: Part } struct Part { a: u8 }",
            "",
        ),
        ("struct Lane {}", "no struct LaneShared"),
        (many.as_str(), "LaneShared has 13 fields, at most 12"),
        (
            "struct LaneShared { a: Rc<Part> } struct Part { pub(crate) a: u8 }",
            "field a of Part, a part of LaneShared, is not private",
        ),
    ];
    for (lane, expected) in cases {
        let found = findings_with("pub a: Part,", "struct Part { a: u8 }", lane);
        assert_found(lane, &found, expected);
    }
}

#[test]
fn a_request_is_changed_by_its_own_crate_only() {
    let cases = [
        ("pub fn head(&self) -> &Head", 0),
        ("pub(crate) fn head_mut(&mut self) -> &mut Head", 0),
        ("pub fn head_mut(&mut self) -> &mut Head", 1),
    ];
    for (method, expected) in cases {
        let text = format!("impl Request {{ {method} {{ todo() }} }}");
        assert_eq!(super::check_request(&text).len(), expected, "{method}");
    }
}

#[test]
fn no_other_request_can_be_put_in_the_place_of_one() {
    let part = "pub struct Request {}";
    for (field, expected) in [
        ("request: Rc<Request>", ""),
        (
            "pub request: Rc<Request>",
            "field request of Exchange is not",
        ),
        (
            "pub(crate) asked: Request",
            "field asked of Exchange is not",
        ),
    ] {
        assert_found(field, &findings(field, part), expected);
    }
}

#[test]
fn a_request_has_no_copies() {
    let cases = [
        ("#[derive(Default)] pub struct Request {}", 0),
        ("#[derive(Clone, Default)] pub struct Request {}", 1),
        (
            "#[derive(Clone)] enum Other {} #[derive(Default)] pub struct Request {}",
            0,
        ),
        ("pub struct Request {} impl Clone for Request {}", 1),
        (
            "pub struct Request {} impl Clone for Other {} impl Request {}",
            0,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(super::check_request(text).len(), expected, "{text}");
    }
}

const ELSEWHERE: &str = "crates/http/src/client.rs";

/// A file, the head and the body of a method in it, and the number of findings.
const CHANGES: &[(&str, &str, &str, usize)] = &[
    (
        super::EXCHANGE_FILE,
        "pub(crate) fn read_request(&mut self)",
        "",
        0,
    ),
    (
        super::EXCHANGE_FILE,
        "pub fn read_request(&mut self)",
        "",
        1,
    ),
    (
        super::EXCHANGE_FILE,
        "pub fn change(&mut self)",
        "self.read_request(f)",
        1,
    ),
    (
        super::EXCHANGE_FILE,
        "pub fn change(&mut self)",
        "Rc::make_mut(&mut self.request)",
        1,
    ),
    (
        super::EXCHANGE_FILE,
        "fn clear(&mut self)",
        "Rc::get_mut(&mut self.request)",
        0,
    ),
    (
        "crates/http/src/h1/request.rs",
        "fn read()",
        "exchange.read_request(f)",
        0,
    ),
    (ELSEWHERE, "fn read()", "exchange.read_request(f)", 1),
    (
        super::EXCHANGE_FILE,
        "pub(crate) fn share_request(&mut self)",
        "",
        0,
    ),
    (
        super::EXCHANGE_FILE,
        "pub fn share_request(&mut self)",
        "",
        1,
    ),
    (ELSEWHERE, "fn copy()", "copy.share_request(self)", 1),
    (
        "crates/http/src/subrequest.rs",
        "fn copy()",
        "copy.share_request(self)",
        0,
    ),
    (
        ELSEWHERE,
        "fn read()",
        "Rc::get_mut(&mut exchange.request)",
        1,
    ),
    (
        ELSEWHERE,
        "fn read()",
        "rooms.get_mut(&mut request.room)",
        0,
    ),
];

#[test]
fn a_request_is_changed_only_where_it_is_read() {
    for (file, head, body, expected) in CHANGES {
        let text = format!("impl Exchange {{ {head} {{ {body} }} }}");
        let found = super::check_readers(Path::new(file), &text);
        assert_eq!(found.len(), *expected, "{file}: {text}");
    }
}

#[test]
fn no_field_is_named_like_a_family() {
    let read = |file: &Path| match file.to_str() {
        Some(super::EXCHANGE_FILE) => {
            Some("struct Exchange { pub gzip: Part, pub upstream: Part }".to_owned())
        }
        Some("crates/modules/src/lib.rs") => {
            let list = "const FAMILIES: &[Family] = &[gzip::FAMILY, upstream::FAMILY];";
            Some(list.to_owned())
        }
        Some("crates/http/src/parts.rs") => Some("struct Part {}".to_owned()),
        Some(super::LANE_FILE) => Some("struct LaneShared {}".to_owned()),
        _ => None,
    };
    let files: Vec<PathBuf> = ["crates/http/src/parts.rs", super::LANE_FILE]
        .map(PathBuf::from)
        .to_vec();
    let found = super::check(&files, &read);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].text.starts_with("field gzip of Exchange"));
}

#[test]
fn exchanges_that_are_lent_to_be_changed_are_counted() {
    let text = "fn a(exchange: &mut Exchange) {} fn b(exchange: &'a mut Exchange, c: &Exchange) {} \
                fn d(e: &mut ExchangeParts, f: fn(&mut Exchange)) -> &mut Exchange {} \
                struct Held<'a> { exchange: &'a mut Exchange }";
    for (file, count) in [
        ("crates/http/src/a.rs", 3),
        ("crates/modules/src/a/b.rs", 3),
        ("crates/stream/src/a.rs", 0),
    ] {
        let source = super::Source::scan(text);
        assert_eq!(
            super::count_borrows(Path::new(file), &source),
            count,
            "{file}"
        );
    }
}
