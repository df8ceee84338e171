//! Tests of the number of system calls and allocations of a request, in optimised cases: the
//! numbers are the same on every machine.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use turnpike_testkit::tracer::Tracer;
use turnpike_testkit::{Origin, Peer, Server, Step, wait_for};

const REQUESTS: usize = 50;

/// The requests before the count: connections are opened, buffers grow.
const WARM_UP_REQUESTS: usize = 5;

const GET: &str = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

/// The calls of each name per request, one client after the other.
fn calls(server: &Server, body_bytes: usize) -> BTreeMap<String, f64> {
    let mut peer = server.connect();
    calls_of(server, || {
        let response = peer.round(GET);
        assert_eq!((response.status, response.body.len()), (200, body_bytes));
    })
}

/// The calls of each name per round.
fn calls_of(server: &Server, mut round: impl FnMut()) -> BTreeMap<String, f64> {
    (0..WARM_UP_REQUESTS).for_each(|_| round());
    let tracer = Tracer::attach(server, server.serving_pids()[0]).unwrap();
    (0..REQUESTS).for_each(|_| round());
    let calls = tracer.end().unwrap();
    let each = |(name, count): (String, u64)| (name, count as f64 / REQUESTS as f64);
    calls.into_iter().map(each).collect()
}

/// The sum of the calls with these names.
fn sum(calls: &BTreeMap<String, f64>, names: &[&str]) -> f64 {
    names.iter().filter_map(|name| calls.get(*name)).sum()
}

/// After this time a small file that was written is kept in memory.
const SETTLING: Duration = Duration::from_secs(4);

const SENDS: &[&str] = &["write", "writev", "sendto", "sendmsg", "sendfile"];
const RECEIVES: &[&str] = &["read", "readv", "recvfrom", "recvmsg"];

/// A server that passes all requests to the origin, and counts them under `/status`.
fn proxy(origin: &Origin) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            events {{ }}
            http {{
                access_log off;
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ proxy_pass http://127.0.0.1:{}; }}
                    location = /status {{ stub_status; }}
                }}
            }}",
            origin.port()
        ))
        .start()
}

#[test]
fn a_proxied_body_that_fits_the_buffers_takes_two_sends_and_under_three_receives() {
    let body = "x".repeat(16 * 1024);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n{body}");
    let rounds = std::iter::repeat_n(
        [Step::ReadHead, Step::send(&answer)],
        REQUESTS + WARM_UP_REQUESTS,
    );
    let origin = Origin::start(vec![rounds.flatten().collect()]);
    let server = proxy(&origin);
    let calls = calls(&server, body.len());
    assert_eq!(sum(&calls, SENDS), 2.0, "{calls:?}");
    // The first bodies grow the three buffers that take turns; one of them lacks the room for the
    // head beside the body.
    assert!(sum(&calls, RECEIVES) < 3.0, "{calls:?}");
    assert!(sum(&calls, &["epoll_ctl"]) <= 0.1, "{calls:?}");
}

#[test]
fn a_proxied_body_in_chunks_that_fits_the_buffers_takes_two_sends_and_two_receives() {
    let chunk = "x".repeat(8 * 1024);
    let chunks = format!("2000\r\n{chunk}\r\n2000\r\n{chunk}\r\n0\r\n\r\n");
    let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    let rounds = std::iter::repeat_n([Step::ReadHead, Step::send(&answer)], ROUNDS);
    let origin = Origin::start(vec![rounds.flatten().collect()]);
    let server = proxy(&origin);
    let calls = calls(&server, 16 * 1024);
    assert_eq!(sum(&calls, SENDS), 2.0, "{calls:?}");
    // The same; and a body may come in several parts, if the origin's kernel decides so.
    assert!(sum(&calls, RECEIVES) < 3.0, "{calls:?}");
    assert!(sum(&calls, &["epoll_ctl"]) <= 0.1, "{calls:?}");
    let mut peer = server.connect();
    let allocations = allocations_of(&server, || {
        let response = peer.round(GET);
        assert_eq!(response.header("Transfer-Encoding"), Some("chunked"));
        assert_eq!(response.body.len(), 16 * 1024);
    });
    assert!(allocations <= OTHER_ALLOCATIONS_MAX, "{allocations}");
}

