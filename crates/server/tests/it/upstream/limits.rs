//! Tests of the limits of a group of servers, which all lanes share: `max_conns`, `queue` and
//! `retry_budget`.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Peer, Server, wait_for};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// An origin whose requests wait until the test answers them.
struct Origin(TcpListener);

/// A request that waits for its answer.
struct Held {
    stream: TcpStream,
    head: String,
}

impl Origin {
    fn new() -> Origin {
        Origin(TcpListener::bind(("127.0.0.1", 0)).unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// The next request; waits for it.
    fn next(&self) -> Held {
        let (mut stream, _) = self.0.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        Held { stream, head }
    }

    /// Whether there is no other connection.
    fn is_quiet(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let next = self.0.accept().map(|_| ());
        self.0.set_nonblocking(false).unwrap();
        next.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

impl Held {
    fn answer(mut self) {
        self.stream.write_all(OK).unwrap();
    }
}

/// A server with this many lanes and a group.
fn server(lanes: usize, group: &str) -> Server {
    let configuration = format!(
        "worker_processes {lanes};
        error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format up '$uri $status $upstream_addr $upstream_queue_time.';
            access_log %FOLDER%/access.log up;
            upstream u {{ {group} }}
            server {{
                listen 127.0.0.1:%PORT% reuseport;
                location / {{ proxy_pass http://u; }}
                location = /metrics {{ metrics; access_log off; }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// A connection that has sent a request.
fn asking(server: &Server, path: &str) -> Peer {
    let mut peer = server.connect();
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    peer
}

/// The statuses that so many clients get, as they come.
fn statuses(server: &Server, clients: usize) -> Receiver<u16> {
    let (sender, receiver) = channel();
    for _ in 0..clients {
        let (sender, mut peer) = (sender.clone(), asking(server, "/"));
        thread::spawn(move || sender.send(peer.response().status));
    }
    receiver
}

fn wait_for_queue(server: &Server, length: usize) {
    let line = format!("turnpike_upstream_queued{{upstream=\"u\"}} {length}\n");
    let is_so = || server.get("/metrics").text().contains(&line).then_some(());
    assert!(
        wait_for(is_so).is_some(),
        "{}",
        server.get("/metrics").text()
    );
}

#[test]
fn max_conns_counts_the_requests_of_all_lanes() {
    let origin = Origin::new();
    let group = format!("server 127.0.0.1:{} max_conns=2;", origin.port());
    let server = server(4, &group);
    let statuses = statuses(&server, 16);
    let held = [origin.next(), origin.next()];
    for _ in 0..14 {
        assert_eq!(statuses.recv(), Ok(502));
    }
    assert!(origin.is_quiet());
    held.into_iter().for_each(Held::answer);
    assert_eq!([statuses.recv(), statuses.recv()], [Ok(200), Ok(200)]);
}

#[test]
fn requests_of_all_lanes_wait_in_the_queue() {
    let origin = Origin::new();
    let group = format!("server 127.0.0.1:{} max_conns=2; queue 6;", origin.port());
    let server = server(4, &group);
    let at_once = statuses(&server, 2);
    let mut held = vec![origin.next(), origin.next()];
    // A request leaves the queue a moment after it was given a server, so the others come later.
    let queued = statuses(&server, 6);
    wait_for_queue(&server, 6);
    for _ in 0..6 {
        assert!(origin.is_quiet());
        held.remove(0).answer();
        held.push(origin.next());
    }
    held.into_iter().for_each(Held::answer);
    for statuses in [[&at_once; 2].as_slice(), &[&queued; 6]].concat() {
        assert_eq!(statuses.recv(), Ok(200));
    }
    wait_for_queue(&server, 0);
    let logged = || server.log("access.log");
    wait_for(|| (logged().lines().count() == 8).then_some(()));
    let at_once = logged()
        .lines()
        .filter(|line| line.ends_with(" -."))
        .count();
    assert_eq!(at_once, 2, "{}", logged());
}

#[test]
fn the_first_in_the_queue_is_the_first_out() {
    let origin = Origin::new();
    let group = format!("server 127.0.0.1:{} max_conns=1; queue 3;", origin.port());
    let server = server(1, &group);
    let mut clients = vec![asking(&server, "/0")];
    let mut held = origin.next();
    for number in 1..=3 {
        clients.push(asking(&server, &format!("/{number}")));
        wait_for_queue(&server, number);
    }
    for number in 1..=3 {
        held.answer();
        held = origin.next();
        let line = format!("GET /{number} ");
        assert!(held.head.starts_with(&line), "{}", held.head);
    }
    held.answer();
    for mut client in clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_full_queue_refuses_and_a_client_that_leaves_makes_room() {
    let origin = Origin::new();
    let group = format!("server 127.0.0.1:{} max_conns=1; queue 1;", origin.port());
    let server = server(1, &group);
    let mut first = asking(&server, "/first");
    let held = origin.next();
    let impatient = asking(&server, "/impatient");
    wait_for_queue(&server, 1);
    assert_eq!(asking(&server, "/third").response().status, 502);
    server.wait_for_log("error.log", "upstream queue is full while ");
    let refused = "turnpike_upstream_queue_refused_total{upstream=\"u\"} 1\n";
    assert!(server.get("/metrics").text().contains(refused));
    drop(impatient);
    server.wait_for_log(
        "error.log",
        "closed connection before an upstream server had room",
    );
    wait_for_queue(&server, 0);
    let mut patient = asking(&server, "/patient");
    wait_for_queue(&server, 1);
    held.answer();
    let held = origin.next();
    assert!(held.head.starts_with("GET /patient "), "{}", held.head);
    held.answer();
    assert_eq!(first.response().status, 200);
    assert_eq!(patient.response().status, 200);
    server.wait_for_log("access.log", "/impatient 499 ");
}

#[test]
fn the_wait_in_the_queue_ends() {
    let origin = Origin::new();
    let group = format!(
        "server 127.0.0.1:{} max_conns=1; queue 5 timeout=20ms;",
        origin.port()
    );
    let server = server(1, &group);
    let mut first = asking(&server, "/first");
    let held = origin.next();
    assert_eq!(asking(&server, "/second").response().status, 502);
    server.wait_for_log(
        "error.log",
        "no live upstreams while connecting to upstream, client: 127.0.0.1",
    );
    server.wait_for_log("access.log", "/second 502 u 0.");
    held.answer();
    assert_eq!(first.response().status, 200);
}

/// The statuses of 20 requests to a group of a server that refuses connections and of one that
/// answers.
fn retried(server: &Server) -> Vec<u16> {
    (0..20).map(|_| server.get("/").status).collect()
}

#[test]
fn retries_of_sessions_end_with_the_budget() {
    let refused_port = RefusedPort::new().unwrap();
    let origin = Origin::new();
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        stream {{
            upstream u {{
                server 127.0.0.1:{} max_fails=0; server 127.0.0.1:{} max_fails=0;
                retry_budget 0% min=2;
            }}
            server {{ listen 127.0.0.1:%PORT%; proxy_pass u; }}
        }}",
        refused_port.number(),
        origin.port()
    );
    thread::spawn(move || {
        loop {
            origin.next().answer();
        }
    });
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    let is_refused = |_: &usize| server.exchange("GET / HTTP/1.0\r\n\r\n").is_empty();
    let refused = (0..20).filter(is_refused).count();
    assert!((1..=10).contains(&refused), "{refused} of 20");
    server.wait_for_log("error.log", "retry budget of upstream \"u\" is used up");
}

#[test]
fn retries_end_with_the_budget() {
    let refused_port = RefusedPort::new().unwrap();
    let origin = Origin::new();
    let group = format!(
        "server 127.0.0.1:{} max_fails=0; server 127.0.0.1:{} max_fails=0;",
        refused_port.number(),
        origin.port()
    );
    thread::spawn(move || {
        loop {
            origin.next().answer();
        }
    });
    let unlimited = server(1, &group);
    assert_eq!(retried(&unlimited), [200; 20]);
    let limited = server(1, &format!("{group} retry_budget 0% min=2;"));
    let statuses = retried(&limited);
    let failed = statuses.iter().filter(|status| **status == 502).count();
    assert!((1..=10).contains(&failed), "{statuses:?}");
    limited.wait_for_log(
        "error.log",
        "retry budget of upstream \"u\" is used up while ",
    );
    let count = format!("turnpike_upstream_retries_refused_total{{upstream=\"u\"}} {failed}\n");
    let metrics = limited.get("/metrics").text();
    assert!(metrics.contains(&count), "{metrics}");
}

#[test]
fn a_client_that_leaves_a_slow_response_frees_its_place() {
    let origin = Origin::new();
    let group = format!("server 127.0.0.1:{} max_conns=1;", origin.port());
    let server = server(
        1,
        &format!("{group} }} proxy_limit_rate 1; map $uri $none {{"),
    );
    let client = asking(&server, "/first");
    let mut held = origin.next();
    // So much with the head, at a rate of a byte in a second, holds up what follows for an hour.
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_vec();
    answer.resize(4000, b'x');
    held.stream.write_all(&answer).unwrap();
    client.stream().read_exact(&mut [0; 4000]).unwrap();
    drop(client);
    server.wait_for_log("error.log", "client prematurely closed connection");
    let _second = asking(&server, "/second");
    assert!(origin.next().head.starts_with("GET /second "));
}
