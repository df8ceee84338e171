//! Tests of `stream` over UDP: a client's datagrams, and flows through reloads, changes of the
//! lanes and changes of the binary.
//!
//! `TURNPIKE_TEST_ROUNDS` makes the runs longer: each round has ten reloads, each with other lanes,
//! and ten reloads and a change of the binary. `make stream-long` asks for ten rounds.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support;
use crate::support::daemon::{Daemon, rounds};
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::tracer::Tracer;
use turnpike_testkit::{Server, Signal, wait_for};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// The wait for datagrams that must not come.
const SILENCE: Duration = Duration::from_millis(100);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn client(port: u16) -> UdpSocket {
    let client = socket();
    client.connect(("127.0.0.1", port)).unwrap();
    client
}

fn receive(client: &UdpSocket) -> String {
    let mut answer = vec![0; 65_536];
    let count = client.recv(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

fn ask(client: &UdpSocket, question: &str) -> String {
    client.send(question.as_bytes()).unwrap();
    receive(client)
}

fn is_silent(client: &UdpSocket) -> bool {
    client.set_read_timeout(Some(SILENCE)).unwrap();
    let silent = client.recv(&mut [0; 64]).is_err();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    silent
}

/// An origin that answers each datagram with its source port and text; if it begins with a number,
/// that many times.
fn origin() -> u16 {
    let origin = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut datagram = vec![0; 65_536];
        loop {
            let (count, peer) = origin.recv_from(&mut datagram).unwrap();
            let text = String::from_utf8_lossy(&datagram[..count]).into_owned();
            let times = text.split(' ').next().and_then(|word| word.parse().ok());
            for _ in 0..times.unwrap_or(1) {
                let answer = format!("{} {text}", peer.port());
                origin.send_to(answer.as_bytes(), peer).unwrap();
            }
        }
    });
    port
}