/// A way that bodies of requests go to a server.
struct Upload {
    /// What stands in the location.
    directives: &'static str,
    body_bytes: usize,
    /// The bytes of a FastCGI request around the body; `None`: HTTP.
    records_bytes: Option<usize>,
    /// The most calls per request: receives, sends, and those for its file.
    calls_max: [f64; 3],
}

/// 64 KB: the head with the beginning, the rest, a look at the server's connection, and the answer.
/// On a busy machine the client's bytes may come in more parts.
const IN_MEMORY: Upload = Upload {
    directives: "client_body_buffer_size 128k;",
    body_bytes: 65_536,
    records_bytes: None,
    calls_max: [5.0, 2.5, 0.0],
};

const UPLOADS: &[Upload] = &[
    IN_MEMORY,
    Upload {
        // Two records with their padding.
        records_bytes: Some(FASTCGI_REQUEST_BYTES + 8 + 1 + 8 + 7),
        ..IN_MEMORY
    },
    Upload {
        directives: "client_body_buffer_size 128k; proxy_request_buffering off;",
        calls_max: [5.0, 3.5, 0.0],
        ..IN_MEMORY
    },
    Upload {
        directives: "client_body_buffer_size 128k; proxy_request_buffering off;",
        body_bytes: 1 << 20,
        calls_max: [18.0, 17.0, 0.0],
        ..IN_MEMORY
    },
    Upload {
        // It goes into a file: two writes and a read.
        directives: "",
        calls_max: [5.5, 4.0, 6.5],
        ..IN_MEMORY
    },
    Upload {
        directives: "",
        body_bytes: 1 << 20,
        calls_max: [12.0, 21.0, 28.0],
        ..IN_MEMORY
    },
    Upload {
        directives: "sendfile on;",
        body_bytes: 1 << 20,
        calls_max: [12.0, 6.5, 12.0],
        ..IN_MEMORY
    },
];

impl Upload {
    /// The server that the bodies go to.
    fn origin(&self) -> Origin {
        let round = match self.records_bytes {
            None => vec![
                Step::ReadHead,
                Step::ReadBytes(self.body_bytes),
                Step::send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            ],
            Some(records_bytes) => vec![
                Step::ReadBytes(self.body_bytes + records_bytes),
                Step::send([record(6, b"\r\nhello"), record(3, &[0; 8])].concat()),
            ],
        };
        let rounds = std::iter::repeat_n(round, REQUESTS + WARM_UP_REQUESTS);
        Origin::start(vec![rounds.flatten().collect()])
    }

    fn location(&self, number: usize, port: u16) -> String {
        let directives = self.directives;
        let pass = match self.records_bytes {
            None => format!("proxy_pass http://127.0.0.1:{port};"),
            Some(_) => format!("fastcgi_pass 127.0.0.1:{port};"),
        };
        format!("location = /{number} {{ {directives} {pass} }}\n")
    }
}

#[test]
fn large_bodies_of_requests_pass_in_large_pieces() {
    let origins: Vec<Origin> = UPLOADS.iter().map(Upload::origin).collect();
    let numbered = UPLOADS.iter().zip(&origins).enumerate();
    let locations = numbered.map(|(number, (row, origin))| row.location(number, origin.port()));
    let locations: String = locations.collect();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            error_log stderr error;
            events {{ }}
            http {{
                access_log off;
                client_max_body_size 2m;
                fastcgi_keep_conn on;
                fastcgi_param A b;
                server {{ listen 127.0.0.1:%PORT%; {locations} }}
            }}"
        ))
        .start();
    for (number, row) in UPLOADS.iter().enumerate() {
        let (directives, body_bytes) = (row.directives, row.body_bytes);
        let head = format!("POST /{number} HTTP/1.1\r\nHost: x\r\nContent-Length: {body_bytes}");
        let request = head + "\r\n\r\n" + &"x".repeat(body_bytes);
        let mut peer = server.connect();
        let calls = calls_of(&server, || assert_eq!(peer.round(&request).body, b"hello"));
        let made = [RECEIVES, SENDS, BODY_FILES].map(|names| sum(&calls, names));
        let is_good = made
            .iter()
            .zip(row.calls_max)
            .all(|(made, most)| *made <= most);
        assert!(is_good, "{directives} {body_bytes}: {made:?}, {calls:?}");
    }
}

