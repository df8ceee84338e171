//! Tests of a change of the running binary: it succeeds or fails, and no request is lost.

use std::cell::Cell;
use std::path::PathBuf;
use std::thread;

use crate::support::daemon::{Daemon, Load, ask, connect};
use crate::support::{children, is_running, stderr, turnpike, wait_for};
use nix::libc::{SIGHUP, SIGKILL, SIGQUIT, SIGTERM, SIGUSR2, SIGWINCH};
use serde_json::Value;
use turnpike_lane::sys::signal;
use turnpike_testkit::process;

/// After a failed upgrade, the old names exist at once.
fn assert_named(daemon: &Daemon, old: i32) {
    assert_eq!(daemon.master(), old, "the pid file");
    for name in [
        "nginx.pid.oldbin",
        "nginx.control.oldbin",
        "nginx.adopt.oldbin",
    ] {
        assert!(!daemon.folder.has(name), "{name}");
    }
    let socket = daemon.folder.path().join("nginx.control");
    let output = turnpike(&["status", "--json", "--socket", socket.to_str().unwrap()]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["pid"], old, "the control socket");
}

/// Waits until the other binary has ended: another upgrade would be refused before.
fn wait_until_alone(old: i32) {
    wait_for("the new one to end", || children(old).len() == 1);
}

#[test]
fn a_complete_upgrade_in_one_command() {
    for (listen, events) in [
        ("", ""),
        ("", "accept_mutex on;"),
        (" reuseport", ""),
        (" reuseport=steer", ""),
    ] {
        let daemon = Daemon::start_with(listen, events);
        let load = Load::start(daemon.port);
        for _ in 0..3 {
            let old = daemon.master();
            let report = daemon.upgrade(&[]).unwrap_or_else(|error| {
                panic!("{listen} {events}: {error}{}", daemon.log());
            });
            assert_eq!(report["old_pid"], old);
            assert_eq!(report["new_pid"], daemon.master());
            load.go_on();
            wait_for("the old one to end", || !is_running(old));
            assert!(!daemon.folder.has("nginx.pid.oldbin"));
            assert!(!daemon.folder.has("nginx.control.oldbin"));
            assert!(daemon.folder.has("s.sock"));
        }
        load.stop();
        let log = daemon.log();
        assert!(
            !log.contains("[alert]") && !log.contains("[emerg]"),
            "{log}"
        );
        signal::send(daemon.master(), SIGTERM).unwrap();
        wait_for("the end", || !daemon.folder.has("nginx.pid"));
        wait_for("its socket to go", || !daemon.folder.has("s.sock"));
    }
}

#[test]
fn connections_that_wait_for_a_request_outlive_the_old_process() {
    let daemon = Daemon::start("");
    let [mut fresh, mut idle] = [connect(daemon.port), connect(daemon.port)];
    assert!(ask(&mut idle, true));
    for _ in 0..2 {
        let old = daemon.master();
        daemon.upgrade(&[]).unwrap();
        // The time that a drain gives them has passed by then, however busy the machine is.
        wait_for("the old one to end", || !is_running(old));
        assert!(ask(&mut idle, true), "it is kept");
    }
    assert!(ask(&mut fresh, true), "it is kept");
    let log = daemon.log();
    assert!(!log.contains("[alert]"), "{log}");
}

#[test]
fn connections_that_wait_for_a_request_outlive_a_reload_that_needs_a_new_process() {
    let daemon = Daemon::start("");
    let mut idle: Vec<_> = (0..8).map(|_| connect(daemon.port)).collect();
    for stream in &mut idle {
        assert!(ask(stream, true));
    }
    let text = daemon.folder.read("nginx.conf");
    for core_bytes in 1..=3 {
        let old = children(daemon.master());
        let changed = format!("{text}\nworker_rlimit_core {core_bytes}k;\n");
        daemon.folder.write("nginx.conf", &changed).unwrap();
        signal::send(daemon.master(), SIGHUP).unwrap();
        wait_for("the old process to end", || {
            let now = children(daemon.master());
            now.len() == 1 && now != old
        });
        for stream in &mut idle {
            assert!(ask(stream, true), "it is kept");
        }
    }
}

