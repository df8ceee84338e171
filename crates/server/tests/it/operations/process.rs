//! Tests of master and serving process: start, signals, reload, crash, end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support;
use crate::support::{
    TURNPIKE, configuration, is_running, master_of, serving_of, start, start_as, stderr, turnpike,
    wait_for,
};
use nix::libc::{SIGHUP, SIGKILL, SIGTERM, SIGWINCH};
use turnpike_lane::sys::signal;
use turnpike_testkit::{Folder, Server, Signal, needs_root};

#[test]
fn the_started_process_is_the_master_and_ends_by_each_signal() {
    for number in [Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGINT] {
        let mut server = start("");
        assert_eq!(
            server.files().read("nginx.pid"),
            format!("{}\n", master_of(&server))
        );
        let title = fs::read(format!("/proc/{}/cmdline", master_of(&server))).unwrap();
        assert!(title.starts_with(b"turnpike: master process "));
        assert_eq!(serving_of(&server).len(), 1);
        assert!(server.log("error.log").contains("[notice]"));
        assert!(
            server
                .log("error.log")
                .contains(": turnpike/0.1.0 (nginx/1.31.6)")
        );
        assert_eq!(server.end(number), Some(0));
        assert!(!server.files().has("nginx.pid"));
        assert!(
            server.log("error.log").ends_with(": exit\n"),
            "{}",
            server.log("error.log")
        );
        assert!(
            !server.log("error.log").contains("[alert]"),
            "{}",
            server.log("error.log")
        );
    }
}

#[test]
fn the_log_names_the_addresses_and_the_number_of_lanes() {
    let port = turnpike_testkit::ports::reserve().unwrap();
    let http = format!("http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}");
    let server = start(&format!("worker_processes 2; {http}"));
    let line = format!(": listening on 127.0.0.1:{port}, 2 lanes\n");
    server.wait_for_log("error.log", &line);
}

/// Signals that a launcher may have told its programs to ignore: a shell INT and QUIT, nohup HUP.
const IGNORED: &str = "INT QUIT HUP USR1 USR2 WINCH TERM CHLD";

/// The signals that a process ignores, as a mask.
fn ignored(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
}

#[test]
fn signals_that_were_ignored_at_the_start_are_obeyed() {
    let plain = start("");
    let script = format!("#!/bin/sh\ntrap '' {IGNORED}; exec {TURNPIKE} \"$@\"\n");
    let folder = Folder::create().unwrap();
    folder.write("launcher", script).unwrap();
    let launcher = folder.path().join("launcher");
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let builder = Server::builder(launcher).installed();
    let mut server = builder.configuration(&configuration("")).start();
    let masters = [&server, &plain].map(master_of);
    assert_eq!(ignored(masters[0]), ignored(masters[1]));
    let serving = [&server, &plain].map(|server| serving_of(server)[0]);
    assert_eq!(ignored(serving[0]), ignored(serving[1]));
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", ": worker generation 1 exited with code 0\n");
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
}

#[test]
fn a_reload_keeps_the_process_and_logs_the_end_of_the_old_generation() {
    let mut server = start("");
    let serving = serving_of(&server);
    for generation in 1..=3 {
        server.signal(Signal::SIGHUP);
        server.wait_for_log(
            "error.log",
            &format!(": worker generation {generation} exited with code 0\n"),
        );
    }
    assert_eq!(
        server.log("error.log").matches("exited with code").count(),
        3
    );
    assert_eq!(serving_of(&server), serving);
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
}

#[test]
fn a_bad_configuration_leaves_the_old_one_in_force() {
    let server = start("");
    let serving = serving_of(&server);
    server
        .files()
        .write("nginx.conf", "events { }\nnonsense on;")
        .unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "[emerg]");
    assert!(
        server
            .log("error.log")
            .contains("unknown directive \"nonsense\" in "),
        "{}",
        server.log("error.log")
    );
    assert_eq!(serving_of(&server), serving);
    server
        .files()
        .write("nginx.conf", configuration(""))
        .unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 1 exited with code 0");
}

#[test]
fn a_changed_limit_gets_a_new_process_and_a_changed_lane_count_does_not() {
    let server = start("");
    let old = serving_of(&server);
    let reload = |main: &str| {
        server
            .files()
            .write("nginx.conf", configuration(main))
            .unwrap();
        server.signal(Signal::SIGHUP);
    };
    reload("worker_processes 2;");
    server.wait_for_log("error.log", "worker generation 1 exited with code 0");
    assert_eq!(serving_of(&server), old);
    reload("worker_processes 2; worker_rlimit_core 1m;");
    server.wait_for_log(
        "error.log",
        &format!("worker process {} exited with code 0", old[0]),
    );
    assert_eq!(serving_of(&server).len(), 1);
    assert_ne!(serving_of(&server), old);
}

