//! The load: `turnpike load` for requests of one packet, and our own slow clients for uploads and
//! WebSockets, which report the start and the end of each request.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_testkit::{Signal, process};

use super::ledger::{Account, Failure, now_us};

/// When a client gives a request up: a stalled lane and a machine that is busy with much else are
/// not a lost request.
const PATIENCE: Duration = Duration::from_secs(300);
/// An upload: this many pieces, with a pause before each.
const PIECES: usize = 10;
const PIECE_BYTES: usize = 4096;
const PIECE_PAUSE: Duration = Duration::from_millis(150);
/// A WebSocket: this many echoes, with a pause before each. It ends after them, so that an upgrade,
/// which waits for open ones, can end too.
const ECHOES: usize = 12;
const ECHO_PAUSE: Duration = Duration::from_millis(200);
/// Half of a CPU: so long busy, so long not.
const BUSY: Duration = Duration::from_millis(10);

/// A run of `turnpike load`, by one thread.
pub(super) struct LoadRow {
    pub(super) clients: &'static str,
    pub(super) is_http3: bool,
    pub(super) path: &'static str,
    pub(super) options: &'static [&'static str],
}

impl LoadRow {
    /// What it does, for people.
    pub(super) fn text(&self) -> String {
        let options = self.options.join(" ");
        format!("`turnpike load` of {}: {options}", self.clients)
    }
}

/// A load generator that runs.
pub(super) struct Load {
    clients: &'static str,
    child: Child,
    report: std::path::PathBuf,
    failures: std::path::PathBuf,
}

impl Load {
    /// Starts a row's `turnpike load` for so long.
    pub(super) fn start(
        program: &Path,
        row: &LoadRow,
        port: u16,
        folder: &Path,
        seconds: u64,
    ) -> Result<Load, String> {
        let clients = row.clients;
        let report = folder.join(format!("{clients}.json"));
        let failures = folder.join(format!("{clients}.failures"));
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .args(["load", "--threads", "1"])
            .args(["--duration", &format!("{seconds}s")])
            .args(["--timeout", &format!("{}s", PATIENCE.as_secs()), "--quiet"])
            .arg(format!("--json={}", report.display()))
            .arg("--failures")
            .arg(&failures)
            .args(row.options);
        let scheme = if row.is_http3 {
            command.args(["--h3", "--insecure"]);
            "https"
        } else {
            "http"
        };
        command
            .arg(format!("{scheme}://127.0.0.1:{port}{}", row.path))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Load {
            clients,
            child,
            report,
            failures,
        })
    }

    /// Ends it before its time; requests that are under way count for nothing.
    pub(super) fn end(&self) {
        process::signal(self.child.id(), Signal::SIGINT);
    }

    /// Waits for its end.
    pub(super) fn account(mut self) -> Result<Account, String> {
        self.child.wait().map_err(|error| error.to_string())?;
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let report: Value =
            serde_json::from_str(&read(&self.report)?).map_err(|error| error.to_string())?;
        let count = |name: &str| report["requests"][name].as_u64().unwrap_or(0);
        let lines = read(&self.failures)?;
        let failures: Vec<Failure> = lines.lines().filter_map(failure).collect();
        // An answer that was not the right one is counted with the answers, too.
        let wrong = failures
            .iter()
            .filter(|failure| failure.kind.ends_with("_status") || failure.kind.ends_with("_body"));
        let wrong = wrong.count() as u64;
        Ok(Account {
            clients: self.clients,
            // A load that is behind its rate is broken off at last. Requests that still had time
            // then are no loss; others are among the failures.
            offered: count("started").saturating_sub(count("abandoned")),
            answered: (count("answered") + count("warmup")).saturating_sub(wrong),
            failures,
        })
    }
}