/// Servers with one function each. `%ORIGIN%` is the port of [`origin`], `%NOBODY%` a port without
/// a listener.
const SERVERS: &str = "worker_processes 2; error_log %FOLDER%/error.log info;
    events { worker_connections 64; }
    stream {
        log_format line '$protocol $status $bytes_received $bytes_sent $upstream_bytes_sent '
            '$upstream_bytes_received $server_port';
        access_log %FOLDER%/access.log line;
        limit_conn_zone $binary_remote_addr zone=each:32k;
        proxy_timeout 60s;
        upstream both { server 127.0.0.1:%NOBODY%; server 127.0.0.1:%ORIGIN%; }
        server { listen 127.0.0.1:%PORT_TEXT% udp; return '$protocol $remote_port'; }
        server { listen %PORT_ANY% udp; listen [::]:%PORT_ANY% udp; return $server_addr; }
        server { listen 127.0.0.1:%PORT_DENY% udp; deny all; return no; }
        server {
            listen 127.0.0.1:%PORT_ONE% udp reuseport;
            limit_conn each 1;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_HEAD% udp;
            proxy_protocol on;
            proxy_requests 1;
            proxy_responses 1;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_COUNT% udp;
            proxy_responses 3;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server { listen 127.0.0.1:%PORT_BOTH% udp; proxy_responses 1; proxy_pass both; }
        server {
            listen 127.0.0.1:%PORT_IDLE% udp;
            proxy_timeout 100ms;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_DEAF% udp;
            proxy_timeout 100ms;
            proxy_responses 2;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
    }";

/// A port that refuses datagrams as long as the tests run.
static NOBODY: LazyLock<RefusedPort> = LazyLock::new(|| RefusedPort::of_datagrams().unwrap());

fn start() -> Server {
    let text = SERVERS.replace("%ORIGIN%", &origin().to_string());
    let text = text.replace("%NOBODY%", &NOBODY.number().to_string());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start()
}

#[test]
fn servers_answer_pass_on_and_refuse_as_configured() {
    let server = start();
    let at = |name: &str| client(server.port_named(name));
    let text = at("TEXT");
    let own = text.local_addr().unwrap().port();
    for _ in 0..3 {
        assert_eq!(ask(&text, "?"), format!("UDP {own}"));
    }
    let any = server.port_named("ANY");
    for address in ["127.0.0.1", "127.0.0.7", "::1"] {
        let local = if address.contains(':') {
            "[::1]:0"
        } else {
            "127.0.0.1:0"
        };
        let socket = UdpSocket::bind(local).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // A connected socket accepts an answer only from that address.
        socket.connect((address, any)).unwrap();
        assert_eq!(ask(&socket, "?"), address);
    }
    let deny = at("DENY");
    deny.send(b"?").unwrap();
    server.wait_for_log("error.log", "access forbidden by rule, client: 127.0.0.1");
    let (first, second) = (at("ONE"), at("ONE"));
    let answer = ask(&first, "a");
    second.send(b"b").unwrap();
    server.wait_for_log("error.log", "limiting connections by zone \"each\"");
    assert_eq!(ask(&first, "a"), answer, "the same session");
    assert!(is_silent(&second));
    let head = at("HEAD");
    let (own, port) = (head.local_addr().unwrap().port(), server.port_named("HEAD"));
    let header = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {own} {port}\r\nhello");
    let answers: BTreeSet<String> = (0..2).map(|_| ask(&head, "hello")).collect();
    assert_eq!(answers.len(), 2, "a session each");
    assert!(
        answers.iter().all(|answer| answer.ends_with(&header)),
        "{answers:?}"
    );
    let count = at("COUNT");
    let answer = ask(&count, "3 times");
    assert_eq!([receive(&count), receive(&count)], [answer.clone(), answer]);
    server.wait_for_log("error.log", "udp done, packets from/to client:1/3");
    let large = "x".repeat(60_000);
    assert!(ask(&at("IDLE"), &large).ends_with(&large));
    assert!(ask(&at("IDLE"), "").ends_with(' '), "an empty one");
    server.wait_for_log(
        "access.log",
        &format!(
            "UDP 200 60000 60006 60000 60006 {}",
            server.port_named("IDLE")
        ),
    );
    ask(&at("DEAF"), "once");
    server.wait_for_log("access.log", "UDP 502 4 ");
    server.wait_for_log(
        "error.log",
        "upstream timed out (110: Connection timed out)",
    );
}

#[test]
fn version_2_of_the_proxy_header_says_udp() {
    let origin = socket();
    let port = origin.local_addr().unwrap().port();
    let text = format!(
        "events {{ }}
        stream {{
            proxy_protocol v2;
            map $protocol $origin {{ UDP {port}; }}
            server {{ listen 127.0.0.1:%PORT_FIXED% udp; proxy_pass 127.0.0.1:{port}; }}
            server {{ listen 127.0.0.1:%PORT_NAMED% udp; proxy_pass 127.0.0.1:$origin; }}
        }}"
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    for name in ["FIXED", "NAMED"] {
        let client = client(server.port_named(name));
        client.send(b"hello").unwrap();
        // Version 2 and PROXY, UDP over IPv4, 12 bytes of addresses and ports, and a checksum.
        let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x13".to_vec();
        expected.extend([127, 0, 0, 1].repeat(2));
        expected.extend(client.local_addr().unwrap().port().to_be_bytes());
        expected.extend(server.port_named(name).to_be_bytes());
        expected.extend([3, 0, 4]);
        let mut datagram = [0; 64];
        let count = origin.recv(&mut datagram).unwrap();
        let (header, behind) = datagram[..count].split_at(expected.len());
        assert_eq!(header, expected, "{name}");
        assert_eq!(&behind[4..], b"hello", "{name}");
    }
}

#[test]
fn connections_of_quic_stay_with_their_server() {
    let origins = [socket(), socket()];
    let ports = origins
        .each_ref()
        .map(|origin| origin.local_addr().unwrap().port());
    let text = |lanes: usize| {
        format!(
            "worker_processes {lanes};
            events {{ }}
            stream {{
                upstream both {{ server 127.0.0.1:{}; server 127.0.0.1:{}; }}
                server {{
                    listen 127.0.0.1:%PORT_BOUND% udp;
                    ssl_preread on;
                    proxy_pass both;
                }}
                server {{ listen 127.0.0.1:%PORT_FREE% udp; proxy_pass both; }}
            }}",
            ports[0], ports[1]
        )
    };
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text(1))
        .start();
    // The servers say who they are, and give themselves an ID.
    for (origin, id) in origins.iter().zip([*b"server-0", *b"server-1"]) {
        let origin = origin.try_clone().unwrap();
        thread::spawn(move || {
            let mut asked = [0; 64];
            while let Ok((_, from)) = origin.recv_from(&mut asked) {
                let answer = [&[0xc0, 0, 0, 0, 1, 1, b'c', 8][..], &id].concat();
                origin.send_to(&answer, from).unwrap();
            }
        });
    }
    let ask = |server: &Server, port: &str, datagram: &[u8]| {
        let client = client(server.port_named(port));
        client.send(datagram).unwrap();
        let mut answer = [0; 64];
        let count = client.recv(&mut answer).unwrap();
        answer[8..count].to_vec()
    };
    let initial = [0xc0, 0, 0, 0, 1, 4, 9, 9, 9, 9, 1, b'c', 0];
    let id = ask(&server, "BOUND", &initial);
    let short = [&[0x40], id.as_slice(), b"..."].concat();
    for _ in 0..6 {
        assert_eq!(ask(&server, "BOUND", &short), id);
    }
    let others: Vec<_> = (0..2).map(|_| ask(&server, "FREE", &short)).collect();
    assert_ne!(others[0], others[1], "nothing leads to the server");
    server.write_configuration(&text(2));
    server.signal(Signal::SIGHUP);
    for _ in 0..6 {
        assert_eq!(ask(&server, "BOUND", &short), id);
    }
}

#[test]
fn a_server_that_refuses_is_skipped_by_the_next_sessions() {
    let server = start();
    let port = server.port_named("BOTH");
    let asked: Vec<UdpSocket> = (0..2).map(|_| client(port)).collect();
    for client in &asked {
        client.send(b"?").unwrap();
    }
    server.wait_for_log("error.log", "failed (111: Connection refused)");
    server.wait_for_log("error.log", "upstream server temporarily disabled");
    for _ in 0..10 {
        assert!(ask(&client(port), "x").ends_with(" x"));
    }
}

/// Has the lane's socket towards clients refuse sends: the first send of a session goes to the
/// server, and each answer is one more.
fn with_full_gate(when: &str, name: &str) -> (Server, Tracer, UdpSocket) {
    let server = start();
    let pid = server.serving_pids()[0];
    let tracer = Tracer::failing(
        &server,
        pid,
        &format!("sendmsg:error=EAGAIN:when={when}:syscall=getpid"),
    );
    let client = client(server.port_named(name));
    client.send(b"question").unwrap();
    (server, tracer.unwrap(), client)
}

#[test]
fn answers_wait_for_a_full_socket() {
    // Where the session is over with its answer, and where nobody knows.
    for name in ["HEAD", "ONE"] {
        let (_server, _tracer, client) = with_full_gate("2", name);
        let answer = receive(&client);
        assert!(answer.ends_with("question"), "{name}: {answer}");
    }
}

#[test]
fn answers_that_a_full_socket_never_takes_are_not_counted() {
    let (server, tracer, client) = with_full_gate("2+", "HEAD");
    server.wait_for_log("error.log", "sendmsg() failed (11: ");
    drop(tracer);
    assert!(is_silent(&client));
    server.wait_for_log("access.log", "UDP 200 8 0 ");
}

#[test]
fn sessions_are_limited_by_the_lanes_connections() {
    let text = format!(
        "worker_processes 1; error_log %FOLDER%/error.log info;
        events {{ worker_connections 8; }}
        stream {{ server {{ listen 127.0.0.1:%PORT% udp; proxy_pass 127.0.0.1:{}; }} }}",
        origin()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    let clients: Vec<UdpSocket> = (0..8).map(|_| client(server.port())).collect();
    let answers: Vec<String> = clients.iter().map(|client| ask(client, "in")).collect();
    let late = client(server.port());
    late.send(b"late").unwrap();
    server.wait_for_log("error.log", "worker_connections are not enough");
    assert!(is_silent(&late));
    for (client, answer) in clients.iter().zip(&answers) {
        assert_eq!(&ask(client, "in"), answer, "who is in stays in");
    }
}

/// Clients that each send requests until they are stopped, in one flow or in flows that follow each
/// other.
struct Flows {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    /// Each returns the source addresses at the origin of its last flow.
    clients: Vec<JoinHandle<BTreeSet<String>>>,
}

impl Flows {
    /// `requests`: how many a flow has. Each comes from one address at the origin.
    fn start(ports: &[u16], requests: usize) -> Flows {
        let (stop, answered) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let ports = ports.iter().cycle().take(12);
        let clients = ports.map(|&port| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || {
                let mut sources = BTreeSet::new();
                while !stop.load(Ordering::Relaxed) {
                    sources = flow(port, requests, &stop, &answered);
                    assert_eq!(sources.len(), 1, "a flow broke: {sources:?}");
                }
                sources
            })
        });
        Flows {
            clients: clients.collect(),
            stop,
            answered,
        }
    }

    /// Waits until all have got a few more answers.
    fn go_on(&self) {
        let until = self.answered.load(Ordering::Relaxed) + 60;
        let went_on = || {
            let has_failed = self.clients.iter().any(JoinHandle::is_finished);
            assert!(!has_failed, "a flow broke");
            (self.answered.load(Ordering::Relaxed) >= until).then_some(())
        };
        wait_for(went_on).expect("answers");
    }

    fn finish(self) -> Vec<BTreeSet<String>> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    }
}

