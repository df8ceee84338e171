//! Tests of the program by packets (BPF_PROG_TEST_RUN): crafted segments in, verdicts and segments
//! out. Nothing is attached to any interface.

#![allow(clippy::unwrap_used)]

mod cookie;
mod cost;
mod frame;
mod judged;
mod samples;
mod twin;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use turnpike_lane::sys::process::monotonic_ns;
use turnpike_testkit::needs_root;

use crate::{Answer, Derivation, Gate, Key, Memory, Program, Published, Publisher};
use crate::{Source, Withdrawn};
use frame::{ACK, FIN, Frame, PUSH, RST, SYN};

/// Verdicts of XDP programs (linux/bpf.h).
const DROP: u32 = 1;
const PASS: u32 = 2;
const TRANSMIT: u32 = 3;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// How often packets are sent again that must follow each other at once: a loaded machine may hold
/// up some of the tries.
const TRIES_MAX: usize = 100;

/// A gate of any address.
fn gate_at(port: u16, answers: bool) -> Gate {
    let address = ([0, 0, 0, 0], port).into();
    Gate { address, answers }
}

/// A loaded program with one answer.
struct Driver {
    program: Program,
    memory: Memory,
    generation: u64,
}

impl Driver {
    fn new() -> Driver {
        Driver::with_room(64)
    }

    /// A driver with room for that many answers.
    fn with_room(objects: usize) -> Driver {
        let program = Program::load(objects).unwrap();
        let arrays = program.arrays();
        let memory = Memory::map(arrays.each_ref().map(|array| array.as_fd())).unwrap();
        let generation = memory.begin(&[gate_at(80, true)], true);
        let driver = Driver {
            program,
            memory,
            generation,
        };
        for gate in ["10.0.0.1:80", "[fd00::1]:80"] {
            driver.publish(gate.parse().unwrap(), "x", "/a", ANSWER);
        }
        driver
    }

    /// Drops a client under the configuration in force.
    fn drop_client(&self, client: IpAddr, until_ns: u64) {
        let generation = self.memory.generation();
        self.memory.drop_client(generation, client, until_ns);
    }

    /// A publisher of a configuration that expects no answers.
    fn publisher(&self) -> Arc<Publisher> {
        let arrays = self.program.arrays();
        let memory = Memory::map(arrays.each_ref().map(|array| array.as_fd())).unwrap();
        Publisher::new(Arc::new(memory))
    }

    fn publish(&self, gate: SocketAddr, host: &str, target: &str, bytes: &[u8]) {
        self.publish_as(false, gate, (host, target), bytes);
    }

    fn publish_as(&self, is_head: bool, gate: SocketAddr, asked: (&str, &str), bytes: &[u8]) {
        let published = self.publish_from(None, is_head, gate, asked, bytes);
        assert_eq!(published, Published::Yes);
    }

    fn publish_from(
        &self,
        derivation: Option<Derivation>,
        is_head: bool,
        gate: SocketAddr,
        asked: (&str, &str),
        bytes: &[u8],
    ) -> Published {
        let key = Key {
            gate,
            host: asked.0.as_bytes(),
            target: asked.1.as_bytes(),
            is_head,
        };
        let answer = Answer {
            derivation,
            ..self.answer(bytes)
        };
        self.memory.publish(key, answer)
    }

    fn answer<'a>(&self, bytes: &'a [u8]) -> Answer<'a> {
        Answer {
            bytes,
            expires_ns: monotonic_ns() + 3_600_000_000_000,
            generation: self.generation,
            closes_kept: false,
            is_uncoded: false,
            derivation: None,
            sampled_one_in: 0,
            note: 0,
        }
    }

    fn run(&self, frame: &Frame) -> (u32, Frame) {
        let (verdict, bytes) = self.program.run_on(&frame.bytes());
        (verdict, Frame::parse(&bytes))
    }

    /// Begins a connection: the segment with which the client goes on.
    fn connect(&self, syn: Frame) -> Frame {
        let (verdict, answer) = self.run(&syn);
        assert_eq!(verdict, TRANSMIT);
        syn.after(&answer)
    }

    /// The counter of that name.
    fn count(&self, name: &str) -> u64 {
        let mut counts = self.memory.counts();
        counts.find(|(row, _)| row.name == name).unwrap().1
    }

    /// What becomes of a request on a new connection.
    fn ask(&self, syn: Frame, request: &str) -> (u32, Frame) {
        let first = self.connect(syn);
        self.run(&first.with_text(request))
    }
}

