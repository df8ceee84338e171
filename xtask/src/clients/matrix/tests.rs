//! Tests of the matrix.

#![allow(clippy::unwrap_used)]

use super::super::MATRIX;
use super::{Row, read};

/// Go's cells, each of which passes but for what is said of it.
fn go(other: &str) -> Row {
    let mut said: String = MATRIX
        .cells
        .iter()
        .filter(|cell| **cell != "early" && !other.starts_with(*cell))
        .fold(String::new(), |said, cell| said + cell + " pass\n");
    said.push_str(other);
    Row {
        client: "Go",
        variant: "HTTP/1.1".to_owned(),
        found: read(&said),
    }
}

/// What is said of one cell, how the table shows it, and the error.
const CASES: &[(&str, &str, &str)] = &[
    ("large pass", "pass", ""),
    (
        "large fail: 3 other bytes came",
        "fail",
        "Go, HTTP/1.1, large: 3 other bytes came",
    ),
    ("large", "missing", "Go, HTTP/1.1, large: is missing"),
    ("large passed", "missing", "Go, HTTP/1.1, large: is missing"),
];

#[test]
fn each_cell_passes_or_is_named() {
    for (said, shown, error) in CASES {
        let rows = [go(said)];
        assert_eq!(
            MATRIX.judge(&rows).err().unwrap_or_default(),
            *error,
            "{said}"
        );
        let table = MATRIX.table(&rows);
        let line = table.lines().nth(1).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        let wanted = [
            "Go", "HTTP/1.1", "pass", "pass", shown, "pass", "pass", "(3)",
        ];
        assert_eq!(cells, wanted, "{said}");
        assert!(table.contains("\n(3) Go's crypto/tls sends no early data\n"));
    }
}

#[test]
fn a_cell_that_has_failed_once_stays_so() {
    for (first, then, shown) in [
        ("page pass", "page pass", "Ok"),
        ("page fail: cut", "page pass", "cut"),
        ("page pass", "page fail: cut", "cut"),
        ("post pass", "page pass", "Ok"),
        ("page fail: cut", "page fail: late", "cut"),
    ] {
        let mut row = Row {
            client: "curl",
            variant: String::new(),
            found: read(first),
        };
        row.add(read(then));
        let said = format!("{:?}", row.result("page"));
        assert!(said.contains(shown), "{first}, then {then}: {said}");
    }
}

#[test]
fn a_reason_that_is_not_needed_is_named() {
    let error = MATRIX.judge(&[go("early pass")]).unwrap_err();
    assert_eq!(
        error,
        "Go, HTTP/1.1, early: was asked for now, drop it from the reasons"
    );
}

#[test]
fn a_client_that_says_nothing_fails_everywhere() {
    let silent = Row {
        client: "curl",
        variant: "HTTP/2.0".to_owned(),
        found: read("curl: not found\n"),
    };
    let error = MATRIX.judge(&[silent]).unwrap_err();
    assert_eq!(error.lines().count(), 5, "{error}");
}
