//! Tests of early data: OpenSSL's own client, and one of which a test knows when it sends what.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use turnpike_testkit::{Folder, Server, wait_for};

use crate::support::tls::{keys, s_client, start};
use crate::support::tls_peer;

/// The upstream server refuses what came early, as RFC 8470 has it.
const HTTP: &str = r#"
    log_format early "$request_uri early=$ssl_early_data reused=$ssl_session_reused";
    server {
        %SECURE%
        ssl_early_data on;
        ssl_session_timeout 1h;
        access_log %FOLDER%/early.log early;
        location / { return 200 "[early=$ssl_early_data]"; }
        location /pass/ {
            proxy_pass http://127.0.0.1:%PORT_ORIGIN%;
            proxy_set_header Early-Data $ssl_early_data;
        }
    }
    server {
        listen 127.0.0.1:%PORT_ORIGIN%;
        location / {
            if ($http_early_data) { return 425 "[too early]"; }
            return 200 "[$request_method]";
        }
    }"#;

/// A client that keeps its sessions.
fn client() -> Arc<ClientConfig> {
    let mut config = tls_peer::client();
    config.enable_early_data = true;
    config.resumption = Resumption::in_memory_sessions(8);
    Arc::new(config)
}

/// A connection of a client.
struct Open {
    session: ClientConnection,
    socket: TcpStream,
}

impl Open {
    fn new(server: &Server, config: &Arc<ClientConfig>) -> Open {
        let name = ServerName::try_from("a.test").unwrap();
        let socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let session = ClientConnection::new(Arc::clone(config), name).unwrap();
        Open { session, socket }
    }

    /// Reads until the text has come. Nothing is sent meanwhile, so the handshake cannot be
    /// completed by it.
    fn read_until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            while let Ok(count) = self.session.reader().read(&mut bytes) {
                if count == 0 {
                    break;
                }
                all.extend_from_slice(&bytes[..count]);
            }
            let so_far = String::from_utf8_lossy(&all).into_owned();
            if so_far.contains(text) {
                return so_far;
            }
            let count = self.session.read_tls(&mut self.socket).unwrap();
            assert!(count > 0, "closed after {so_far}");
            self.session.process_new_packets().unwrap();
        }
    }

    fn send_all(&mut self) {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket).unwrap();
        }
    }

    /// Asks over the connection, after the handshake; returns the response up to this text.
    fn ask(&mut self, target: &str, text: &str) -> String {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        self.session.writer().write_all(request.as_bytes()).unwrap();
        while self.session.is_handshaking() {
            self.session.complete_io(&mut self.socket).unwrap();
        }
        self.send_all();
        self.read_until(text)
    }

    /// Sends the hello and these early data in one piece, which the server therefore sees before
    /// the handshake can be complete.
    fn ask_early(&mut self, request: &str) {
        let mut early = self
            .session
            .early_data()
            .expect("a session that takes early data");
        early.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        self.socket.write_all(&bytes).unwrap();
    }
}

