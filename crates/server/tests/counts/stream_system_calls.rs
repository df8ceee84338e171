//! Tests of the number of system calls of a session of `stream`: the numbers are the same on every
//! machine.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use crate::support::echo::echo;
use turnpike_testkit::Server;
use turnpike_testkit::tracer::Tracer;

const ROUNDS: usize = 50;

/// The rounds before the count: buffers grow.
const WARM_UP_ROUNDS: usize = 5;

/// Calls that happen once a turn of the lane, and the standard library's check of a descriptor that
/// it closes, which only builds for tests have.
const TURNS: &[&str] = &["epoll_wait", "accept4, nobody there", "fcntl"];

/// What a short connection takes besides its bytes.
const OPENED_AND_CLOSED: &[(&str, f64)] = &[
    ("accept4", 1.0),
    ("socket", 1.0),
    ("connect", 1.0),
    ("epoll_ctl", 2.0),
    ("close", 2.0),
];

const GREETING: &[u8] = b"220 ready\r\n";

/// An origin that speaks first, and waits for the end.
fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            client.write_all(GREETING).unwrap();
            let _ = client.read(&mut [0; 8]);
        }
    });
    port
}

/// An origin that sends back each datagram.
fn datagram_echo() -> u16 {
    let origin = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut datagram = vec![0; 2048];
        loop {
            let (count, peer) = origin.recv_from(&mut datagram).unwrap();
            origin.send_to(&datagram[..count], peer).unwrap();
        }
    });
    port
}

fn server() -> Server {
    let (bytes, datagrams, first) = (echo(), datagram_echo(), greeter());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            error_log %FOLDER%/error.log;
            events {{ }}
            stream {{
                server {{ listen 127.0.0.1:%PORT_TCP%; proxy_pass 127.0.0.1:{bytes}; }}
                server {{ listen 127.0.0.1:%PORT_FIRST%; proxy_pass 127.0.0.1:{first}; }}
                server {{ listen 127.0.0.1:%PORT_UDP% udp; proxy_pass 127.0.0.1:{datagrams}; }}
                server {{
                    listen 127.0.0.1:%PORT_ONCE% udp;
                    proxy_responses 1;
                    proxy_pass 127.0.0.1:{datagrams};
                }}
            }}"
        ))
        .start()
}

/// The calls of each name per round.
fn calls_of(server: &Server, mut round: impl FnMut()) -> BTreeMap<String, f64> {
    (0..WARM_UP_ROUNDS).for_each(|_| round());
    let tracer = Tracer::attach(server, server.serving_pids()[0]).unwrap();
    (0..ROUNDS).for_each(|_| round());
    let calls = tracer.end().unwrap();
    let each = |(name, count): (String, u64)| (name, count as f64 / ROUNDS as f64);
    calls.into_iter().map(each).collect()
}

/// Asserts the numbers of these calls, and that there are no others but those of each turn.
fn assert_calls(calls: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, wanted) in expected {
        let count = calls.get(*name).copied().unwrap_or_default();
        assert!((count - wanted).abs() <= 0.1, "{name}: {calls:?}");
    }
    let is_expected = |name: &str| expected.iter().any(|(other, _)| *other == name);
    let others = calls
        .iter()
        .filter(|(name, _)| !is_expected(name) && !TURNS.contains(&name.as_str()));
    let others: f64 = others.map(|(_, count)| count).sum();
    assert!(others <= 0.1, "{calls:?}");
}

fn exchange(client: &mut TcpStream) {
    let mut answer = [0; 100];
    client.write_all(&[b'x'; 100]).unwrap();
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [b'x'; 100]);
}

fn ask(client: &UdpSocket) {
    client.send(&[b'x'; 100]).unwrap();
    assert_eq!(client.recv(&mut [0; 200]).unwrap(), 100);
}

#[test]
fn a_short_connection_is_opened_watched_and_closed_once_at_each_end() {
    let server = server();
    let calls = calls_of(&server, || {
        let mut client = TcpStream::connect(("127.0.0.1", server.port_named("TCP"))).unwrap();
        exchange(&mut client);
        // Its end is seen only when the session has been closed.
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    });
    // What the client has sent when it is accepted leaves with the handshake's last packet. Where
    // it is later, its socket is read once more, or twice.
    let early = calls.get("setsockopt").copied().unwrap_or_default();
    let reads = 4.0 - early - 0.1..=5.0 - 2.0 * early + 0.1;
    assert!(reads.contains(&calls["recvfrom"]), "{calls:?}");
    let expected = [
        ("setsockopt", early.min(1.0)),
        ("recvfrom", calls["recvfrom"]),
        ("sendto", 3.0),
    ];
    assert_calls(&calls, &[OPENED_AND_CLOSED, &expected].concat());
}

#[test]
fn a_server_that_speaks_first_need_not_wait_for_the_handshake() {
    let server = server();
    let calls = calls_of(&server, || {
        let mut client = TcpStream::connect(("127.0.0.1", server.port_named("FIRST"))).unwrap();
        client.read_exact(&mut [0; GREETING.len()]).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    });
    // No "setsockopt": the acknowledgement of the handshake does not wait for the client's bytes.
    let expected = [("recvfrom", 4.0), ("sendto", 2.0)];
    assert_calls(&calls, &[OPENED_AND_CLOSED, &expected].concat());
}

#[test]
fn bytes_both_ways_on_an_open_connection_take_two_receives_and_two_sends() {
    let server = server();
    let mut client = TcpStream::connect(("127.0.0.1", server.port_named("TCP"))).unwrap();
    let calls = calls_of(&server, || exchange(&mut client));
    assert_calls(&calls, &[("recvfrom", 2.0), ("sendto", 2.0)]);
}

#[test]
fn a_datagram_and_its_answer_take_two_receives_and_two_sends() {
    let server = server();
    let bind = || {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client
            .set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .unwrap();
        client
    };
    let client = bind();
    client
        .connect(("127.0.0.1", server.port_named("UDP")))
        .unwrap();
    let calls = calls_of(&server, || ask(&client));
    assert_calls(&calls, &[("recvmmsg", 2.0), ("sendmsg", 2.0)]);
    let once = bind();
    once.connect(("127.0.0.1", server.port_named("ONCE")))
        .unwrap();
    let calls = calls_of(&server, || ask(&once));
    let expected = [
        ("recvmmsg", 2.0),
        ("sendmsg", 2.0),
        ("socket", 1.0),
        ("connect", 1.0),
        ("epoll_ctl", 1.0),
        ("close", 1.0),
    ];
    assert_calls(&calls, &expected);
}
