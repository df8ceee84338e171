//! What connections of HTTP/3 outlive.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use turnpike_testkit::{Server, Signal, needs_root};

use super::{SERVED, builder, configuration, start};
use crate::support::http3::{Client, has_client};
use crate::support::tls::{big, keys};
use crate::support::turnpike;

/// The time after which a packet without an answer is sent again.
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The same of a client that knows no round trip yet, and a little more.
const SENT_AGAIN_AT_FIRST_AFTER: Duration = Duration::from_millis(1_200);

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
fn connections_outlive_a_listen_that_is_removed_and_added_again() {
    if !has_client("connections_outlive_a_listen_that_is_removed_and_added_again") {
        return;
    }
    let keys = keys();
    let mut server = start(&keys, SERVED);
    // So many that a socket which nobody reads would get some of their packets.
    let mut clients = asked(&server, 3);
    let with = configuration(&keys, SERVED);
    let without: Vec<&str> = with
        .lines()
        .filter(|line| !line.contains(" quic"))
        .collect();
    for (number, text) in [&without.join("\n"), &with].into_iter().enumerate() {
        server.write_configuration(text);
        server.signal(Signal::SIGHUP);
        server.wait_for_log("error.log", &format!("reloaded: generation {}", number + 2));
    }
    for client in &mut clients {
        assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    }
    let log = server.log("error.log");
    assert!(!log.contains("[emerg]"), "{log}");
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
fn packets_of_clients_that_move_are_steered_to_their_lane() {
    const TEST: &str = "packets_of_clients_that_move_are_steered_to_their_lane";
    if needs_root(TEST, "CAP_BPF") || !has_client(TEST) {
        return;
    }
    let keys = keys();
    let server = builder(&keys, SERVED).own_name().start();
    let mut clients = asked(&server, 3);
    let before = status(&server);
    move_each(&mut clients);
    let after = status(&server);
    let address = format!("127.0.0.1:{}", server.port());
    assert_eq!(after["steering"][&address], "program", "{after}");
    // First flights may have come to another lane than the rest, which waited for a CPU.
    assert_eq!(forwarded(&after), forwarded(&before), "{after}");
}

#[test]
fn packets_of_clients_that_move_are_forwarded_without_the_program() {
    if !has_client("packets_of_clients_that_move_are_forwarded_without_the_program") {
        return;
    }
    let keys = keys();
    let server = builder(&keys, SERVED);
    let server = server.own_name().command(without_bpf).start();
    let mut clients = asked(&server, 3);
    move_each(&mut clients);
    let after = status(&server);
    let address = format!("127.0.0.1:{}", server.port());
    assert_eq!(after["steering"][&address], "hash", "{after}");
    assert!(forwarded(&after) > 0, "{after}");
}

/// So many clients, whose handshakes are complete.
fn asked(server: &Server, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| Client::start(server, &[])).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    }
    clients
}

/// Has clients ask from other ports, so often that the kernel's hash names each lane.
fn move_each(clients: &mut [Client]) {
    for client in clients {
        for _ in 0..8 {
            client.tell("rebind");
            assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
        }
    }
}

/// Has a server not be permitted what the steering program needs.
fn without_bpf(command: &mut Command) {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut other = Command::new("setpriv");
    other
        .arg("--bounding-set=-bpf,-perfmon,-sys_admin")
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    *command = other;
}

/// What the serving process says of itself.
fn status(server: &Server) -> Value {
    let socket = server.folder().join("pid.control");
    let output = turnpike(&["status", "--json", "--socket", socket.to_str().unwrap()]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["serving"].clone()
}

/// The datagrams that lanes have given to each other.
fn forwarded(status: &Value) -> u64 {
    let total = &status["totals"]["quic_datagrams_forwarded"];
    total.as_u64().unwrap()
}

#[test]
fn clients_are_told_to_go_at_the_end() {
    if !has_client("clients_are_told_to_go_at_the_end") {
        return;
    }
    let keys = keys();
    let mut server = start(&keys, SERVED);
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask("begin /limited"), "begun");
    server.signal(Signal::SIGQUIT);
    // An answer that is under way comes to its end.
    let answered = client.ask("end");
    assert!(answered.starts_with("200 1000000 "), "{answered}");
    assert_eq!(client.ask("wait"), "closed 0x100");
    assert!(server.wait().success());
}

#[test]
fn answers_that_were_written_arrive_before_the_end() {
    if !has_client("answers_that_were_written_arrive_before_the_end") {
        return;
    }
    let keys = keys();
    let answer = &big()[..60_000];
    let mut server = builder(&keys, SERVED).file("html/part.bin", answer).start();
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
    assert_eq!(client.ask("deaf /part.bin"), "deaf");
    server.wait_for_log("seen.log", " 60000 ");
    server.signal(Signal::SIGQUIT);
    // Longer than a connection without a request is kept then.
    std::thread::sleep(2 * SENT_AGAIN_AT_FIRST_AFTER);
    client.tell("hear");
    let answered = client.ask("end");
    assert!(answered.starts_with("200 60000 "), "{answered}");
    assert_eq!(client.ask("wait"), "closed 0x100");
    assert!(server.wait().success());
}

#[test]
fn clients_that_have_asked_for_nothing_yet_are_waited_for_at_the_end() {
    if !has_client("clients_that_have_asked_for_nothing_yet_are_waited_for_at_the_end") {
        return;
    }
    let keys = keys();
    let mut server = start(&keys, SERVED);
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask("ping"), "pong");
    server.signal(Signal::SIGQUIT);
    // What the client sends first may be lost, and is sent again after a second.
    std::thread::sleep(SENT_AGAIN_AT_FIRST_AFTER);
    assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
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
    for length in [60, 100, 1200] {
        let count = answer_to(server.port(), &[], &of_nobody(length)).len();
        assert!(count < length, "{count} for {length}");
    }
    // Of these none is: the answer is that of the last packet.
    let quiet = [of_nobody(20), vec![0xc0; 40], vec![0x40; 5], Vec::new()];
    // Another version is answered by a list of those that are spoken.
    let mut other = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    other.resize(1200, 0);
    let answer = answer_to(server.port(), &quiet, &other);
    assert_eq!(answer[1..5], [0; 4], "{answer:?}");
    assert!(answer.len() < 50, "{answer:?}");
}

/// A packet of a connection that there is not.
fn of_nobody(length: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..length).map(|at| at as u8).collect();
    packet[0] = 0x40;
    packet
}

/// The token of the stateless reset that answers a packet.
fn reset_token(port: u16, packet: &[u8]) -> Vec<u8> {
    let answer = answer_to(port, &[], packet);
    answer[answer.len() - 16..].to_vec()
}

/// The answer to the last packet, which comes after quiet ones. They are sent until there is one:
/// no process may be there just now.
fn answer_to(port: u16, quiet: &[Vec<u8>], last: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(SENT_AGAIN_AFTER)).unwrap();
    let answer = turnpike_testkit::wait_for(|| {
        for packet in quiet.iter().map(Vec::as_slice).chain([last]) {
            socket.send(packet).ok()?;
        }
        let mut answer = vec![0; 2048];
        let count = socket.recv(&mut answer).ok()?;
        answer.truncate(count);
        Some(answer)
    });
    answer.expect("an answer")
}
