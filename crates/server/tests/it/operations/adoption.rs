//! Tests of a killed master: the serving process continues, and the next start adopts it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::daemon::{Daemon, Load, ask, connect};
use crate::support::{children, configuration, is_running, stderr, turnpike, wait_for};
use nix::libc::{SIGHUP, SIGKILL, SIGTERM, SIGUSR2};
use turnpike_lane::sys::signal;
use turnpike_testkit::Folder;

/// The ways of sharing sockets, with their text in `events` and in the main context.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "", ""),
    ("", "accept_mutex on;", ""),
    (" reuseport", "", "sandbox on;"),
    (" reuseport=steer", "", ""),
];

/// Kills the master, and waits until its serving process has noticed.
fn kill_master(daemon: &Daemon) {
    let (master, serving) = (daemon.master(), daemon.serving());
    signal::send(master, SIGKILL).unwrap();
    wait_for("the master to end", || !is_running(master));
    let line = format!("#{serving}: the master process is gone; this process continues to serve");
    wait_for("the serving process to notice", || {
        daemon.log().contains(&line)
    });
}

fn command(daemon: &Daemon, word: &str) -> Result<(), String> {
    let output = turnpike(&daemon.folder.arguments(&["-s", word]));
    if output.status.success() {
        Ok(())
    } else {
        Err(stderr(&output))
    }
}

/// Checks that no file or process of the server is left.
fn assert_gone(daemon: &Daemon) {
    for name in ["nginx.pid", "nginx.control", "nginx.adopt", "s.sock"] {
        wait_for(name, || !daemon.folder.has(name));
    }
}

#[test]
fn another_master_goes_on_with_the_serving_process_and_its_sockets() {
    for (listen, events, main) in KINDS {
        let daemon = Daemon::start_as(listen, events, main);
        let load = Load::start(daemon.port);
        let serving = daemon.serving();
        for _ in 0..3 {
            let old = daemon.master();
            kill_master(&daemon);
            load.go_on();
            daemon.start_again().unwrap();
            assert_ne!(daemon.master(), old);
            assert_eq!(daemon.serving(), serving, "{}", daemon.log());
            load.go_on();
        }
        // It behaves like any other serving process.
        signal::send(daemon.master(), SIGHUP).unwrap();
        wait_for("a reload", || {
            daemon.log().contains("reloaded: generation 5 ")
        });
        daemon.upgrade(&[]).unwrap();
        assert_ne!(daemon.serving(), serving);
        load.go_on();
        kill_master(&daemon);
        daemon.start_again().unwrap();
        load.stop();
        let adopted = daemon.serving();
        signal::send(adopted, SIGKILL).unwrap();
        wait_for("another one", || ![0, adopted].contains(&daemon.serving()));
        ask(&mut connect(daemon.port), false);
        let log = daemon.log();
        assert!(!log.contains("[emerg]"), "{log}");
        command(&daemon, "quit").unwrap();
        assert_gone(&daemon);
    }
}

#[test]
fn a_start_need_not_wait_for_anything() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let serving = daemon.serving();
    for _ in 0..10 {
        signal::send(daemon.master(), SIGKILL).unwrap();
        daemon.start_again().unwrap();
    }
    assert_eq!(daemon.serving(), serving);
    load.stop();
    signal::send(daemon.master(), SIGTERM).unwrap();
    wait_for("the adopted one to end", || !is_running(serving));
    assert_gone(&daemon);
}

#[test]
fn a_broken_configuration_changes_nothing() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let serving = daemon.serving();
    kill_master(&daemon);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let busy = format!("listen {taken}; listen unix");
    let cases = [
        ("return 200", "nonsense 200", "unknown directive"),
        ("listen unix", busy.as_str(), "98: Address already in use"),
        // The error appears only when the new configuration is applied.
        (
            "pid nginx.pid;",
            "pid nginx.pid; control missing/c;",
            "missing/c\" failed (2: ",
        ),
    ];
    for (from, to, message) in cases {
        daemon
            .folder
            .write("nginx.conf", daemon.text().replace(from, to))
            .unwrap();
        let error = daemon.start_again().unwrap_err();
        assert!(error.contains(message), "{error}");
        load.go_on();
        assert!(is_running(serving));
    }
    daemon.folder.write("nginx.conf", daemon.text()).unwrap();
    daemon.start_again().unwrap();
    assert_eq!(daemon.serving(), serving);
    load.stop();
}

