//! Tests of the express lane end to end: a pair of virtual interfaces between two network
//! namespaces, the server in one, foreign and plain clients in the other.

mod cache;
mod handover;
mod veth;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::support::daemon::rounds;
use crate::support::express::{ask, join, metric, tested, under_load};
use crate::support::wait_for;
use turnpike_testkit::network::{Network, SERVER_V4, SERVER_V6};
use turnpike_testkit::raw_tcp::{ACK, PSH, RawTcp, Segment};
use turnpike_testkit::requests::{Request, requests};
use turnpike_testkit::{Peer, Server, Signal};

/// The body that curl gets.
fn curl(network: &Network, port: u16, target: &str, more: &[&str]) -> String {
    let url = format!("http://{SERVER_V4}:{port}{target}");
    let output: Output = network.on_client(|| {
        Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "30", &url])
            .args(more)
            .output()
            .unwrap()
    });
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

const CLOSE: [&str; 2] = ["--header", "Connection: close"];

fn configuration(express: &str) -> String {
    format!(
        "events {{ }}
         http {{
             access_log off;
             express_interface s0;
             express_mode generic;
             server {{
                 listen %PORT%;
                 listen [::]:%PORT%;
                 root %FOLDER%/html;
                 location / {{ express {express}; }}
                 location /hello {{ express {express}; return 200 hello; }}
                 location /agent {{ express {express}; return 200 $http_user_agent; }}
                 location /metrics {{ metrics; }}
             }}
         }}"
    )
}

fn start(express: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration(express))
        .file("html/a.txt", "first")
        .file("html/large.txt", "x".repeat(2000))
        .start()
}

/// The same, with other words about where the program runs.
fn with_mode(mode: &str) -> Server {
    let text = configuration("on").replace("express_mode generic;", mode);
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!("error_log %FOLDER%/error.log notice; {text}"))
        .start()
}

/// Waits until the server has said so, in its log or before it had one.
fn wait_for_words(server: &Server, words: &str) {
    wait_for(words, || {
        (server.output() + &server.log("error.log")).contains(words)
    });
}

const ANSWERED_SYN: &str = "turnpike_express_segments_total{outcome=\"syn_answered\"}";

/// Requests that the driver has answered.
fn hits(server: &Server) -> u64 {
    metric(server, "turnpike_express_requests")
}

#[test]
fn a_test_of_the_configuration_says_that_it_would_not_work() {
    // Without the privilege, that is what is said.
    let text = tested("express_interface none0; express on;");
    assert!(text.contains("successful"), "{text}");
    let said = "the express lane does not work: ";
    assert_eq!(text.matches(said).count(), 1, "{text}");
}

#[test]
fn a_container_s_interface_needs_no_preparation() {
    let Some(network) = join("a_container_s_interface_needs_no_preparation") else {
        return;
    };
    let server = with_mode("");
    wait_for_words(
        &server,
        "the express lane answers on \"s0\" behind the driver (generic XDP)",
    );
    wait_for("an answer of the driver", || {
        network.on_client(|| ask(server.port())).unwrap();
        hits(&server) > 0
    });
}

#[test]
fn a_driver_that_drops_what_it_is_given_is_left() {
    let Some(network) = join("a_driver_that_drops_what_it_is_given_is_left") else {
        return;
    };
    let server = with_mode("express_mode native;");
    wait_for_words(&server, "the express lane answers on \"s0\" in the driver");
    // Its first SYN is answered in vain, and the next one meets the kernel.
    network.on_client(|| ask(server.port())).unwrap();
    server.wait_for_log(
        "error.log",
        "the express lane has answered in the driver, and no answer arrives",
    );
    assert_eq!(server.log("error.log").matches("[alert]").count(), 1);
    for _ in 0..3 {
        network.on_client(|| ask(server.port())).unwrap();
    }
    assert_eq!(hits(&server), 0);
    assert_eq!(metric(&server, ANSWERED_SYN), 1);
}

#[test]
fn a_hot_answer_comes_from_the_driver() {
    let Some(network) = join("a_hot_answer_comes_from_the_driver") else {
        return;
    };
    let server = start("on");
    let port = server.port();
    for (target, body) in [("/a.txt", "first"), ("/hello", "hello")] {
        let before = hits(&server);
        wait_for("an answer of the driver", || {
            assert_eq!(curl(&network, port, target, &CLOSE), body);
            hits(&server) > before
        });
        let headers = curl(&network, port, target, &["--include", CLOSE[0], CLOSE[1]]);
        assert!(headers.starts_with("HTTP/1.1 200 OK\r\n"), "{headers}");
        assert_eq!(curl(&network, port, target, &[]), body);
    }
    server.write("html/a.txt", "second");
    wait_for("the changed file", || {
        curl(&network, port, "/a.txt", &CLOSE) == "second"
    });
}