/// Sends so many requests from one socket, fewer where it is stopped; returns the source addresses
/// at the origin.
fn flow(port: u16, requests: usize, stop: &AtomicBool, answered: &AtomicU64) -> BTreeSet<String> {
    let client = client(port);
    let mut sources = BTreeSet::new();
    for number in 0..requests {
        let question = format!("n{number}");
        let answer = ask(&client, &question);
        let (source, text) = answer.split_once(' ').unwrap();
        assert_eq!(text, question);
        sources.insert(source.to_owned());
        answered.fetch_add(1, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    sources
}

#[test]
fn a_flow_stays_whole_through_reloads_and_changes_of_the_lanes() {
    let origin = origin();
    let text = |lanes: usize| {
        format!(
            "worker_processes {lanes}; error_log %FOLDER%/error.log notice; events {{ }}
            stream {{
                server {{ listen 127.0.0.1:%PORT_ONE% udp; proxy_pass 127.0.0.1:{origin}; }}
                server {{
                    listen 127.0.0.1:%PORT_EACH% udp reuseport;
                    proxy_pass 127.0.0.1:{origin};
                }}
            }}"
        )
    };
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text(2))
        .start();
    let ports = ["ONE", "EACH"].map(|name| server.port_named(name));
    let flows = Flows::start(&ports, usize::MAX);
    flows.go_on();
    for reload in 1..=10 * rounds().unwrap_or(2) {
        server.write_configuration(&text([1, 2, 3][reload % 3]));
        server.signal(Signal::SIGHUP);
        let done = || {
            (server
                .log("error.log")
                .matches("reloaded: generation")
                .count()
                >= reload)
                .then_some(())
        };
        wait_for(done).expect("a reload");
        flows.go_on();
    }
    for sources in flows.finish() {
        assert_eq!(sources.len(), 1, "one session each: {sources:?}");
    }
    let log = server.log("error.log");
    assert!(!log.contains("[alert]") && !log.contains("[crit]"), "{log}");
}

/// The requests of a flow that ends by itself. A new binary waits for the last flow of the old one.
const REQUESTS: usize = 200;

#[test]
fn no_flow_breaks_when_configuration_and_binary_change() {
    let (origin, one, each) = (origin(), free_port(), free_port());
    let main = format!(
        "stream {{
            proxy_timeout 60s;
            proxy_requests {REQUESTS};
            proxy_responses 1;
            server {{ listen 127.0.0.1:{one} udp; proxy_pass 127.0.0.1:{origin}; }}
            server {{ listen 127.0.0.1:{each} udp reuseport; proxy_pass 127.0.0.1:{origin}; }}
        }}"
    );
    let daemon = Daemon::start_as("", "", &main);
    let flows = Flows::start(&[one, each], REQUESTS);
    flows.go_on();
    let (changes, reloads) = rounds().map_or((2, 1), |rounds| (rounds, 10));
    daemon.reload_and_upgrade(changes, reloads, || flows.go_on());
    flows.finish();
    daemon.assert_no_alert();
}

