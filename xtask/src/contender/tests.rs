//! Tests of the changes to a study's configuration.
#![allow(clippy::unwrap_used)]

use super::{localise, pinned};
use crate::workspace;

#[test]
fn only_port_and_folder_are_replaced() {
    let cases = [
        ("  listen 80 backlog=256;", "  listen %PORT% backlog=256;\n"),
        ("listen 9090;", "listen %PORT%;\n"),
        ("root /var/www/html;", "root %FOLDER%/html;\n"),
        ("keepalive_timeout 600;", "keepalive_timeout 600;\n"),
    ];
    for (line, expected) in cases {
        assert_eq!(localise(line), expected);
    }
}

#[test]
fn the_measured_configuration_has_one_pinned_worker() {
    let text = pinned(1).unwrap();
    assert!(text.contains("worker_processes 1;\nworker_cpu_affinity 10;\n"));
    assert!(text.contains("listen %PORT% backlog=131072 deferred reuseport fastopen=4096;"));
}

#[test]
fn every_study_has_a_target() {
    for entry in std::fs::read_dir(workspace::root().join("studies/conf")).unwrap() {
        let text = super::study(&entry.unwrap().path()).unwrap();
        assert!(text.contains("# Drive: /") && localise(&text).contains("listen %PORT%"));
    }
}