/// Directives, and what a test of the configuration says of them.
const LOGS: &[(&str, &str)] = &[
    ("express_log off;", "successful"),
    ("express_log sample=1/1;", "successful"),
    ("express_log sample=1/100000;", "successful"),
    ("express_log on;", "invalid parameter \"on\""),
    (
        "express_log sample=0;",
        "invalid sample \"0\" in \"express_log\", it must be ",
    ),
    (
        "express_log sample=1/0;",
        "invalid sample \"1/0\" in \"express_log\", it must be ",
    ),
    (
        "express_log sample=1/100001;",
        "it must be between 1/1 and 1/100000 in ",
    ),
];

#[test]
fn parts_that_cannot_be_sampled_are_refused() {
    for (directive, expected) in LOGS {
        let said = tested(&format!("express_interface none0; express on; {directive}"));
        assert!(said.contains(expected), "{directive}: {said}");
    }
}

const SAMPLED: &str = "events { }
    http {
        log_format all '$remote_addr|$request|$status|$body_bytes_sent|$bytes_sent|$host|$uri|'
            '$args|$server_name|$request_length|$http_user_agent|$cookie_a|$connection_requests|'
            '$express_sample';
        map $http_user_agent $is_logged { default 1; quiet 0; }
        express_interface s0;
        express_mode generic;
        express on;
        access_log %FOLDER%/all.log all;
        server {
            listen %PORT%;
            server_name a;
            location / { return 404; }
            location /metrics { metrics; }
        }
        server {
            listen %PORT%;
            server_name b;
            root %FOLDER%/html;
            express_log sample=1/1;
            access_log %FOLDER%/all.log all if=$is_logged;
            location /gone {
                access_log %FOLDER%/gone.log all buffer=64k flush=100ms;
                return 410 gone;
            }
            location /silent { express_log off; return 200 x; }
            location / { }
        }
    }";

#[test]
fn lines_of_sampled_requests_are_those_of_lanes() {
    let Some(network) = join("lines_of_sampled_requests_are_those_of_lanes") else {
        return;
    };
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(SAMPLED)
        .file("html/a.txt", "first")
        .start();
    let ask = |target: &str, more: &[&str]| {
        let fields = [
            "--header",
            "Host: b",
            "--user-agent",
            "some agent",
            CLOSE[0],
            CLOSE[1],
        ];
        let before = hits(&server);
        wait_for("an answer of the driver", || {
            curl(&network, server.port(), target, &[&fields, more].concat());
            hits(&server) > before
        });
    };
    let text = |log: &str| std::fs::read_to_string(server.folder().join(log)).unwrap_or_default();
    ask("/silent", &[]);
    ask("/a.txt", &["--user-agent", "quiet"]);
    for (log, target, more) in [
        ("gone.log", "/gone?a=b", &[][..]),
        ("all.log", "/a.txt", &[]),
        ("all.log", "/a.txt?x", &["--head"]),
    ] {
        ask(target, more);
        let is_sampled = |line: &&str| line.ends_with("|1");
        let of_target = |line: &&str| line.contains(&format!(" {target} "));
        wait_for("a line of a sample", || {
            text(log)
                .lines()
                .filter(of_target)
                .any(|line| is_sampled(&line))
        });
        let text = text(log);
        let mut lines = text.lines().filter(of_target);
        let first = lines.next().unwrap().strip_suffix('-').unwrap();
        assert!(lines.all(|line| line.starts_with(first)), "{text}");
    }
    let text = text("all.log");
    let mut silent = text.lines().filter(|line| line.contains(" /silent "));
    assert!(silent.all(|line| line.ends_with("|-")), "{text}");
    assert!(
        text.contains(" /silent ") && !text.contains("quiet"),
        "{text}"
    );
}

