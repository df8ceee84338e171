//! Tests of tunnels on streams of HTTP/2: extended CONNECT (RFC 8441), passed on as an upgrade; and
//! of the upgrades of any version that open none, beside an installed nginx.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use turnpike_testkit::random::Random;
use turnpike_testkit::{Peer, Server};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The key and its answer that RFC 6455 section 1.3 has as an example.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The beginnings of header blocks with these statuses.
const STATUS_200: &[u8] = b"\x88";
const STATUS_400: &[u8] = b"\x8c";
const STATUS_404: &[u8] = b"\x8d";
const STATUS_501: &[u8] = b"\x08\x82\x6c\x01";
const STATUS_502: &[u8] = b"\x08\x82\x6c\x02";

/// More than the windows of a stream that has just begun let through.
const ECHO_BYTES: usize = 300_000;

/// An origin that switches to any protocol with that answer to a key, and sends back what it gets
/// behind a greeting; and the heads that it gets.
pub(crate) fn echoing_origin() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                let mut peer = Peer::over(socket);
                let head = read_head(&mut peer)?;
                seen.lock().unwrap().push(head);
                peer.send(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                     Connection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\nhello"
                ));
                let mut piece = [0; 16 * 1024];
                loop {
                    let count = peer.stream().read(&mut piece).ok()?;
                    if count == 0 {
                        peer.finish();
                        return Some(());
                    }
                    peer.stream().write_all(&piece[..count]).ok()?;
                }
            });
        }
    });
    (port, heads)
}

