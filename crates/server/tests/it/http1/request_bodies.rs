//! Tests of bodies of requests on their way to a server: every byte, and none of the next request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use turnpike_testkit::{Origin, Server, Step};

/// The ways that a body goes: what stands in its location.
const WAYS: &[&str] = &[
    "",
    "client_body_buffer_size 1k;",
    "client_body_buffer_size 128k;",
    "client_body_buffer_size 1m;",
    "client_body_in_file_only on;",
    "client_body_buffer_size 1k; client_body_in_file_only clean; sendfile on;",
    "sendfile on;",
    "proxy_request_buffering off;",
    "client_body_buffer_size 128k; proxy_request_buffering off;",
];

/// Around a usual read and the default buffer, above the other buffers, and above the most bytes
/// that are read or sent at a time.
const SIZES: &[usize] = &[16_383, 16_384, 16_385, 65_536, 300_000, 600_000];

/// Sizes of the bodies that a second server gets.
const RETRIED_SIZES: [usize; 3] = [16_385, 65_536, 600_000];

/// Bytes that a client writes at a time where it writes pieces: a usual segment.
const PIECE_BYTES: usize = 1_448;

/// Bytes that a server takes of a request before it fails.
const FAILING_BYTES: usize = 10_000;

/// A request with a body; no two are alike.
#[derive(PartialEq, Eq)]
struct Sent {
    method: String,
    target: String,
    body: Vec<u8>,
}

impl Sent {
    /// Counts up, from a number that depends on the target and the size.
    fn new(method: &str, target: String, bytes: usize) -> Self {
        let start = target.bytes().fold(bytes as u32, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        let mut body = Vec::with_capacity(bytes + 3);
        let mut number = start;
        while body.len() < bytes {
            body.extend_from_slice(&number.to_be_bytes());
            number = number.wrapping_add(1);
        }
        body.truncate(bytes);
        Self {
            method: method.to_owned(),
            target,
            body,
        }
    }

    fn request(&self) -> Vec<u8> {
        let (method, target, bytes) = (&self.method, &self.target, self.body.len());
        let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n");
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// What is wrong with what came; nothing if it is the same.
    fn difference(&self, came: &Self) -> Option<String> {
        if self == came {
            return None;
        }
        let pairs = self.body.iter().zip(&came.body);
        let same = pairs.take_while(|(sent, came)| sent == came).count();
        Some(format!(
            "sent {} {}, came {} {}: {} bytes, first {same} alike",
            self.method,
            self.target,
            came.method,
            came.target,
            came.body.len()
        ))
    }
}

/// Starts an origin that answers with the target of each request; its port, and what it got. It
/// ends with the process.
fn recording_origin() -> (u16, Receiver<Sent>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (recorder, records) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let recorder = recorder.clone();
            thread::spawn(move || record(stream, &recorder));
        }
    });
    (port, records)
}

/// Serves one connection until it ends.
fn record(stream: TcpStream, recorder: &Sender<Sent>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut length = None;
        while line.len() > 2 {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim_end().parse().ok();
            }
        }
        let mut body = vec![0; length?];
        reader.read_exact(&mut body).ok()?;
        let length = target.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{target}");
        // Known before the client has its answer.
        let came = Sent {
            method,
            target,
            body,
        };
        recorder.send(came).ok()?;
        reader.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

/// A server whose location of a way's number goes that way to `upstream`.
fn server(upstream: &str) -> Server {
    let locations = WAYS.iter().enumerate().map(|(number, directives)| {
        format!("location = /{number} {{ {directives} proxy_pass http://u; }}\n")
    });
    let locations: String = locations.collect();
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            error_log %FOLDER%/error.log error;
            events {{ }}
            http {{
                access_log off;
                upstream u {{ {upstream} }}
                server {{ listen 127.0.0.1:%PORT%; {locations} }}
            }}"
        ))
        .start()
}

/// How the second of two requests comes.
#[derive(Clone, Copy, Debug)]
enum Second {
    /// In the same write as the first.
    Together,
    /// The first byte behind the first request, which comes in pieces; the rest once that has its
    /// answer.
    Split,
}

/// Sends two requests on a connection; the status and the body of both answers.
fn exchange(server: &Server, requests: &[Sent; 2], second: Second) -> [(u16, String); 2] {
    let bytes = requests.each_ref().map(Sent::request);
    let first_bytes = bytes[0].len();
    let bytes = bytes.concat();
    let mut peer = server.connect();
    let first = match second {
        Second::Together => peer.round(&bytes),
        Second::Split => {
            let (now, later) = bytes.split_at(first_bytes + 1);
            now.chunks(PIECE_BYTES).for_each(|piece| peer.send(piece));
            let first = peer.response();
            peer.send(later);
            first
        }
    };
    [first, peer.response()].map(|answer| (answer.status, answer.text()))
}

/// The two requests of a row.
fn requests(method: &str, way: usize, bytes: usize, second: Second) -> [Sent; 2] {
    ["first", "second"].map(|name| {
        let target = format!("/{way}?{name},{bytes},{second:?}");
        Sent::new(method, target, bytes)
    })
}