#[test]
fn what_a_process_cannot_change_takes_another_one() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let old = daemon.serving();
    kill_master(&daemon);
    let text = daemon
        .text()
        .replace("events", "worker_rlimit_core 1m; events");
    daemon.folder.write("nginx.conf", &text).unwrap();
    daemon.start_again().unwrap();
    let new = daemon.serving();
    assert_ne!(new, old);
    load.go_on();
    wait_for("the old one to end", || !is_running(old));
    load.stop();
    // The numbers of the sockets continue too.
    kill_master(&daemon);
    daemon.start_again().unwrap();
    assert_eq!(daemon.serving(), new);
    ask(&mut connect(daemon.port), false);
}

#[test]
fn other_addresses_are_opened_and_closed_as_at_a_reload() {
    let daemon = Daemon::start(" reuseport");
    let serving = daemon.serving();
    kill_master(&daemon);
    let port = turnpike_testkit::ports::reserve().unwrap();
    let old = format!("listen 127.0.0.1:{} reuseport;", daemon.port);
    let text = daemon
        .text()
        .replace(&old, &format!("listen 127.0.0.1:{port};"));
    daemon
        .folder
        .write("nginx.conf", text.replace("s.sock", "other.sock"))
        .unwrap();
    daemon.start_again().unwrap();
    assert_eq!(daemon.serving(), serving);
    ask(&mut connect(port), false);
    assert!(!turnpike_testkit::ports::is_listening(daemon.port));
    assert!(daemon.folder.has("other.sock") && !daemon.folder.has("s.sock"));
}

#[test]
fn commands_without_a_master_end_the_serving_process_or_say_what_to_do() {
    for word in ["quit", "stop"] {
        let daemon = Daemon::start("");
        let serving = daemon.serving();
        kill_master(&daemon);
        for word in ["reload", "reopen"] {
            let error = command(&daemon, word).unwrap_err();
            let expected = format!("serving process {serving} runs without one: start");
            assert!(error.contains(&expected), "{error}");
        }
        ask(&mut connect(daemon.port), false);
        command(&daemon, word).unwrap();
        wait_for("the end", || !is_running(serving));
        assert_gone(&daemon);
        // The next start is one like any other.
        daemon.start_again().unwrap();
        ask(&mut connect(daemon.port), false);
    }
}

#[test]
fn when_both_are_dead_a_start_is_a_start() {
    let daemon = Daemon::start(" reuseport");
    let serving = daemon.serving();
    kill_master(&daemon);
    signal::send(serving, SIGKILL).unwrap();
    wait_for("the end", || !is_running(serving));
    // As in nginx, the file of a unix socket must be removed by hand.
    fs::remove_file(daemon.folder.path().join("s.sock")).unwrap();
    daemon.start_again().unwrap();
    assert_ne!(daemon.serving(), serving);
    ask(&mut connect(daemon.port), false);
}

#[test]
fn other_users_are_refused() {
    if !nix::unistd::geteuid().is_root() {
        return; // there is no other user
    }
    let daemon = Daemon::start("");
    let serving = daemon.serving();
    kill_master(&daemon);
    let socket = daemon.folder.path().join("nginx.adopt");
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Even if the file's mode is changed, the kernel reports the user.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(daemon.folder.arguments(&["-s", "stop"]))
        .stdin(Stdio::null())
        .uid(65534)
        .output()
        .unwrap();
    assert!(!output.status.success());
    wait_for("the refusal", || {
        daemon.log().contains("of user 65534 may not take over")
    });
    assert!(is_running(serving));
    daemon.start_again().unwrap();
    assert_eq!(daemon.serving(), serving);
}