#[test]
fn a_large_proxied_body_passes_inside_the_kernel() {
    let body = "x".repeat(1024 * 1024);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let rounds = std::iter::repeat_n(
        [Step::ReadHead, Step::send(&answer)],
        REQUESTS + WARM_UP_REQUESTS,
    );
    let origin = Origin::start(vec![rounds.flatten().collect()]);
    let server = proxy(&origin);
    let calls = calls(&server, body.len());
    // The request, the head with what has come behind it, and perhaps the end.
    assert!(sum(&calls, SENDS) <= 3.1, "{calls:?}");
    // The request, the head, a look at what stands behind the body, and perhaps the end.
    assert!(sum(&calls, RECEIVES) <= 4.1, "{calls:?}");
    assert!(sum(&calls, &["splice"]) >= 2.0, "{calls:?}");
    // The lane drives a future for each body, and registers nothing for it: the first one has done
    // so. The client is slower only where it is busy.
    assert!(
        sum(&calls, &["epoll_ctl", "fcntl", "close"]) <= 0.2,
        "{calls:?}"
    );
    // Nor is the runtime woken for a timer, though it is awake.
    assert!(sum(&calls, &["write"]) <= 0.2, "{calls:?}");
}

#[test]
fn a_new_connection_to_a_server_is_registered_once_and_needs_no_task() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let script = vec![Step::ReadHead, Step::send(answer)];
    let origin = Origin::start(vec![script; REQUESTS + WARM_UP_REQUESTS]);
    let server = proxy(&origin);
    let calls = calls(&server, 2);
    assert_eq!(sum(&calls, &["connect"]), 1.0, "{calls:?}");
    assert!(sum(&calls, &["epoll_ctl"]) <= 1.1, "{calls:?}");
    // The request leaves with the handshake, and in one piece.
    assert!(sum(&calls, &["setsockopt"]) <= 1.1, "{calls:?}");
    // One more for each event that comes alone: the connection's, if that takes so long.
    assert!(sum(&calls, &["epoll_wait"]) <= 3.2, "{calls:?}");
    // Where connecting takes until the next turn, the first send fails.
    assert!(sum(&calls, SENDS) <= 3.0, "{calls:?}");
    assert!(sum(&calls, RECEIVES) <= 3.0, "{calls:?}");
}

#[test]
fn a_small_file_takes_two_calls_on_a_kept_connection_and_four_on_its_own() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/a", "hello")
        .configuration(
            "worker_processes 1;
            events { }
            http {
                access_log off;
                open_file_cache max=10;
                server { listen 127.0.0.1:%PORT%; root %FOLDER%/html; }
            }",
        )
        .start();
    let kept = calls(&server, 5);
    assert_eq!(sum(&kept, SENDS), 1.0, "{kept:?}");
    assert_eq!(sum(&kept, RECEIVES), 1.0, "{kept:?}");
    assert!(sum(&kept, &["epoll_ctl", "close"]) <= 0.1, "{kept:?}");
    let alone = calls_of(&server, || {
        let answer = server.exchange("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.ends_with(b"\r\n\r\nhello"));
    });
    // If a request comes later than its connection, as on a busy machine, the socket is watched and
    // read once more.
    let late = sum(&alone, &["epoll_ctl"]);
    let names = [SENDS, RECEIVES, &["accept4", "close"]].concat();
    assert!((sum(&alone, &names) - 4.0 - late).abs() < 0.05, "{alone:?}");
}

