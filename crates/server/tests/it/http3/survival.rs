//! What connections of HTTP/3 outlive.

use std::net::UdpSocket;

use turnpike_testkit::Signal;

use super::{SERVED, configuration, start};
use crate::support::http3::{Client, has_client};
use crate::support::tls::keys;

#[test]
fn connections_outlive_reloads_and_changes_of_lanes() {
    if !has_client("connections_outlive_reloads_and_changes_of_lanes") {
        return;
    }
    let keys = keys();
    let mut server = start(&keys, SERVED);
    let mut clients: Vec<_> = (0..4).map(|_| Client::start(&server, &[])).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    }
    let first = configuration(&keys, SERVED);
    for (number, lanes) in [2, 4, 1, 3].into_iter().enumerate() {
        let text = first.replace("worker_processes 2", &format!("worker_processes {lanes}"));
        server.write_configuration(&text);
        server.signal(Signal::SIGHUP);
        let generation = format!("serving with configuration {}", number + 2);
        server.wait_for_log("error.log", &generation);
        for client in &mut clients {
            assert_eq!(
                client.ask("GET /a.txt").trim_end(),
                "200 5 hello",
                "{lanes} lanes"
            );
        }
        let mut fresh = Client::start(&server, &[]);
        assert_eq!(fresh.ask("many 10 /proxied/a.txt"), "10 200 5 hello");
    }
}

#[test]
fn clients_that_move_stay_connected() {
    if !has_client("clients_that_move_stay_connected") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let mut client = Client::start(&server, &[]);
    for change in ["ping", "rebind", "keys", "ids", "rebind", "ids"] {
        client.tell(change);
        if change == "ping" {
            assert_eq!(client.line(), "pong");
        }
        let answered = client.ask("GET /a.txt");
        assert_eq!(answered.trim_end(), "200 5 hello", "{change}");
        let answered = client.ask("POST /proxied/length 300000");
        assert_eq!(answered.trim_end(), "200 11 POST 300000", "{change}");
    }
}

#[test]
fn clients_are_told_to_go_at_the_end() {
    if !has_client("clients_are_told_to_go_at_the_end") {
        return;
    }
    let keys = keys();
    let mut server = start(&keys, SERVED);
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    server.signal(Signal::SIGQUIT);
    // An answer that is under way comes to its end.
    let answered = client.ask("GET /limited");
    assert!(answered.starts_with("200 1000000 "), "{answered}");
    assert_eq!(client.ask("wait"), "closed 0x100");
    assert!(server.wait().success());
}

#[test]
fn a_crash_costs_its_connections_alone() {
    if !has_client("a_crash_costs_its_connections_alone") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let lost = of_nobody(100);
    let before = reset_token(server.port(), &lost);
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    let serving = server.serving_pids()[0];
    assert!(turnpike_testkit::process::signal(serving, Signal::SIGKILL));
    let mut fresh = Client::start(&server, &[]);
    assert_eq!(fresh.ask("GET /a.txt").trim_end(), "200 5 hello");
    // A client knows by the token that its connection is no more.
    assert_eq!(reset_token(server.port(), &lost), before);
}

#[test]
fn what_belongs_to_nobody_is_answered_by_less_or_not_at_all() {
    let keys = keys();
    let server = start(&keys, SERVED);
    let socket = client_of(server.port());
    let mut answer = [0; 2048];
    for length in [60, 100, 1200] {
        socket.send(&of_nobody(length)).unwrap();
        let count = socket.recv(&mut answer).unwrap();
        assert!(count < length, "{count} for {length}");
    }
    // Of these none is: the next answer is that of the last packet.
    for quiet in [of_nobody(20), vec![0xc0; 40], vec![0x40; 5], Vec::new()] {
        socket.send(&quiet).unwrap();
    }
    // Another version is answered by a list of those that are spoken.
    let mut other = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    other.resize(1200, 0);
    socket.send(&other).unwrap();
    let count = socket.recv(&mut answer).unwrap();
    assert_eq!(answer[1..5], [0; 4], "{:?}", &answer[..count]);
    assert!(count < 50, "{count}");
}

/// A packet of a connection that there is not.
fn of_nobody(length: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..length).map(|at| at as u8).collect();
    packet[0] = 0x40;
    packet
}

fn client_of(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket
        .set_read_timeout(Some(turnpike_testkit::DEADLINE))
        .unwrap();
    socket
}

/// The token of the stateless reset that answers a packet.
fn reset_token(port: u16, packet: &[u8]) -> Vec<u8> {
    let socket = client_of(port);
    let mut answer = [0; 2048];
    loop {
        socket.send(packet).unwrap();
        // No process may be there to answer just now.
        if let Ok(count) = socket.recv(&mut answer) {
            return answer[count - 16..count].to_vec();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