#[test]
fn what_differs_or_is_large_comes_from_the_lanes() {
    let Some(network) = join("what_differs_or_is_large_comes_from_the_lanes") else {
        return;
    };
    let server = start("on");
    let port = server.port();
    for agent in ["a", "b", "c", "d"] {
        let more = ["--user-agent", agent, CLOSE[0], CLOSE[1]];
        assert_eq!(curl(&network, port, "/agent", &more), agent);
        assert_eq!(curl(&network, port, "/large.txt", &CLOSE), "x".repeat(2000));
    }
    assert_eq!(hits(&server), 0);
}

#[test]
fn turning_it_on_and_off_under_load_costs_no_request() {
    let Some(network) = join("turning_it_on_and_off_under_load_costs_no_request") else {
        return;
    };
    let mut server = start("on");
    let failures = under_load(&network, server.port(), |asked| {
        for express in ["off", "on", "off", "on", "off", "on", "off", "on"] {
            let before = asked.load(Relaxed);
            server.write_configuration(&configuration(express));
            server.signal(Signal::SIGHUP);
            // The page has the driver's counts while the express lane is on.
            wait_for("the new configuration", || {
                (hits(&server) > 0) == (express == "on")
            });
            wait_for("requests under it", || asked.load(Relaxed) > before + 200);
        }
    });
    assert_eq!(failures, Vec::<String>::new());
}

/// How often the express lane is turned on and off in a row; the long tests multiply it.
const TURNS: usize = 20;

#[test]
fn turning_it_on_and_off_every_100_ms_costs_no_request() {
    let Some(network) = join("turning_it_on_and_off_every_100_ms_costs_no_request") else {
        return;
    };
    let rounds = rounds().unwrap_or(1);
    let mut server = start("on");
    let failures = under_load(&network, server.port(), |asked| {
        for turn in 0..TURNS * rounds {
            let express = ["off", "on"][turn % 2];
            server.write_configuration(&configuration(express));
            server.signal(Signal::SIGHUP);
            thread::sleep(Duration::from_millis(100));
        }
        wait_for("an answer of the driver", || hits(&server) > 0);
        wait_for("requests", || asked.load(Relaxed) > 200);
    });
    assert_eq!(failures, Vec::<String>::new());
}

/// What the corpus asks for: files, constants, what differs, what is large, what is not there.
const TARGETS: &[&str] = &[
    "/a.txt",
    "/hello",
    "/moved",
    "/dot.gif",
    "/none.txt",
    "/a.txt?b=c",
    "/agent",
    "/large.txt",
    "/zipped",
];

/// Requests of the corpus, and of the part of it that every push makes.
const REQUESTS: usize = 5_000;
const REQUESTS_PART: usize = 800;
const RAW_REQUESTS_PART: usize = 320;

fn corpus_configuration(root: &str, express: &str) -> String {
    format!(
        "events {{ }}
         http {{
             access_log off;
             absolute_redirect off;
             {express}
             server {{
                 listen %PORT%;
                 listen [::]:%PORT%;
                 root {root};
                 location / {{ }}
                 location = /hello {{ return 200 hello; }}
                 location = /moved {{ return 302 /hello; }}
                 location = /dot.gif {{ empty_gif; }}
                 location = /agent {{ return 200 $http_user_agent; }}
                 location = /zipped {{
                     gzip on; gzip_types *; gzip_min_length 1;
                     return 200 'the same again, the same again, the same again';
                 }}
                 location = /metrics {{ metrics; }}
             }}
         }}"
    )
}

/// Addresses of which the client's kernel knows nothing.
const RAW_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 7));
const RAW_CLIENT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 7));

/// Options of SYN segments: none, a segment size, all that Linux sends, a small segment size.
const SYN_OPTIONS: &[&[u8]] = &[
    &[],
    &[2, 4, 5, 180],
    &[
        2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 48, 57, 0, 0, 0, 0, 1, 3, 3, 7,
    ],
    &[2, 4, 2, 24],
];

/// The clients that ask.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clients {
    /// The kernel's TCP, over both protocols.
    Kernel,
    /// Raw packets: each piece is a segment.
    Raw,
}

impl Clients {
    /// All that comes back on a connection, without the values of Date.
    fn answer_to(self, raw: &[RawTcp; 2], number: usize, request: &Request, port: u16) -> String {
        // Each kind comes in every way.
        let turn = number / 8;
        let bytes = match self {
            Clients::Kernel => answer_of_peer(request, [SERVER_V4, SERVER_V6][turn % 2], port),
            Clients::Raw => {
                let version = turn / SYN_OPTIONS.len() % 2;
                let client = [RAW_CLIENT, RAW_CLIENT_V6][version];
                let server: IpAddr = [SERVER_V4, SERVER_V6][version].parse().unwrap();
                let source = SocketAddr::new(client, 10_000 + (number % 50_000) as u16);
                let addresses = [source, SocketAddr::new(server, port)];
                let options = SYN_OPTIONS[turn % SYN_OPTIONS.len()];
                let answer = raw[version].exchange(addresses, options, &request.pieces);
                answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
            }
        };
        without_dates(&bytes)
    }
}