fn read_head(peer: &mut Peer) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.stream().read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn server(origin: u16) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .file("html/file", "hello")
        .configuration(&format!(
            "error_log %FOLDER%/error.log info;
            events {{ }}
            http {{
                log_format short '$status $request $http_upgrade';
                access_log %FOLDER%/access.log short;
                server {{
                    listen 127.0.0.1:%PORT%;
                    http2 on;
                    root %FOLDER%/html;
                    location /socket {{
                        proxy_pass http://127.0.0.1:{origin};
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $http_connection;
                    }}
                    location /values {{ return 404 \"$http_upgrade $http_connection\"; }}
                }}
            }}"
        ))
        .start()
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let header = [&length[..], &[kind, flags, 0, 0, 0, stream]].concat();
    [&header, payload].concat()
}

/// A request for a WebSocket.
fn connect(stream: u8, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    connect_for("websocket", stream, path, more)
}

/// A request for a tunnel, with all fields as literals.
fn connect_for(protocol: &str, stream: u8, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", protocol),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.test"),
        ("sec-websocket-version", "13"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// A client's side of a connection.
struct Client {
    peer: Peer,
}

impl Client {
    fn connect(server: &Server) -> Client {
        let mut peer = server.connect();
        peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        peer.send(frame(SETTINGS, 0, 0, &[]));
        Client { peer }
    }

    /// The next frame of a stream: its kind, flags and payload. Windows are widened by what comes.
    fn frame(&mut self, stream: u8) -> (u8, u8, Vec<u8>) {
        loop {
            let mut header = [0; 9];
            self.peer.stream().read_exact(&mut header).unwrap();
            let [high, middle, low, kind, flags, .., own] = header;
            let length = u32::from_be_bytes([0, high, middle, low]);
            let mut payload = vec![0; length as usize];
            self.peer.stream().read_exact(&mut payload).unwrap();
            if kind == DATA && length > 0 {
                for widened in [0, own] {
                    let more = length.to_be_bytes();
                    self.peer.send(frame(WINDOW_UPDATE, 0, widened, &more));
                }
            }
            if own == stream && kind != WINDOW_UPDATE {
                return (kind, flags, payload);
            }
        }
    }

    /// Reads DATA of a stream until there are so many bytes.
    fn data(&mut self, stream: u8, bytes: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < bytes {
            let (kind, flags, payload) = self.frame(stream);
            assert_eq!((kind, flags), (DATA, 0), "{payload:?}");
            data.extend_from_slice(&payload);
        }
        data
    }
}

#[test]
fn a_websocket_is_carried_by_a_stream() {
    let (origin, heads) = echoing_origin();
    let server = server(origin);
    let mut client = Client::connect(&server);
    let (kind, _, settings) = client.frame(0);
    assert_eq!(kind, SETTINGS);
    assert!(settings.chunks(6).any(|one| one == [0, 8, 0, 0, 0, 1]));
    let key = [("sec-websocket-key", KEY)];
    client.peer.send(connect(1, "/socket", &key));
    let (kind, flags, block) = client.frame(1);
    assert_eq!((kind, flags), (HEADERS, END_HEADERS));
    assert!(block.starts_with(STATUS_200), "{block:?}");
    assert_eq!(client.data(1, 5), b"hello");
    client.peer.send(frame(DATA, 0, 1, b"ping"));
    assert_eq!(client.data(1, 4), b"ping");
    // Other requests are answered meanwhile.
    client.peer.send(connect(3, "/values", &[]));
    let (_, _, block) = client.frame(3);
    assert!(block.starts_with(STATUS_404), "{block:?}");
    assert_eq!(client.frame(3).2, b"websocket upgrade");
    client.peer.send(frame(DATA, END_STREAM, 1, b"bye"));
    assert_eq!(client.data(1, 3), b"bye");
    let (kind, flags, payload) = client.frame(1);
    assert_eq!((kind, flags, payload.len()), (DATA, END_STREAM, 0));
    server.wait_for_log("access.log", "101 GET /socket HTTP/2.0 websocket");
    let heads = heads.lock().unwrap();
    let head = &heads[0];
    assert!(head.starts_with("GET /socket HTTP/1."), "{head}");
    assert!(head.contains("Connection: upgrade\r\n"), "{head}");
    assert!(head.contains("Upgrade: websocket\r\n"), "{head}");
    assert!(
        head.contains(&format!("sec-websocket-key: {KEY}\r\n")),
        "{head}"
    );
}

#[test]
fn a_tunnel_obeys_windows_both_ways() {
    let (origin, _) = echoing_origin();
    let server = server(origin);
    let mut client = Client::connect(&server);
    client
        .peer
        .send(connect(1, "/socket", &[("sec-websocket-key", KEY)]));
    assert_eq!(client.frame(1).0, HEADERS);
    assert_eq!(client.data(1, 5), b"hello");
    let bytes: Vec<u8> = (0..ECHO_BYTES).map(|at| (at % 251) as u8).collect();
    let mut back = Vec::new();
    // A window holds 65,535 bytes; a piece is sent once the last one has come back.
    for piece in bytes.chunks(48 * 1024) {
        for part in piece.chunks(16 * 1024) {
            client.peer.send(frame(DATA, 0, 1, part));
        }
        back.extend(client.data(1, piece.len()));
    }
    assert!(back == bytes);
    client.peer.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
    server.wait_for_log("access.log", "101 GET /socket");
}

#[test]
fn what_opens_no_tunnel_is_no_success() {
    let (origin, heads) = echoing_origin();
    let server = server(origin);
    let mut client = Client::connect(&server);
    // The answer belongs to another key than the one that is made here.
    client.peer.send(connect(1, "/socket", &[]));
    let (_, _, block) = client.frame(1);
    assert!(block.starts_with(STATUS_502), "{block:?}");
    server.wait_for_log("error.log", "invalid \"Sec-WebSocket-Accept\" header");
    assert!(heads.lock().unwrap()[0].contains("\r\nSec-WebSocket-Key: "));
    client.peer.send(connect(3, "/file", &[]));
    let (_, flags, block) = client.frame(3);
    assert!(block.starts_with(STATUS_501), "{block:?}");
    assert_eq!(flags, END_HEADERS | END_STREAM);
    server.wait_for_log("error.log", "asked for a tunnel where none is opened");
}

const NGINX: &str = "/usr/sbin/nginx";

/// The cases of each run of the tests; `TURNPIKE_TEST_ROUNDS` runs them so many times, each time
/// with other seeds.
const CASES: u64 = 200;

/// What an origin sends behind its 101: no client may ever read it where HTTP/2 was named.
const SWITCHED: &[u8] = b"switched";

/// Elements of `Upgrade`, and whether they name HTTP/2 without TLS.
const PROTOCOLS: &[(&str, bool)] = &[
    ("websocket", false),
    ("tcp", false),
    ("SPDY/3.1", false),
    ("xh2c", false),
    ("h2c", true),
    ("H2c", true),
    ("h2c/2", true),
    ("h2c;a=b", true),
    ("h2c-17", true),
];

const SWITCHING: &str = "
    error_log %FOLDER%/error.log info;
    worker_processes 1;
    events { }
    http {
        access_log off;
        keepalive_timeout 0;
        %HTTP2%
        server {
            listen 127.0.0.1:%PORT%;
            location / {
                proxy_pass http://127.0.0.1:%ORIGIN%;
                proxy_http_version 1.1;
                proxy_set_header Upgrade $http_upgrade;
                proxy_set_header Connection $http_connection;
            }
        }
    }";

/// An origin that switches to whatever `X-Switch` says and tells in `X-Asked` which protocols it
/// was asked for.
fn switching_origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let switch = |socket: TcpStream| {
        let mut peer = Peer::over(socket);
        let head = read_head(&mut peer)?;
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
            found.map_or("", |(_, value)| value).to_owned()
        };
        let (protocol, asked) = (value("x-switch"), value("upgrade"));
        peer.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nX-Asked: {asked}\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        ));
        peer.send(SWITCHED);
        Some(())
    };
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || switch(socket));
        }
    });
    port
}

fn switching_server(program: &str, http2: &str, origin: u16) -> Server {
    let configuration = SWITCHING
        .replace("%HTTP2%", http2)
        .replace("%ORIGIN%", &origin.to_string());
    Server::builder(program)
        .configuration(&configuration)
        .start()
}