#[test]
fn after_an_upgrade_generations_go_on_and_reloads_begin_at_none() {
    let daemon = Daemon::start("");
    daemon.upgrade(&[]).unwrap();
    let socket = daemon.folder.path().join("nginx.control");
    let output = turnpike(&["status", "--socket", socket.to_str().unwrap()]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = "\ngeneration     2; 0 reloads since start, 0 failed\n";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn the_requests_by_which_an_upgrade_tests_itself_are_not_counted_as_clients() {
    let daemon = Daemon::start("");
    daemon.upgrade(&[]).unwrap();
    let socket = daemon.folder.path().join("nginx.control");
    let socket = socket.to_str().unwrap();
    let totals = || {
        let output = turnpike(&["status", "--json", "--socket", socket]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let totals = &status["serving"]["totals"];
        (
            totals["requests"].clone(),
            totals["connections_accepted"].clone(),
        )
    };
    assert_eq!(totals(), (0.into(), 0.into()));
    ask(&mut connect(daemon.port), false);
    wait_for("the request to be counted", || {
        totals() == (1.into(), 1.into())
    });
}

#[test]
fn steering_goes_on_when_the_old_program_is_gone() {
    let daemon = Daemon::start(" reuseport=steer");
    let steered = "are distributed by the steering program";
    if !daemon.log().contains(steered) {
        return; // this machine does not permit it
    }
    for _ in 0..2 {
        daemon.upgrade(&[]).unwrap();
        let line = format!(
            "#{}: connections to 127.0.0.1:{}",
            daemon.master(),
            daemon.port
        );
        wait_for("the new master to steer", || {
            let log = daemon.log();
            let mut lines = log.lines();
            lines.any(|text| text.contains(&line) && text.contains(steered))
        });
        ask(&mut connect(daemon.port), false);
    }
}

#[test]
fn a_binary_that_fails_at_its_start_is_backed_out() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    let cases = [
        (
            "exit 3",
            "the new binary process has exited with code 3; backed out",
        ),
        (
            "kill -9 $$",
            "the new binary process has exited on signal 9; backed out",
        ),
        (
            "exec /nonexistent/turnpike",
            "the new binary process has exited with code 127",
        ),
    ];
    for (script, message) in cases {
        let error = daemon.upgrade(&[&daemon.script(script)]).unwrap_err();
        assert!(error.contains(message), "{error}");
        assert_named(&daemon, old);
        load.go_on();
    }
    let error = daemon
        .upgrade(&["binary=/nonexistent/turnpike"])
        .unwrap_err();
    assert!(error.contains("failed (2: No such file"), "{error}");
    load.stop();
    assert_named(&daemon, old);
    daemon.upgrade(&[]).unwrap();
    assert_ne!(daemon.master(), old);
}

#[test]
fn a_binary_with_a_configuration_that_it_cannot_read_is_backed_out() {
    let daemon = Daemon::start("");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    let good = daemon.folder.read("nginx.conf");
    daemon
        .folder
        .write("nginx.conf", good.replace("return 200", "nonsense 200"))
        .unwrap();
    let socket = daemon.folder.path().join("nginx.control");
    let output = turnpike(&["upgrade", "--socket", socket.to_str().unwrap()]);
    assert!(
        stderr(&output).contains("exited with code 1; backed out"),
        "{}",
        stderr(&output)
    );
    assert_named(&daemon, old);
    load.stop();
    daemon.folder.write("nginx.conf", &good).unwrap();
    wait_until_alone(old);
    daemon.upgrade(&[]).unwrap();
}

#[test]
fn a_binary_that_starts_and_does_not_serve_is_backed_out() {
    let daemon = Daemon::start(" reuseport=steer");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    // It takes over the sockets and does nothing with them.
    let error = daemon
        .upgrade(&[&daemon.script("exec sleep 1000"), "timeout_s=3"])
        .unwrap_err();
    assert!(
        error.contains("the new binary does not serve in time; backed out"),
        "{error}"
    );
    assert_named(&daemon, old);
    load.go_on();
    load.stop();
    wait_until_alone(old);
    assert_named(&daemon, old);
    let log = daemon.log();
    assert!(log.contains("upgrade failed: "), "{log}");
    daemon.upgrade(&[]).unwrap();
}

#[test]
fn a_binary_whose_serving_process_stands_still_is_backed_out() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    let program = env!("CARGO_BIN_EXE_turnpike");
    let binary = daemon.script(&format!("kill -STOP $$\nexec {program} \"$@\""));
    let (error, stopped) = thread::scope(|scope| {
        let upgrade = scope.spawn(|| daemon.upgrade(&[&binary, "timeout_s=15"]).unwrap_err());
        let new = Cell::new(0);
        wait_for("the new binary", || {
            let mut others = children(old)
                .into_iter()
                .filter_map(|pid| pid.try_into().ok());
            new.set(others.find(|pid| process::is_stopped(*pid)).unwrap_or(0));
            new.get() != 0
        });
        let stopped = process::stop_first_child(new.get()).expect("to be allowed to trace");
        (upgrade.join().unwrap(), stopped)
    });
    let message = "the new binary does not serve in time; backed out";
    assert!(error.contains(message), "{error}");
    assert_named(&daemon, old);
    wait_until_alone(old);
    wait_for("its serving process to end", || !process::is_alive(stopped));
    load.go_on();
    load.stop();
    daemon.upgrade(&[]).unwrap();
}

#[test]
fn a_binary_that_takes_the_sockets_and_never_serves_is_backed_out() {
    // The new binary's messages to the old master.
    let report = |word: &str| format!("echo {word} >&$TURNPIKE_UPGRADE\n");
    let hear = "read -r word <&$TURNPIKE_UPGRADE\n";
    // It handles no signal, and ends when the test is done.
    let rest = "while [ ! -e ${0%/*}/seen ]; do sleep 0.1; done";
    let cases = [
        (
            [report("ready"), hear.to_owned(), rest.to_owned()].concat(),
            "in time",
        ),
        (
            [&report("ready"), hear, &report("accepting"), hear, rest].concat(),
            "in time",
        ),
        (
            [
                &report("ready"),
                hear,
                &report("accepting"),
                hear,
                &report("failed of_itself"),
                rest,
            ]
            .concat(),
            "of_itself",
        ),
        ([&report("nonsense"), rest].concat(), "nonsense"),
    ];
    for (script, why) in cases {
        let daemon = Daemon::start(" reuseport");
        let load = Load::start(daemon.port);
        let old = daemon.master();
        let binary = daemon.script(&script);
        let error = daemon.upgrade(&[&binary, "timeout_s=2"]).unwrap_err();
        assert!(
            error.contains(why) && error.contains("; backed out"),
            "{error}"
        );
        assert_named(&daemon, old);
        daemon.folder.write("seen", "").unwrap();
        wait_until_alone(old);
        load.go_on();
        load.stop();
        daemon.upgrade(&[]).unwrap();
    }
}

#[test]
fn a_reload_during_an_upgrade_is_done_by_whoever_serves_then() {
    let program = env!("CARGO_BIN_EXE_turnpike");
    for (end, is_upgraded) in [
        (&*format!("exec {program} \"$@\""), true),
        ("exit 1", false),
    ] {
        let daemon = Daemon::start("");
        let old = daemon.master();
        let wait = "touch ${0%/*}/here; while [ ! -e ${0%/*}/go ]; do sleep 0.02; done";
        let binary = daemon.script(&format!("{wait}\n{end}"));
        let outcome = thread::scope(|scope| {
            let upgrade = scope.spawn(|| daemon.upgrade(&[&binary]));
            wait_for("the new binary", || daemon.folder.has("here"));
            signal::send(old, SIGHUP).unwrap();
            wait_for("the signal to be taken", || {
                daemon.log().contains("the reload waits")
            });
            daemon.folder.write("go", "").unwrap();
            upgrade.join().unwrap()
        });
        assert_eq!(outcome.is_ok(), is_upgraded, "{outcome:?}");
        let line = format!(" {0}#{0}: reloaded: ", daemon.master());
        wait_for("the reload", || daemon.log().contains(&line));
        assert_eq!(daemon.master() != old, is_upgraded);
    }
}

#[test]
fn an_upgrade_by_signals_goes_forward_and_back() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    let begin = || {
        signal::send(old, SIGUSR2).unwrap();
        wait_for("the old pid file", || daemon.pid("nginx.pid.oldbin") == old);
        wait_for("the new pid file", || ![0, old].contains(&daemon.master()));
        load.go_on();
        daemon.master()
    };
    let new = begin();
    signal::send(old, SIGUSR2).unwrap();
    wait_for("the refusal", || {
        daemon
            .log()
            .contains("the changing binary signal is ignored")
    });
    signal::send(old, SIGWINCH).unwrap();
    wait_for("the old serving process to end", || {
        children(old).iter().all(|process| *process == new)
    });
    load.go_on();
    // Back: the old one serves again, the new one ends.
    signal::send(old, SIGHUP).unwrap();
    wait_for("the old serving process", || children(old).len() == 2);
    signal::send(new, SIGQUIT).unwrap();
    wait_for("the old name", || {
        daemon.master() == old && !is_running(new)
    });
    assert!(!daemon.folder.has("nginx.pid.oldbin"));
    load.go_on();
    // And forward.
    let new = begin();
    signal::send(old, SIGWINCH).unwrap();
    signal::send(old, SIGQUIT).unwrap();
    wait_for("the old one to end", || !is_running(old));
    assert_eq!(daemon.master(), new);
    assert!(daemon.folder.has("s.sock") && !daemon.folder.has("nginx.pid.oldbin"));
    load.stop();
    daemon.upgrade(&[]).unwrap();
}

