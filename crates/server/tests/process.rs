//! Tests of master and serving process: start, signals, reload, crash, end.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use nix::libc::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGWINCH};
use support::{Folder, Server, configuration, is_running, stderr, turnpike, wait_for};
use turnpike_lane::sys::signal;
use turnpike_testkit::needs_root;

#[test]
fn the_started_process_is_the_master_and_ends_by_each_signal() {
    for number in [SIGQUIT, SIGTERM, SIGINT] {
        let mut server = Server::start("");
        assert_eq!(
            server.folder.read("nginx.pid"),
            format!("{}\n", server.master)
        );
        let title = fs::read(format!("/proc/{}/cmdline", server.master)).unwrap();
        assert!(title.starts_with(b"turnpike: master process "));
        assert_eq!(server.serving().len(), 1);
        assert!(server.log().contains("[notice]"));
        assert!(server.log().contains(": turnpike/0.1.0 (nginx/1.31.4)"));
        assert_eq!(server.end(number), Some(0));
        assert!(!server.folder.has("nginx.pid"));
        assert!(server.log().ends_with(": exit\n"), "{}", server.log());
        assert!(!server.log().contains("[alert]"), "{}", server.log());
    }
}

#[test]
fn a_reload_keeps_the_process_and_logs_the_end_of_the_old_generation() {
    let mut server = Server::start("");
    let serving = server.serving();
    for generation in 1..=3 {
        server.signal(SIGHUP);
        server.wait_for_log(&format!(
            ": worker generation {generation} exited with code 0\n"
        ));
    }
    assert_eq!(server.log().matches("exited with code").count(), 3);
    assert_eq!(server.serving(), serving);
    assert_eq!(server.end(SIGQUIT), Some(0));
}

#[test]
fn a_bad_configuration_leaves_the_old_one_in_force() {
    let server = Server::start("");
    let serving = server.serving();
    server
        .folder
        .write("nginx.conf", "events { }\nnonsense on;");
    server.signal(SIGHUP);
    server.wait_for_log("[emerg]");
    assert!(
        server.log().contains("unknown directive \"nonsense\" in "),
        "{}",
        server.log()
    );
    assert_eq!(server.serving(), serving);
    server.folder.write("nginx.conf", &configuration(""));
    server.signal(SIGHUP);
    server.wait_for_log("worker generation 1 exited with code 0");
}

#[test]
fn a_changed_limit_gets_a_new_process_and_a_changed_lane_count_does_not() {
    let server = Server::start("");
    let old = server.serving();
    let reload = |main: &str| {
        server.folder.write("nginx.conf", &configuration(main));
        server.signal(SIGHUP);
    };
    reload("worker_processes 2;");
    server.wait_for_log("worker generation 1 exited with code 0");
    assert_eq!(server.serving(), old);
    reload("worker_processes 2; worker_rlimit_core 1m;");
    server.wait_for_log(&format!("worker process {} exited with code 0", old[0]));
    assert_eq!(server.serving().len(), 1);
    assert_ne!(server.serving(), old);
}

#[test]
fn a_moved_pid_file_is_followed() {
    let server = Server::start("");
    let text = configuration("").replace("nginx.pid", "other.pid");
    server.folder.write("nginx.conf", &text);
    server.signal(SIGHUP);
    wait_for("the new pid file", || server.folder.has("other.pid"));
    wait_for("the old pid file to go", || !server.folder.has("nginx.pid"));
}

#[test]
fn a_killed_serving_process_is_replaced() {
    let server = Server::start("");
    let old = server.serving();
    signal::send(old[0], SIGKILL).unwrap();
    server.wait_for_log(&format!(
        "[alert] {0}#{0}: worker process {1} exited on signal 9\n",
        server.master, old[0]
    ));
    wait_for("another serving process", || server.serving().len() == 1);
    assert_ne!(server.serving(), old);
    assert!(is_running(server.master));
}

#[test]
fn a_serving_process_outlives_a_killed_master_only_to_finish() {
    let mut server = Server::start("");
    let serving = server.serving()[0];
    server.end(SIGKILL);
    wait_for("the serving process to end", || !is_running(serving));
    let log = server.log();
    assert!(
        log.contains("the master process is gone, shutting down"),
        "{log}"
    );
}

#[test]
fn logs_are_reopened_in_both_processes() {
    let server = Server::start("");
    let serving = server.serving()[0];
    let path = |name: &str| server.folder.path().join(name);
    fs::rename(path("error.log"), path("old.log")).unwrap();
    server.signal(SIGUSR1);
    wait_for("the new log", || server.folder.has("error.log"));
    server.signal(SIGHUP);
    server.wait_for_log("exited with code");
    signal::send(serving, SIGHUP).unwrap();
    server.wait_for_log(&format!(
        " {serving}#{serving}: signal 1 (SIGHUP) received from "
    ));
    assert!(!server.folder.read("old.log").contains("exited with code"));
}

