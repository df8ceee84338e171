//! Lines, tables, and the socket with clients of every kind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use serde_json::{Value, json};
use turnpike_lane::sys::epoll::{Epoll, EventBuffer};

use super::socket::{ControlSocket, Ticket};
use super::{LINE_BYTES_MAX, Request, RequestError, VERBS, answer_line, family_verbs, show};

#[test]
fn requests_are_read_and_refused() {
    let request = Request::parse(br#"{"id":7,"verb":"reload","deep":{"a":[1]}}"#).unwrap();
    assert_eq!(
        (request.id.clone(), request.verb.as_str()),
        (json!(7), "reload")
    );
    assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
    let cases: &[(&[u8], Value)] = &[
        (b"", Value::Null),
        (b"reload", Value::Null),
        (b"[1]", Value::Null),
        (b"{\"id\":3}", json!(3)),
        (b"{\"id\":\"x\",\"verb\":1}", json!("x")),
        (b"{\"verb\":\"a\"} x", Value::Null),
        (b"\xff", Value::Null),
    ];
    for (line, id) in cases {
        let (said, failure) = Request::parse(line).unwrap_err();
        assert_eq!((&said, failure.code.as_str()), (id, "invalid"), "{line:?}");
    }
    assert!(Request::parse("[".repeat(60_000).as_bytes()).is_err());
}

#[test]
fn answers_are_one_line() {
    let failure = RequestError::failed("two\nlines");
    assert_eq!(
        answer_line(&json!(1), &Err(failure.clone())),
        "{\"error\":{\"code\":\"failed\",\"message\":\"two\\nlines\"},\"id\":1}\n"
    );
    assert_eq!(
        answer_line(&Value::Null, &Ok(json!({}))),
        "{\"id\":null,\"result\":{}}\n"
    );
    let value = json!({ "code": "failed", "message": "two\nlines" });
    assert_eq!(RequestError::from_value(&value), failure);
}

#[test]
fn verbs_stand_once_and_say_what_they_do() {
    let own = VERBS.iter().map(|verb| verb.row);
    let mut names: Vec<&str> = Vec::new();
    for row in own.chain(family_verbs().copied()) {
        assert!(!names.contains(&row.name), "{} twice", row.name);
        assert!(row.summary.ends_with('.'), "{row:?}");
        names.push(row.name);
    }
}

#[test]
fn answers_are_shown_as_tables() {
    let answer = json!({
        "pid": 7,
        "name": null,
        "lanes": [{ "lane": 0, "requests": 1200 }, { "lane": 1, "idle": true }],
        "inner": { "a": [1, 2] },
    });
    let text = [
        "name  -",
        "pid   7",
        "inner:",
        "  a  1 2",
        "lanes:",
        "  lane  requests  idle",
        "  0     1200",
        "  1               true\n",
    ];
    let text = text.join("\n");
    assert_eq!(show::answer("generation", &answer), text);
    assert_eq!(
        show::answer("generation", &json!({ "gates": [{ "x": 1 }] })),
        "x\n1\n"
    );
    let long = "a name of forty columns that fills a line";
    let (b, c) = ("b".repeat(20), "c".repeat(20));
    let wide = json!([
        { "lane": 0, long: 1, "x": b, c.as_str(): 3 },
        { "lane": 1, long: 2, "x": "y" },
    ]);
    let turned = [
        format!("{:41}  0{:21}1", "lane", ""),
        format!("{long}  1{:21}2", ""),
        format!("{c:41}  3"),
        format!("{:41}  {b}  y\n", "x"),
    ];
    assert_eq!(show::answer("generation", &wide), turned.join("\n"));
    let texts = json!([
        { "says": format!("{long} and {long}"), "verb": "a" },
        { "says": "little", "verb": "b" },
    ]);
    let blocks = [
        "verb  a",
        "says  a name of forty columns that fills a line and a name of forty columns that",
        "      fills a line",
        "",
        "verb  b",
        "says  little\n",
    ];
    assert_eq!(show::answer("generation", &texts), blocks.join("\n"));
}

/// A socket in a folder of its own with the loop that serves it.
struct Bench {
    folder: PathBuf,
    socket: ControlSocket,
    epoll: Epoll,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let name = format!("turnpike-control-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let (mut socket, epoll) = (ControlSocket::default(), Epoll::new().unwrap());
        socket.listen(&folder.join("s"), &epoll).unwrap();
        Bench {
            folder,
            socket,
            epoll,
        }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("s")).unwrap()
    }

    /// Takes what there is; waits for something if there is nothing.
    fn turn(&mut self) -> Vec<(Ticket, Request)> {
        let mut events = EventBuffer::with_capacity(16);
        self.epoll.wait(&mut events, 200).unwrap();
        let mut requests = Vec::new();
        for event in events.iter() {
            requests.extend(self.socket.take(event, &self.epoll));
        }
        requests
    }

    fn requests(&mut self, count: usize) -> Vec<(Ticket, Request)> {
        let mut requests = Vec::new();
        while requests.len() < count {
            requests.extend(self.turn());
        }
        requests
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn only_the_owner_may_connect_and_a_dead_socket_is_replaced() {
    let bench = Bench::new("mode");
    let path = bench.folder.join("s");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut other = ControlSocket::default();
    assert!(other.listen(&path, &bench.epoll).is_err());
    let stale = bench.folder.join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let epoll = Epoll::new().unwrap();
    other.listen(&stale, &epoll).unwrap();
    UnixStream::connect(&stale).unwrap();
    let file = bench.folder.join("file");
    fs::write(&file, "precious").unwrap();
    assert!(other.listen(&file, &epoll).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn requests_come_in_pieces_and_answers_in_any_order() {
    let mut bench = Bench::new("pieces");
    let mut client = bench.connect();
    client.write_all(b"\n{\"verb\":").unwrap();
    assert!(bench.turn().is_empty());
    client
        .write_all(b"\"a\",\"id\":1}\n{\"verb\":\"b\",\"id\":2}\nnonsense\n")
        .unwrap();
    let requests = bench.requests(2);
    let (first, second) = (&requests[0], &requests[1]);
    assert_eq!((first.1.verb.as_str(), second.1.verb.as_str()), ("a", "b"));
    for (ticket, request) in [second, first] {
        let answer = Ok(json!(request.verb));
        bench.socket.answer(ticket, &answer, &bench.epoll);
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    });
    while !reader.is_finished() {
        bench.turn();
    }
    let text = reader.join().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("\"invalid\""));
    assert_eq!(
        lines[1..],
        ["{\"id\":2,\"result\":\"b\"}", "{\"id\":1,\"result\":\"a\"}"]
    );
}

#[test]
fn who_asks_too_much_is_refused() {
    let mut bench = Bench::new("much");
    let mut client = bench.connect();
    client
        .write_all("{\"verb\":\"x\"}\n".repeat(20).as_bytes())
        .unwrap();
    assert_eq!(bench.requests(16).len(), 16);
    let mut buffer = [0; 1000];
    let count = client.read(&mut buffer).unwrap();
    assert!(String::from_utf8_lossy(&buffer[..count]).contains("\"busy\""));
    let mut client = bench.connect();
    let writer = std::thread::spawn(move || {
        // The socket may be closed before everything is written.
        let _ = client.write_all(&vec![b'x'; LINE_BYTES_MAX + 100_000]);
        let mut text = Vec::new();
        let _ = client.read_to_end(&mut text);
        text
    });
    while !writer.is_finished() {
        bench.turn();
    }
    let text = writer.join().unwrap();
    assert!(text.is_empty() || String::from_utf8_lossy(&text).contains("too long"));
}

#[test]
fn who_reads_no_answers_is_closed() {
    /// Each line has an answer of a hundred bytes: far more of them than are kept.
    const LINES: &[u8] = b"x\n";
    const ROUNDS: usize = 500;
    let mut bench = Bench::new("deaf");
    let mut client = bench.connect();
    let writer = std::thread::spawn(move || {
        let lines = LINES.repeat(4096);
        (0..ROUNDS).any(|_| client.write_all(&lines).is_err())
    });
    while !writer.is_finished() {
        bench.turn();
    }
    assert!(writer.join().unwrap(), "it was never closed");
}
