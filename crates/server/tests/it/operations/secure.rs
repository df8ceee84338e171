//! Operations under HTTPS load of HTTP/1 and HTTP/2: reloads, changes of the number of lanes and
//! changes of the binary lose no request, break no download and no WebSocket, and resume sessions
//! that were made before.
//!
//! `TURNPIKE_TEST_ROUNDS` makes the run longer: each round has ten reloads, two changes of lanes
//! and one change of the binary. Without it there are two short rounds.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use crate::support::daemon::{Daemon, rounds};
use crate::support::tls::{TURNPIKE, openssl};
use crate::support::{is_running, turnpike, wait_for};
use nix::libc::{SIGHUP, SIGINT};
use serde_json::Value;
use turnpike_lane::sys::signal;

/// Bytes of the download: more than the buffers between server and client hold, so that it is
/// under way until the client reads it.
const DOWNLOAD_BYTES: usize = 48 * 1024 * 1024;

/// Bytes of the download's pattern, which no power of two divides.
const PATTERN_BYTES: usize = 251;

/// How the clients' requests are offered: connections that are kept, and one request on each.
const LOADS: &[(&str, &[&str])] = &[
    ("h1", &["--connections", "8"]),
    ("h1-short", &["--connections", "4", "--connreqs", "1"]),
    ("h2", &["--connections", "8", "--h2", "--streams", "4"]),
    (
        "h2-short",
        &["--connections", "4", "--h2", "--connreqs", "1"],
    ),
];

/// The operations of a round, before the binary is changed.
#[derive(Clone, Copy)]
struct Round {
    reloads: usize,
    resizes: usize,
}

#[test]
fn no_request_fails_and_no_stream_breaks() {
    let rounds = rounds();
    let short = Round {
        reloads: 5,
        resizes: 2,
    };
    let long = Round {
        reloads: 10,
        resizes: 2,
    };
    let plan = rounds.map_or(vec![short; 2], |rounds| vec![long; rounds]);
    let server = Secure::start();
    let loads: Vec<Load> = LOADS
        .iter()
        .map(|(name, options)| Load::start(&server, name, options))
        .collect();
    let sessions: Vec<Session> = (0..SESSIONS_EACH)
        .flat_map(|number| KINDS.iter().map(move |options| (options, number)))
        .map(|(options, number)| Session::begin(&server, options, number))
        .collect();
    let (mut lanes, mut resumed) = (2, 0);
    for round in &plan {
        let downloads = ["--http1.1", "--http2"].map(|version| Download::start(&server, version));
        let mut sockets = [Framing::Http1, Framing::Http2].map(|framing| {
            let mut socket = WebSocket::open(&server, framing);
            socket.echo("at first");
            socket
        });
        let mut echo = |when: &str| sockets.iter_mut().for_each(|socket| socket.echo(when));
        for _ in 0..round.reloads {
            server.reload(lanes);
            echo("after a reload");
        }
        for _ in 0..round.resizes {
            lanes = lanes % 3 + 1;
            server.reload(lanes);
            echo("after another number of lanes");
        }
        resumed += resume(&server, &sessions, "after reloads");
        let old = server.daemon.master();
        let changed = server.daemon.upgrade(&[]);
        changed.unwrap_or_else(|error| panic!("{error}{}", server.daemon.log()));
        echo("after a change of the binary");
        resumed += resume(&server, &sessions, "after a change of the binary");
        for download in downloads {
            download.finish();
        }
        sockets.into_iter().for_each(WebSocket::close);
        wait_for("the old binary to end", || !is_running(old));
    }
    for load in loads {
        load.finish();
    }
    tell(&plan, resumed);
    let log = server.daemon.log();
    let is_bad = |line: &&str| line.contains("[alert]") || line.contains("[emerg]");
    assert_eq!(log.lines().find(is_bad), None);
}

/// Prints what was done.
fn tell(plan: &[Round], resumed: usize) {
    let reloads: usize = plan.iter().map(|round| round.reloads).sum();
    let resizes: usize = plan.iter().map(|round| round.resizes).sum();
    let changes = plan.len();
    println!(
        "{reloads} reloads, {resizes} changes of lanes, {changes} of the binary: no stream broken, \
         {resumed} sessions resumed, none forgotten"
    );
}

/// A server with TLS, and what its configuration is made of.
struct Secure {
    daemon: Daemon,
    origin: u16,
}

impl Secure {
    fn start() -> Secure {
        let origin = start_echo();
        let daemon = Daemon::configured(|folder, port| configuration(folder, port, origin, 2));
        let folder = daemon.folder.path();
        let subject = [
            "-subj",
            "/CN=a.test",
            "-addext",
            "subjectAltName=DNS:a.test",
        ];
        let files = ["-keyout", "a.key", "-out", "a.pem"];
        let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let request = ["req", "-x509", "-nodes", "-days", "3650"];
        openssl(folder, &[&request[..], &new, &subject, &files].concat());
        let pattern: Vec<u8> = (0..PATTERN_BYTES).map(|at| at as u8).collect();
        let mut bytes = pattern.repeat(DOWNLOAD_BYTES / PATTERN_BYTES + 1);
        bytes.truncate(DOWNLOAD_BYTES);
        std::fs::write(folder.join("download"), bytes).unwrap();
        daemon.start_again().unwrap();
        Secure { daemon, origin }
    }