#[test]
fn commands_reach_the_master() {
    let mut server = Server::start("");
    for (command, trace) in [("reload", "reconfiguring"), ("reopen", "reopening logs")] {
        assert!(
            turnpike(&server.folder.arguments(&["-s", command]))
                .status
                .success()
        );
        server.wait_for_log(&format!(": {trace}\n"));
    }
    assert!(
        turnpike(&server.folder.arguments(&["-s", "quit"]))
            .status
            .success()
    );
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_daemon_is_up_when_its_launcher_returns() {
    let folder = Folder::new();
    folder.write("nginx.conf", &configuration("daemon on;"));
    let output = turnpike(&folder.arguments(&[]));
    assert!(output.status.success(), "{}", stderr(&output));
    let master: i32 = folder.read("nginx.pid").trim().parse().unwrap();
    let children = support::children(master);
    assert_eq!(children.len(), 1);
    signal::send(master, SIGWINCH).unwrap();
    wait_for("the serving process to end", || {
        support::children(master).is_empty()
    });
    signal::send(master, SIGHUP).unwrap();
    wait_for("a new serving process", || {
        support::children(master).len() == 1
    });
    signal::send(master, SIGTERM).unwrap();
    wait_for("the daemon to end", || !is_running(master));
    assert!(!folder.has("nginx.pid"));
}

#[test]
fn a_terminal_that_changes_its_size_stops_nothing() {
    let server = Server::start("");
    let serving = server.serving();
    server.signal(SIGWINCH);
    server.wait_for_log("SIGWINCH");
    server.signal(SIGUSR1);
    server.wait_for_log("reopening logs");
    assert_eq!(server.serving(), serving);
}

#[test]
fn one_process_does_everything_without_a_master_process() {
    let mut server = Server::start("master_process off;");
    assert_eq!(server.serving(), Vec::<i32>::new());
    server.signal(SIGHUP);
    server.wait_for_log("worker generation 1 exited with code 0");
    server.signal(SIGUSR1);
    server.wait_for_log("reopening logs");
    assert_eq!(server.end(SIGQUIT), Some(0));
}

#[test]
fn the_serving_process_has_only_the_variables_that_are_named() {
    let main = "env SEEN; env GIVEN=value;";
    let server = Server::start_as(main, |command| {
        command.env("SEEN", "1").env("HIDDEN", "2").env("TZ", "UTC");
    });
    let path = format!("/proc/{}/environ", server.serving()[0]);
    let text = String::from_utf8(fs::read(path).unwrap_or_default()).unwrap();
    let mut variables: Vec<&str> = text.split_terminator('\0').collect();
    variables.sort_unstable();
    assert_eq!(variables, ["GIVEN=value", "SEEN=1", "TZ=UTC"]);
}

#[test]
fn root_does_not_serve() {
    if needs_root("root_does_not_serve", "CAP_SETUID") {
        return;
    }
    let server = Server::start("");
    let serving = server.serving()[0];
    let status = fs::read_to_string(format!("/proc/{serving}/status")).unwrap();
    let user = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(user.contains("65534\t65534\t65534\t65534"), "{user}");
}

#[test]
fn the_serving_process_has_its_priority_and_limit() {
    let server = Server::start("worker_priority 19; worker_rlimit_nofile 500; worker_processes 2;");
    let serving = server.serving()[0];
    let limits = fs::read_to_string(format!("/proc/{serving}/limits")).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert!(files.contains(" 1000 "), "{files}");
    let stat = fs::read_to_string(format!("/proc/{serving}/stat")).unwrap();
    let nice = stat
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .nth(16)
        .unwrap();
    // The lowest priority can be had by any user, and from any other one.
    assert_eq!(nice, "19");
}

#[test]
fn a_refused_limit_is_logged_once() {
    // More than the kernel permits to any process (fs.nr_open).
    let limit = "worker_rlimit_nofile 4000000000;";
    let server = Server::start(&format!("{limit} worker_processes 2;"));
    let complaints = |server: &Server| {
        let text = "setrlimit(RLIMIT_NOFILE, 4000000000) failed (1: Operation not permitted)";
        server.log().matches(text).count()
    };
    assert_eq!(complaints(&server), 1);
    for generation in 1..=2 {
        server.signal(SIGHUP);
        server.wait_for_log(&format!(
            "worker generation {generation} exited with code 0"
        ));
    }
    assert_eq!(complaints(&server), 1, "{}", server.log());
    // Another limit is another failure.
    let main = configuration(&format!("{limit} worker_processes 3;"));
    server.folder.write("nginx.conf", &main);
    server.signal(SIGHUP);
    server.wait_for_log("worker generation 3 exited with code 0");
    assert_eq!(complaints(&server), 2, "{}", server.log());
}

#[test]
fn a_start_that_fails_leaves_no_pid_file() {
    let folder = Folder::new();
    let cases = [
        (
            "working_directory /nonexistent/x;",
            "chdir(\"/nonexistent/x\") failed (2: ",
        ),
        (
            "error_log missing/error.log;",
            "/missing/error.log\" failed (2: ",
        ),
    ];
    for (main, message) in cases {
        folder.write("nginx.conf", &configuration(main));
        let output = turnpike(&folder.arguments(&[]));
        let shown = stderr(&output);
        assert!(
            shown.contains("nginx: [emerg] ") && shown.contains(message),
            "{shown}"
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(!folder.has("nginx.pid"));
    }
}
