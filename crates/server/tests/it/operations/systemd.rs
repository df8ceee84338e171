//! Tests with systemd's interface: passed sockets, and notifications.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::daemon::{Daemon, Load};
use crate::support::{configuration, is_running, turnpike, wait_for};
use nix::libc::{SIGABRT, SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM};
use turnpike_lane::sys::signal;
use turnpike_testkit::Folder;

/// The longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the binary as systemd does: the socket is descriptor 3, and the process's own number is
/// in the environment.
fn start(folder: &Folder, socket: TcpListener) -> Child {
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_turnpike")])
        .args(folder.arguments(&[]))
        .env("NOTIFY_SOCKET", folder.path().join("notify"))
        .env("WATCHDOG_USEC", "200000")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .spawn()
        .unwrap()
}

/// The serving process.
fn serving_of(master: i32) -> i32 {
    let children = turnpike_testkit::process::children(u32::try_from(master).unwrap());
    i32::try_from(children[0]).unwrap()
}

fn upgrade(folder: &Folder, binary: &str) -> bool {
    let mut words = vec!["upgrade", "--binary", binary];
    words.extend(folder.arguments(&[]));
    turnpike(&words).status.success()
}

/// Changes the binary, with a failure and with success: the unit keeps one of the two main
/// processes, and never stops. Returns the new one.
fn upgraded(folder: &Folder, old: i32, manager: &UnixDatagram) -> i32 {
    let mut states = Vec::new();
    let mut main_process = |expected: &dyn Fn(i32) -> bool| {
        let mut buffer = [0; 4096];
        loop {
            let length = manager.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let number = text.split_once("MAINPID=").map(|(_, rest)| rest.to_owned());
            states.push(text);
            let number = number.and_then(|text| text.trim().parse().ok());
            if let Some(number) = number.filter(|number| expected(*number)) {
                return number;
            }
        }
    };
    assert!(!upgrade(folder, "/bin/false"));
    main_process(&|number| number == old);
    assert!(upgrade(folder, env!("CARGO_BIN_EXE_turnpike")));
    let new = main_process(&|number| number != old);
    wait_for("the old master to end", || {
        !turnpike_testkit::process::is_alive(u32::try_from(old).unwrap())
    });
    manager.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    while let Ok(length) = manager.recv(&mut buffer) {
        states.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    manager.set_nonblocking(false).unwrap();
    let stops = states.iter().filter(|text| text.starts_with("STOPPING"));
    assert_eq!(stops.count(), 0, "{states:?}");
    new
}

#[test]
fn sockets_are_adopted_and_states_sent() {
    let folder = Folder::create().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = |wanted: &str| {
        let mut buffer = [0; 4096];
        loop {
            let length = manager.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.starts_with(wanted) {
                return text;
            }
        }
    };
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // A client that comes before the server must wait, and is not refused.
    let mut early = TcpStream::connect(address).unwrap();
    let http = format!("http {{ server {{ listen {address}; return 200 ok; }} }}");
    folder.write("nginx.conf", configuration(&http)).unwrap();
    let mut master = start(&folder, socket);
    let number = i32::try_from(master.id()).unwrap();
    assert!(heard("READY=1").contains(&format!("MAINPID={number}")));
    early.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    let log = folder.read("error.log");
    assert!(
        log.contains("using the socket of systemd at 127.0.0.1:"),
        "{log}"
    );
    heard("WATCHDOG=1");
    // A live master is not enough.
    let serving = serving_of(number);
    signal::send(serving, SIGSTOP).unwrap();
    wait_for("the master to notice", || {
        let log = folder.read("error.log");
        log.contains("the watchdog of systemd is no longer notified")
    });
    signal::send(serving, SIGCONT).unwrap();
    manager.set_nonblocking(true).unwrap();
    while manager.recv(&mut [0; 4096]).is_ok() {}
    manager.set_nonblocking(false).unwrap();
    heard("WATCHDOG=1");
    signal::send(number, SIGHUP).unwrap();
    assert!(heard("RELOADING=1").contains("MONOTONIC_USEC="));
    heard("READY=1");
    let number = upgraded(&folder, number, &manager);
    folder.write("nginx.conf", "nonsense;").unwrap();
    signal::send(number, SIGHUP).unwrap();
    heard("RELOADING=1");
    heard("READY=1");
    signal::send(number, SIGTERM).unwrap();
    heard("STOPPING=1");
    // The first master ended in favour of the other.
    assert!(master.wait().unwrap().success());
    wait_for("the pid file to go", || !folder.has("nginx.pid"));
}

/// The unit's `RestartSec`.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Behaves like systemd with our unit, as far as it concerns processes: it starts the server,
/// accepts the main process's announcements, kills no process, and starts the server again a second
/// after the main process has ended, until it is stopped.
fn supervise(daemon: &Daemon, manager: &UnixDatagram, is_stopping: &AtomicBool) {
    manager.set_read_timeout(Some(RESTART_PAUSE / 20)).unwrap();
    let mut started: Vec<Child> = Vec::new();
    while !is_stopping.load(Ordering::Acquire) {
        let child = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(daemon.folder.arguments(&[]))
            .env("NOTIFY_SOCKET", daemon.folder.path().join("notify"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut main = i32::try_from(child.id()).unwrap();
        started.push(child);
        while is_running(main) {
            let mut buffer = [0; 4096];
            let length = manager.recv(&mut buffer).unwrap_or(0);
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let value = text.split_once("MAINPID=").map(|(_, rest)| rest.trim());
            main = value.and_then(|text| text.parse().ok()).unwrap_or(main);
        }
        thread::sleep(RESTART_PAUSE);
    }
    for child in &mut started {
        let _ = child.wait();
    }
}

#[test]
fn a_dead_main_process_is_started_again_and_adopts_the_serving_process() {
    let daemon = Daemon::prepare(" reuseport", "daemon off;");
    let manager = UnixDatagram::bind(daemon.folder.path().join("notify")).unwrap();
    let is_stopping = AtomicBool::new(false);
    let quit = || {
        turnpike(&daemon.folder.arguments(&["-s", "quit"]))
            .status
            .success()
    };
    thread::scope(|scope| {
        scope.spawn(|| supervise(&daemon, &manager, &is_stopping));
        let up = |old: i32| {
            wait_for("a master", || {
                let master = daemon.master();
                ![0, old].contains(&master) && is_running(master) && daemon.serving() != 0
            });
            daemon.master()
        };
        let mut master = up(0);
        let load = Load::start(daemon.port);
        let serving = daemon.serving();
        for _ in 0..2 {
            signal::send(master, SIGKILL).unwrap();
            master = up(master);
            assert_eq!(daemon.serving(), serving);
            load.go_on();
        }
        // A main process that systemd has not started is accepted too.
        daemon.upgrade(&[]).unwrap();
        let (master, serving) = (daemon.master(), daemon.serving());
        load.go_on();
        signal::send(master, SIGKILL).unwrap();
        let master = up(master);
        assert_eq!(daemon.serving(), serving);
        load.stop();
        // A second start, by hand.
        let error = daemon.start_again().unwrap_err();
        assert!(error.contains("this server runs already"), "{error}");
        // The watchdog's action on a hanging server ends both processes.
        signal::send(serving, SIGSTOP).unwrap();
        signal::send(master, SIGABRT).unwrap();
        let master = up(master);
        assert!(!is_running(serving));
        let serving = daemon.serving();
        // ExecStop ends both.
        is_stopping.store(true, Ordering::Release);
        assert!(quit());
        wait_for("both to end", || {
            !is_running(master) && !is_running(serving)
        });
    });
    assert!(!daemon.folder.has("nginx.adopt") && !daemon.folder.has("nginx.pid"));
}

#[test]
fn the_unit_leaves_the_serving_process_alone() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let unit = format!("{folder}/../../contrib/systemd/turnpike.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    for line in [
        "Type=notify",
        "NotifyAccess=all",
        "KillMode=process",
        "KillSignal=SIGTERM",
        "Restart=always",
        "RestartSec=1",
        "RuntimeDirectoryPreserve=restart",
        "StateDirectory=turnpike",
    ] {
        assert!(unit.lines().any(|own| own == line), "{line}");
    }
    let stop = unit.lines().find(|line| line.starts_with("ExecStop="));
    assert!(
        stop.is_some_and(|line| line.contains(" -s quit ")),
        "{stop:?}"
    );
}

#[test]
fn the_packaged_file_and_not_the_unit_switches_the_sandbox_on() {
    let has_line = |file: &str, part: &str| {
        let path = format!("{}/../../contrib/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .any(|line| !line.starts_with('#') && line.contains(part))
    };
    assert!(has_line("etc/nginx.conf", "sandbox on;"));
    // A directive of the command line and of the file would be a duplicate.
    assert!(!has_line("systemd/turnpike.service", "sandbox on"));
    assert!(has_line("systemd/turnpike.service", "ExecStart="));
}
