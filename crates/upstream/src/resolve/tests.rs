#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Waker};

use tokio::runtime::Builder;
use turnpike_lane::log::{ErrorLog, Kept, Level, Sink, Target};
use turnpike_testkit::Folder;
use turnpike_testkit::ports::RefusedPort;

use super::servers::ServerSource;
use super::{ResolveError, Resolver, ResolverSettings, ServersFile};

/// The time limit of a test's waits.
const PATIENCE_MS: u64 = 60_000;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;

/// A name server's answer to a question with a name and a type: code and records, or none.
type Script = fn(&str, u16) -> Option<Answer>;

/// A code and records: type, time to live, data.
type Answer = (u8, Vec<(u16, u32, Vec<u8>)>);

/// A name server; it reports its questions. Over UDP, answers to names that begin with `long` do
/// not fit, and those that begin with `wide` fit only if the question allows more than 512 bytes;
/// over TCP the latter are not answered.
fn serve(script: Script) -> (SocketAddr, Receiver<(String, u16)>) {
    let (udp, tcp) = loop {
        let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            break (udp, tcp);
        }
    };
    let address = udp.local_addr().unwrap();
    let (sender, questions) = channel();
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut packet) {
            let (name, kind) = asked(&packet[..length]);
            if sender.send((name.clone(), kind)).is_err() {
                return;
            }
            let extended = is_extended(&packet[..length]);
            let cut = name.starts_with("long") || (name.starts_with("wide") && !extended);
            if let Some(answer) = answer(&packet[..length], script(&name, kind), cut) {
                udp.send_to(&answer, from).unwrap();
            }
        }
    });
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = tcp.accept() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut packet).unwrap();
            let (name, kind) = asked(&packet);
            if name.starts_with("wide") {
                continue;
            }
            let answer = answer(&packet, script(&name, kind), false).unwrap();
            let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
            stream.write_all(&length).unwrap();
            stream.write_all(&answer).unwrap();
        }
    });
    (address, questions)
}

fn asked(packet: &[u8]) -> (String, u16) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while packet[at] != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8(packet[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (
        labels.join("."),
        u16::from_be_bytes([packet[at + 1], packet[at + 2]]),
    )
}

/// Whether a question has an OPT record with the agreed size.
fn is_extended(packet: &[u8]) -> bool {
    let opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];
    packet[10..12] == [0, 1] && packet.ends_with(&opt)
}

