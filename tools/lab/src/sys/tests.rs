#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn a_tracepoint_that_is_not_there_is_an_error() {
    assert!(Counter::open(u64::from(u32::MAX), Counted::Cpu(0), None).is_err());
}

#[test]
fn a_confined_process_runs_where_it_was_put() {
    let cpu = crate::placement::allowed()[0];
    let mut command = Command::new("cat");
    command.arg("/proc/self/status");
    confine(&mut command, &[cpu]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    assert_eq!(line.unwrap().trim(), cpu.to_string());
}
