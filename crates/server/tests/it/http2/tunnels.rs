//! Tests of tunnels on streams of HTTP/2: extended CONNECT (RFC 8441), passed on as an upgrade.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

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
const STATUS_404: &[u8] = b"\x8d";
const STATUS_501: &[u8] = b"\x08\x82\x6c\x01";
const STATUS_502: &[u8] = b"\x08\x82\x6c\x02";

/// More than the windows of a stream that has just begun let through.
const ECHO_BYTES: usize = 300_000;

/// An origin that switches to any protocol with that answer to a key, and sends back what it gets
/// behind a greeting; and the heads that it gets.
fn echoing_origin() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                let mut peer = Peer::over(socket);
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    peer.stream().read_exact(&mut byte).ok()?;
                    head.push(byte[0]);
                }
                seen.lock().unwrap().push(String::from_utf8(head).unwrap());
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

/// A request for a tunnel, with all fields as literals.
fn connect(stream: u8, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
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
