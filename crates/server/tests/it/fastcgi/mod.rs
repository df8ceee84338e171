//! Tests of `fastcgi_pass` with scripted applications: their requests, and responses from valid,
//! malformed, cut and endless answers.

mod php;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use turnpike_testkit::{Origin, Server, Step, wait_for};

/// The bytes of the request that `ONE_PARAMETER` makes: begin, parameters and their end, end of
/// body.
const REQUEST_BYTES: usize = 16 + 16 + 8 + 8;

/// One parameter and no fields, so that the request has a known length.
const ONE_PARAMETER: &str =
    "fastcgi_pass_request_headers off; fastcgi_param A b; fastcgi_param HTTP_HOST '';";

/// More than a task that has begun to wait lets pass by chance.
const OTHER_REQUESTS: usize = 8;

const STDOUT: u8 = 6;
const STDERR: u8 = 7;

fn record(kind: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let padding = content.len().next_multiple_of(8) - content.len();
    let [high, low] = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, kind, 0, 1, high, low, padding as u8, 0];
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

fn stdout(text: &str) -> Vec<u8> {
    record(STDOUT, text)
}

fn stderr(text: &str) -> Vec<u8> {
    record(STDERR, text)
}

fn end() -> Vec<u8> {
    record(3, [0; 8])
}

fn server(origin: &Origin, http: &str, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            server_tokens off;
            {http}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ fastcgi_pass 127.0.0.1:%ORIGIN%; {directives} }}
                location /other {{ return 200 other; }}
            }}
        }}"
    );
    let configuration = configuration.replace("%ORIGIN%", &origin.port().to_string());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// An application that answers its one-parameter request with these bytes.
fn application(answer: Vec<u8>) -> Origin {
    Origin::start(vec![vec![
        Step::ReadBytes(REQUEST_BYTES),
        Step::Send(answer),
    ]])
}

/// The bytes that the client receives, in HTTP/1.1, until the connection is closed.
fn received(server: &Server, method: &str) -> String {
    let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    String::from_utf8_lossy(&server.exchange(request)).into_owned()
}

/// Directives, the application's records, the beginning and a part of the client's response, and a
/// part of the error log.
struct Case {
    directives: &'static str,
    answer: fn() -> Vec<u8>,
    begins: &'static str,
    holds: &'static str,
    logged: &'static str,
}