#[test]
fn a_hot_small_file_takes_one_stat_per_request_without_an_open_file_cache() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/a", "hello")
        .file("html/page", "hello ".repeat(20_000))
        .file("html/read", "hello ".repeat(10_000))
        .configuration(
            "worker_processes 1;
            events { }
            http {
                access_log off;
                server {
                    listen 127.0.0.1:%PORT%;
                    root %FOLDER%/html;
                    location /page { gzip on; default_type text/html; }
                }
            }",
        )
        .start();
    // A recently changed file is opened for every request: its times could still hide another
    // change.
    std::thread::sleep(SETTLING);
    let kept = calls(&server, 5);
    assert_eq!(sum(&kept, SENDS), 1.0, "{kept:?}");
    assert_eq!(sum(&kept, RECEIVES), 1.0, "{kept:?}");
    assert_eq!(sum(&kept, &["newfstatat", "fstatat64"]), 1.0, "{kept:?}");
    // Once a second it is read again.
    let names = ["openat", "fstat", "pread64", "close"];
    assert!(sum(&kept, &names) <= 0.4, "{kept:?}");
    // Without sendfile a larger one costs no more.
    let mut peer = server.connect();
    let read = calls_of(&server, || {
        let response = peer.round("GET /read HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(response.body.len(), 60_000);
    });
    assert_eq!(sum(&read, SENDS), 1.0, "{read:?}");
    assert!(sum(&read, FILES) <= 1.4, "{read:?}");
    // A kept compressed response costs no more.
    let mut peer = server.connect();
    let packed = calls_of(&server, || {
        let request = "GET /page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
        let response = peer.round(request);
        assert_eq!(response.header("Content-Encoding"), Some("gzip"));
    });
    let names = [SENDS, RECEIVES, &["newfstatat", "fstatat64"]].concat();
    assert_eq!(sum(&packed, &names), 3.0, "{packed:?}");
    std::fs::write(server.folder().join("html/a"), "HELLO").unwrap();
    assert_eq!(server.connect().round(GET).body, b"HELLO");
}

#[test]
fn a_page_with_parts_at_hand_takes_one_send_and_no_task() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/a", "<p><!--#include virtual=\"/part\" --></p>")
        .file(
            "html/part",
            "[<!--#if expr=\"$request_uri = /^.a/\" -->x<!--#endif -->]",
        )
        .configuration(
            "worker_processes 1;
            events { }
            http {
                access_log off;
                open_file_cache max=10;
                ssi on;
                ssi_types *;
                server { listen 127.0.0.1:%PORT%; root %FOLDER%/html; }
            }",
        )
        .start();
    assert_eq!(server.connect().round(GET).body, b"<p>[x]</p>");
    let calls = calls(&server, 10);
    assert_eq!(sum(&calls, SENDS), 1.0, "{calls:?}");
    assert_eq!(sum(&calls, RECEIVES), 1.0, "{calls:?}");
    assert!(working(&calls) <= 2.2, "{calls:?}");
}

/// Calls to the file system.
const FILES: &[&str] = &[
    "openat",
    "newfstatat",
    "fstatat64",
    "fstat",
    "pread64",
    "close",
];

/// Calls for the file of a request's body.
const BODY_FILES: &[&str] = &["openat", "unlink", "pwrite64", "pread64"];