#[test]
fn a_request_is_answered_before_the_handshake_is_complete() {
    let keys = keys();
    let server = start(&keys, HTTP);
    let config = client();
    let answer = Open::new(&server, &config).ask("/first", "]");
    assert!(answer.contains("[early=]"), "{answer}");

    let mut open = Open::new(&server, &config);
    open.ask_early("GET /early HTTP/1.1\r\nHost: a.test\r\n\r\n");
    // The client has not finished its handshake, and the response is there.
    let answer = open.read_until("]");
    assert!(answer.contains("[early=1]"), "{answer}");
    assert!(open.session.is_early_data_accepted());
    // The same connection after the handshake.
    let answer = open.ask("/late", "]");
    assert!(answer.contains("[early=]"), "{answer}");

    // What an upstream server refuses, the client asks again on the same connection.
    let mut open = Open::new(&server, &config);
    open.ask_early("GET /pass/early HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let answer = open.read_until("[too early]");
    assert!(answer.starts_with("HTTP/1.1 425"), "{answer}");
    assert!(open.ask("/pass/again", "]").contains("[GET]"));

    // Connections may be on different lanes, so their lines come in any order.
    let lines = wait_for(|| {
        let log = server.log("early.log");
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        lines.sort();
        (lines.len() == 5).then_some(lines)
    });
    assert_eq!(
        lines.unwrap_or_else(|| panic!("{}", server.log("early.log"))),
        [
            "/early early=1 reused=r",
            "/first early=- reused=.",
            "/late early=- reused=r",
            "/pass/again early=- reused=r",
            "/pass/early early=1 reused=r",
        ]
    );
}

#[test]
fn a_body_goes_on_after_the_early_data_and_a_closed_connection_loses_nothing() {
    let keys = keys();
    let server = start(&keys, HTTP);
    let config = client();
    Open::new(&server, &config).ask("/first", "]");

    let mut open = Open::new(&server, &config);
    open.ask_early("POST /pass/body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n01234");
    while open.session.is_handshaking() {
        open.session.complete_io(&mut open.socket).unwrap();
    }
    open.session.writer().write_all(b"56789").unwrap();
    open.send_all();
    let answer = open.read_until("]");
    // By the time of its end the request may count as early or not: it began so.
    assert!(
        answer.contains("[too early]") || answer.contains("[POST]"),
        "{answer}"
    );

    Open::new(&server, &config).ask("/again", "]");
    let mut open = Open::new(&server, &config);
    open.ask_early("GET /early HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    assert!(open.read_until("]").contains("[early=1]"));
    // The end of the handshake is taken, not answered by a reset.
    open.send_all();
    let mut rest = Vec::new();
    let end = open.socket.read_to_end(&mut rest);
    assert!(end.is_ok(), "{end:?}");
}

/// A session of OpenSSL's client in a file.
fn session(server: &Server, keys: &Folder, file: &str) {
    let file = keys.path().join(file);
    let more = [
        "-tls1_3",
        "-servername",
        "a.test",
        "-sess_out",
        file.to_str().unwrap(),
    ];
    s_client(server, "GET /first HTTP/1.0\r\n\r\n", &more);
}

fn early(server: &Server, keys: &Folder, file: &str) -> String {
    let (file, request) = (keys.path().join(file), keys.path().join("request"));
    let more = [
        "-tls1_3",
        "-servername",
        "a.test",
        "-sess_in",
        file.to_str().unwrap(),
    ];
    let more = [&more[..], &["-early_data", request.to_str().unwrap()]].concat();
    // Where the early data is refused, this is all that the server gets.
    s_client(server, "GET /behind HTTP/1.0\r\n\r\n", &more)
}

#[test]
fn openssls_client_sends_early_data_once() {
    let keys = keys();
    keys.write("request", "GET /openssl HTTP/1.0\r\n\r\n")
        .unwrap();
    let server = start(&keys, HTTP);
    session(&server, &keys, "session");
    let output = early(&server, &keys, "session");
    assert!(output.contains("Early data was accepted"), "{output}");
    assert!(output.contains("[early="), "{output}");
    // Whoever sends it again is not heard: the session was taken.
    let output = early(&server, &keys, "session");
    assert!(output.contains("Early data was rejected"), "{output}");
    assert!(output.contains("[early=]"), "{output}");
    server.wait_for_log("early.log", "/openssl ");
    server.wait_for_log("early.log", "/behind ");
    assert_eq!(server.log("early.log").matches("/openssl ").count(), 1);
}

#[test]
fn without_the_directive_none_is_taken() {
    let keys = keys();
    keys.write("request", "GET /openssl HTTP/1.0\r\n\r\n")
        .unwrap();
    let server = start(&keys, &HTTP.replace("ssl_early_data on;", ""));
    session(&server, &keys, "session");
    let output = s_client(
        &server,
        "GET / HTTP/1.0\r\n\r\n",
        &[
            "-tls1_3",
            "-sess_in",
            keys.path().join("session").to_str().unwrap(),
        ],
    );
    assert!(output.contains("Max Early Data: 0"), "{output}");
    assert!(output.contains("[early=]"), "{output}");
}