/// Sends two requests, and holds the answers and what came against them.
fn check(server: &Server, records: &Receiver<Sent>, requests: &[Sent; 2], second: Second) {
    let answers = exchange(server, requests, second);
    let row = &requests[0].target;
    for (sent, (status, text)) in requests.iter().zip(answers) {
        assert_eq!((status, &text), (200, &sent.target), "{row}");
        let came = records.try_recv().unwrap();
        assert_eq!(sent.difference(&came), None, "{row}");
    }
    assert!(records.try_recv().is_err(), "{row}: more came");
}

#[test]
fn bodies_arrive_whole_by_every_way_and_leave_the_next_request_alone() {
    let (port, records) = recording_origin();
    let server = server(&format!("server 127.0.0.1:{port};"));
    for way in 0..WAYS.len() {
        for &bytes in SIZES {
            for second in [Second::Together, Second::Split] {
                let requests = requests("POST", way, bytes, second);
                check(&server, &records, &requests, second);
            }
        }
    }
}

#[test]
fn another_server_gets_a_body_whole_of_which_a_part_went() {
    let failing = Origin::start(vec![vec![
        Step::ReadHead,
        Step::ReadBytes(FAILING_BYTES),
        Step::Reset,
    ]]);
    let (port, records) = recording_origin();
    let server = server(&format!(
        "server 127.0.0.1:{} max_fails=0; server 127.0.0.1:{port} backup;",
        failing.port()
    ));
    for (way, directives) in WAYS.iter().enumerate() {
        if directives.contains("proxy_request_buffering off") {
            // What went before the failure was kept nowhere.
            let [sent, _] = requests("PUT", way, RETRIED_SIZES[2], Second::Together);
            let answer = server.connect().round(sent.request());
            assert_eq!(answer.status, 502, "{}", sent.target);
            assert!(records.try_recv().is_err(), "{}", sent.target);
            continue;
        }
        for bytes in RETRIED_SIZES {
            let second = Second::Together;
            let requests = requests("PUT", way, bytes, second);
            check(&server, &records, &requests, second);
        }
    }
    let tried = failing.received();
    let failed = |bytes: &Vec<u8>| bytes.len() > FAILING_BYTES;
    assert!(tried.iter().all(failed), "{}", tried.len());
    assert!(tried.len() > WAYS.len(), "{}", tried.len());
}

/// The names of the threads of the serving process.
fn threads(server: &Server) -> Vec<String> {
    let pids = server.serving_pids();
    let folders = pids.iter().map(|pid| format!("/proc/{pid}/task"));
    let threads = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let names = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")));
    // A thread may have ended meanwhile.
    names.flatten().map(|name| name.trim().to_owned()).collect()
}

/// Directives for a location with files, and the bytes of the body and of the answer.
const LARGE_FILES: &[(&str, usize, usize, bool)] = &[
    ("", 2 << 20, 10, true),
    ("client_body_in_file_only clean;", 2 << 20, 10, true),
    ("client_body_in_file_only on;", 2 << 20, 10, false),
    ("", 100_000, 10, false),
    (
        "proxy_cache Z; proxy_cache_valid 1m; proxy_cache_bypass 1;",
        0,
        2 << 20,
        true,
    ),
    (
        "proxy_cache Z; proxy_cache_valid 1m; proxy_cache_bypass 1;",
        0,
        100_000,
        false,
    ),
    ("proxy_store %FOLDER%/stored$uri;", 0, 2 << 20, true),
];

#[test]
fn large_files_are_closed_by_a_thread_that_is_no_lane() {
    for (directives, body_bytes, answer_bytes, is_left) in LARGE_FILES {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {answer_bytes}\r\n\r\n{}",
            "x".repeat(*answer_bytes)
        );
        // The second answer takes the place of the first one's file.
        let scripts = (0..2).map(|_| {
            vec![
                Step::ReadHead,
                Step::ReadBytes(*body_bytes),
                Step::send(&answer),
            ]
        });
        let origin = Origin::start(scripts.collect());
        let configuration = format!(
            "sandbox off;
            events {{ }}
            http {{
                access_log off;
                client_max_body_size 10m;
                client_body_temp_path %FOLDER%/bodies;
                proxy_temp_path %FOLDER%/answers;
                proxy_cache_path %FOLDER%/cache keys_zone=Z:1m use_temp_path=off;
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ proxy_pass http://127.0.0.1:{}; {directives} }}
                }}
            }}",
            origin.port()
        );
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        let stored = server.folder().join("stored");
        std::fs::create_dir(&stored).unwrap();
        // If root runs the test, the serving process has another user.
        std::fs::set_permissions(&stored, std::fs::Permissions::from_mode(0o777)).unwrap();
        for _ in 0..2 {
            let sent = Sent::new("POST", "/a".to_owned(), *body_bytes);
            let request = match body_bytes {
                0 => b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
                _ => sent.request(),
            };
            let got = server.connect().round(request);
            assert_eq!(
                (got.status, got.body.len()),
                (200, *answer_bytes),
                "{directives}"
            );
        }
        let closer = || {
            threads(&server)
                .contains(&"file closer".to_owned())
                .then_some(())
        };
        let found = match is_left {
            true => turnpike_testkit::wait_for(closer),
            false => closer(),
        };
        assert_eq!(
            found.is_some(),
            *is_left,
            "{directives} {body_bytes} {answer_bytes}"
        );
    }
}
