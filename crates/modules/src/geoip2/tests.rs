//! Values of records as texts, and files that change or are broken.

#![allow(clippy::unwrap_used)]

use maxminddb::Reader;
use turnpike_testkit::Folder;
use turnpike_testkit::mmdb::{self, Value};

use super::database::Database;
use super::value;

fn example() -> Vec<u8> {
    let names = Value::Map(vec![
        ("en", Value::Text("Utopia")),
        ("0", Value::Text("zero")),
    ]);
    let record = Value::Map(vec![
        (
            "country",
            Value::Map(vec![("iso_code", Value::Text("UT")), ("names", names)]),
        ),
        (
            "list",
            Value::List(vec![Value::Text("first"), Value::Text("last")]),
        ),
        ("double", Value::Double(-12.5)),
        ("float", Value::Float(0.25)),
        ("short", Value::Short(7)),
        ("number", Value::Number(4_000_000_000)),
        ("signed", Value::Signed(-3)),
        ("long", Value::Long(1 << 40)),
        ("wide", Value::Wide(255)),
        ("yes", Value::Truth(true)),
        ("no", Value::Truth(false)),
        ("bytes", Value::Bytes(b"\0a")),
        (
            "text",
            Value::Text("a text of more than twenty-nine letters"),
        ),
    ]);
    let inner = Value::Map(vec![("text", Value::Text("inner"))]);
    mmdb::database(&[
        (("10.0.0.0", 8), record),
        (("10.1.0.0", 16), inner),
        (
            ("2001:db8::", 32),
            Value::Map(vec![("text", Value::Text("six"))]),
        ),
    ])
}

/// An address, a path, and the text at its end.
const CASES: &[(&str, &str, Option<&str>)] = &[
    ("10.0.0.1", "country iso_code", Some("UT")),
    ("10.0.0.1", "country names en", Some("Utopia")),
    ("10.0.0.1", "country names 0", Some("zero")),
    ("10.0.0.1", "country names de", None),
    ("10.0.0.1", "country", None),
    ("10.0.0.1", "country iso_code deeper", None),
    ("10.0.0.1", "list", None),
    ("10.0.0.1", "list 0", Some("first")),
    ("10.0.0.1", "list -1", Some("last")),
    ("10.0.0.1", "list 2", None),
    ("10.0.0.1", "list x", None),
    ("10.0.0.1", "double", Some("-12.50000")),
    ("10.0.0.1", "float", Some("0.25000")),
    ("10.0.0.1", "short", Some("7")),
    ("10.0.0.1", "number", Some("4000000000")),
    ("10.0.0.1", "signed", Some("-3")),
    ("10.0.0.1", "long", Some("1099511627776")),
    (
        "10.0.0.1",
        "wide",
        Some("0x000000000000000000000000000000ff"),
    ),
    ("10.0.0.1", "yes", Some("1")),
    ("10.0.0.1", "no", Some("0")),
    ("10.0.0.1", "bytes", Some("\0a")),
    (
        "10.0.0.1",
        "text",
        Some("a text of more than twenty-nine letters"),
    ),
    ("10.1.2.3", "text", Some("inner")),
    ("10.2.0.0", "short", Some("7")),
    ("11.0.0.1", "text", None),
    ("2001:db8:1::1", "text", Some("six")),
    ("2001:db9::1", "text", None),
];

#[test]
fn values_are_found_by_their_paths() {
    let reader = Reader::from_source(example()).unwrap();
    for (address, path, expected) in CASES {
        let record = reader.lookup(address.parse().unwrap()).unwrap();
        let path: Vec<Box<str>> = path.split(' ').map(Into::into).collect();
        let found = value::at(&record, &path);
        assert_eq!(
            found.as_deref(),
            expected.map(str::as_bytes),
            "{address} {path:?}"
        );
    }
}

#[test]
fn a_changed_file_is_read_again_and_a_broken_one_is_not_put_in_force() {
    let folder = Folder::create().unwrap();
    let path = folder.path().join("test.mmdb");
    let text = |database: &Database| {
        let content = database.content();
        let record = content.reader.lookup([10, 0, 0, 1].into()).unwrap();
        value::at(&record, &["text".into()])
    };
    let one = |text| {
        let record = Value::Map(vec![("text", Value::Text(text))]);
        mmdb::database(&[(("10.0.0.0", 8), record)])
    };
    // Each has a length of its own: a clock's resolution does not matter then.
    std::fs::write(&path, one("a")).unwrap();
    let database = Database::open(&path).unwrap();
    assert_eq!(database.check(), Ok(false));
    std::fs::write(&path, one("bb")).unwrap();
    assert_eq!(database.check(), Ok(true));
    assert_eq!(text(&database).as_deref(), Some(b"bb".as_slice()));
    std::fs::write(&path, "no database").unwrap();
    assert!(database.check().is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(database.check().is_err());
    assert_eq!(text(&database).as_deref(), Some(b"bb".as_slice()));
    assert!(Database::open(&path).is_err());
}

#[test]
fn cut_and_changed_files_have_no_wrong_end() {
    let whole = example();
    for length in 0..whole.len() {
        // Whatever is left is refused or leads somewhere; it must come to an end.
        if let Ok(reader) = Reader::from_source(whole[..length].to_vec()) {
            let _ = reader.lookup([10, 0, 0, 1].into());
        }
        let mut changed = whole.clone();
        changed[length] ^= 0xff;
        let Ok(reader) = Reader::from_source(changed) else {
            continue;
        };
        for path in ["text", "country iso_code", "list 0"] {
            let path: Vec<Box<str>> = path.split(' ').map(Into::into).collect();
            if let Ok(record) = reader.lookup([10, 0, 0, 1].into()) {
                value::at(&record, &path);
            }
        }
    }
}
