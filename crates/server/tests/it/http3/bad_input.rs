//! Datagrams that no client sends: random ones, and flights of real clients that are cut, put in
//! another order, sent twice, changed, or sent again from another address. A seed decides them. An
//! innocent client beside them is always served, and nobody is sent more than three times what came
//! from an address that was not proved (RFC 9000 section 8.1).

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::process::Command;

use turnpike_testkit::python::AIOQUIC;
use turnpike_testkit::random::Random;
use turnpike_testkit::{Folder, Server};

use super::start;
use crate::support::daemon::rounds;
use crate::support::http3::Client;
use crate::support::tls::keys;

const FLIGHTS: &str = include_str!("flights.py");

/// Real connections whose flights are changed.
const CONNECTIONS: &str = "32";

const SEED: u64 = 9000;

/// Datagrams of a round.
const DATAGRAMS: usize = 20_000;

/// Senders whose answers are awaited at a time.
const SENDERS_MAX: usize = 256;

/// Cases between two requests of the innocent client.
const CASES_BETWEEN: usize = 500;

/// Bytes of a connection ID of ours.
const ID_BYTES: usize = 12;

/// Certificates behind the server's own: with them it has more to send than it may.
const CHAIN: usize = 12;

const SERVER: &str = "server {
    listen 127.0.0.1:%PORT% quic reuseport;
    ssl_certificate %KEYS%/chain.pem;
    ssl_certificate_key %KEYS%/ec.key;
    root %FOLDER%/html;
}";

/// A datagram.
type Datagram = Vec<u8>;

/// The datagrams of real clients, one list for each connection.
fn flights(python: &std::path::Path, server: &Server) -> Vec<Vec<Datagram>> {
    let output = Command::new(python)
        .args(["-c", FLIGHTS, &server.port().to_string(), CONNECTIONS])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let datagram = |hex: &str| {
        let digits = hex.as_bytes().chunks(2);
        let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap());
        bytes.collect::<Datagram>()
    };
    let flights = text.lines();
    let flights = flights.map(|line| line.split(',').map(datagram).collect());
    let flights: Vec<Vec<Datagram>> = flights.collect();
    let lengths: Vec<usize> = flights.iter().map(Vec::len).collect();
    assert!(lengths.iter().all(|length| *length >= 3), "{lengths:?}");
    flights
}

/// The server's certificate, and others that nobody looks at.
fn chain(keys: &Folder) -> String {
    let read = |name| std::fs::read_to_string(keys.path().join(name)).unwrap();
    read("ec.pem") + &read("rsa.pem").repeat(CHAIN)
}

fn random_bytes(random: &mut Random, count: usize) -> Datagram {
    (0..count).map(|_| random.number() as u8).collect()
}

/// A client's first datagram with a token of somebody else's making.
fn with_token(first: &Datagram, random: &mut Random) -> Datagram {
    let source_at = 6 + usize::from(first[5]);
    let token_at = source_at + 1 + usize::from(first[source_at]);
    let count = random.index(60);
    let mut forged = first[..token_at].to_vec();
    forged.push(count as u8);
    forged.extend(random_bytes(random, count));
    forged.extend_from_slice(&first[token_at + 1..]);
    forged
}

