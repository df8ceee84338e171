//! Tests of listening sockets through reloads, crashes and the end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{configuration, serving_of, start, stderr, turnpike, wait_for};
use nix::libc::SIGKILL;
use turnpike_lane::sys::signal;
use turnpike_lane::sys::socket::{self, Family};
use turnpike_testkit::{Folder, Server, Signal};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than all buffers between server and client hold.
const LARGE_BYTES: u64 = 256 * 1024 * 1024;

fn free_port() -> u16 {
    turnpike_testkit::ports::reserve().unwrap()
}

/// An http block that answers 404 on these addresses.
fn http(listens: &[&str]) -> String {
    let listen = |address: &&str| format!("listen {address};");
    let listens: String = listens.iter().map(listen).collect();
    format!("http {{ server {{ {listens} root /nonexistent; }} }}")
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One request on a connection that stays open; the status line.
fn ask(stream: &mut (impl Read + Write)) -> String {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    status
}

fn reload(server: &Server, main: &str, generation: u32) {
    server
        .files()
        .write("nginx.conf", configuration(main))
        .unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log(
        "error.log",
        &format!("serving with configuration {generation}"),
    );
}

#[test]
fn a_reload_adds_and_removes_addresses_and_touches_no_connection() {
    let (a, b) = (free_port(), free_port());
    let name = |port: u16| format!("127.0.0.1:{port}");
    let server = start(&http(&[&name(a)]));
    let mut kept = connect(a);
    assert_eq!(ask(&mut kept), "HTTP/1.1 404 Not Found\r\n");
    reload(&server, &http(&[&name(a), &name(b)]), 2);
    assert!(ask(&mut connect(b)).contains("404"));
    assert!(ask(&mut kept).contains("404"));
    server.wait_for_log("error.log", "worker generation 1 exited with code 0");
    reload(&server, &http(&[&name(b)]), 3);
    wait_for("the first address to close", || {
        TcpStream::connect(("127.0.0.1", a)).is_err()
    });
    // Its next request is the last one.
    assert!(ask(&mut kept).contains("404"));
    assert_eq!(kept.read(&mut [0]).unwrap(), 0);
    server.wait_for_log("error.log", "worker generation 2 exited with code 0");
    assert!(ask(&mut connect(b)).contains("404"));
    reload(&server, &http(&[&format!("{} reuseport", name(b))]), 4);
    assert!(ask(&mut connect(b)).contains("404"));
}

#[test]
fn a_crash_of_the_serving_process_refuses_no_connection() {
    let port = free_port();
    let server = start(&http(&[&format!("127.0.0.1:{port}")]));
    for _ in 0..3 {
        let serving = serving_of(&server)[0];
        signal::send(serving, SIGKILL).unwrap();
        assert!(ask(&mut connect(port)).contains("404"));
        wait_for("another process", || {
            serving_of(&server).iter().any(|new| *new != serving)
        });
    }
}

#[test]
fn a_wildcard_and_an_address_share_a_port() {
    let port = free_port();
    let (all, one) = (format!("{port}"), format!("127.0.0.1:{port}"));
    let place = |name: &str, address: &str| {
        format!("server {{ listen {address}; location / {{ return 404 {name}; }} }}")
    };
    let (all, one) = (place("all", &all), place("one", &one));
    let (both, turned) = (format!("{all}{one}"), format!("{one}{all}"));
    let other = |address: &str| {
        let mut stream = TcpStream::connect((address, port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.rsplit("\r\n").next().unwrap().to_owned()
    };
    // Either may come later, by a reload, and both may be there from the start.
    for (first, then) in [(&all, &both), (&one, &turned), (&both, &turned)] {
        let server = start(&format!("http {{ {first} }}"));
        reload(&server, &format!("http {{ {then} }}"), 2);
        let answers = [other("127.0.0.1"), other("127.0.0.2")];
        assert_eq!(answers, ["one", "all"], "{first}");
    }
}

#[test]
fn sockets_of_a_process_that_could_not_start_are_accepted_from() {
    let port = free_port();
    let listen = http(&[&format!("127.0.0.1:{port} reuseport")]);
    let server = start(&listen);
    // Another limit needs another process, and more lanes more sockets.
    let more = format!("worker_processes 4; worker_rlimit_nofile 1; {listen}");
    reload(&server, &more, 3);
    let log = server.log("error.log");
    assert!(log.contains("a lane cannot be started"), "{log}");
    assert!(ask(&mut connect(port)).contains("404"));
}

#[test]
fn unix_sockets_serve_and_are_removed_at_the_end() {
    let folder = Folder::create().unwrap();
    let path = folder.path().join("socket");
    let mut server = start(&http(&[&format!("unix:{}", path.display())]));
    assert!(ask(&mut UnixStream::connect(&path).unwrap()).contains("404"));
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
    assert!(!path.exists());
}

#[test]
fn an_idle_connection_does_not_delay_a_graceful_end() {
    let port = free_port();
    let mut server = start(&http(&[&format!("127.0.0.1:{port}")]));
    let mut idle = connect(port);
    assert!(ask(&mut idle).contains("404"));
    let fresh = connect(port);
    let start = Instant::now();
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    drop(fresh);
}

#[test]
fn a_taken_port_is_told_once_with_who_has_it_or_as_nginx_does() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let in_use = format!("[emerg] bind() to {address} failed (98: Address already in use)");
    let last = "[emerg] still could not bind()\n";
    let own = std::process::id();
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let holder = format!("; process {own} ({}) has it\n", name.trim());
    let check = |(main, count, begin, end): (&str, usize, &str, &str)| {
        let folder = Folder::create().unwrap();
        let text = format!("{main} {}", configuration(&http(&[&address.to_string()])));
        folder.write("nginx.conf", text).unwrap();
        let output = turnpike(&folder.arguments(&[]));
        let shown = stderr(&output);
        assert_eq!(shown.matches(&in_use).count(), count, "{shown}");
        assert!(shown.contains(&format!("{begin}{in_use}{end}")), "{shown}");
        assert!(shown.ends_with(&format!("{begin}{last}")), "{shown}");
        assert_eq!(output.status.code(), Some(1));
        assert!(!folder.has("nginx.pid"));
    };
    thread::scope(|scope| {
        scope.spawn(|| check(("compatibility nginx;", 5, "nginx: ", "\n")));
        check(("", 1, "turnpike: ", holder.as_str()));
    });
}

#[test]
fn a_second_start_says_that_this_server_runs_already() {
    let port = free_port();
    let server = start(&http(&[&format!("127.0.0.1:{port}")]));
    let output = turnpike(&server.files().arguments(&[]));
    let shown = stderr(&output);
    let master = server.pid();
    let already = format!("turnpike: [emerg] this server runs already: process {master} holds ");
    assert!(shown.starts_with(&already), "{shown}");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_graceful_end_waits_for_a_response_and_no_longer_than_allowed() {
    let port = free_port();
    let folder = Folder::create().unwrap();
    let file = fs::File::create(folder.path().join("large")).unwrap();
    file.set_len(LARGE_BYTES).unwrap();
    let http = format!(
        "worker_shutdown_timeout 700ms; http {{ access_log off; server {{ \
         listen 127.0.0.1:{port}; root {}; }} }}",
        folder.name()
    );
    let mut server = start(&http);
    let mut slow = connect(port);
    slow.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut head = [0; 12];
    slow.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let start = Instant::now();
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
    let took = start.elapsed();
    assert!(
        took > Duration::from_millis(600) && took < PATIENCE,
        "{took:?}"
    );
}

/// Connections of Multipath TCP that this machine's listening sockets were asked for.
fn multipath_connections() -> u64 {
    let text = fs::read_to_string("/proc/net/netstat").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut columns = names.split(' ').zip(values.split(' '));
    let column = columns.find(|(name, _)| *name == "MPCapableSYNRX");
    column.unwrap().1.parse().unwrap()
}

/// Whether the server lets a client use Multipath TCP.
fn takes_multipath(port: u16) -> bool {
    let before = multipath_connections();
    let client = socket::open_multipath(Family::V4).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    // It is non-blocking: the connection is made meanwhile.
    let _ = socket::connect(client.as_fd(), address);
    let mut client = TcpStream::from(client);
    client.set_nonblocking(false).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(ask(&mut client).contains("404"));
    multipath_connections() > before
}

#[test]
fn clients_may_use_multipath_tcp_where_listen_says_so() {
    if socket::open_multipath(Family::V4).is_err() {
        println!("skipped: the kernel has no Multipath TCP");
        return;
    }
    let text = |parameters: &str| {
        format!(
            "error_log %FOLDER%/error.log notice; events {{ }} {}",
            http(&[&format!("127.0.0.1:%PORT%{parameters}")])
        )
    };
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text(" multipath"))
        .start();
    let mut kept = connect(server.port());
    assert!(ask(&mut kept).contains("404"));
    assert!(takes_multipath(server.port()));
    // A reload changes the kind of the socket, and loses no connection that is open.
    for (parameters, expected) in [("", false), (" multipath reuseport", true)] {
        let reloads = server.log("error.log").matches("reloaded: ").count();
        server.write_configuration(&text(parameters));
        server.signal(Signal::SIGHUP);
        wait_for("the reload", || {
            server.log("error.log").matches("reloaded: ").count() > reloads
        });
        assert_eq!(takes_multipath(server.port()), expected, "{parameters}");
        assert!(ask(&mut kept).contains("404"));
    }
    let log = server.log("error.log");
    assert!(!log.contains("[alert]") && !log.contains("[warn]"), "{log}");
}

#[test]
fn multipath_is_for_tcp_alone() {
    let folder = Folder::create().unwrap();
    for (text, expected) in [
        (
            "http { server { listen unix:s multipath; } }",
            "\"multipath\" is not supported for unix domain sockets",
        ),
        (
            "stream { server { listen 127.0.0.1:1 udp multipath; return x; } }",
            "\"multipath\" parameter is incompatible with \"udp\"",
        ),
    ] {
        let text = format!("events {{ }} {text}");
        folder.write("nginx.conf", text).unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        assert!(shown.contains(expected), "{shown}");
    }
}