fn answer(question: &[u8], script: Option<Answer>, cut: bool) -> Option<Vec<u8>> {
    let (code, mut records) = script?;
    if cut {
        records.clear();
    }
    let mut answer = question.to_vec();
    if is_extended(question) {
        answer.truncate(question.len() - 11);
        answer[11] = 0;
    }
    answer[2] = 0x81 | if cut { 2 } else { 0 };
    answer[3] = 0x80 | code;
    answer[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
    for (kind, ttl, data) in records {
        answer.extend_from_slice(&[0xc0, 12]);
        answer.extend_from_slice(&kind.to_be_bytes());
        answer.extend_from_slice(&[0, 1]);
        answer.extend_from_slice(&ttl.to_be_bytes());
        answer.extend_from_slice(&u16::try_from(data.len()).unwrap().to_be_bytes());
        answer.extend_from_slice(&data);
    }
    Some(answer)
}

fn name(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// The answers of the name server in these tests.
fn zone(asked: &str, kind: u16) -> Option<Answer> {
    let four = |last: u8| (A, 60, vec![127, 0, 0, last]);
    let service = |priority: u8, port: u8, host: &str| {
        let data = [&[0, priority, 0, 5, 0, port], name(host).as_slice()].concat();
        (SRV, 5, data)
    };
    let records = match (asked, kind) {
        ("two.test", A) => vec![four(2), four(1)],
        ("two.test", AAAA) => vec![(AAAA, 30, vec![0; 16])],
        ("long.test", A) => vec![four(9)],
        ("wide.test", A) => (0..=70).map(four).collect(),
        ("alias.test", _) => vec![(CNAME, 10, name("two.test"))],
        ("circle.test", _) => vec![(CNAME, 10, name("circle.test"))],
        ("half.test", A) => vec![four(1)],
        ("half.test", _) => return Some((2, Vec::new())),
        ("bad.test", _) => return Some((2, Vec::new())),
        ("nothing.test", _) => return Some((3, Vec::new())),
        ("silent.test", _) => return None,
        ("_http._tcp.s.test", SRV) => vec![service(1, 80, "half.test"), service(2, 81, "no.test")],
        ("_x._udp.s.test", SRV) => vec![service(1, 80, "bad.test")],
        _ => Vec::new(),
    };
    Some((0, records))
}

/// The time of the test that controls its clock.
static NOW_MS: AtomicU64 = AtomicU64::new(1_000_000);

fn resolver(servers: Vec<SocketAddr>) -> Resolver {
    let settings = ResolverSettings {
        servers,
        servers_file: None,
        valid_ms: None,
        ipv4: true,
        ipv6: true,
    };
    Resolver::with_clock(settings, || 1_000_000)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test)
}

fn four(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

#[test]
fn names_are_looked_up() {
    let (server, _questions) = serve(zone);
    let six = "::".parse().unwrap();
    let not_found = Err(ResolveError::Code(3));
    let cases = [
        ("two.test", Ok((vec![four(2), four(1), six], 1_030_000))),
        ("TWO.test", Ok((vec![four(2), four(1), six], 1_030_000))),
        ("alias.test", Ok((vec![four(2), four(1), six], 1_010_000))),
        ("half.test", Ok((vec![four(1)], 1_060_000))),
        ("long.test", Ok((vec![four(9)], 1_060_000))),
        ("127.0.0.5", Ok((vec![four(5)], u64::MAX))),
        ("circle.test", not_found.clone()),
        ("nothing.test", not_found.clone()),
        ("empty.test", not_found),
        ("bad.test", Err(ResolveError::Code(2))),
        ("no..name", Err(ResolveError::Name)),
    ];
    run(async {
        let resolver = resolver(vec![server]);
        for (name, expected) in cases {
            let found = resolver.addresses(name, PATIENCE_MS).await;
            let found = found.map(|found| (found.addresses, found.until_ms));
            assert_eq!(found, expected, "{name}");
        }
        let silent = resolver.addresses("silent.test", 1).await;
        assert_eq!(silent, Err(ResolveError::TimedOut));
    });
}

#[test]
fn services_are_looked_up() {
    let (server, _questions) = serve(zone);
    run(async {
        let resolver = resolver(vec![server]);
        for service in ["http", "_http._tcp"] {
            let found = resolver
                .services(service, "s.test", PATIENCE_MS)
                .await
                .unwrap();
            assert_eq!(found.until_ms, 1_005_000);
            let [only] = found.services.as_slice() else {
                panic!("{found:?}");
            };
            assert_eq!(only.address, SocketAddr::new(four(1), 80));
            assert_eq!((only.server.as_str(), only.priority), ("half.test:80", 1));
        }
        let found = resolver.services("_x._udp", "s.test", PATIENCE_MS).await;
        assert_eq!(found, Err(ResolveError::Code(2)));
        let found = resolver.services("none", "s.test", PATIENCE_MS).await;
        assert_eq!(found, Err(ResolveError::Code(3)));
    });
}

/// The number of questions that a resolver has sent.
fn sent(resolver: &Resolver) -> u64 {
    resolver.counts().sent().map(|(_, count)| count).sum()
}

#[test]
fn lookups_are_counted_by_what_is_asked_and_what_comes_of_it() {
    let (server, _questions) = serve(zone);
    let resolver = resolver(vec![server]);
    run(async {
        for name in ["two.test", "two.test", "127.0.0.1", "nothing.test"] {
            let _ = resolver.addresses(name, PATIENCE_MS).await;
        }
        let _ = resolver.services("none", "s.test", PATIENCE_MS).await;
    });
    let (silent, _questions) = serve(|_, _| None);
    let unanswered = self::resolver(vec![silent]);
    run(async {
        let _ = unanswered.addresses("two.test", 1).await;
    });
    let counted = |counts: Vec<(&'static str, u64)>| {
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts.collect::<Vec<_>>()
    };
    let counts = resolver.counts();
    assert_eq!(
        counted(counts.queries().collect()),
        [("name", 3), ("srv", 1)]
    );
    assert_eq!(
        counted(counts.sent().collect()),
        [("a", 2), ("aaaa", 2), ("srv", 1)]
    );
    let answered: u64 = counts.responses().map(|(_, count)| count).sum();
    assert_eq!(answered, 5);
    let not_found = counts.responses().find(|(word, _)| *word == "not_found");
    assert_eq!(not_found.map(|(_, count)| count >= 2), Some(true));
    let timed_out = counted(unanswered.counts().responses().collect());
    assert_eq!(timed_out, [("timedout", 2)]);
}

#[test]
fn an_answer_is_cached_for_its_lifetime() {
    let (server, questions) = serve(zone);
    let settings = |valid_ms| ResolverSettings {
        servers: vec![server],
        servers_file: None,
        valid_ms,
        ipv4: true,
        ipv6: false,
    };
    for (valid_ms, holds_ms) in [(None, 60_000), (Some(1000), 1000)] {
        let now_ms = || NOW_MS.load(Ordering::Relaxed);
        let resolver = Resolver::with_clock(settings(valid_ms), now_ms);
        run(async {
            for (passes_ms, questions) in [(0, 1), (holds_ms - 1, 1), (1, 2), (0, 2)] {
                NOW_MS.fetch_add(passes_ms, Ordering::Relaxed);
                resolver.addresses("two.test", PATIENCE_MS).await.unwrap();
                assert_eq!(sent(&resolver), questions);
            }
        });
    }
    assert_eq!(questions.try_iter().count(), 4);
}

#[test]
fn concurrent_requests_for_one_name_query_once() {
    let (server, questions) = serve(zone);
    let resolver = resolver(vec![server]);
    run(async {
        let ask = || resolver.addresses("half.test", PATIENCE_MS);
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        assert_eq!((&one, &two), (&two, &three));
        // If the querying request is given up, the next one queries.
        {
            let mut given_up = Box::pin(resolver.addresses("two.test", PATIENCE_MS));
            let mut context = Context::from_waker(Waker::noop());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
        assert!(resolver.addresses("two.test", PATIENCE_MS).await.is_ok());
        let ask = || resolver.addresses("nothing.test", PATIENCE_MS);
        let (one, two) = tokio::join!(ask(), ask());
        assert_eq!(
            (one, two),
            (Err(ResolveError::Code(3)), Err(ResolveError::Code(3)))
        );
    });
    let questions: Vec<(String, u16)> = questions.try_iter().collect();
    let of = |name: &str| questions.iter().filter(|(asked, _)| asked == name).count();
    assert_eq!((of("half.test"), of("nothing.test")), (2, 2));
}

#[test]
fn another_server_is_queried_if_one_fails() {
    let (failing, _questions) = serve(|_, _| Some((5, Vec::new())));
    let (good, _good_questions) = serve(zone);
    let refused = RefusedPort::of_datagrams().unwrap();
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, refused.number()));
    run(async {
        for other in [failing, closed] {
            for servers in [vec![other, good], vec![good, other]] {
                let found = resolver(servers).addresses("half.test", PATIENCE_MS).await;
                assert_eq!(found.unwrap().addresses, [four(1)]);
            }
        }
        let found = resolver(vec![failing])
            .addresses("half.test", PATIENCE_MS)
            .await;
        assert_eq!(found, Err(ResolveError::Code(5)));
    });
}

/// Servers that refuse extended questions are queried without extensions for some time.
#[test]
fn a_server_that_refuses_extensions_is_queried_without_them() {
    static NOW_MS: AtomicU64 = AtomicU64::new(1);
    for code in [1, 4] {
        let (server, questions) = serve_old(code);
        let settings = ResolverSettings {
            servers: vec![server],
            servers_file: None,
            valid_ms: Some(0),
            ipv4: true,
            ipv6: false,
        };
        let resolver = Resolver::with_clock(settings, || NOW_MS.load(Ordering::Relaxed));
        run(async {
            // Time that passes, and the questions after it: extended or not.
            let cases: [(u64, &[bool]); 4] = [
                (0, &[true, false]),
                (899_999, &[false]),
                (1, &[true, false]),
                (1, &[false]),
            ];
            for (passes_ms, expected) in cases {
                NOW_MS.fetch_add(passes_ms, Ordering::Relaxed);
                let found = resolver.addresses("two.test", PATIENCE_MS).await.unwrap();
                assert_eq!(found.addresses, [four(2), four(1)]);
                let questions: Vec<bool> = questions.try_iter().collect();
                assert_eq!(questions, expected, "code {code}, {passes_ms} ms later");
            }
        });
    }
}

/// A server that refuses every question: extensions are not the cause.
#[test]
fn a_refusal_with_and_without_extensions_is_the_answer() {
    let (server, _questions) = serve(|_, _| Some((1, Vec::new())));
    run(async {
        let resolver = resolver(vec![server]);
        for _ in 0..2 {
            let asked = sent(&resolver);
            let found = resolver.addresses("two.test", PATIENCE_MS).await;
            assert_eq!(found, Err(ResolveError::Code(1)));
            assert_eq!(sent(&resolver) - asked, 4);
        }
    });
}

/// The servers that stand beside those of a file.
const OWN: &str = "127.0.0.9:5353 127.0.0.2:53";

/// A file, the servers of it alone, the servers beside others, and what is wrong.
const FILES: &[(Option<&str>, &str, &str, &str)] = &[
    (
        None,
        "127.0.0.1:53",
        OWN,
        "stat() \"FILE\" failed (2: No such file or directory)",
    ),
    (Some(""), "127.0.0.1:53", OWN, ""),
    (
        Some("# nameserver 127.0.0.8\nnameserver 127.0.0.2\nnameserver\t::1 # here\noptions x"),
        "127.0.0.2:53 [::1]:53",
        "127.0.0.9:5353 127.0.0.2:53 [::1]:53",
        "",
    ),
    (
        Some("nameserver 127.0.0.3\nnameserver x.y\nnameserver z\nnameserver 127.0.0.3\n"),
        "127.0.0.3:53",
        "127.0.0.9:5353 127.0.0.2:53 127.0.0.3:53",
        "cannot parse IP address (x.y) from \"FILE\"",
    ),
    (
        Some("nameservers 1.2.3.4\n nameserver 1.2.3.4\nnameserver\n"),
        "127.0.0.1:53",
        OWN,
        "",
    ),
];

/// The servers of a file are those that it names when the question goes out.
#[test]
fn servers_of_a_file_are_read_again_when_it_changes() {
    let folder = Folder::create().unwrap();
    let path = folder.path().join("resolv.conf");
    let with = |fixed: &[&str]| {
        let fixed = fixed.iter().map(|address| address.parse().unwrap());
        let file = ServersFile {
            path: path.clone(),
            port: 53,
        };
        ServerSource::new(fixed.collect(), Some(file))
    };
    let (alone, beside) = (with(&[]), with(&OWN.split(' ').collect::<Vec<_>>()));
    let kept = Arc::new(Kept::default());
    let target = Target::new(Level::Error, Sink::Kept(Arc::clone(&kept)));
    alone.log_to(ErrorLog::new(vec![target]));
    for (text, expected, expected_beside, fault) in FILES {
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let said = kept.lines().len();
        for _ in 0..2 {
            let shown = |source: &ServerSource| {
                let servers = source.current();
                let shown = servers.addresses.iter().map(ToString::to_string);
                shown.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(shown(&alone), *expected, "{text:?}");
            assert_eq!(shown(&beside), *expected_beside, "{text:?}");
        }
        let said = kept.lines().split_off(said).join("\n");
        let said = said.replace(&path.display().to_string(), "FILE");
        assert_eq!(said, *fault, "{text:?}");
    }
    // What is not a regular file is not opened.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(alone.current().addresses, ["127.0.0.1:53".parse().unwrap()]);
    assert!(
        kept.lines()
            .last()
            .unwrap()
            .ends_with("failed (not a regular file)")
    );
}

#[test]
fn an_answer_of_more_than_512_bytes_needs_one_question() {
    let (server, questions) = serve(zone);
    run(async {
        let resolver = resolver(vec![server]);
        let found = resolver.addresses("wide.test", PATIENCE_MS).await.unwrap();
        assert_eq!(found.addresses.len(), 71);
    });
    let wide = |(name, kind): &(String, u16)| name == "wide.test" && *kind == A;
    assert_eq!(questions.try_iter().filter(wide).count(), 1);
}

/// A name server that answers extended questions with a code, without repeating the question; it
/// reports of each question whether it was extended.
fn serve_old(code: u8) -> (SocketAddr, Receiver<bool>) {
    let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let address = udp.local_addr().unwrap();
    let (sender, questions) = channel();
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut packet) {
            let question = &packet[..length];
            let extended = is_extended(question);
            if sender.send(extended).is_err() {
                return;
            }
            let reply = if extended {
                [&question[..2], &[0x81, 0x80 | code], &[0; 8]].concat()
            } else {
                let (name, kind) = asked(question);
                answer(question, zone(&name, kind), false).unwrap()
            };
            udp.send_to(&reply, from).unwrap();
        }
    });
    (address, questions)
}
