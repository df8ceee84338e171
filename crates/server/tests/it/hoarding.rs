//! Clients that open as much as they may and then stand still, in every way that there is: clients
//! beside them are served, and the error log names the cause at its default level.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::{Peer, Server, wait_for};

use crate::support::frames::{
    Client, DATA, END_HEADERS, HEADERS, WINDOW_UPDATE, block, frame, get, opening,
};
use crate::support::memory::anonymous_bytes;

/// Places for waiting requests of HTTP/2 that 64 connections have.
const PLACES: u32 = 64 * 16;

/// The requests of a connection that wait at the same time: the default of
/// `http2_max_concurrent_streams`.
const STREAMS: u32 = 128;

/// More than a quarter of `send_timeout`: clients that have done nothing for so long are stalled.
const STALLED: Duration = Duration::from_millis(3_000);

/// The key and its answer that RFC 6455 section 1.3 has as an example.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// What clients of HTTP/2 hoard.
struct Hoard {
    name: &'static str,
    /// The window for the body of each response.
    window: u32,
    /// A request on that stream.
    request: fn(u32) -> Vec<u8>,
    /// What keeps the request going now and then.
    drip: fn(u32) -> Vec<u8>,
    /// How the log calls these requests.
    reason: &'static str,
}

const HOARDS: &[Hoard] = &[
    Hoard {
        name: "answers that no window takes",
        window: 0,
        request: |stream| get(stream, "/file", &[]),
        drip: |_| Vec::new(),
        reason: "32 (stalled), 0 (slow)",
    },
    Hoard {
        name: "windows that drip",
        window: 0,
        request: |stream| get(stream, "/file", &[]),
        drip: |stream| frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1]),
        reason: "0 (stalled), 32 (slow)",
    },
    Hoard {
        name: "bodies that never come",
        window: 65_535,
        request: |stream| with_body(stream, "PUT", "/upload", &[]),
        drip: |_| Vec::new(),
        reason: "32 (stalled), 0 (slow)",
    },
    Hoard {
        name: "bodies that drip",
        window: 65_535,
        request: |stream| with_body(stream, "PUT", "/upload", &[]),
        drip: |stream| frame(DATA, 0, stream, b"a byte"),
        reason: "0 (stalled), 32 (slow)",
    },
];

/// The head of a request whose body is to come.
fn with_body(stream: u32, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.test"),
    ];
    let block = block(&[&fields, more].concat());
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// The servers behind ours.
#[derive(Clone, Copy)]
struct Origins {
    /// Answers requests of HTTP/1 by a short text, and opens tunnels.
    http1: u16,
    /// Accepts everything and says nothing.
    silent: u16,
    /// Answers by a body without end.
    endless: u16,
}

/// Our server, whose error log has that level.
fn server(level: &str, origins: Origins) -> Server {
    let Origins {
        http1,
        silent,
        endless,
    } = origins;
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/file", "x".repeat(4_000))
        .file("html/large", "x".repeat(16 << 20))
        .configuration(&format!(
            "error_log %FOLDER%/error.log {level};
            worker_processes 1;
            events {{ worker_connections 64; }}
            http {{
                send_timeout 6s;
                client_body_timeout 1h;
                grpc_read_timeout 1h;
                proxy_read_timeout 1h;
                access_log off;
                server {{
                    listen 127.0.0.1:%PORT% sndbuf=16k;
                    http2 on;
                    root %FOLDER%/html;
                    location = /status {{ status text; }}
                    location /proxied {{ proxy_pass http://127.0.0.1:{http1}/; }}
                    location /endless {{
                        proxy_pass http://127.0.0.1:{endless};
                        proxy_max_temp_file_size 0;
                    }}
                    location /upload {{ dav_methods PUT; }}
                    location /grpc {{ grpc_pass 127.0.0.1:{silent}; }}
                    location /socket {{
                        proxy_pass http://127.0.0.1:{http1}/;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $http_connection;
                    }}
                }}
            }}"
        ))
        .start()
}

/// Serves each connection to a port of its own by a thread.
fn serve(serve: fn(Peer)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || serve(Peer::over(socket)));
        }
    });
    port
}

fn origins() -> Origins {
    Origins {
        http1: serve(|mut peer| {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                let Ok(1) = peer.stream().read(&mut byte) else {
                    return;
                };
                head.push(byte[0]);
            }
            if String::from_utf8_lossy(&head).contains("Upgrade: websocket") {
                peer.send(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                     Connection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
                ));
            } else {
                let fields = "Content-Length: 6\r\nConnection: close";
                peer.send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nothers"));
                peer.finish();
            }
            let _ = peer.stream().read_to_end(&mut head);
        }),
        silent: serve(|peer| {
            let _ = peer.stream().read_to_end(&mut Vec::new());
        }),
        endless: serve(|peer| {
            let mut socket = peer.stream();
            let mut sent = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while sent.is_ok() {
                sent = socket.write_all(&[b'x'; 16 * 1024]);
            }
        }),
    }
}