    fn port(&self) -> u16 {
        self.daemon.port
    }

    fn status(&self) -> Value {
        let socket = self.daemon.folder.path().join("nginx.control");
        let output = turnpike(&["status", "--json", "--socket", socket.to_str().unwrap()]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Puts a configuration with so many lanes in force, and waits for it.
    fn reload(&self, lanes: usize) {
        let folder = &self.daemon.folder;
        let text = configuration(folder.name(), self.port(), self.origin, lanes);
        folder.write("nginx.conf", &text).unwrap();
        let generation = |status: Value| status["generation"].as_u64().unwrap_or_default();
        let before = generation(self.status());
        signal::send(self.daemon.master(), SIGHUP).unwrap();
        wait_for("the reload", || generation(self.status()) > before);
    }
}

fn configuration(folder: &str, port: u16, origin: u16, lanes: usize) -> String {
    format!(
        "daemon on; pid nginx.pid; error_log error.log notice; worker_processes {lanes};
        events {{ }}
        http {{
            access_log off;
            keepalive_requests 1000000000;
            keepalive_timeout 600s;
            send_timeout 600s;
            server {{
                listen 127.0.0.1:{port} ssl;
                http2 on;
                ssl_certificate {folder}/a.pem;
                ssl_certificate_key {folder}/a.key;
                ssl_session_timeout 1h;
                ssl_session_cache shared:sessions:1m;
                location / {{ return 200 served; }}
                location /download {{ root {folder}; }}
                location /socket {{
                    proxy_pass http://127.0.0.1:{origin};
                    proxy_http_version 1.1;
                    proxy_set_header Upgrade $http_upgrade;
                    proxy_set_header Connection upgrade;
                    proxy_read_timeout 600s;
                }}
            }}
        }}"
    )
}

/// An origin that upgrades every connection and returns what it gets. It ends with the process.
fn start_echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || -> Option<()> {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).ok()?;
                    head.push(byte[0]);
                }
                let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                               Upgrade: websocket\r\n\
                               Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
                stream.write_all(answer).ok()?;
                let mut buffer = [0; 1024];
                loop {
                    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
                    stream.write_all(&buffer[..count]).ok()?;
                }
            });
        }
    });
    port
}

/// `turnpike load`, until it is stopped.
struct Load {
    name: &'static str,
    child: Child,
    report: std::path::PathBuf,
    failures: std::path::PathBuf,
}