#[test]
fn a_hit_of_a_hot_file_of_a_disk_zone_takes_no_call_to_the_file_system() {
    let answer = |letter: &str, kilobytes: usize| {
        let body = letter.repeat(kilobytes * 1024);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Type: text/html\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        vec![Step::ReadHead, Step::send(head + &body)]
    };
    let answers = [("x", 16), ("x", 64), ("x", 64), ("y", 16)];
    let answers = answers.map(|(letter, kilobytes)| answer(letter, kilobytes));
    let origin = Origin::start(answers.to_vec());
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            lane_rescue_timeout off;
            events {{ }}
            http {{
                access_log off;
                sendfile on;
                proxy_cache_path %FOLDER%/cache keys_zone=c:1m;
                proxy_cache c;
                proxy_set_header Connection close;
                server {{
                    listen 127.0.0.1:%PORT%;
                    gzip on;
                    location / {{ proxy_pass http://127.0.0.1:{port}; }}
                    location /read/ {{ sendfile off; proxy_pass http://127.0.0.1:{port}; }}
                }}
            }}",
            port = origin.port()
        ))
        .start();
    let mut peer = server.connect();
    for (target, fields, coding, sends) in [
        ("/a", "", None, 1.0),
        // The head, and a sendfile of a descriptor that stays open.
        ("/large", "", None, 2.0),
        // It stays in memory where the kernel may not send the file.
        ("/read/large", "", None, 1.0),
        ("/a", "Accept-Encoding: gzip\r\n", Some("gzip"), 1.0),
        ("/large", "Accept-Encoding: gzip\r\n", Some("gzip"), 1.0),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let calls = calls_of(&server, || {
            let response = peer.round(&request);
            assert_eq!(
                response.header("Content-Encoding"),
                coding,
                "{}",
                response.head
            );
        });
        assert_eq!(sum(&calls, SENDS), sends, "{target}: {calls:?}");
        assert_eq!(sum(&calls, RECEIVES), 1.0, "{target}: {calls:?}");
        // Once a second the file is looked at.
        assert!(sum(&calls, FILES) <= 0.3, "{target}: {calls:?}");
    }
    // Removing the file removes the response, within that second.
    for entry in std::fs::read_dir(server.folder().join("cache")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let is_gone = || peer.round(GET).body.starts_with(b"yyy").then_some(());
    assert_eq!(wait_for(is_gone), Some(()));
}

/// The calls of each name but those that wait for events.
fn working(calls: &BTreeMap<String, f64>) -> f64 {
    let waits = |name: &str| name.starts_with("epoll_wait") || name.starts_with("epoll_pwait");
    let working = calls.iter().filter(|(name, _)| !waits(name));
    working.map(|(_, count)| count).sum()
}

/// The heap allocations of the server per round. Only builds with debug assertions count them.
fn allocations_of(server: &Server, mut round: impl FnMut()) -> f64 {
    let mut asking = server.connect();
    let mut count = || -> u64 {
        let page = asking.round("GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
        let page = String::from_utf8(page.body).unwrap();
        let mut lines = page.lines();
        let line = lines.find_map(|line| line.trim().strip_prefix("allocations "));
        line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
    };
    (0..WARM_UP_REQUESTS).for_each(|_| round());
    let before_asking = count();
    let before = count();
    (0..REQUESTS).for_each(|_| round());
    let made = count() - before;
    made.saturating_sub(before - before_asking) as f64 / REQUESTS as f64
}

/// What the same rounds of requests cost: system calls, then allocations.
const ROUNDS: usize = 2 * (REQUESTS + WARM_UP_REQUESTS);

/// Allocations of work beside the requests, such as a look at the clock's zone.
const OTHER_ALLOCATIONS_MAX: f64 = 0.2;

/// The bytes of a request of [`application`]: begin, two parameters and their end, end of body.
const FASTCGI_REQUEST_BYTES: usize = 16 + 24 + 8 + 8;

/// A FastCGI application that answers each request with these pieces, a moment after each other, on
/// as many connections, with as many requests each; and a server before it.
fn application(pieces: &[&[u8]], connections: usize, requests: usize) -> (Origin, Server) {
    let mut round = vec![Step::ReadBytes(FASTCGI_REQUEST_BYTES)];
    for piece in pieces {
        if round.len() > 1 {
            round.push(Step::DelayMs(1));
        }
        round.push(Step::send(piece));
    }
    let script: Vec<Step> = std::iter::repeat_n(round, requests).flatten().collect();
    let origin = Origin::start(vec![script; connections]);
    let keep = if connections == 1 { "on" } else { "off" };
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            events {{ }}
            http {{
                access_log off;
                upstream application {{ server 127.0.0.1:{}; keepalive 8; }}
                fastcgi_keep_conn {keep};
                fastcgi_param A b;
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ fastcgi_pass application; }}
                    location = /status {{ stub_status; }}
                }}
            }}",
            origin.port()
        ))
        .start();
    (origin, server)
}

/// A record of FastCGI without padding.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// The body's bytes, and where the answer is cut into pieces; then what its request takes on a kept
/// connection: receives, and all calls but those that wait.
const APPLICATIONS: &[(usize, &[usize], f64, f64)] = &[
    // The client's request, and all of the answer.
    (600, &[], 2.0, 4.0),
    // What is left of the record is read with what ends the answer.
    (16 * 1024, &[], 2.0, 4.0),
    // As PHP sends a page that does not fit into its buffer: each piece is one more receive, and
    // the first is acknowledged, or the others would be held back.
    (16 * 1024, &[70, 70 + 16 * 1024], 4.0, 7.0),
];