/// Connections of HTTP/2 with as many waiting requests as there are places, and the one of each
/// connection that needs none; with how many each has.
fn hoard(server: &Server, hoard: &Hoard) -> Vec<(Client, u32)> {
    let mut left = PLACES;
    let mut clients = Vec::new();
    while left > 0 {
        let streams = (left + 1).min(STREAMS);
        left -= streams - 1;
        let mut client = Client::connect(server, &opening(hoard.window));
        let requests = (0..streams).map(|number| (hoard.request)(2 * number + 1));
        client.send(&requests.collect::<Vec<_>>().concat());
        assert!(client.is_served(), "{}", hoard.name);
        clients.push((client, streams));
    }
    clients
}

/// Waits until a count of the status page is that high.
fn wait_for_count(server: &Server, name: &str, expected: u32) {
    let count = || {
        let text = server.get("/status").text();
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap().parse::<u32>().unwrap()
    };
    let reached = wait_for(|| (count() == expected).then_some(()));
    assert!(
        reached.is_some(),
        "{name} is {}, not {expected}\n{}",
        count(),
        server.log("error.log")
    );
}

/// Has the server answer three requests at a time over HTTP/2, with windows that open late.
fn ask_over_http2(server: &Server, name: &str) {
    let mut client = Client::connect(server, &opening(0));
    let streams = [1, 3, 5];
    client.send(&streams.map(|stream| get(stream, "/file", &[])).concat());
    assert!(client.is_served(), "{name}");
    for stream in streams {
        client.widen(stream, 4_000);
    }
    for _ in streams {
        assert_eq!(client.data().payload.len(), 4_000, "{name}");
    }
}

#[test]
fn requests_of_http2_that_stand_still_leave_room_for_others() {
    let origins = origins();
    thread::scope(|scope| {
        for one in HOARDS {
            scope.spawn(move || {
                let server = server("error", origins);
                let mut clients = hoard(&server, one);
                let waiting = PLACES + clients.len() as u32;
                wait_for_count(&server, "http_streams_waiting", waiting);
                // Connections are another matter: these are not touched by any number of requests.
                for _ in 0..16 {
                    assert_eq!(server.get("/file").status, 200, "{}", one.name);
                    assert_eq!(server.get("/proxied").text(), "others", "{}", one.name);
                }
                thread::sleep(STALLED);
                for (client, streams) in &mut clients {
                    let drips = (0..*streams).map(|number| (one.drip)(2 * number + 1));
                    client.send(&drips.collect::<Vec<_>>().concat());
                    assert!(client.is_served(), "{}", one.name);
                }
                ask_over_http2(&server, one.name);
                wait_for_count(&server, "http_streams_made_room", 32);
                server.wait_for_log(
                    "error.log",
                    &format!(
                        "64 worker_connections allow {PLACES} waiting HTTP/2 requests, \
                         which are not enough; requests closed to make room: {}; refused: 0",
                        one.reason
                    ),
                );
            });
        }
    });
}

/// HTTP/2 requests that may wait for upstream servers at a time, with 64 connections: a few are
/// left for others.
const UPSTREAM_PLACES: u32 = 60;