const CASES: &[Case] = &[
    Case {
        directives: "",
        answer: || [stdout("X-A: b\r\nContent-Length: 4\r\n\r\nbody"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "X-A: b\r\n\r\nbody",
        logged: "",
    },
    Case {
        directives: "",
        answer: || [stdout("Status: 404 Gone\n\nbo"), stdout("dy"), end()].concat(),
        begins: "HTTP/1.1 404 Gone\r\n",
        holds: "\r\n0\r\n\r\n",
        logged: "",
    },
    Case {
        directives: "",
        answer: || {
            [
                stdout("Loca"),
                stdout("tion: /a\r\n\r"),
                stdout("\n"),
                end(),
            ]
            .concat()
        },
        begins: "HTTP/1.1 302 ",
        holds: "Location: /a\r\n",
        logged: "",
    },
    Case {
        directives: "",
        answer: || [stdout("Server: own\r\n\r\n"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "Server: own\r\n",
        logged: "",
    },
    Case {
        directives: "",
        answer: || [stderr("PHP message: oops\n"), stdout("\r\n"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "Server: nginx\r\n",
        logged: "FastCGI sent in stderr: \"PHP message: oops\" while reading response header from \
                 upstream",
    },
    Case {
        directives: "fastcgi_catch_stderr oops;",
        answer: || [stderr("some oops here"), stdout("\r\n"), end()].concat(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "some oops here",
    },
    Case {
        directives: "fastcgi_catch_stderr oops;",
        answer: || [stdout("\r\n"), stderr("oops"), stdout("late"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "late",
        logged: "FastCGI sent in stderr: \"oops\"",
    },
    Case {
        directives: "",
        answer: || [stdout("X-Accel-Redirect: /other\r\n\r\n"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "other",
        logged: "",
    },
    Case {
        directives: "fastcgi_hide_header X-A; fastcgi_intercept_errors on; error_page 500 /other;",
        answer: || [stdout("Status: 500\r\n\r\nown"), end()].concat(),
        begins: "HTTP/1.1 500 ",
        holds: "other",
        logged: "",
    },
    Case {
        directives: "",
        answer: || b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream sent unsupported FastCGI protocol version: 72",
    },
    Case {
        directives: "",
        answer: || record(9, "x"),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream sent invalid FastCGI record type: 9",
    },
    Case {
        directives: "",
        answer: || [1, STDOUT, 2, 1, 0, 0, 0, 0].to_vec(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream sent unexpected FastCGI request id high byte: 2",
    },
    Case {
        directives: "",
        answer: || [stdout("X-A: b\r\n"), end()].concat(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream prematurely closed FastCGI request",
    },
    Case {
        directives: "",
        answer: || [stdout("X-A: b\r\n"), stdout("")].concat(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream prematurely closed FastCGI stdout",
    },
    Case {
        directives: "",
        answer: || [stdout("Status: up\r\n\r\n"), end()].concat(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream sent invalid status",
    },
    Case {
        directives: "",
        answer: || [stdout(&format!("X-A: {}\r\n\r\n", "b".repeat(5000))), end()].concat(),
        begins: "HTTP/1.1 502 ",
        holds: "",
        logged: "upstream sent too big header",
    },
    Case {
        directives: "",
        answer: || [stdout("Content-Length: 4\r\n\r\nbodysurplus"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "\r\n\r\nbody",
        logged: "upstream sent more data than specified in \"Content-Length\" header",
    },
    Case {
        directives: "",
        answer: || [stdout("Content-Length: 9\r\n\r\nbody"), end()].concat(),
        begins: "HTTP/1.1 200 OK\r\n",
        holds: "\r\n\r\nbody",
        logged: "upstream prematurely closed FastCGI request",
    },
];

#[test]
fn answers_of_an_application_become_responses() {
    for (number, case) in CASES.iter().enumerate() {
        let origin = application((case.answer)());
        let directives = format!("{ONE_PARAMETER} {}", case.directives);
        let server = server(&origin, "", &directives);
        let response = received(&server, "GET");
        let shown = format!("case {number}: {response}");
        assert!(response.starts_with(case.begins), "{shown}");
        assert!(response.contains(case.holds), "{shown}");
        assert!(!response.contains("surplus") && !response.contains("\r\nStatus:"));
        server.wait_for_log("error.log", case.logged);
    }
}

/// A server of one lane in front of an application on this port.
fn lane_before(port: u16, directives: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            lane_rescue_timeout off;
            error_log /dev/null;
            events {{ }}
            http {{
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ fastcgi_pass 127.0.0.1:{port}; {directives} }}
                    location /other {{ return 200 other; }}
                }}
            }}"
        ))
        .start()
}

#[test]
fn an_endless_error_stream_leaves_the_lane_to_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = lane_before(listener.local_addr().unwrap().port(), ONE_PARAMETER);
    let begun = AtomicBool::new(false);
    // The server logs each of these, which takes longer than sending them.
    let flood = stderr("!").repeat(4096);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; REQUEST_BYTES]).unwrap();
            while stream.write_all(&flood).is_ok() {
                begun.store(true, Ordering::Release);
            }
        });
        let mut asking = server.connect();
        asking.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let is_begun = || begun.load(Ordering::Acquire).then_some(());
        let is_begun = wait_for(is_begun);
        let ask = || (0..OTHER_REQUESTS).map(|_| server.get("/other").text());
        let others = std::panic::catch_unwind(|| ask().all(|text| text == "other"));
        // Its end is that of the flood.
        drop(server);
        assert_eq!(is_begun, Some(()));
        assert_eq!(others.ok(), Some(true));
    });
}

#[test]
fn a_cut_answer_is_cut_for_the_client_too() {
    let origin = application([stdout("\r\nbody")].concat());
    let server = server(&origin, "", ONE_PARAMETER);
    let response = received(&server, "GET");
    assert!(response.contains("body"), "{response}");
    assert!(!response.contains("\r\n0\r\n\r\n"), "{response}");
    server.wait_for_log("error.log", "upstream prematurely closed connection");
}

#[test]
fn an_application_that_closes_may_leave_the_end_out() {
    let origin = application([stdout("\r\nbody"), stdout("")].concat());
    let server = server(&origin, "", ONE_PARAMETER);
    assert!(received(&server, "GET").ends_with("body\r\n0\r\n\r\n"));
}

#[test]
fn a_head_has_no_body_for_head() {
    let origin = application([stdout("Content-Length: 4\r\n\r\nbody"), end()].concat());
    let server = server(&origin, "", ONE_PARAMETER);
    let response = received(&server, "HEAD");
    assert!(response.contains("Content-Length: 4\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
}

#[test]
fn a_request_is_begin_parameters_and_body() {
    let origin = Origin::start(vec![vec![
        Step::ReadBytes(16 + 136 + 8 + 16 + 8),
        Step::Send([stdout("\r\n"), end()].concat()),
    ]]);
    let server = server(
        &origin,
        "",
        "fastcgi_param A $request_method; fastcgi_param EMPTY $arg_none if_not_empty;
        fastcgi_param HTTP_X_SET own; fastcgi_param NONE $arg_none;
        fastcgi_param HTTP_PROXY \"\";",
    );
    let request = "POST /a HTTP/1.1\r\nHost: localhost\r\nX-Set: theirs\r\nProxy: p\r\nX-F: 1\r\n\
                   Cookie: a=1\r\nX-F: 2\r\nCookie: b=2\r\nContent-Length: 5\r\n\
                   Connection: close\r\n\r\n12345";
    server.exchange(request);
    let received = origin.received().remove(0);
    let params: &[(&str, &str)] = &[
        ("A", "POST"),
        ("HTTP_X_SET", "own"),
        ("NONE", ""),
        ("HTTP_HOST", "localhost"),
        ("HTTP_X_F", "1, 2"),
        ("HTTP_COOKIE", "a=1; b=2"),
        ("HTTP_CONTENT_LENGTH", "5"),
        ("HTTP_CONNECTION", "close"),
    ];
    let mut content = Vec::new();
    for (name, value) in params {
        content.extend_from_slice(&[name.len() as u8, value.len() as u8]);
        content.extend_from_slice(name.as_bytes());
        content.extend_from_slice(value.as_bytes());
    }
    let begin = [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let expected = [
        begin.to_vec(),
        record(4, &content),
        record(4, ""),
        record(5, "12345"),
        record(5, ""),
    ]
    .concat();
    let shown = String::from_utf8_lossy(&received);
    assert_eq!(received, expected[..received.len()], "{shown}");
    assert_eq!(received.len(), 16 + 136 + 8 + 16 + 8, "{content:?}");
}

#[test]
fn a_connection_is_kept_if_both_sides_want_it() {
    let answer = || Step::Send([stdout("Content-Length: 2\r\n\r\nok"), end()].concat());
    let read = || Step::ReadBytes(REQUEST_BYTES);
    let origin = Origin::start(vec![vec![read(), answer(), read(), answer()]]);
    let upstream = format!(
        "upstream u {{ server 127.0.0.1:{}; keepalive 2; }}",
        origin.port()
    );
    let directives =
        format!("{ONE_PARAMETER} location /kept {{ fastcgi_pass u; fastcgi_keep_conn on; }}");
    let server = server(&origin, &upstream, &directives);
    for _ in 0..2 {
        assert_eq!(server.get("/kept").text(), "ok");
    }
    let received = origin.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].len(), 2 * REQUEST_BYTES);
    assert_eq!(received[0][10], 1);
}

/// A server that keeps connections to this application, and asks it at `/kept` under these
/// directives.
fn keeping(origin: &Origin, directives: &str) -> Server {
    let upstream = format!(
        "fastcgi_cache_path %FOLDER%/cache keys_zone=z:1m;
        upstream u {{ server 127.0.0.1:{}; keepalive 2; }}",
        origin.port()
    );
    let kept = format!(
        "{ONE_PARAMETER} location /kept {{
            fastcgi_pass u; fastcgi_keep_conn on; {directives}
        }}"
    );
    server(origin, &upstream, &kept)
}

/// What the pieces of an answer meet, and where it is cut.
const CUTS: &[(&str, &[usize])] = &[
    ("", &[]),
    // Within the first header, the head, its padding, the next header and the body.
    ("", &[3, 20, 29, 35, 5000]),
    // Behind the head, and before the last record.
    ("", &[32, 9040]),
    ("", &[9040, 9044]),
    ("fastcgi_buffering off;", &[20, 5000]),
    (
        "fastcgi_buffers 2 1k; fastcgi_busy_buffers_size 1k; fastcgi_buffer_size 1k;",
        &[20, 5000],
    ),
    ("fastcgi_limit_rate 1m;", &[5000]),
    (
        "fastcgi_cache z; fastcgi_cache_key $request_id; fastcgi_cache_valid 1m;",
        &[5000, 9040],
    ),
    ("gzip on; gzip_types *; gunzip on;", &[32, 5000]),
];

#[test]
fn answers_come_in_any_pieces() {
    let letters = (0..9000).map(|at| char::from(b'a' + (at % 23) as u8));
    let body: String = letters.collect();
    // 32 bytes, 6 of them padding.
    let head = stdout("X-A: 3456789012\r\n\r\n");
    let answer = [head, stdout(&body), end()].concat();
    for (number, (directives, cuts)) in CUTS.iter().enumerate() {
        let mut round = vec![Step::ReadBytes(REQUEST_BYTES)];
        let ends = cuts.iter().copied().chain([answer.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        for (start, end) in starts.zip(ends) {
            round.extend([Step::Send(answer[start..end].to_vec()), Step::DelayMs(2)]);
        }
        let script = std::iter::repeat_n(round, 3).flatten().collect();
        let origin = Origin::start(vec![script]);
        let server = keeping(&origin, directives);
        for _ in 0..3 {
            let response = server.get("/kept");
            let shown = format!("case {number}: {}", response.head);
            assert_eq!(response.header("X-A"), Some("3456789012"), "{shown}");
            assert_eq!(response.text(), body, "{shown}");
        }
        assert_eq!(origin.received().len(), 1, "case {number}");
    }
}

/// The pieces of an answer, whether the client gets all of it, and whether its connection carries
/// the next request.
struct End {
    name: &'static str,
    pieces: fn() -> Vec<Vec<u8>>,
    is_whole: bool,
    is_kept: bool,
}

const ENDS: &[End] = &[
    End {
        name: "the last record behind the body",
        pieces: || vec![[stdout("\r\nbody"), end()].concat()],
        is_whole: true,
        is_kept: true,
    },
    End {
        name: "the last record by itself",
        pieces: || vec![stdout("\r\nbody"), end()],
        is_whole: true,
        is_kept: true,
    },
    End {
        name: "complaints around the end",
        pieces: || {
            let body = [stdout("\r\nbody"), stdout(""), stderr("late")].concat();
            vec![body, [stderr("later"), end()].concat()]
        },
        is_whole: true,
        is_kept: true,
    },
    End {
        name: "more behind the last record",
        pieces: || vec![[stdout("\r\nbody"), end(), stdout("HTTP/1.1")].concat()],
        is_whole: true,
        is_kept: false,
    },
    End {
        name: "more than the length says",
        pieces: || vec![[stdout("Content-Length: 4\r\n\r\nbodysurplus"), end()].concat()],
        is_whole: true,
        is_kept: false,
    },
    End {
        name: "less than the length says",
        pieces: || vec![[stdout("Content-Length: 9\r\n\r\nbody"), end()].concat()],
        is_whole: false,
        is_kept: false,
    },
    End {
        name: "what is no record behind the body",
        pieces: || vec![stdout("\r\nbo"), [stdout("dy"), record(9, "x")].concat()],
        is_whole: false,
        is_kept: false,
    },
    End {
        name: "an open record",
        pieces: || vec![stdout("\r\nbo"), stdout("dy--------")[..10].to_vec()],
        is_whole: false,
        is_kept: false,
    },
    End {
        name: "no last record",
        pieces: || vec![stdout("\r\nbody"), stdout("")],
        is_whole: true,
        is_kept: false,
    },
];

#[test]
fn a_connection_is_kept_if_the_answer_was_read_to_its_end() {
    for case in ENDS {
        let name = case.name;
        let mut script = vec![Step::ReadBytes(REQUEST_BYTES)];
        for piece in (case.pieces)() {
            script.extend([Step::Send(piece), Step::DelayMs(20)]);
        }
        let ok = || Step::Send([stdout("\r\nnext"), end()].concat());
        if case.is_kept {
            script.extend([Step::ReadBytes(REQUEST_BYTES), ok()]);
        }
        let next = vec![Step::ReadBytes(REQUEST_BYTES), ok(), Step::ReadToEnd];
        let origin = Origin::start(vec![script, next]);
        let server = keeping(&origin, "");
        let mut peer = server.connect();
        peer.send("GET /kept HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let received = String::from_utf8_lossy(&peer.rest()).into_owned();
        assert!(
            received.starts_with("HTTP/1.1 200 OK\r\n"),
            "{name}: {received}"
        );
        assert!(
            received.contains("bo") && !received.contains("surplus"),
            "{name}: {received}"
        );
        let is_whole = received.ends_with("\r\n0\r\n\r\n") || received.ends_with("\r\n\r\nbody");
        let lacks = received.contains("Content-Length: 9");
        assert_eq!(is_whole && !lacks, case.is_whole, "{name}: {received}");
        assert_eq!(server.get("/kept").text(), "next", "{name}");
        assert_eq!(origin.received().len() == 1, case.is_kept, "{name}");
    }
}

#[test]
fn what_comes_before_a_long_pause_is_passed_on() {
    for first in [
        stdout("\r\nfirst"),
        stdout("\r\nfirst, and more")[..15].to_vec(),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = lane_before(listener.local_addr().unwrap().port(), ONE_PARAMETER);
        let mut peer = server.connect();
        peer.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (mut application, _) = listener.accept().unwrap();
        application.read_exact(&mut [0; REQUEST_BYTES]).unwrap();
        application.write_all(&first).unwrap();
        // Nothing else comes before the client has this.
        let mut received = Vec::new();
        while !received.ends_with(b"first\r\n") {
            let mut byte = [0];
            peer.stream().read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
    }
}

#[test]
fn the_next_server_is_tried_after_an_invalid_answer() {
    let answers = vec![
        vec![Step::ReadBytes(REQUEST_BYTES), Step::Send(end())],
        vec![
            Step::ReadBytes(REQUEST_BYTES),
            Step::Send([stdout("\r\nsecond"), end()].concat()),
        ],
    ];
    let origin = Origin::start(answers);
    let port = origin.port();
    let upstream = format!(
        "upstream u {{ server 127.0.0.1:{port} max_fails=0; server 127.0.0.1:{port} max_fails=0; }}"
    );
    let directives = format!(
        "{ONE_PARAMETER} location /next {{
            fastcgi_pass u; fastcgi_next_upstream invalid_header;
        }}"
    );
    let server = server(&origin, &upstream, &directives);
    assert_eq!(server.get("/next").text(), "second");
}

#[test]
fn responses_are_cached_by_host_and_target() {
    let answer = |text: &str| {
        let head = "Cache-Control: max-age=60\r\nContent-Length: 1\r\n\r\n";
        Step::Send([stdout(&format!("{head}{text}")), end()].concat())
    };
    let scripts = ["1", "2", "3"].map(|text| vec![Step::ReadBytes(REQUEST_BYTES), answer(text)]);
    let origin = Origin::start(scripts.to_vec());
    let http = "fastcgi_cache_path %FOLDER%/cache keys_zone=z:1m;";
    let directives = format!(
        "{ONE_PARAMETER} fastcgi_cache z; add_header X-Cache $upstream_cache_status;
        fastcgi_cache_bypass $arg_fresh;"
    );
    let server = server(&origin, http, &directives);
    let table = [
        ("/a", "1", "MISS"),
        ("/a", "1", "HIT"),
        ("/b", "2", "MISS"),
        ("/a", "1", "HIT"),
        ("/b?fresh=1", "3", "BYPASS"),
    ];
    for (target, text, status) in table {
        let response = server.get(target);
        assert_eq!(response.text(), text, "{target}");
        assert_eq!(response.header("X-Cache"), Some(status), "{target}");
    }
}

#[test]
fn addresses_are_checked_when_a_configuration_is_read() {
    const TABLE: &[(&str, &str)] = &[
        ("php", "no port in upstream \"php\""),
        ("127.0.0.1:", "invalid port in upstream \"127.0.0.1:\""),
        (
            "unix:",
            "no path in the unix domain socket in upstream \"unix:\"",
        ),
    ];
    for (address, words) in TABLE {
        let configuration = format!(
            "events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%;
            location / {{ fastcgi_pass {address}; }} }} }}"
        );
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .try_start();
        let error = started.err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains(words), "{address}: {error}");
    }
}