#[test]
fn a_flow_ends_in_the_process_where_it_began() {
    let (origin, port) = (origin(), free_port());
    // The second server needs a future, as it has a rate.
    let limited = free_port();
    let main = format!(
        "stream {{
            proxy_timeout 60s;
            proxy_requests 3;
            proxy_responses 1;
            server {{ listen {port} udp; proxy_pass 127.0.0.1:{origin}; }}
            server {{
                listen 127.0.0.1:{limited} udp reuseport;
                proxy_upload_rate 1m;
                proxy_pass 127.0.0.1:{origin};
            }}
        }}"
    );
    let daemon = Daemon::start_as("", "", &main);
    let clients = [port, limited].map(client);
    let source = |client: &UdpSocket| {
        let answer = ask(client, "x");
        answer.split_once(' ').unwrap().0.to_owned()
    };
    let first = clients.each_ref().map(source);
    let old = daemon.master();
    daemon.upgrade(&[]).unwrap();
    for _ in 0..2 {
        assert_eq!(clients.each_ref().map(source), first, "in the old process");
    }
    // The flows are over, and with them the old process.
    let next = clients.each_ref().map(source);
    assert_ne!(next, first);
    wait_for(|| (!support::is_running(old)).then_some(())).expect("the old one to end");
    assert_eq!(clients.each_ref().map(source), next, "in the new process");
    daemon.assert_no_alert();
}

