#![allow(clippy::unwrap_used)]

use std::os::fd::AsFd as _;

use super::*;

#[test]
fn what_is_no_epoll_instance_cannot_poll_busily() {
    let file = File::open("/dev/null").unwrap();
    let descriptor = file.as_fd().as_raw_fd();
    // Where the process may not be traced, that is the error.
    let error = poll_busily(std::process::id(), descriptor, 50).unwrap_err();
    let expected = [libc::ENOTTY, libc::EPERM];
    let number = error.raw_os_error().unwrap();
    assert!(expected.contains(&number), "{error}");
    let closed = poll_busily(std::process::id(), i32::MAX, 50).unwrap_err();
    assert_eq!(closed.raw_os_error(), Some(libc::EBADF));
}

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