#[test]
fn an_answer_in_records_takes_two_sends_and_neither_task_nor_allocation() {
    for (body_bytes, cuts, receives, all) in APPLICATIONS {
        let stdout = [b"Content-Type: text/plain\r\nX-Powered-By: PHP/8.2.29\r\n\r\n".as_slice()];
        let mut answer = record(6, &stdout.concat());
        answer.extend(record(6, &vec![b'x'; *body_bytes]));
        answer.extend(record(3, &[0; 8]));
        let mut pieces = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().copied().chain([answer.len()]) {
            pieces.push(&answer[at..cut]);
            at = cut;
        }
        let (_origin, server) = application(&pieces, 1, ROUNDS);
        let calls = calls(&server, *body_bytes);
        let shown = format!("{body_bytes} bytes cut at {cuts:?}: {calls:?}");
        assert!(sum(&calls, SENDS) <= 2.2, "{shown}");
        // On a busy machine a piece may come so late that the others leave before it.
        let late = if cuts.is_empty() { 0.1 } else { 0.9 };
        assert!(sum(&calls, RECEIVES) <= *receives + late, "{shown}");
        assert!(working(&calls) <= *all + late, "{shown}");
        let mut peer = server.connect();
        let allocations = allocations_of(&server, || {
            assert_eq!(peer.round(GET).body.len(), *body_bytes);
        });
        let most = OTHER_ALLOCATIONS_MAX + late;
        assert!(allocations <= most, "{allocations} {shown}");
    }
}

#[test]
fn an_answer_in_records_on_a_connection_of_its_own_needs_no_task() {
    let answer = [
        record(6, b"\r\n"),
        record(6, &[b'x'; 600]),
        record(3, &[0; 8]),
    ];
    let pieces = [&*answer.concat()];
    let (_origin, server) = application(&pieces, REQUESTS + WARM_UP_REQUESTS, 1);
    let calls = calls(&server, 600);
    assert_eq!(sum(&calls, &["connect"]), 1.0, "{calls:?}");
    assert!(sum(&calls, &["epoll_ctl"]) <= 1.1, "{calls:?}");
    // The request leaves with the handshake, and in one piece.
    assert!(sum(&calls, &["setsockopt"]) <= 1.1, "{calls:?}");
    // Where connecting takes until the next turn, the first send fails.
    assert!(sum(&calls, SENDS) <= 3.0, "{calls:?}");
    assert!(sum(&calls, RECEIVES) <= 2.1, "{calls:?}");
}

#[test]
fn a_small_proxied_answer_takes_four_calls_and_no_allocation_on_kept_connections() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let round = [Step::ReadHead, Step::send(answer)];
    let origin = Origin::start(vec![std::iter::repeat_n(round, ROUNDS).flatten().collect()]);
    let server = proxy(&origin);
    let calls = calls(&server, 5);
    assert_eq!(sum(&calls, SENDS), 2.0, "{calls:?}");
    assert_eq!(sum(&calls, RECEIVES), 2.0, "{calls:?}");
    assert!(working(&calls) <= 4.1, "{calls:?}");
    let mut peer = server.connect();
    let allocations = allocations_of(&server, || assert_eq!(peer.round(GET).body, b"hello"));
    assert!(allocations <= OTHER_ALLOCATIONS_MAX, "{allocations}");
}

#[test]
fn a_hit_of_a_memory_zone_takes_two_calls_and_no_allocation() {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\n\
        Content-Length: 5\r\n\r\nhello";
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]]);
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            events {{ }}
            http {{
                access_log off;
                proxy_cache_path stored keys_zone=stored:1m memory;
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ proxy_pass http://127.0.0.1:{}; proxy_cache stored; }}
                    location = /status {{ stub_status; }}
                }}
            }}",
            origin.port()
        ))
        .start();
    let calls = calls(&server, 5);
    assert_eq!(sum(&calls, SENDS), 1.0, "{calls:?}");
    assert_eq!(sum(&calls, RECEIVES), 1.0, "{calls:?}");
    assert!(working(&calls) <= 2.1, "{calls:?}");
    let mut peer = server.connect();
    let allocations = allocations_of(&server, || assert_eq!(peer.round(GET).body, b"hello"));
    assert!(allocations <= OTHER_ALLOCATIONS_MAX, "{allocations}");
}