fn answer_of_peer(request: &Request, address: &str, port: u16) -> Vec<u8> {
    let mut peer = Peer::over(TcpStream::connect((address, port)).unwrap());
    for piece in &request.pieces {
        peer.send(piece);
    }
    peer.finish();
    peer.rest()
}

fn without_dates(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    let lines = text.split("\\r\\n").map(|line| {
        if line.starts_with("Date: ") {
            "Date"
        } else {
            line
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asks a server with the express lane and one without.
fn compare(test: &str, clients: Clients, seed: u64, count: usize) {
    let Some(network) = join(test) else {
        return;
    };
    for client in [RAW_CLIENT, RAW_CLIENT_V6] {
        network.lend(["s0", "c0"], client).unwrap();
    }
    let express = "express_interface s0; express_mode generic; express on;";
    let program = env!("CARGO_BIN_EXE_turnpike");
    let with = Server::builder(program)
        .configuration(&corpus_configuration("%FOLDER%/html", express))
        .file("html/a.txt", "first")
        .file("html/large.txt", "x".repeat(2000))
        .start();
    // The same files, and so the same times of their last change.
    let root = with.folder().join("html").display().to_string();
    let without = Server::builder(program)
        .configuration(&corpus_configuration(&root, ""))
        .start();
    let ports = [with.port(), without.port()];
    network.on_client(|| {
        let raw = [RawTcp::open().unwrap(), RawTcp::open_v6().unwrap()];
        for (number, request) in requests(seed, count, TARGETS).enumerate() {
            let [ours, theirs] = ports.map(|port| clients.answer_to(&raw, number, &request, port));
            assert_eq!(ours, theirs, "request {number} of seed {seed}: {request:?}");
        }
    });
    let hits = hits(&with);
    assert!(hits > count as u64 / 20, "{hits} answers of the driver");
}

#[test]
fn requests_of_the_corpus_are_answered_as_without() {
    let test = "requests_of_the_corpus_are_answered_as_without";
    compare(test, Clients::Kernel, 17, REQUESTS_PART);
}

#[test]
fn raw_packets_of_the_corpus_are_answered_as_without() {
    let test = "raw_packets_of_the_corpus_are_answered_as_without";
    compare(test, Clients::Raw, 17, RAW_REQUESTS_PART);
}

#[test]
#[ignore = "about a minute: in make test-long"]
fn all_requests_of_the_corpus_are_answered_as_without() {
    let test = "all_requests_of_the_corpus_are_answered_as_without";
    compare(test, Clients::Kernel, 18, REQUESTS);
}

#[test]
#[ignore = "about a minute: in make test-long"]
fn all_raw_packets_of_the_corpus_are_answered_as_without() {
    let test = "all_raw_packets_of_the_corpus_are_answered_as_without";
    compare(test, Clients::Raw, 18, REQUESTS);
}

/// The key of the limit, clients that are never dropped, what is asked for, and whether the client
/// is dropped for it.
const DROPS: &[(&str, &str, &str, bool)] = &[
    ("$binary_remote_addr", "10.9.0.3", "/limited", true),
    ("$remote_addr", "10.9.0.3 fd09::/64", "/denied", true),
    ("$server_name", "10.9.0.3", "/limited", false),
    ("$remote_addr", "10.9.0.0/24", "/limited", false),
    ("$remote_addr", "10.9.0.2", "/denied", false),
];

fn dropping_configuration(key: &str, allowed: &str) -> String {
    format!(
        "events {{ }}
         http {{
             access_log off;
             express_interface s0;
             express_mode generic;
             express_allow {allowed};
             limit_req_zone {key} zone=a:1m rate=1r/m;
             server {{
                 listen %PORT%;
                 express_drop on;
                 express_drop_after 1;
                 express_drop_time 1h;
                 location /limited {{ limit_req zone=a; empty_gif; }}
                 location /denied {{ deny all; }}
                 location / {{ return 200 hello; }}
                 location /metrics {{ metrics; }}
             }}
         }}"
    )
}

#[test]
fn clients_that_are_refused_are_dropped() {
    let Some(network) = join("clients_that_are_refused_are_dropped") else {
        return;
    };
    for case in DROPS {
        let (key, allowed, target, is_dropped) = case;
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&dropping_configuration(key, allowed))
            .start();
        let is_answered = |target: &str| {
            let url = format!("http://{SERVER_V4}:{}{target}", server.port());
            network.on_client(|| {
                let arguments = ["--silent", "--output", "/dev/null", "--max-time", "1", &url];
                let status = Command::new("curl").args(arguments).status();
                status.unwrap().success()
            })
        };
        let dropped = || metric(&server, "turnpike_express_dropped_clients");
        assert!(is_answered("/"), "{case:?}");
        assert_eq!(dropped(), 0, "{case:?}");
        for _ in 0..3 {
            is_answered(target);
        }
        match is_dropped {
            true => wait_for("a dropped client", || dropped() == 1),
            false => assert_eq!(dropped(), 0, "{case:?}"),
        }
        assert_eq!(is_answered("/"), !is_dropped, "{case:?}");
        let segments = "turnpike_express_segments_total{outcome=\"dropped_client\"}";
        assert_eq!(metric(&server, segments) > 0, *is_dropped, "{case:?}");
    }
}

/// Segments of the flood: enough to fill a queue of connections many times.
const FLOOD: u16 = 4_000;

#[test]
fn a_flood_of_a_refused_client_ends_in_the_driver() {
    let Some(network) = join("a_flood_of_a_refused_client_ends_in_the_driver") else {
        return;
    };
    network.lend(["s0", "c0"], RAW_CLIENT).unwrap();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&dropping_configuration("$remote_addr", "10.9.0.3"))
        .start();
    let port = server.port();
    let address = SocketAddr::new(SERVER_V4.parse().unwrap(), port);
    let client = |port| SocketAddr::new(RAW_CLIENT, port);
    let request = b"GET /denied HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec();
    let exchange = || {
        let raw = RawTcp::open().unwrap();
        let answer = raw.exchange(
            [client(9_999), address],
            &[2, 4, 5, 180],
            std::slice::from_ref(&request),
        );
        assert!(answer.unwrap().starts_with(b"HTTP/1.1 403 "));
    };
    network.on_client(exchange);
    wait_for("a dropped client", || {
        metric(&server, "turnpike_express_dropped_clients") == 1
    });
    let dropped = || {
        let segments = "turnpike_express_segments_total{outcome=\"dropped_client\"}";
        metric(&server, segments)
    };
    let before = dropped();
    network.on_client(|| {
        // Opened now: what came before is not seen.
        let raw = RawTcp::open().unwrap();
        for number in 0..FLOOD {
            let mut segment = Segment::syn(client(10_000 + number), address, &[2, 4, 5, 180]);
            if number % 2 == 1 {
                segment.flags = ACK | PSH;
                segment.text = request.clone();
            }
            raw.send(&segment).unwrap();
            if number % 100 == 0 {
                assert_eq!(ask(port), Ok(()));
            }
        }
        let answers = std::iter::from_fn(|| raw.received(RAW_CLIENT).unwrap());
        let of_flood = answers.filter(|answer| answer.destination.port() >= 10_000);
        assert_eq!(of_flood.count(), 0);
    });
    // Generic mode is behind a queue of the kernel, which may lose some.
    let counted = dropped() - before;
    assert!(counted > u64::from(FLOOD) / 2, "{counted} segments");
}

#[test]
fn connections_that_miss_are_begun_by_the_kernel_with_syn_auto() {
    let Some(network) = join("connections_that_miss_are_begun_by_the_kernel_with_syn_auto") else {
        return;
    };
    let text = configuration("on").replace("express_mode", "express_syn auto; express_mode");
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    let outcome = |name: &str| {
        let start = format!("turnpike_express_segments_total{{outcome=\"{name}\"}}");
        metric(&server, &start)
    };
    let request = "GET /agent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    wait_for("SYN segments for the kernel", || {
        network.on_client(|| {
            for _ in 0..40 {
                let stream = TcpStream::connect((SERVER_V4, server.port())).unwrap();
                let mut peer = Peer::over(stream);
                peer.send(request);
                assert!(peer.rest().starts_with(b"HTTP/1.1 200 "));
            }
        });
        outcome("syn_passed") > 0
    });
    assert!(outcome("handed_over") > 0);
}
