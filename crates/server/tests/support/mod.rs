//! A server in its own folder, started from the built binary and stopped with the test.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

pub mod daemon;

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_lane::sys::signal;

/// Long enough for a loaded machine; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// Runs the binary to its end.
pub fn turnpike(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnpike"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The binary's output on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Waits until the condition is true.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A folder that is removed with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnpike-server-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path for `-p` and configurations, without a slash at the end.
    pub fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Arguments that start or check the configuration `nginx.conf` here.
    pub fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let common = ["-p", self.name(), "-c", "nginx.conf", "-e", "error.log"];
        common.iter().chain(more).copied().collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running master.
pub struct Server {
    pub folder: Folder,
    pub master: i32,
    child: Child,
}

impl Server {
    /// Starts the binary in the foreground and waits until its pid file exists. `main` precedes a
    /// plain configuration.
    pub fn start(main: &str) -> Server {
        Server::start_as(main, |_| {})
    }

    pub fn start_as(main: &str, prepare: impl FnOnce(&mut Command)) -> Server {
        let folder = Folder::new();
        folder.write("nginx.conf", &configuration(main));
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnpike"));
        command.args(folder.arguments(&[])).stdin(Stdio::null());
        prepare(&mut command);
        let child = command.spawn().unwrap();
        let master = i32::try_from(child.id()).unwrap();
        let server = Server {
            folder,
            master,
            child,
        };
        wait_for("the pid file", || {
            server.folder.has("nginx.pid") && server.folder.read("nginx.pid").ends_with('\n')
        });
        server
    }

    pub fn signal(&self, number: i32) {
        signal::send(self.master, number).unwrap();
    }

    pub fn log(&self) -> String {
        self.folder.read("error.log")
    }

    pub fn wait_for_log(&self, text: &str) {
        wait_for(text, || self.log().contains(text));
    }

    /// The master's children.
    pub fn serving(&self) -> Vec<i32> {
        children(self.master)
    }

    /// Stops the master with a signal and returns its exit code.
    pub fn end(&mut self, number: i32) -> Option<i32> {
        self.signal(number);
        self.wait()
    }

    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The master first: it would start another serving process.
        let serving = self.serving();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in serving {
            let _ = signal::send(process, 9);
        }
        if let Ok(mut orphan) = UnixStream::connect(self.folder.path().join("nginx.adopt")) {
            let _ = orphan.write_all(b"stop\n");
        }
        if is_sandboxed() && !thread::panicking() {
            let log = self.log();
            let refused = log.contains(turnpike_testkit::REFUSED_CALL);
            assert!(!refused, "the sandbox lacks a call:\n{log}");
        }
    }
}

/// Whether servers under test must be in a sandbox (`make sandbox`).
fn is_sandboxed() -> bool {
    std::env::var_os(turnpike_testkit::SANDBOX).is_some()
}

/// A configuration for the foreground that logs everything, with `main` in the main context.
pub fn configuration(main: &str) -> String {
    let place = if main.contains("daemon ") {
        ""
    } else {
        "daemon off;"
    };
    let events = if main.contains("events {") {
        ""
    } else {
        "events { }"
    };
    let sandbox = match is_sandboxed() && !main.contains("sandbox ") {
        true => "sandbox on;",
        false => "",
    };
    format!("pid nginx.pid;\nerror_log error.log debug;\n{place} {sandbox}\n{main}\n{events}\n")
}

/// The children of a process.
pub fn children(process: i32) -> Vec<i32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

/// Whether a process runs (a zombie does not).
pub fn is_running(process: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}