#[test]
fn a_flow_outlives_a_reload_that_needs_another_process() {
    let origin = origin();
    let text = |environment: &str| {
        format!(
            "worker_processes 2; error_log %FOLDER%/error.log notice; {environment}
            events {{ }}
            stream {{
                proxy_requests 3;
                proxy_responses 1;
                server {{ listen 127.0.0.1:%PORT% udp reuseport; proxy_pass 127.0.0.1:{origin}; }}
            }}"
        )
    };
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text(""))
        .start();
    let client = client(server.port());
    let first = ask(&client, "x");
    let before = server.serving_pids();
    server.write_configuration(&text("env ANOTHER=1;"));
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "reloaded: generation");
    let both = [&client; 2].map(|client| ask(client, "x"));
    assert_eq!(both, [first.clone(), first.clone()], "in the old process");
    // The flow is over, and with it the old process. Before that, its lanes may not have heard yet
    // that they are to read no more, and begin another flow.
    let is_alone = || {
        let now = server.serving_pids();
        (now.len() == 1 && now != before).then_some(())
    };
    wait_for(is_alone).expect("the old one to end");
    assert_ne!(ask(&client, "x"), first, "in the new process");
    let log = server.log("error.log");
    assert!(!log.contains("[alert]") && !log.contains("[crit]"), "{log}");
}

/// An address of loopback that no other test binds.
const OWN_ADDRESS: &str = "127.83.7.1";

/// How the listen is written, and what else stands in the configuration without it.
const REMOVED: &[(&str, &str)] = &[
    ("udp", ""),
    ("udp reuseport", ""),
    // Another process is needed.
    ("udp", "env ANOTHER=1;"),
    ("udp reuseport", "env ANOTHER=1;"),
];

/// Has the server serve a configuration.
fn reload(server: &mut Server, text: &str) {
    let count = |server: &Server| server.log("error.log").matches("reloaded: gen").count();
    let before = count(server);
    server.write_configuration(text);
    server.signal(Signal::SIGHUP);
    wait_for(|| (count(server) > before).then_some(()))
        .unwrap_or_else(|| panic!("no reload: {}", server.log("error.log")));
}

/// Sends a datagram until the origin has it; returns where the origin was asked from.
fn reaches(client: &UdpSocket, origin: &UdpSocket, text: &[u8]) -> SocketAddr {
    let mut got = [0; 64];
    let asked = wait_for(|| {
        client.send(text).unwrap();
        match origin.recv_from(&mut got) {
            Ok((count, peer)) if &got[..count] == text => Some(peer),
            _ => None,
        }
    });
    asked.unwrap_or_else(|| panic!("{} does not come", String::from_utf8_lossy(text)))
}

#[test]
fn a_port_that_is_removed_while_flows_live_can_be_added_again() {
    for (listen, without) in REMOVED {
        let case = format!("{listen} {without}");
        let origin = UdpSocket::bind("127.0.0.1:0").unwrap();
        origin.set_read_timeout(Some(SILENCE)).unwrap();
        let to = origin.local_addr().unwrap();
        let text = |more: &str, listen: &str| {
            format!(
                "worker_processes 2; error_log %FOLDER%/error.log notice; {more}
                events {{ }}
                stream {{
                    proxy_responses 1;
                    server {{ listen 127.0.0.1:%PORT%; return here; }}
                    {listen}
                }}"
            )
        };
        let listen =
            format!("server {{ listen {OWN_ADDRESS}:%PORT_UDP% {listen}; proxy_pass {to}; }}");
        let (with, without) = (text("", &listen), text(without, ""));
        let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&with)
            .start();
        let address = (OWN_ADDRESS, server.port_named("UDP"));
        let client = socket();
        client.connect(address).unwrap();
        let session = reaches(&client, &origin, b"first");
        reload(&mut server, &without);
        assert!(UdpSocket::bind(address).is_err(), "{case}: a flow has it");
        reload(&mut server, &with);
        assert_eq!(reaches(&client, &origin, b"second"), session, "{case}");
        reload(&mut server, &without);
        // The last answer ends the flow, whatever was sent twice.
        let closed = wait_for(|| {
            origin.send_to(b"answer", session).unwrap();
            UdpSocket::bind(address).ok()
        });
        drop(closed.unwrap_or_else(|| panic!("{case}: the port is not given up")));
        reload(&mut server, &with);
        reaches(&client, &origin, b"third");
        let log = server.log("error.log");
        assert!(
            !log.contains("[emerg]") && !log.contains("[alert]"),
            "{case}: {log}"
        );
    }
}

fn free_port() -> u16 {
    let address: SocketAddr = socket().local_addr().unwrap();
    address.port()
}