#[test]
fn a_moved_pid_file_is_followed() {
    let server = start("");
    let text = configuration("").replace("nginx.pid", "other.pid");
    server.files().write("nginx.conf", &text).unwrap();
    server.signal(Signal::SIGHUP);
    wait_for("the new pid file", || server.files().has("other.pid"));
    wait_for("the old pid file to go", || {
        !server.files().has("nginx.pid")
    });
}

#[test]
fn a_killed_serving_process_is_replaced() {
    let server = start("");
    let old = serving_of(&server);
    signal::send(old[0], SIGKILL).unwrap();
    server.wait_for_log(
        "error.log",
        &format!(
            "[alert] {0}#{0}: worker process {1} exited on signal 9\n",
            master_of(&server),
            old[0]
        ),
    );
    wait_for("another serving process", || serving_of(&server).len() == 1);
    assert_ne!(serving_of(&server), old);
    assert!(is_running(master_of(&server)));
}

#[test]
fn a_serving_process_outlives_a_killed_master_only_to_finish() {
    let mut server = start("");
    let serving = serving_of(&server)[0];
    server.end(Signal::SIGKILL);
    wait_for("the serving process to end", || !is_running(serving));
    let log = server.log("error.log");
    assert!(
        log.contains("the master process is gone, shutting down"),
        "{log}"
    );
}

#[test]
fn logs_are_reopened_in_both_processes() {
    let server = start("");
    let serving = serving_of(&server)[0];
    let path = |name: &str| server.files().path().join(name);
    fs::rename(path("error.log"), path("old.log")).unwrap();
    server.signal(Signal::SIGUSR1);
    wait_for("the new log", || server.files().has("error.log"));
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "exited with code");
    signal::send(serving, SIGHUP).unwrap();
    server.wait_for_log(
        "error.log",
        &format!(" {serving}#{serving}: signal 1 (SIGHUP) received from "),
    );
    assert!(!server.files().read("old.log").contains("exited with code"));
}

#[test]
fn commands_reach_the_master() {
    let mut server = start("");
    for (command, trace) in [("reload", "reconfiguring"), ("reopen", "reopening logs")] {
        assert!(
            turnpike(&server.files().arguments(&["-s", command]))
                .status
                .success()
        );
        server.wait_for_log("error.log", &format!(": {trace}\n"));
    }
    assert!(
        turnpike(&server.files().arguments(&["-s", "quit"]))
            .status
            .success()
    );
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_daemon_is_up_when_its_launcher_returns() {
    let folder = Folder::create().unwrap();
    folder
        .write("nginx.conf", configuration("daemon on;"))
        .unwrap();
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
    let server = start("");
    let serving = serving_of(&server);
    server.signal(Signal::SIGWINCH);
    server.wait_for_log("error.log", "SIGWINCH");
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("error.log", "reopening logs");
    assert_eq!(serving_of(&server), serving);
}

#[test]
fn one_process_does_everything_without_a_master_process() {
    let mut server = start("master_process off;");
    assert_eq!(serving_of(&server), Vec::<i32>::new());
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 1 exited with code 0");
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("error.log", "reopening logs");
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
}

#[test]
fn the_serving_process_has_only_the_variables_that_are_named() {
    let main = "env SEEN; env GIVEN=value;";
    let server = start_as(main, |command| {
        command.env("SEEN", "1").env("HIDDEN", "2").env("TZ", "UTC");
    });
    let path = format!("/proc/{}/environ", serving_of(&server)[0]);
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
    let server = start("");
    let serving = serving_of(&server)[0];
    let status = fs::read_to_string(format!("/proc/{serving}/status")).unwrap();
    let user = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(user.contains("65534\t65534\t65534\t65534"), "{user}");
}

#[test]
fn the_serving_process_has_its_priority_and_limit() {
    let server = start("worker_priority 19; worker_rlimit_nofile 500; worker_processes 2;");
    let serving = serving_of(&server)[0];
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
    let server = start(&format!("{limit} worker_processes 2;"));
    let complaints = |server: &Server| {
        let text = "setrlimit(RLIMIT_NOFILE, 4000000000) failed (1: Operation not permitted)";
        server.log("error.log").matches(text).count()
    };
    assert_eq!(complaints(&server), 1);
    for generation in 1..=2 {
        server.signal(Signal::SIGHUP);
        server.wait_for_log(
            "error.log",
            &format!("worker generation {generation} exited with code 0"),
        );
    }
    assert_eq!(complaints(&server), 1, "{}", server.log("error.log"));
    // Another limit is another failure.
    let main = configuration(&format!("{limit} worker_processes 3;"));
    server.files().write("nginx.conf", &main).unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 3 exited with code 0");
    assert_eq!(complaints(&server), 2, "{}", server.log("error.log"));
}

#[test]
fn a_start_that_fails_leaves_no_pid_file() {
    let folder = Folder::create().unwrap();
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
        folder.write("nginx.conf", configuration(main)).unwrap();
        let output = turnpike(&folder.arguments(&[]));
        let shown = stderr(&output);
        assert!(
            shown.contains("turnpike: [emerg] ") && shown.contains(message),
            "{shown}"
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(!folder.has("nginx.pid"));
    }
}