/// What one sender sends.
fn case(flights: &[Vec<Datagram>], random: &mut Random) -> Vec<Datagram> {
    let flight = &flights[random.index(flights.len())];
    let first_bytes = [0x40, 0x5f, 0x80, 0xc0, 0xc3, 0xd0, 0xe0, 0xf0, 0xff];
    let versions = [0, 1, 0x6b33_43cf, 0x1a2a_3a4a, 0xff00_001d, u32::MAX];
    match random.below(9) {
        0 => {
            let count = random.index(1500);
            let mut datagram = random_bytes(random, count);
            if let Some(first) = datagram.first_mut() {
                *first = random.pick(&first_bytes);
            }
            vec![datagram]
        }
        // A short header with an ID as ours have it, of a connection that is not there.
        1 => {
            let count = 1 + ID_BYTES + random.index(100);
            let mut datagram = random_bytes(random, count);
            datagram[0] = 0x40 | datagram[0] & 0x3f;
            vec![datagram]
        }
        2 => {
            let cut = |datagram: &Datagram| datagram[..datagram.len() / 2].to_vec();
            flight.iter().map(cut).collect()
        }
        3 => {
            let mut shuffled = flight.clone();
            for at in (1..shuffled.len()).rev() {
                shuffled.swap(at, random.index(at + 1));
            }
            let twice = shuffled[random.index(shuffled.len())].clone();
            shuffled.push(twice);
            shuffled
        }
        4 => {
            let mut changed = flight.clone();
            for datagram in &mut changed {
                for _ in 0..=random.index(8) {
                    let at = random.index(datagram.len());
                    datagram[at] ^= 1 << random.index(8);
                }
            }
            changed
        }
        // Another ID: the packet's keys are no longer those of its ID.
        5 => {
            let mut forged = flight[0].clone();
            let id = random_bytes(random, 8);
            forged[6..14].copy_from_slice(&id);
            vec![forged]
        }
        6 => vec![with_token(&flight[0], random)],
        7 => {
            let mut other = flight.clone();
            let version = random.pick(&versions).to_be_bytes();
            for datagram in other.iter_mut().filter(|datagram| datagram[0] >= 0x80) {
                datagram[1..5].copy_from_slice(&version);
            }
            other
        }
        // The beginning or the whole, once more and from here.
        _ => flight[..=random.index(flight.len())].to_vec(),
    }
}

/// A sender, and the bytes that it has sent.
struct Sender {
    socket: UdpSocket,
    sent_bytes: usize,
}

impl Sender {
    fn send(server: &Server, datagrams: &[Datagram]) -> Sender {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port())).unwrap();
        socket.set_nonblocking(true).unwrap();
        for datagram in datagrams {
            socket.send(datagram).unwrap();
        }
        Sender {
            socket,
            sent_bytes: datagrams.iter().map(Vec::len).sum(),
        }
    }

    /// Checks what has come back.
    fn end(&self, number: usize) -> usize {
        let mut received_bytes = 0;
        let mut room = [0; 2048];
        while let Ok(count) = self.socket.recv(&mut room) {
            received_bytes += count;
        }
        let limit = 3 * self.sent_bytes;
        assert!(
            received_bytes <= limit,
            "case {number} of seed {SEED}: {received_bytes} bytes for {}",
            self.sent_bytes
        );
        received_bytes
    }
}

#[test]
fn datagrams_of_no_client_harm_nobody() {
    let Some(python) = AIOQUIC.python("datagrams_of_no_client_harm_nobody") else {
        return;
    };
    let keys = keys();
    keys.write("chain.pem", chain(&keys)).unwrap();
    let server = start(&keys, SERVER);
    let serving = server.serving_pids();
    let flights = flights(&python, &server);
    let mut innocent = Client::start(&server, &[]);
    let mut random = Random::new(SEED);
    let mut senders = VecDeque::new();
    let (mut sent, mut number, mut answered) = (0, 0, 0);
    while sent < rounds().unwrap_or(1) * DATAGRAMS {
        let datagrams = case(&flights, &mut random);
        sent += datagrams.len();
        senders.push_back((number, Sender::send(&server, &datagrams)));
        if senders.len() > SENDERS_MAX
            && let Some((number, sender)) = senders.pop_front()
        {
            answered += usize::from(sender.end(number) > 0);
        }
        number += 1;
        if number % CASES_BETWEEN == 0 {
            assert_eq!(innocent.ask("GET /a.txt").trim_end(), "200 5 hello");
        }
    }
    for (number, sender) in &senders {
        answered += usize::from(sender.end(*number) > 0);
    }
    // Some of them are as good as real ones.
    assert!(answered > number / 20, "{answered} of {number} answered");
    let mut late = Client::start(&server, &[]);
    assert_eq!(late.ask("GET /a.txt").trim_end(), "200 5 hello");
    assert_eq!(server.serving_pids(), serving);
    let log = server.log("error.log");
    for word in ["[alert]", "[emerg]", "[crit]", "panic"] {
        assert!(!log.contains(word), "{log}");
    }
}