/// A request for other protocols, made of a seed.
struct Upgrade {
    asked: Vec<(&'static str, bool)>,
    separator: &'static str,
    /// What the origin switches to.
    switched: String,
    names_http2: bool,
}

impl Upgrade {
    fn of(random: &mut Random) -> Upgrade {
        let count = 1 + random.index(3);
        let asked: Vec<_> = (0..count).map(|_| random.pick(PROTOCOLS)).collect();
        let switched: Vec<_> = match random.index(3) {
            0 => vec![random.pick(PROTOCOLS), random.pick(&asked)],
            _ => vec![random.pick(&asked)],
        };
        let names: Vec<&str> = switched.iter().map(|(name, _)| *name).collect();
        Upgrade {
            asked,
            separator: random.pick(&[", ", ",", " ,\t"]),
            switched: names.join(","),
            names_http2: switched.iter().any(|(_, is_http2)| *is_http2),
        }
    }

    /// The value of the field, with all elements or with those that are passed on.
    fn value(&self, is_passed: bool) -> String {
        let others = self.asked.iter().filter(|(_, is_http2)| !is_http2);
        let passed: Vec<&str> = others.map(|(name, _)| *name).collect();
        let all: Vec<&str> = self.asked.iter().map(|(name, _)| *name).collect();
        if is_passed && passed.len() < all.len() {
            passed.join(", ")
        } else {
            all.join(self.separator)
        }
    }

    /// Whether all that the origin switches to was asked for.
    fn is_asked_for(&self) -> bool {
        let mut switched = self.switched.split(',');
        switched.all(|one| self.asked.iter().any(|(name, _)| *name == one))
    }

    fn http1(&self, version: &str) -> String {
        let (asked, switched) = (self.value(false), &self.switched);
        format!(
            "GET / HTTP/{version}\r\nHost: a\r\nUpgrade: {asked}\r\nConnection: Upgrade, \
             HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\
             X-Switch: {switched}\r\n\r\n"
        )
    }
}

/// The status, and which protocols the origin was asked for, of a request of HTTP/1.
fn switched_by(server: &Server, request: &str) -> (u16, Option<String>) {
    let mut peer = server.connect();
    let response = peer.round(request);
    let asked = response.header("X-Asked").map(str::to_owned);
    assert_eq!(response.status == 101, peer.rest() == SWITCHED, "{request}");
    (response.status, asked)
}

fn upgrade_by_http1(ours: &Server, nginx: Option<&Server>, upgrade: &Upgrade, name: &str) {
    let request = upgrade.http1("1.1");
    let (status, asked) = switched_by(ours, &request);
    let may_switch = upgrade.is_asked_for() && !upgrade.names_http2;
    assert_eq!(
        status,
        if may_switch { 101 } else { 502 },
        "{name}: {request}"
    );
    if may_switch {
        assert_eq!(asked, Some(upgrade.value(true)), "{name}: {request}");
    }
    let Some(nginx) = nginx else { return };
    // It passes everything on, and opens a tunnel for any answer.
    let expected = (101, Some(upgrade.value(false)));
    assert_eq!(switched_by(nginx, &request), expected, "{name}: {request}");
    assert_eq!(switched_by(ours, &upgrade.http1("1.0")).0, 502, "{name}");
}

fn upgrade_by_http2(server: &Server, random: &mut Random, upgrade: &Upgrade, name: &str) {
    let (protocol, _) = random.pick(PROTOCOLS);
    let more = [
        ("sec-websocket-key", KEY),
        ("x-switch", upgrade.switched.as_str()),
    ];
    let mut client = Client::connect(server);
    client.peer.send(connect_for(protocol, 1, "/", &more));
    let (_, _, block) = client.frame(1);
    let only_websocket = upgrade.switched.split(',').all(|one| one == "websocket");
    let expected = match (protocol, only_websocket) {
        ("websocket", true) => STATUS_200,
        ("websocket", false) => STATUS_502,
        (malformed, _) if malformed.contains(';') => STATUS_400,
        _ => STATUS_501,
    };
    let (switched, block_text) = (&upgrade.switched, block.escape_ascii());
    assert!(
        block.starts_with(expected),
        "{name}: {protocol} to {switched}: {block_text}"
    );
}

#[test]
fn no_upgrade_opens_a_tunnel_of_http2() {
    let origin = switching_origin();
    let ours = switching_server(env!("CARGO_BIN_EXE_turnpike"), "http2 on;", origin);
    let nginx = Path::new(NGINX)
        .exists()
        .then(|| switching_server(NGINX, "", origin));
    let rounds = std::env::var("TURNPIKE_TEST_ROUNDS");
    let rounds = rounds.map_or(1, |rounds| rounds.parse().unwrap());
    for seed in 0..CASES * rounds {
        let mut random = Random::new(seed);
        let upgrade = Upgrade::of(&mut random);
        let name = format!("seed {seed}");
        upgrade_by_http1(&ours, nginx.as_ref(), &upgrade, &name);
        upgrade_by_http2(&ours, &mut random, &upgrade, &name);
    }
}
