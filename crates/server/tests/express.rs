//! Tests of the express lane end to end: a pair of virtual interfaces between two network
//! namespaces, the server in one, foreign and plain clients in the other.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};
use support::wait_for;
use turnpike_express::{Program, Refusal};
use turnpike_testkit::{Server, Signal, needs_root};

const SERVER: &str = "10.9.0.1";

/// Two namespaces, joined: this thread is in the server's.
struct Network {
    client: File,
    /// The thread whose namespace is the client's, until this is dropped.
    holder: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Network {
    /// `None`: the test is skipped.
    fn join(test: &str) -> Option<Network> {
        if needs_root(test, "CAP_SYS_ADMIN") || needs_root(test, "CAP_NET_ADMIN") {
            return None;
        }
        if let Err(Refusal::NotSupported) = Program::load(4) {
            eprintln!("skipped: {test} needs a kernel with the express lane (Linux 6.9)");
            return None;
        }
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let (ready, made) = channel();
        let (stop, stopped) = channel::<()>();
        let holder = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            ready.send(nix::unistd::gettid().as_raw()).unwrap();
            let _ = stopped.recv();
        });
        let process = std::process::id();
        let client = format!("/proc/{process}/task/{}/ns/net", made.recv().unwrap());
        for command in [
            "link set lo up",
            "link add s0 type veth peer name c0",
            "addr add 10.9.0.1/24 dev s0",
            "addr add fd09::1/64 dev s0 nodad",
            "link set s0 up",
        ] {
            ip(command);
        }
        ip(&format!("link set c0 netns {client}"));
        let network = Network {
            client: File::open(&client).unwrap(),
            holder: Some((stop, holder)),
        };
        network.on_client(|| {
            ip("addr add 10.9.0.2/24 dev c0");
            ip("addr add fd09::2/64 dev c0 nodad");
            ip("link set c0 up");
        });
        Some(network)
    }

    /// Does something in the client's namespace.
    fn on_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                setns(&self.client, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            there.join().unwrap()
        })
    }

    /// The body that curl gets.
    fn curl(&self, port: u16, target: &str, more: &[&str]) -> String {
        let url = format!("http://{SERVER}:{port}{target}");
        let output: Output = self.on_client(|| {
            Command::new("curl")
                .args(["--silent", "--show-error", "--max-time", "30", &url])
                .args(more)
                .output()
                .unwrap()
        });
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{url}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some((stop, holder)) = self.holder.take() {
            drop(stop);
            let _ = holder.join();
        }
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
}

const CLOSE: [&str; 2] = ["--header", "Connection: close"];

fn configuration(express: &str) -> String {
    format!(
        "events {{ }}
         http {{
             access_log off;
             express_interface s0;
             express_mode generic;
             server {{
                 listen %PORT%;
                 listen [::]:%PORT%;
                 root %FOLDER%/html;
                 location / {{ express {express}; }}
                 location /hello {{ express {express}; return 200 hello; }}
                 location /agent {{ express {express}; return 200 $http_user_agent; }}
                 location /metrics {{ metrics; }}
             }}
         }}"
    )
}

fn start(express: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration(express))
        .file("html/a.txt", "first")
        .file("html/large.txt", "x".repeat(2000))
        .start()
}

/// Requests that the driver has answered.
fn hits(server: &Server) -> u64 {
    let page = server.get("/metrics").text();
    let line = page
        .lines()
        .find(|line| line.starts_with("turnpike_express_requests"));
    let number = line.and_then(|line| line.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_hot_answer_comes_from_the_driver() {
    let Some(network) = Network::join("a_hot_answer_comes_from_the_driver") else {
        return;
    };
    let server = start("on");
    let port = server.port();
    for (target, body) in [("/a.txt", "first"), ("/hello", "hello")] {
        let before = hits(&server);
        wait_for("an answer of the driver", || {
            assert_eq!(network.curl(port, target, &CLOSE), body);
            hits(&server) > before
        });
        let headers = network.curl(port, target, &["--include", CLOSE[0], CLOSE[1]]);
        assert!(headers.starts_with("HTTP/1.1 200 OK\r\n"), "{headers}");
        assert_eq!(network.curl(port, target, &[]), body);
    }
    server.write("html/a.txt", "second");
    wait_for("the changed file", || {
        network.curl(port, "/a.txt", &CLOSE) == "second"
    });
}

#[test]
fn what_differs_or_is_large_comes_from_the_lanes() {
    let Some(network) = Network::join("what_differs_or_is_large_comes_from_the_lanes") else {
        return;
    };
    let server = start("on");
    let port = server.port();
    for agent in ["a", "b", "c", "d"] {
        let more = ["--user-agent", agent, CLOSE[0], CLOSE[1]];
        assert_eq!(network.curl(port, "/agent", &more), agent);
        assert_eq!(network.curl(port, "/large.txt", &CLOSE), "x".repeat(2000));
    }
    assert_eq!(hits(&server), 0);
}

/// One request on a connection of its own; what went wrong, else nothing.
fn ask(port: u16) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect((SERVER, port)).map_err(text)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .map_err(text)?;
    let request = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    match answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello") {
        true => Ok(()),
        false => Err(format!("{answer:?}")),
    }
}

#[test]
fn turning_it_on_and_off_under_load_costs_no_request() {
    let Some(network) = Network::join("turning_it_on_and_off_under_load_costs_no_request") else {
        return;
    };
    let mut server = start("on");
    let port = server.port();
    let (over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let failures: Vec<String> = thread::scope(|scope| {
        let load = scope.spawn(|| {
            network.on_client(|| {
                let mut failures = Vec::new();
                while !over.load(Relaxed) {
                    failures.extend(ask(port).err());
                    asked.fetch_add(1, Relaxed);
                }
                failures
            })
        });
        for express in ["off", "on", "off", "on", "off", "on", "off", "on"] {
            let before = asked.load(Relaxed);
            server.write_configuration(&configuration(express));
            server.signal(Signal::SIGHUP);
            // The page has the driver's counts while the express lane is on.
            wait_for("the new configuration", || {
                (hits(&server) > 0) == (express == "on")
            });
            wait_for("requests under it", || asked.load(Relaxed) > before + 200);
        }
        over.store(true, Relaxed);
        load.join().unwrap()
    });
    assert_eq!(failures, Vec::<String>::new());
}