/// A driver, unless this process may have none.
fn driver(test: &str) -> Option<Driver> {
    (!needs_root(test, "CAP_BPF")).then(Driver::new)
}

#[test]
fn packets_of_a_whole_connection() {
    let Some(driver) = driver("packets_of_a_whole_connection") else {
        return;
    };
    for syn in [
        Frame::syn_v4(),
        Frame::syn_v6(),
        Frame::syn_v4().with_vlan(1),
        Frame::syn_v6().with_vlan(2),
        Frame::syn_v4().with_options(&frame::LINUX_OPTIONS),
        Frame::syn_v6().with_options(&frame::LINUX_OPTIONS),
    ] {
        let (verdict, answer) = driver.run(&syn);
        assert_eq!((verdict, answer.flags), (TRANSMIT, SYN | ACK), "{syn:?}");
        assert!(answer.checksums_are_right(), "{answer:?}");
        assert_eq!(answer.acknowledgement, syn.sequence + 1);
        assert_eq!(answer.options.len(), syn.options.len());
        let first = syn.after(&answer);
        assert_eq!(driver.run(&first).0, DROP);
        let request = first.with_text(REQUEST);
        let (verdict, answer) = driver.run(&request);
        assert_eq!(verdict, TRANSMIT, "{syn:?}");
        assert_eq!(answer.text, ANSWER);
        assert_eq!(answer.flags, FIN | ACK | PUSH);
        assert_eq!(answer.sequence, request.acknowledgement);
        assert_eq!(
            answer.acknowledgement,
            request.sequence + REQUEST.len() as u32
        );
        assert!(answer.checksums_are_right(), "{answer:?}");
        // The client repeats its request, and is answered again.
        assert_eq!(driver.run(&request).1.text, ANSWER);
        let last = request.after(&answer);
        assert_eq!(driver.run(&last).0, DROP);
        let (verdict, answer) = driver.run(&last.with_flags(FIN | ACK));
        assert_eq!((verdict, answer.flags), (TRANSMIT, ACK));
        assert_eq!(answer.acknowledgement, last.sequence + 1);
        assert!(answer.checksums_are_right(), "{answer:?}");
    }
}