fn failure(line: &str) -> Option<Failure> {
    let mut words = line.split('\t');
    let (begun_us, ended_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let kind = words.next()?.to_owned();
    Some(Failure {
        begun_us,
        ended_us,
        was_kept: matches!(kind.as_str(), "reset_idle" | "closed_idle"),
        kind,
        port: None,
    })
}

/// Uploads until it is stopped, one or several on a connection, in small pieces.
pub(super) fn upload(port: u16, is_over: &AtomicBool) -> Account {
    repeat("slow uploads", is_over, |account| {
        let mut stream = connect(port)?;
        for number in 0..2 {
            let begun_us = now_us();
            account.offered += 1;
            match upload_once(&mut stream) {
                Ok(true) => account.answered += 1,
                Ok(false) => {
                    account.answered += 1;
                    return Ok(());
                }
                Err(kind) => return Err(broken(begun_us, kind, Some(&stream), number > 0)),
            }
        }
        Ok(())
    })
}

/// Opens WebSockets until it is stopped. The opening and every echo is a request, which lasts from
/// the opening on: the time of a failure shows its cause.
pub(super) fn chat(port: u16, is_over: &AtomicBool) -> Account {
    repeat("websockets", is_over, |account| {
        let begun_us = now_us();
        let mut stream = connect(port)?;
        for echo in 0..=ECHOES {
            account.offered += 1;
            let result = match echo {
                0 => open_socket(&mut stream),
                _ => echo_once(&mut stream, echo as u8),
            };
            match result {
                Ok(()) => account.answered += 1,
                Err(kind) => return Err(broken(begun_us, kind, Some(&stream), false)),
            }
        }
        Ok(())
    })
}

pub(super) fn broken(
    begun_us: u64,
    kind: String,
    stream: Option<&BufReader<TcpStream>>,
    was_kept: bool,
) -> Failure {
    let address = stream.and_then(|stream| stream.get_ref().local_addr().ok());
    Failure {
        begun_us,
        ended_us: now_us(),
        kind,
        was_kept,
        port: address.map(|address| address.port()),
    }
}

pub(super) fn repeat(
    clients: &'static str,
    is_over: &AtomicBool,
    mut session: impl FnMut(&mut Account) -> Result<(), Failure>,
) -> Account {
    let mut account = Account {
        clients,
        ..Account::default()
    };
    while !is_over.load(Ordering::Acquire) {
        let before = account.offered;
        if let Err(failure) = session(&mut account) {
            // A connection that cannot be made was to carry a request.
            account.offered = account.offered.max(before + 1);
            account.failures.push(failure);
        }
    }
    account
}

pub(super) fn connect(port: u16) -> Result<BufReader<TcpStream>, Failure> {
    let begun_us = now_us();
    let stream = TcpStream::connect(("127.0.0.1", port)).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    });
    stream.map_err(|error| {
        let kind = format!("connect: {:?}", error.kind());
        broken(begun_us, kind, None, false)
    })
}

/// Whether the connection takes another request.
fn upload_once(stream: &mut BufReader<TcpStream>) -> Result<bool, String> {
    let length = PIECES * PIECE_BYTES;
    let head = format!("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let at = |step: &str, error: std::io::Error| format!("{step}: {:?}", error.kind());
    let out = stream.get_mut();
    out.write_all(head.as_bytes())
        .map_err(|error| at("head", error))?;
    for _ in 0..PIECES {
        std::thread::sleep(PIECE_PAUSE);
        out.write_all(&[b'x'; PIECE_BYTES])
            .map_err(|error| at("body", error))?;
    }
    let head = response_head(stream).map_err(|error| at("answer", error))?;
    let mut body = vec![0; head.length];
    stream
        .read_exact(&mut body)
        .map_err(|error| at("answer", error))?;
    match head.status.as_str() {
        "200" if body == length.to_string().as_bytes() => Ok(!head.closes),
        "200" => Err("another length arrived".to_owned()),
        status => Err(format!("status {status}")),
    }
}

fn open_socket(stream: &mut BufReader<TcpStream>) -> Result<(), String> {
    let head = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let sent = stream.get_mut().write_all(head.as_bytes());
    let answer = sent.and_then(|()| response_head(stream));
    match answer {
        Ok(head) if head.status == "101" => Ok(()),
        Ok(head) => Err(format!("opening: status {}", head.status)),
        Err(error) => Err(format!("opening: {:?}", error.kind())),
    }
}

/// Sends a masked text frame of four bytes and receives an unmasked one (RFC 6455); the far end
/// returns the bytes unchanged, so that the mask is still in it.
fn echo_once(stream: &mut BufReader<TcpStream>, number: u8) -> Result<(), String> {
    std::thread::sleep(ECHO_PAUSE);
    let frame = [0x81, 0x84, 1, 2, 3, 4, number, number, number, number];
    let mut back = [0; 10];
    let sent = stream.get_mut().write_all(&frame);
    match sent.and_then(|()| stream.read_exact(&mut back)) {
        Ok(()) if back == frame => Ok(()),
        Ok(()) => Err("another echo".to_owned()),
        Err(error) => Err(format!("echo: {:?}", error.kind())),
    }
}

/// The needed parts of a response's head.
struct Head {
    status: String,
    length: usize,
    /// Whether the server announces the end of the connection.
    closes: bool,
}

fn response_head(stream: &mut BufReader<TcpStream>) -> std::io::Result<Head> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let head = head.to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    Ok(Head {
        status: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        length: value("content-length: ").map_or(0, |length| length.parse().unwrap_or(0)),
        closes: value("connection: ") == Some("close"),
    })
}

/// Keeps half a CPU busy.
pub(super) fn burn(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        while begun.elapsed() < BUSY {
            std::hint::spin_loop();
        }
        std::thread::sleep(BUSY);
    }
}

/// The far end of the proxied locations: it counts bodies, and echoes upgraded connections. It ends
/// with the process.
pub(super) fn start_origin() -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve_origin(stream));
        }
    });
    Ok(port)
}

fn serve_origin(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_ascii_lowercase();
        if head.contains("\r\nupgrade: websocket\r\n") {
            let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                           Upgrade: websocket\r\n\r\n";
            stream.get_mut().write_all(answer).ok()?;
            let mut frame = [0; 10];
            while stream.read_exact(&mut frame).is_ok() {
                stream.get_mut().write_all(&frame).ok()?;
            }
            return None;
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink()).ok()?;
        let body = length.to_string();
        let size = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{body}");
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}
