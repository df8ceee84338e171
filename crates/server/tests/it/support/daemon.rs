//! A server in the background under load, with the current number of its master.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::libc::SIGKILL;
use serde_json::Value;
use turnpike_lane::sys::signal;

use turnpike_testkit::Folder;

use super::{children, is_running, stderr, turnpike, wait_for};

/// Far longer than any stall of the machine: reached only if an answer never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rounds of a long run (`TURNPIKE_TEST_ROUNDS`); `None` in the ordinary tests.
pub fn rounds() -> Option<usize> {
    let rounds = std::env::var("TURNPIKE_TEST_ROUNDS").ok()?;
    rounds.parse().ok()
}

/// A daemon in its own folder, with the current number of its master.
pub struct Daemon {
    pub folder: Folder,
    pub port: u16,
    text: String,
}

impl Daemon {
    pub fn start(listen: &str) -> Daemon {
        Self::start_with(listen, "")
    }

    pub fn start_with(listen: &str, events: &str) -> Daemon {
        Self::start_as(listen, events, "")
    }

    /// Starts a daemon with `main` in the main context.
    pub fn start_as(listen: &str, events: &str, main: &str) -> Daemon {
        let daemon = Self::write(listen, events, &format!("daemon on; {main}"));
        daemon.start_again().unwrap();
        daemon
    }

    /// Writes a configuration of the test's own, made from the folder and the port; the test starts
    /// the server.
    pub fn configured(text: impl FnOnce(&str, u16) -> String) -> Daemon {
        let folder = Folder::create().unwrap();
        let port = turnpike_testkit::ports::reserve().unwrap();
        let text = text(folder.name(), port);
        folder.write("nginx.conf", &text).unwrap();
        Daemon { folder, port, text }
    }

    /// Prepares only the files; the test starts the server.
    pub fn prepare(listen: &str, main: &str) -> Daemon {
        Self::write(listen, "", main)
    }

    fn write(listen: &str, events: &str, main: &str) -> Daemon {
        let folder = Folder::create().unwrap();
        let port = turnpike_testkit::ports::reserve().unwrap();
        let text = format!(
            "pid nginx.pid; error_log error.log notice; worker_processes 2; {main}\n\
             events {{ {events} }} http {{ server {{ listen 127.0.0.1:{port}{listen};\n\
             listen unix:{}/s.sock; location / {{ return 200 served; }} }} }}\n",
            folder.name()
        );
        folder.write("nginx.conf", &text).unwrap();
        Daemon { folder, port, text }
    }

    pub fn pid(&self, name: &str) -> i32 {
        self.folder.read(name).trim().parse().unwrap_or(0)
    }

    pub fn master(&self) -> i32 {
        self.pid("nginx.pid")
    }

    pub fn log(&self) -> String {
        self.folder.read("error.log")
    }

    /// The configuration of its start.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Starts the program again; the error is its output.
    pub fn start_again(&self) -> Result<(), String> {
        let output = turnpike(&self.folder.arguments(&[]));
        if output.status.success() {
            Ok(())
        } else {
            Err(stderr(&output))
        }
    }

    /// The serving process, as the master knows it.
    pub fn serving(&self) -> i32 {
        let socket = self.folder.path().join("nginx.control");
        let output = turnpike(&["status", "--json", "--socket", socket.to_str().unwrap()]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let process = status["serving"]["pid"].as_i64().unwrap_or_default();
        i32::try_from(process).unwrap()
    }

    /// A script in place of the program.
    pub fn script(&self, text: &str) -> String {
        let path = self.folder.path().join("binary");
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("binary={}", path.display())
    }

    /// Reloads so often, then changes the binary, and all that `changes` times. After each step
    /// what is under way has to `go_on`.
    pub fn reload_and_upgrade(&self, changes: usize, reloads: usize, go_on: impl Fn()) {
        for _ in 0..changes {
            for _ in 0..reloads {
                let done = || self.log().matches("reloaded: generation").count();
                let before = done();
                signal::send(self.master(), nix::libc::SIGHUP).unwrap();
                wait_for("a reload", || done() > before);
                go_on();
            }
            let old = self.master();
            let report = self
                .upgrade(&[])
                .unwrap_or_else(|error| panic!("{error}{}", self.log()));
            assert_eq!(report["old_pid"], old);
            go_on();
            wait_for("the old one to end", || !is_running(old));
        }
    }

    /// Fails if something was worth an alert.
    pub fn assert_no_alert(&self) {
        let log = self.log();
        assert!(
            !log.contains("[alert]") && !log.contains("[emerg]"),
            "{log}"
        );
    }

    /// `turnpike upgrade`.
    pub fn upgrade(&self, words: &[&str]) -> Result<Value, String> {
        let words = [&["upgrade", "--json"], words, &self.folder.arguments(&[])].concat();
        let output = turnpike(&words);
        if output.status.success() {
            Ok(serde_json::from_slice(&output.stdout).unwrap())
        } else {
            Err(stderr(&output))
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for name in ["nginx.pid", "nginx.pid.oldbin"] {
            let master = self.pid(name);
            if master > 0 {
                for process in children(master).into_iter().chain([master]) {
                    let _ = signal::send(process, SIGKILL);
                }
            }
        }
        // A serving process that has outlived its master.
        self.folder.write("nginx.conf", &self.text).unwrap();
        if self.folder.has("nginx.adopt") {
            turnpike(&self.folder.arguments(&["-s", "stop"]));
        }
    }
}

/// Clients that send requests until they are stopped: one request per connection, and many.
pub struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(port: u16) -> Load {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let clients = (0..4).map(|number| {
            let (stop, answered) = (stop.clone(), answered.clone());
            thread::spawn(move || {
                let mut kept = None;
                while !stop.load(Ordering::Relaxed) {
                    let mut stream = kept.take().unwrap_or_else(|| connect(port));
                    if ask(&mut stream, number % 2 == 0) {
                        kept = Some(stream);
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let clients = clients.collect();
        Load {
            stop,
            answered,
            clients,
        }
    }

    /// Waits until every client has begun and ended requests since this call.
    pub fn go_on(&self) {
        let start = self.answered.load(Ordering::Relaxed);
        wait_for("requests", || {
            self.answered.load(Ordering::Relaxed) > start + 200
        });
    }

    /// Stops the clients; fails if one has failed.
    pub fn stop(self) {
        self.go_on();
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a request was lost");
        }
    }
}

pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and reads the response; returns whether the connection is kept.
pub fn ask(stream: &mut TcpStream, keep: bool) -> bool {
    let connection = if keep { "keep-alive" } else { "close" };
    let request = format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.ends_with("\r\n\r\nserved") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text.contains("Connection: keep-alive")
}