/// Requests, and the counter of the reason for which they are left to the lanes.
const PASSED: &[(&str, &str)] = &[
    ("POST /a HTTP/1.1\r\nHost: x\r\n\r\n", "refused_method"),
    ("\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n", "refused_method"),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "refused_method"),
    ("GET a HTTP/1.1\r\nHost: x\r\n\r\n", "refused_target"),
    (
        "GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n",
        "refused_target",
    ),
    ("GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", "refused_target"),
    ("GET /a\\b HTTP/1.1\r\nHost: x\r\n\r\n", "refused_target"),
    ("GET /\u{e9} HTTP/1.1\r\nHost: x\r\n\r\n", "refused_target"),
    ("GET /a\tHTTP/1.1\r\nHost: x\r\n\r\n", "refused_target"),
    ("GET /a HTTP/1.2\r\nHost: x\r\n\r\n", "refused_version"),
    ("GET /a HTTP/1.1\nHost: x\n\n", "refused_version"),
    ("GET /a  HTTP/1.1\r\nHost: x\r\n\r\n", "refused_version"),
    ("GET /a\r\n", "refused_target"),
    ("GET /a HTTP/1.1\r\n\r\n", "refused_host"),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "refused_host",
    ),
    ("GET /a HTTP/1.1\r\nHost:\r\n\r\n", "refused_host"),
    ("GET /a HTTP/1.1\r\nHost: x\r\n", "refused_incomplete"),
    ("GET /a HTTP/1.1\r\nHost: x\r", "refused_incomplete"),
    ("GET /a HTTP/1.1\r\nHost: x", "refused_incomplete"),
    ("GET /a HTTP/1.1\r\nHost: x\r\n\r\nG", "refused_pipelined"),
    ("GET /a HTTP/1.1\r\nHost : x\r\n\r\n", "refused_malformed"),
    ("GET /a HTTP/1.1\r\n Host: x\r\n\r\n", "refused_malformed"),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
        "refused_malformed",
    ),
    ("GET /a HTTP/1.1\r\nHost:  x\r\n\r\n", "refused_malformed"),
    ("GET /a HTTP/1.1\r\nHost: x \r\n\r\n", "refused_malformed"),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\na_b: c\r\n\r\n",
        "refused_malformed",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\n: c\r\n\r\n",
        "refused_malformed",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\na: \u{e9}\r\n\r\n",
        "refused_malformed",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\na: b\tc\r\n\r\n",
        "refused_malformed",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\na: b\nc: d\r\n\r\n",
        "refused_malformed",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nif-none-match: *\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nIF-MODIFIED-SINCE: a\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YQ==\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close, te\r\n\r\n",
        "refused_field",
    ),
    (
        "GET /a HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
        "refused_field",
    ),
    ("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "miss_kept_alive"),
    ("GET /b HTTP/1.0\r\nHost: x\r\n\r\n", "miss_key"),
    ("GET /a?b HTTP/1.0\r\nHost: x\r\n\r\n", "miss_key"),
    ("GET /A HTTP/1.0\r\nHost: x\r\n\r\n", "miss_key"),
    ("GET /a HTTP/1.0\r\nHost: y\r\n\r\n", "miss_key"),
    ("HEAD /a HTTP/1.0\r\nHost: x\r\n\r\n", "miss_key"),
];

#[test]
fn packets_with_odd_requests_are_passed_unchanged() {
    let Some(driver) = driver("packets_with_odd_requests_are_passed_unchanged") else {
        return;
    };
    for (request, counter) in PASSED {
        let first = driver.connect(Frame::syn_v4()).with_text(request);
        let before = driver.count(counter);
        let (verdict, bytes) = driver.program.run_on(&first.bytes());
        assert_eq!(verdict, PASS, "{request:?}");
        assert_eq!(bytes, first.bytes(), "{request:?}");
        assert_eq!(driver.count(counter), before + 1, "{request:?}");
    }
}

/// Requests that are plain however they are written.
const ANSWERED: &[&str] = &[
    REQUEST,
    "GET /a HTTP/1.0\r\nHost: x\r\n\r\n",
    "GET /a HTTP/1.1\r\nhOsT:x\r\ncOnNeCtIoN:CLOSE\r\n\r\n",
    "GET /a HTTP/1.1\r\nUser-Agent: a: b; c\r\nAccept: */*\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET /a HTTP/1.1\r\nAccept-Encoding: gzip\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: x\r\nA-Name-Of-More-Than-24-Letters-9: \r\nConnection: close\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: x\r\nIf-Match-: a\r\nX: \r\nY:\r\nConnection: close\r\n\r\n",
];

#[test]
fn packets_with_plain_requests_are_answered() {
    let Some(driver) = driver("packets_with_plain_requests_are_answered") else {
        return;
    };
    for request in ANSWERED {
        let (verdict, answer) = driver.ask(Frame::syn_v4(), request);
        assert_eq!(verdict, TRANSMIT, "{request:?}");
        assert_eq!(answer.text, ANSWER, "{request:?}");
    }
    let padded = format!(
        "GET /a HTTP/1.0\r\nHost: x\r\nX: {}\r\n\r\n",
        "p".repeat(1380)
    );
    assert_eq!(driver.ask(Frame::syn_v4(), &padded).1.text, ANSWER);
    let cut = &padded[..padded.len() - 1];
    assert_eq!(driver.ask(Frame::syn_v4(), cut).0, PASS);
}