#[test]
fn a_server_of_another_prefix_is_not_taken_over() {
    let daemon = Daemon::start("");
    kill_master(&daemon);
    let other = Folder::create().unwrap();
    let pid = format!("pid {}/nginx.pid;", daemon.folder.name());
    let text = configuration("daemon on;").replace("pid nginx.pid;", &pid);
    other.write("nginx.conf", &text).unwrap();
    let error = stderr(&turnpike(&other.arguments(&[])));
    assert!(
        error.contains("has no master, and is of another prefix"),
        "{error}"
    );
    ask(&mut connect(daemon.port), false);
}

#[test]
fn an_old_master_that_is_killed_leaves_everything_to_the_new_one() {
    let daemon = Daemon::start(" reuseport");
    let load = Load::start(daemon.port);
    let (old, serving) = (daemon.master(), daemon.serving());
    signal::send(old, SIGUSR2).unwrap();
    wait_for("the new master", || ![0, old].contains(&daemon.master()));
    signal::send(old, SIGKILL).unwrap();
    wait_for("its serving process to finish", || !is_running(serving));
    for name in [
        "nginx.pid.oldbin",
        "nginx.control.oldbin",
        "nginx.adopt.oldbin",
    ] {
        wait_for(name, || !daemon.folder.has(name));
    }
    load.go_on();
    // Its own serving process can be adopted too.
    let new = daemon.serving();
    kill_master(&daemon);
    daemon.start_again().unwrap();
    assert_eq!(daemon.serving(), new);
    load.stop();
}

#[test]
fn a_second_start_is_refused_where_the_kernel_would_let_it_share() {
    let daemon = Daemon::start(" reuseport");
    let master = daemon.master();
    let error = daemon.start_again().unwrap_err();
    let expected = format!("this server runs already: process {master} holds ");
    assert!(error.contains(&expected), "{error}");
    assert_eq!((daemon.master(), children(master).len()), (master, 1));
    // A file that another program has left does no harm.
    signal::send(master, SIGTERM).unwrap();
    wait_for("the end", || !is_running(master));
    daemon
        .folder
        .write("nginx.pid", format!("{}\n", std::process::id()))
        .unwrap();
    daemon.start_again().unwrap();
}

#[test]
fn a_draining_master_does_not_block_a_start() {
    let daemon = Daemon::start(" reuseport");
    let hold = |daemon: &Daemon| {
        use std::io::Write as _;
        // An incomplete request, so that draining does not end.
        let mut stream = connect(daemon.port);
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
        stream.write_all(&head[..20]).unwrap();
        ask(&mut connect(daemon.port), false);
        stream
    };
    // After an upgrade: the new master is killed, with and without its serving process.
    let held = hold(&daemon);
    let first = daemon.master();
    daemon.upgrade(&[]).unwrap();
    let serving = daemon.serving();
    for both in [false, true] {
        kill_master(&daemon);
        if both {
            signal::send(serving, SIGKILL).unwrap();
            wait_for("its end", || !is_running(serving));
            fs::remove_file(daemon.folder.path().join("s.sock")).unwrap();
        }
        daemon.start_again().unwrap();
        assert_eq!(daemon.serving() == serving, !both);
        ask(&mut connect(daemon.port), false);
        assert!(is_running(first));
    }
    drop(held);
    wait_for("the first one to end", || !is_running(first));
    // After QUIT: the old master must not remove the next one's pid file.
    let held = hold(&daemon);
    let old = daemon.master();
    command(&daemon, "quit").unwrap();
    wait_for("its sockets to go", || {
        !turnpike_testkit::ports::is_listening(daemon.port)
    });
    daemon.start_again().unwrap();
    assert!(is_running(old));
    drop(held);
    wait_for("the old one to end", || !is_running(old));
    assert_ne!(daemon.master(), 0);
    ask(&mut connect(daemon.port), false);
}
