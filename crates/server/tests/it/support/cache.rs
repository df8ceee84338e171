//! The common code of the cache tests: an origin that counts requests and can change its answer,
//! and a server with a zone in front of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use turnpike_testkit::{DEADLINE, Response, Server};

/// An origin that answers every request with its current answer, with keep-alive.
pub struct Counting {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    requests: AtomicUsize,
    stopped: AtomicBool,
    /// Whether it closes connections without an answer.
    refusing: AtomicBool,
    answer: Mutex<Vec<u8>>,
    delay: Mutex<Duration>,
    heads: Mutex<Vec<String>>,
}

impl Counting {
    /// Starts with this answer: a complete response.
    pub fn start(answer: &str) -> Counting {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            requests: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            answer: Mutex::new(answer.as_bytes().to_vec()),
            delay: Mutex::new(Duration::ZERO),
            heads: Mutex::default(),
        });
        let own = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.stopped.load(Ordering::Acquire) {
                    return;
                }
                let own = own.clone();
                thread::spawn(move || serve(&stream, &own));
            }
        });
        Counting { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// The heads of requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap().clone()
    }

    pub fn answer_with(&self, answer: &str) {
        *self.shared.answer.lock().unwrap() = answer.as_bytes().to_vec();
    }

    pub fn delay(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    pub fn refuse(&self, refusing: bool) {
        self.shared.refusing.store(refusing, Ordering::Release);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
        reader.read_exact(&mut vec![0; length]).unwrap();
        shared.requests.fetch_add(1, Ordering::AcqRel);
        shared.heads.lock().unwrap().push(head);
        if shared.refusing.load(Ordering::Acquire) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        let delay = *shared.delay.lock().unwrap();
        thread::sleep(delay);
        let answer = shared.answer.lock().unwrap().clone();
        if (&mut &*stream).write_all(&answer).is_err() {
            return;
        }
    }
}

/// A response of known length.
pub fn response(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

/// A zone in memory, and one in files.
pub const MEMORY: &str = "proxy_cache_path mem keys_zone=Z:16m memory;";
pub const DISK: &str =
    "proxy_cache_path %FOLDER%/cache levels=1:2 keys_zone=Z:1m use_temp_path=off;";

/// A server with the zone `Z` and these directives for its only location.
pub fn server(origin: &Counting, zone: &str, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        worker_processes 2;
        control %FOLDER%/control.sock;
        events {{ worker_connections 4096; }}
        http {{
            access_log off;
            proxy_http_version 1.1;
            {zone}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{
                    proxy_pass http://127.0.0.1:{};
                    proxy_cache Z;
                    add_header X-Cache $upstream_cache_status always;
                    add_header X-Why $upstream_cache_not_stored always;
                    {directives}
                }}
            }}
        }}",
        origin.port()
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// Sends a request with these header lines, each with its CRLF.
pub fn ask(server: &Server, request: &str, fields: &str) -> Response {
    let text = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
    let mut peer = server.connect();
    if request.starts_with("HEAD ") {
        peer.round_without_body(text)
    } else {
        peer.round(text)
    }
}

/// The cache status of the response.
pub fn status(response: &Response) -> &str {
    response.header("X-Cache").unwrap_or_default()
}

/// Sends a line to the control socket; returns its answer.
pub fn command(server: &Server, line: &str) -> serde_json::Value {
    let path = server.folder().join("control.sock");
    let connect = || UnixStream::connect(&path).ok();
    let mut socket = turnpike_testkit::wait_for(connect).expect("the control socket");
    socket.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Waits until the condition is true.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let found = turnpike_testkit::wait_for(|| condition().then_some(()));
    assert!(found.is_some(), "waited in vain for {what}");
}