/// What a request is called, and how it is made on a stream.
type Request = (&'static str, fn(u32) -> Vec<u8>);

/// Requests that hold connections to upstream servers, on a stream each.
const UPSTREAM_HOARDS: &[Request] = &[
    ("answers that no window takes", |stream| {
        get(stream, "/proxied", &[])
    }),
    ("bodies that never come", |stream| {
        with_body(stream, "POST", "/proxied", &[])
    }),
    ("tunnels without traffic", |stream| {
        let fields = [
            (":protocol", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", KEY),
        ];
        with_body(stream, "CONNECT", "/socket", &fields)
    }),
    ("calls of gRPC without messages", |stream| {
        let fields = [("content-type", "application/grpc"), ("te", "trailers")];
        with_body(stream, "POST", "/grpc", &fields)
    }),
];

#[test]
fn requests_of_http2_that_hold_upstream_connections_leave_room_for_others() {
    let origins = origins();
    thread::scope(|scope| {
        for (name, request) in UPSTREAM_HOARDS {
            scope.spawn(move || {
                let server = server("error", origins);
                let mut client = Client::connect(&server, &opening(0));
                let requests = (0..UPSTREAM_PLACES).map(|number| request(2 * number + 1));
                client.send(&requests.collect::<Vec<_>>().concat());
                assert!(client.is_served(), "{name}");
                for _ in 0..16 {
                    assert_eq!(server.get("/proxied").text(), "others", "{name}");
                }
                thread::sleep(STALLED);
                let mut other = Client::connect(&server, &opening(65_535));
                other.send(&get(1, "/proxied", &[]));
                assert_eq!(other.data().payload, b"others", "{name}");
                server.wait_for_log(
                    "error.log",
                    "64 worker_connections are not enough for HTTP/2 requests to upstream \
                     servers; requests closed to make room: 32 (stalled), 0 (slow); refused: 0",
                );
            });
        }
    });
}

#[test]
fn idle_connections_of_http2_make_room_for_new_ones() {
    let server = server("warn", origins());
    let idle: Vec<_> = (0..64)
        .map(|_| {
            let mut client = Client::connect(&server, &opening(65_535));
            client.send(&get(1, "/file", &[]));
            assert_eq!(client.data().payload.len(), 4_000);
            client
        })
        .collect();
    for _ in 0..16 {
        assert_eq!(server.get("/file").status, 200);
    }
    wait_for_count(&server, "made_room", 32);
    drop(idle);
}

/// A client that takes a connection, and does no more.
struct Silent {
    name: &'static str,
    /// What it sends.
    sends: fn() -> Vec<u8>,
    /// Whether it waits for an answer first.
    is_answered: bool,
    /// What the log says of the first connections that are closed.
    reason: &'static str,
}

const SILENT: &[Silent] = &[
    Silent {
        name: "nothing at all",
        sends: Vec::new,
        is_answered: false,
        reason: "slow to send a request",
    },
    Silent {
        name: "half a head",
        sends: || b"GET / HTTP/1.1\r\nHo".to_vec(),
        is_answered: false,
        reason: "slow to send a request",
    },
    Silent {
        name: "one request, and no more",
        sends: || b"GET /file HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        is_answered: true,
        reason: "idle",
    },
    Silent {
        name: "an answer that it does not read",
        sends: || b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        is_answered: false,
        reason: "stalled",
    },
    Silent {
        name: "a proxied answer that it does not read",
        sends: || b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        is_answered: false,
        reason: "stalled",
    },
    Silent {
        name: "a body that never comes",
        sends: || b"PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n".to_vec(),
        is_answered: false,
        reason: "stalled",
    },
    Silent {
        name: "a tunnel without traffic",
        sends: || {
            format!(
                "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
            )
            .into()
        },
        is_answered: true,
        reason: "stalled",
    },
    Silent {
        name: "the preface of HTTP/2",
        sends: || opening(0),
        is_answered: false,
        reason: "idle",
    },
    Silent {
        name: "half the preface of HTTP/2",
        sends: || b"PRI * HTTP/2.0\r\n\r\nSM".to_vec(),
        is_answered: false,
        reason: "slow to send a request",
    },
    Silent {
        name: "half a head of HTTP/2",
        sends: || [opening(0), frame(HEADERS, 0, 1, b"\x82")].concat(),
        is_answered: false,
        reason: "idle",
    },
    Silent {
        name: "a request of HTTP/2 whose answer no window takes",
        sends: || [opening(0), get(1, "/file", &[])].concat(),
        is_answered: false,
        reason: "stalled",
    },
];

#[test]
fn connections_that_stand_still_leave_room_for_others() {
    let origins = origins();
    thread::scope(|scope| {
        for one in SILENT {
            scope.spawn(move || {
                let server = server("warn", origins);
                let silent: Vec<_> = (0..64)
                    .map(|_| {
                        let mut peer = server.connect();
                        peer.send((one.sends)());
                        if one.is_answered {
                            assert!(peer.stream().read(&mut [0; 16 * 1024]).unwrap() > 0);
                        }
                        peer
                    })
                    .collect();
                thread::sleep(STALLED);
                // When the last byte of a connection moves is up to the machine.
                let is_served = || (server.get("/proxied").text() == "others").then_some(());
                assert!(wait_for(is_served).is_some(), "{}", one.name);
                for _ in 0..16 {
                    assert_eq!(server.get("/file").status, 200, "{}", one.name);
                    assert_eq!(server.get("/proxied").text(), "others", "{}", one.name);
                }
                let log = server.log("error.log");
                let line = "64 worker_connections are not enough; connections closed to make room:";
                let is_named = |found: &str| {
                    found.contains(line) && found.ends_with(&format!("({})", one.reason))
                };
                assert!(log.lines().any(is_named), "{}: {log}", one.name);
                drop(silent);
            });
        }
    });
}

/// Connections of each hoard in the long test: more requests than a lane has places with the
/// default of `worker_connections`.
const LONG_CLIENTS: usize = 14;

/// How long a client of the long test keeps its requests going before it comes back.
const LONG_TURN: Duration = Duration::from_secs(20);

/// Bytes above what a server held before that may stay when all have gone.
const LEFT_BYTES_MAX: u64 = 10 << 20;

/// What a server has made of the long test.
struct Outcome {
    served: u32,
    failed: u32,
    most_bytes: u64,
    left_bytes: u64,
    log: String,
}

/// Lets clients hoard for `time`, and another one ask all the while.
fn hoard_for(server: &Server, time: Duration) -> Outcome {
    let process = u64::from(server.serving_pids()[0]);
    let rest_bytes = anonymous_bytes(process);
    let end = Instant::now() + time;
    let (mut served, mut failed, mut most_bytes) = (0, 0, 0);
    thread::scope(|scope| {
        for one in HOARDS.iter().flat_map(|one| [one; LONG_CLIENTS]) {
            scope.spawn(move || {
                while Instant::now() < end {
                    let mut client = Client::connect(server, &opening(one.window));
                    let requests = (0..STREAMS).map(|number| (one.request)(2 * number + 1));
                    client.send(&requests.collect::<Vec<_>>().concat());
                    let back = Instant::now() + LONG_TURN;
                    while Instant::now() < back.min(end) {
                        thread::sleep(STALLED);
                        let drips = (0..STREAMS).map(|number| (one.drip)(2 * number + 1));
                        client.send(&drips.collect::<Vec<_>>().concat());
                    }
                }
            });
        }
        while Instant::now() < end {
            if is_served_at(server.port_named("PLAIN")) {
                served += 1;
            } else {
                failed += 1;
            }
            most_bytes = anonymous_bytes(process).max(most_bytes);
            thread::sleep(Duration::from_millis(20));
        }
    });
    let left_bytes = || anonymous_bytes(process).saturating_sub(rest_bytes);
    wait_for(|| (left_bytes() <= LEFT_BYTES_MAX).then_some(()));
    Outcome {
        served,
        failed,
        most_bytes,
        left_bytes: left_bytes(),
        log: server.log("error.log"),
    }
}

/// Whether a new client of HTTP/1 is answered within the time that people wait.
fn is_served_at(port: u16) -> bool {
    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let request = b"GET /file HTTP/1.0\r\n\r\n";
    let mut answer = Vec::new();
    let patience = Some(Duration::from_secs(5));
    let asked = socket
        .set_read_timeout(patience)
        .and_then(|()| socket.write_all(request));
    asked.is_ok()
        && socket.read_to_end(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200 OK\r\n")
}

/// A configuration that both servers take.
const LONG: &str = "
    error_log %FOLDER%/error.log;
    worker_processes 1;
    events { }
    http {
        access_log off;
        client_body_timeout 1h;
        root %FOLDER%/html;
        server {
            listen 127.0.0.1:%PORT% http2;
            location /upload { dav_methods PUT; }
            location /proxied { proxy_pass http://127.0.0.1:%PORT_PLAIN%/file; }
        }
        server { listen 127.0.0.1:%PORT_PLAIN%; }
    }";

#[test]
#[ignore = "three minutes for each server: in make test-long"]
fn hoards_of_minutes_fail_no_other_client_beside_nginx() {
    let seconds = std::env::var("TURNPIKE_TEST_SECONDS").ok();
    let seconds = seconds.map_or(180, |text| text.parse().unwrap());
    let outcomes = [env!("CARGO_BIN_EXE_turnpike"), "/usr/sbin/nginx"].map(|program| {
        let server = Server::builder(program)
            .file("html/file", "x".repeat(4_000))
            .configuration(LONG)
            .start();
        let outcome = hoard_for(&server, Duration::from_secs(seconds));
        println!(
            "{program}: {} served, {} failed, {} KiB at most, {} KiB left",
            outcome.served,
            outcome.failed,
            outcome.most_bytes / 1024,
            outcome.left_bytes / 1024
        );
        outcome
    });
    let [own, _] = outcomes;
    assert_eq!(own.failed, 0, "{}", own.log);
    assert!(own.served > 0);
    assert!(own.left_bytes <= LEFT_BYTES_MAX, "{}", own.left_bytes);
    assert!(
        own.log
            .contains("512 worker_connections allow 8192 waiting HTTP/2 requests"),
        "{}",
        own.log
    );
}
