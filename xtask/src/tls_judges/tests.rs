//! Tests of the verdict on testssl.sh's findings.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::{ACCEPTED, CHECKS_MIN, judge};

/// A whole run with the accepted findings and these others.
fn findings(others: &[(&str, &str)]) -> Vec<Value> {
    let quiet = (0..CHECKS_MIN).map(|_| json!({"id": "service", "severity": "INFO"}));
    let known = ACCEPTED
        .iter()
        .map(|accepted| json!({"id": format!("{} <cert#1>", accepted.id), "severity": "LOW"}));
    let others = others
        .iter()
        .map(|(id, severity)| json!({"id": id, "severity": severity, "finding": "said"}));
    quiet.chain(known).chain(others).collect()
}

#[test]
fn accepted_findings_pass() {
    judge(&findings(&[("TLS1", "OK")])).unwrap();
}

#[test]
fn other_findings_are_named() {
    let error = judge(&findings(&[("BEAST", "MEDIUM"), ("scan", "FATAL")])).unwrap_err();
    assert_eq!(error, "BEAST, MEDIUM: said; scan, FATAL: said");
}

#[test]
fn a_row_that_is_not_needed_and_a_broken_run_are_named() {
    let all = findings(&[]);
    let without = &all[..all.len() - 1];
    let error = judge(without).unwrap_err();
    assert_eq!(error, "is not found now, drop its row: security_headers");
    let error = judge(&all[CHECKS_MIN..]).unwrap_err();
    assert_eq!(error, "testssl.sh made only 5 checks");
}