#[test]
fn packets_that_are_not_ours_are_passed() {
    let Some(driver) = driver("packets_that_are_not_ours_are_passed") else {
        return;
    };
    let first = driver.connect(Frame::syn_v4());
    let request = first.with_text(REQUEST);
    let mut cases = vec![
        ("another port", Frame::syn_v4().with_port(81)),
        ("a reset", first.with_flags(RST | ACK)),
        ("a SYN with a FIN", Frame::syn_v4().with_flags(SYN | FIN)),
        ("no maximum segment size", Frame::syn_v4().with_options(&[])),
        ("a small one", Frame::syn_v4().with_options(&[2, 4, 0, 100])),
        (
            "a broken option",
            Frame::syn_v4().with_options(&[2, 4, 5, 180, 3, 0, 1, 1]),
        ),
        ("text in a SYN", Frame::syn_v4().with_text("GET")),
        (
            "another cookie",
            request.with_acknowledgement(request.acknowledgement ^ 0x1000_0000),
        ),
        ("another client", request.with_source_port(4001)),
        ("an urgent one", request.with_flags(ACK | PUSH | 0x20)),
        ("other options", request.with_options(&[1, 1, 1, 1])),
        ("a closed window", request.with_window(3)),
    ];
    cases.push(("a fragment", request.with_fragment(0x2000)));
    cases.push(("the last fragment", request.with_fragment(0x0010)));
    cases.push(("another protocol", request.with_protocol(17)));
    cases.push(("damaged text", request.damaged()));
    cases.push(("a damaged header", request.with_damaged_header()));
    cases.push(("that of a SYN", Frame::syn_v4().with_damaged_header()));
    for (case, frame) in cases {
        let (verdict, bytes) = driver.program.run_on(&frame.bytes());
        assert_eq!(verdict, PASS, "{case}");
        assert_eq!(bytes, frame.bytes(), "{case}");
    }
    assert_eq!(driver.run(&request).0, TRANSMIT);
}

#[test]
fn packets_behind_a_passed_request_are_passed_too() {
    let Some(driver) = driver("packets_behind_a_passed_request_are_passed_too") else {
        return;
    };
    // The kernel may not have a socket for it yet: whatever comes next is not ours to answer.
    let first = driver.connect(Frame::syn_v4().with_source_port(4003));
    let fin = |text: &str| {
        let mut fin = first.with_flags(FIN | ACK);
        fin.sequence += text.len() as u32;
        fin
    };
    assert_eq!(driver.run(&fin(REQUEST)).0, TRANSMIT);
    let half = &REQUEST[..20];
    // The program forgets after one to two seconds, by the same clock.
    let was_at_once = (0..TRIES_MAX).any(|_| {
        let start_ns = monotonic_ns();
        assert_eq!(driver.run(&first.with_text(half)).0, PASS);
        let (verdict, _) = driver.run(&fin(half));
        let is_at_once = monotonic_ns() - start_ns < 500_000_000;
        assert!(!is_at_once || verdict == PASS, "{verdict}");
        is_at_once
    });
    assert!(was_at_once, "the machine is too slow for this test");
    let other = driver.connect(Frame::syn_v4().with_source_port(4004));
    assert_eq!(driver.run(&other.with_flags(FIN | ACK)).0, TRANSMIT);
}