impl Load {
    fn start(server: &Secure, name: &'static str, options: &[&str]) -> Load {
        let folder = server.daemon.folder.path();
        let report = folder.join(format!("{name}.json"));
        let failures = folder.join(format!("{name}.failures"));
        let mut command = Command::new(TURNPIKE);
        let command = command
            .args(["load", "--insecure", "--threads", "1", "--quiet"])
            .args(["--duration", "3600s", "--timeout", "300s", "--rate", "100"])
            .arg(format!("--json={}", report.display()))
            .arg("--failures")
            .arg(&failures)
            .args(options)
            .arg(format!("https://127.0.0.1:{}/", server.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Load {
            name,
            child: command.spawn().unwrap(),
            report,
            failures,
        }
    }

    /// Stops it; fails if a request has.
    fn finish(mut self) {
        signal::send(i32::try_from(self.child.id()).unwrap(), SIGINT).unwrap();
        self.child.wait().unwrap();
        let name = self.name;
        let failures = std::fs::read_to_string(&self.failures).unwrap();
        assert_eq!(failures, "", "{name}");
        let report = std::fs::read_to_string(&self.report).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let requests = &report["requests"];
        assert_eq!(requests["failed"], 0, "{name}: {report}");
        assert!(requests["answered"].as_u64() > Some(0), "{name}: {report}");
        println!("{name}: {} requests, none failed", requests["answered"]);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A download of which only the beginning was read.
struct Download {
    version: &'static str,
    child: Child,
    output: ChildStdout,
    received: Vec<u8>,
}

impl Download {
    fn start(server: &Secure, version: &'static str) -> Download {
        let url = format!("https://127.0.0.1:{}/download", server.port());
        let mut child = Command::new("curl")
            .args(["-skN", version, &url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut received = vec![0; 1000];
        output.read_exact(&mut received).unwrap();
        Download {
            version,
            child,
            output,
            received,
        }
    }

    /// Reads the rest.
    fn finish(mut self) {
        self.output.read_to_end(&mut self.received).unwrap();
        let version = self.version;
        assert!(self.child.wait().unwrap().success(), "{version}");
        assert_eq!(self.received.len(), DOWNLOAD_BYTES, "{version}");
        let mut parts = self.received.chunks(PATTERN_BYTES);
        let is_right = |part: &[u8]| (0..).zip(part).all(|(at, byte)| *byte == at as u8);
        assert!(parts.all(is_right), "{version}: other bytes");
    }
}

/// What a WebSocket's bytes are carried in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// A connection that was upgraded.
    Http1,
    /// A stream of HTTP/2.
    Http2,
}

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\n\r\n";

/// The fields of an extended CONNECT; the key is the example of RFC 6455, whose answer the origin
/// gives.
const CONNECT: &[(&str, &str)] = &[
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/socket"),
    (":authority", "a.test"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

/// A frame of stream 1, or of the connection for SETTINGS.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let stream = u8::from(kind != SETTINGS);
    let header = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    [&header, payload].concat()
}

/// The preface, and a request for a tunnel with all fields as literals.
fn connect() -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in CONNECT {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    [
        preface,
        &frame(SETTINGS, 0, &[]),
        &frame(HEADERS, 4, &block),
    ]
    .concat()
}

/// A WebSocket over TLS.
struct WebSocket {
    framing: Framing,
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl WebSocket {
    fn open(server: &Secure, framing: Framing) -> WebSocket {
        let at = format!("127.0.0.1:{}", server.port());
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-connect", &at]);
        if framing == Framing::Http2 {
            command.args(["-alpn", "h2"]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut socket = WebSocket {
            framing,
            child,
            input,
            output,
        };
        match framing {
            Framing::Http1 => socket.upgrade(),
            Framing::Http2 => {
                socket.input.write_all(&connect()).unwrap();
                let head = socket.payload_of(HEADERS, "at first");
                assert_eq!(head.first(), Some(&0x88), "{head:?}");
            }
        }
        socket
    }

    fn upgrade(&mut self) {
        self.input.write_all(UPGRADE.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.extend_from_slice(&self.read(1, "at first"));
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    }

    /// Sends a text and receives it again.
    fn echo(&mut self, text: &str) {
        let back = match self.framing {
            Framing::Http1 => {
                self.input.write_all(text.as_bytes()).unwrap();
                self.read(text.len(), text)
            }
            Framing::Http2 => {
                let sent = frame(DATA, 0, text.as_bytes());
                self.input.write_all(&sent).unwrap();
                self.payload_of(DATA, text)
            }
        };
        assert_eq!(String::from_utf8_lossy(&back), text);
    }

    /// The payload of the next frame of that kind on stream 1.
    fn payload_of(&mut self, wanted: u8, when: &str) -> Vec<u8> {
        loop {
            let header = self.read(9, when);
            let length = usize::from(header[1]) << 8 | usize::from(header[2]);
            let payload = self.read(length, when);
            if header[3] == wanted && header[8] == 1 {
                return payload;
            }
        }
    }

    fn read(&mut self, bytes: usize, when: &str) -> Vec<u8> {
        let mut read = vec![0; bytes];
        let received = self.output.read_exact(&mut read);
        assert!(received.is_ok(), "the WebSocket is closed {when}");
        read
    }

    fn close(mut self) {
        drop(self.input);
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Sessions of each kind.
const SESSIONS_EACH: usize = 8;

/// The client's options for each kind of session: the client of the last has no ticket, and its
/// sessions are in the server's cache.
const KINDS: &[&[&str]] = &[&["-tls1_2"], &["-tls1_3"], &["-tls1_2", "-no_ticket"]];

/// Resumes the sessions, and returns their number; fails if one of them is not known any more.
fn resume(server: &Secure, sessions: &[Session], when: &str) -> usize {
    let asked: Vec<bool> = sessions
        .iter()
        .map(|session| session.is_resumed(server))
        .collect();
    let resumed = asked.iter().filter(|is_resumed| **is_resumed).count();
    println!("{when}: {resumed} of {} sessions resumed", asked.len());
    assert_eq!(resumed, asked.len(), "{when}");
    resumed
}

/// A session of OpenSSL's client that can be resumed.
struct Session {
    options: &'static [&'static str],
    file: String,
}

impl Session {
    fn begin(server: &Secure, options: &'static [&'static str], number: usize) -> Session {
        let folder = server.daemon.folder.path();
        let file = folder.join(format!("session{}{number}", options.concat()));
        let session = Session {
            options,
            file: file.display().to_string(),
        };
        let output = session.ask(server, "-sess_out");
        assert!(output.contains("New, TLSv1"), "{output}");
        session
    }

    /// Begins a connection with the session that was made at first.
    fn is_resumed(&self, server: &Secure) -> bool {
        self.ask(server, "-sess_in").contains("Reused, TLSv1")
    }

    fn ask(&self, server: &Secure, option: &str) -> String {
        let at = format!("127.0.0.1:{}", server.port());
        let mut client = Command::new("openssl")
            .args([
                "s_client",
                "-ign_eof",
                "-connect",
                &at,
                "-servername",
                "a.test",
            ])
            .args(self.options)
            .args([option, &self.file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = client.stdin.take().unwrap();
        input.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let output = client.wait_with_output().unwrap();
        drop(input);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
