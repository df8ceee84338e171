//! Under systemd: sockets it has opened, and what it is told.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::libc::{SIGCONT, SIGHUP, SIGSTOP, SIGTERM};
use support::{Folder, configuration, turnpike, wait_for};
use turnpike_lane::sys::signal;

/// Nobody waits longer for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the binary as systemd does: the socket as descriptor 3, and the process's own number in
/// the environment.
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

/// Changes the binary, in vain and for real: the unit goes on with one main process or the other,
/// and never stops. Returns the new one.
fn upgraded(folder: &Folder, old: i32, manager: &UnixDatagram) -> i32 {
    let mut said = Vec::new();
    let mut main_process = |expected: &dyn Fn(i32) -> bool| {
        let mut buffer = [0; 4096];
        loop {
            let length = manager.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let number = text.split_once("MAINPID=").map(|(_, rest)| rest.to_owned());
            said.push(text);
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
        said.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    manager.set_nonblocking(false).unwrap();
    let stops = said.iter().filter(|text| text.starts_with("STOPPING"));
    assert_eq!(stops.count(), 0, "{said:?}");
    new
}

#[test]
fn sockets_are_taken_and_states_told() {
    let folder = Folder::new();
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
    // A client that comes before the server has to wait, and is not refused.
    let mut early = TcpStream::connect(address).unwrap();
    let http = format!("http {{ server {{ listen {address}; return 200 ok; }} }}");
    folder.write("nginx.conf", &configuration(&http));
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
    // A master that lives is not enough.
    let serving = serving_of(number);
    signal::send(serving, SIGSTOP).unwrap();
    wait_for("the master to notice", || {
        let log = folder.read("error.log");
        log.contains("systemd is told no more that the server lives")
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
    folder.write("nginx.conf", "nonsense;");
    signal::send(number, SIGHUP).unwrap();
    heard("RELOADING=1");
    heard("READY=1");
    signal::send(number, SIGTERM).unwrap();
    heard("STOPPING=1");
    // The first master ended in favour of the other.
    assert!(master.wait().unwrap().success());
    wait_for("the pid file to go", || !folder.has("nginx.pid"));
}