/// The streams of a connection that ask at once.
const STREAMS: u32 = 60;

/// The frames that begin an HTTP/2 connection with windows for all answers.
fn opening() -> Vec<u8> {
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff];
    let window = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    [preface, &settings, &window].concat()
}

/// The next frame that comes: its kind, flags and payload.
fn next_frame(peer: &Peer) -> (u8, u8, Vec<u8>) {
    let mut header = [0; 9];
    peer.stream().read_exact(&mut header).unwrap();
    let [high, middle, low, kind, flags, ..] = header;
    let length = u32::from_be_bytes([0, high, middle, low]);
    let mut payload = vec![0; length as usize];
    peer.stream().read_exact(&mut payload).unwrap();
    (kind, flags, payload)
}

/// The system calls while a client asks for 16 KB on all streams at once, under these directives.
fn calls_of_streams(directives: &str) -> BTreeMap<String, f64> {
    let body = "x".repeat(16 * 1024);
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/a", &body)
        .configuration(&format!(
            "worker_processes 1;
            events {{ }}
            http {{
                access_log off;
                keepalive_requests 1000000;
                {directives}
                server {{ listen 127.0.0.1:%PORT%; http2 on; root %FOLDER%/html; }}
            }}"
        ))
        .start();
    // A file that was changed a moment ago is opened for each request.
    std::thread::sleep(SETTLING);
    let mut peer = server.connect();
    peer.send(opening());
    let mut stream = 1_u32;
    calls_of(&server, || {
        let mut requests = Vec::new();
        for _ in 0..STREAMS {
            requests.extend_from_slice(&[0, 0, 9, 1, 5]);
            requests.extend_from_slice(&stream.to_be_bytes());
            requests.extend_from_slice(b"\x82\x86\x04\x02/a\x01\x01x");
            stream += 2;
        }
        peer.send(requests);
        let (mut ended, mut received) = (0, 0);
        while ended < STREAMS {
            let (kind, flags, payload) = next_frame(&peer);
            if kind == 0 {
                received += payload.len();
                ended += u32::from(flags & 1);
            }
        }
        assert_eq!(received, body.len() * STREAMS as usize);
    })
}

#[test]
fn the_answers_of_many_streams_share_a_send() {
    let calls = calls_of_streams("open_file_cache max=10;");
    // A send carries 64 KB and a frame at most, and sockets may take a part of it.
    let sends = sum(&calls, SENDS);
    assert!(sends <= f64::from(STREAMS) / 2.0, "{calls:?}");
}

#[test]
fn requests_that_came_together_ask_once_whether_a_file_has_changed() {
    let calls = calls_of_streams("");
    // The requests come in one part, or in few.
    let asked = sum(&calls, &["newfstatat", "stat", "statx"]);
    assert!(asked <= f64::from(STREAMS) / 6.0, "{calls:?}");
}

#[test]
fn a_small_file_takes_no_allocation() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/a", "hello")
        .configuration(
            "worker_processes 1;
            events { }
            http {
                access_log off;
                open_file_cache max=10;
                server {
                    listen 127.0.0.1:%PORT%;
                    root %FOLDER%/html;
                    location = /status { stub_status; }
                }
            }",
        )
        .start();
    let mut peer = server.connect();
    let kept = allocations_of(&server, || assert_eq!(peer.round(GET).body, b"hello"));
    assert!(kept <= OTHER_ALLOCATIONS_MAX, "{kept}");
    let alone = allocations_of(&server, || {
        let answer = server.exchange("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.ends_with(b"\r\n\r\nhello"));
    });
    assert!(alone <= OTHER_ALLOCATIONS_MAX, "{alone}");
}