#[test]
fn a_killed_new_master_leaves_the_old_one_to_serve() {
    let daemon = Daemon::start("");
    let load = Load::start(daemon.port);
    let old = daemon.master();
    signal::send(old, SIGUSR2).unwrap();
    wait_for("the new pid file", || ![0, old].contains(&daemon.master()));
    signal::send(old, SIGWINCH).unwrap();
    let new = daemon.master();
    wait_for("the old serving process to end", || {
        children(old).iter().all(|process| *process == new)
    });
    load.go_on();
    let socket: PathBuf = daemon.folder.path().join("nginx.control");
    // Its serving process ends gracefully without it.
    signal::send(new, SIGKILL).unwrap();
    wait_for("the old name", || daemon.master() == old);
    wait_for("the old serving process", || children(old).len() == 1);
    load.stop();
    let output = turnpike(&["status", "--json", "--socket", socket.to_str().unwrap()]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["pid"], old);
}

#[test]
fn a_log_of_objects_has_nothing_else_after_an_upgrade_and_a_command() {
    let daemon = Daemon::configured(|folder, port| {
        format!(
            "daemon on; pid nginx.pid; error_log error.log notice format=json; events {{ }}
             http {{ server {{ listen 127.0.0.1:{port}; listen unix:{folder}/s; }} }}"
        )
    });
    daemon.start_again().unwrap();
    daemon.upgrade(&[]).unwrap();
    assert!(
        turnpike(&daemon.folder.arguments(&["-s", "reopen"]))
            .status
            .success()
    );
    let log = daemon.log();
    for said in ["using inherited sockets from ", "signal process started"] {
        assert!(log.contains(said), "{log}");
    }
    for line in log.lines() {
        let object: Result<serde_json::Value, _> = serde_json::from_str(line);
        assert!(object.is_ok_and(|object| object.is_object()), "{line}");
    }
}