#[test]
fn packets_of_kept_out_clients_are_dropped_until_their_time_is_over() {
    let test = "packets_of_kept_out_clients_are_dropped_until_their_time_is_over";
    let Some(driver) = driver(test) else {
        return;
    };
    driver
        .memory
        .begin(&[gate_at(80, true), gate_at(443, false)], true);
    let syns = [Frame::syn_v4(), Frame::syn_v6()];
    let clients = ["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
    let later_ns = monotonic_ns() + 3_600_000_000_000;
    for (syn, client) in syns.into_iter().zip(clients) {
        let first = driver.connect(syn.clone());
        let verdicts = || {
            let silent = syn.clone().with_port(443);
            let other = syn.clone().with_port(81);
            [&syn, &silent, &other, &first, &first.with_flags(RST)].map(|frame| driver.run(frame).0)
        };
        assert_eq!(verdicts(), [TRANSMIT, PASS, PASS, DROP, PASS]);
        driver.drop_client(client, monotonic_ns());
        assert_eq!(verdicts(), [TRANSMIT, PASS, PASS, DROP, PASS]);
        assert_eq!(driver.memory.dropped_clients(), 0);
        driver.drop_client(client, later_ns);
        assert_eq!(verdicts(), [DROP, DROP, PASS, DROP, DROP]);
        assert_eq!(driver.memory.dropped_clients(), 1);
        assert_eq!(driver.run(&syn.with_neighbour()).0, TRANSMIT);
        driver
            .memory
            .begin(&[gate_at(80, true), gate_at(443, false)], true);
        assert_eq!(verdicts(), [TRANSMIT, PASS, PASS, DROP, PASS]);
    }
    assert_eq!(driver.count("dropped_client"), 8);
}

#[test]
fn clients_that_are_kept_out_make_room_for_others() {
    let Some(driver) = driver("clients_that_are_kept_out_make_room_for_others") else {
        return;
    };
    let now_ns = monotonic_ns();
    let client = |number: u32| std::net::Ipv4Addr::from_bits(0x0a01_0000 + number).into();
    // More than there is room for: the last ones, whose time is over last, stay.
    for number in 0..100_000 {
        let until_ns = now_ns + 3_600_000_000_000 + u64::from(number);
        driver.drop_client(client(number), until_ns);
    }
    let dropped = driver.memory.dropped_clients();
    assert!(dropped > 16_000 && dropped <= 16_384, "{dropped}");
}

#[test]
fn clients_are_dropped_by_the_configuration_in_force_alone() {
    let Some(driver) = driver("clients_are_dropped_by_the_configuration_in_force_alone") else {
        return;
    };
    let [before, after] = [driver.publisher(), driver.publisher()];
    let later_ns = monotonic_ns() + 3_600_000_000_000;
    let drop_by = |publisher: &Publisher| {
        publisher.drop_client("10.0.0.2".parse().unwrap(), later_ns);
        let is_dropped = driver.run(&Frame::syn_v4()).0 == DROP;
        (is_dropped, driver.memory.dropped_clients())
    };
    before.begin(&[gate_at(80, true)]);
    assert_eq!(drop_by(&after), (false, 0));
    assert_eq!(drop_by(&before), (true, 1));
    after.begin(&[gate_at(80, true)]);
    assert_eq!(drop_by(&before), (false, 0));
    assert_eq!(drop_by(&after), (true, 1));
    after.end();
    assert_eq!(driver.memory.dropped_clients(), 0);
    assert_eq!(drop_by(&after), (false, 0));
}

#[test]
fn packets_find_nothing_once_it_is_withdrawn() {
    let Some(driver) = driver("packets_find_nothing_once_it_is_withdrawn") else {
        return;
    };
    let ask = || driver.ask(Frame::syn_v4(), REQUEST).0;
    assert_eq!(ask(), TRANSMIT);
    driver.memory.withdraw_all();
    assert_eq!(ask(), PASS);
    let gate = "10.0.0.1:80".parse().unwrap();
    driver.publish(gate, "x", "/a", ANSWER);
    assert_eq!(ask(), TRANSMIT);
    driver.memory.begin(&[gate_at(80, true)], true);
    assert_eq!(ask(), PASS);
    let first = driver.connect(Frame::syn_v4());
    driver.memory.turn_off();
    assert_eq!(driver.run(&first.with_text(REQUEST)).0, PASS);
    assert_eq!(driver.run(&Frame::syn_v4()).0, PASS);
}

/// What is withdrawn, and whether what was made from the item `a` of the store `s` goes with it.
const WITHDRAWALS: &[(Withdrawn<'_>, bool)] = &[
    (Withdrawn::Item(b"s", b"a"), true),
    (Withdrawn::Item(b"s", b"b"), false),
    (Withdrawn::Item(b"t", b"a"), false),
    (Withdrawn::Store(b"t"), false),
    (Withdrawn::Store(b"s"), true),
];

#[test]
fn packets_find_nothing_once_what_it_was_made_from_has_changed() {
    let test = "packets_find_nothing_once_what_it_was_made_from_has_changed";
    let Some(driver) = driver(test) else {
        return;
    };
    let gate: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let publish = |withdrawals, bytes| {
        let source = Source::new(b"s", b"a");
        let derivation = Some(Derivation {
            source,
            withdrawals,
        });
        driver.publish_from(derivation, false, gate, ("x", "/a"), bytes)
    };
    let ask = || driver.ask(Frame::syn_v4(), REQUEST);
    for (withdrawn, goes) in WITHDRAWALS {
        let before = driver.memory.withdrawals();
        assert_eq!(publish(before, ANSWER), Published::Yes, "{withdrawn:?}");
        assert_eq!(publish(before, ANSWER), Published::Already, "{withdrawn:?}");
        assert_eq!(ask().0, TRANSMIT, "{withdrawn:?}");
        driver.memory.withdraw(*withdrawn);
        assert_eq!(ask().0 == PASS, *goes, "{withdrawn:?}");
        // It was made before: nobody knows whether from what has changed.
        assert_eq!(
            publish(before, b"old"),
            Published::Withdrawn,
            "{withdrawn:?}"
        );
        assert_eq!(ask().0 == PASS, *goes, "{withdrawn:?}");
        driver.memory.withdraw_all();
    }
}

#[test]
fn an_answer_that_makes_room_is_counted() {
    let Some(driver) = driver("an_answer_that_makes_room_is_counted") else {
        return;
    };
    let gate: SocketAddr = "10.0.0.1:80".parse().unwrap();
    assert_eq!(driver.memory.size_bytes(), 64 * 2048);
    for number in 0..200 {
        driver.publish(gate, "x", &format!("/{number}"), ANSWER);
    }
    // Two were there before.
    let published = driver.memory.published() as u64;
    assert!(published <= 64, "{published}");
    assert_eq!(driver.memory.evicted(), 202 - published);
}

#[test]
fn packets_of_a_begun_connection_are_no_strangers_once_nothing_is_answered() {
    let test = "packets_of_a_begun_connection_are_no_strangers_once_nothing_is_answered";
    let Some(driver) = driver(test) else {
        return;
    };
    let first = driver.connect(Frame::syn_v4().with_source_port(4005));
    driver.publisher().begin(&[gate_at(80, true)]);
    // The kernel would answer an acknowledgement of its own with RST: it knows no connection yet.
    assert_eq!(driver.run(&first).0, DROP);
    assert_eq!(driver.run(&first.with_text(REQUEST)).0, PASS);
    assert_eq!(driver.run(&Frame::syn_v4()).0, PASS);
}

#[test]
fn packets_are_judged_by_the_sizes_of_answers() {
    let Some(driver) = driver("packets_are_judged_by_the_sizes_of_answers") else {
        return;
    };
    let gate: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let bytes: Vec<u8> = (0..1460).map(|number| b'a' + (number % 26) as u8).collect();
    for size in [1, 2, 3, 7, 8, 9, 535, 536, 537, 1219, 1448, 1460] {
        let target = format!("/{size}");
        driver.publish(gate, "x", &target, &bytes[..size]);
        let request = format!("GET {target} HTTP/1.0\r\nHost: x\r\n\r\n");
        let (verdict, answer) = driver.ask(Frame::syn_v4(), &request);
        assert_eq!((verdict, answer.text.len()), (TRANSMIT, size));
        assert_eq!(answer.text, bytes[..size]);
        assert!(answer.checksums_are_right(), "{size}");
        let small = Frame::syn_v4().with_options(&[2, 4, 2, 24]);
        let (verdict, _) = driver.ask(small, &request);
        assert_eq!(verdict == TRANSMIT, size <= 536, "{size}");
        let linux = Frame::syn_v4().with_options(&frame::LINUX_OPTIONS);
        let (verdict, _) = driver.ask(linux, &request);
        assert_eq!(verdict == TRANSMIT, size <= 1448, "{size}");
    }
}
