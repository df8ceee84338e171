//! The built binary: run to its end, or started as an installation is.

#![allow(clippy::expect_used, dead_code, unreachable_pub)]

pub mod applications;
pub mod cache;
pub mod content_origin;
pub mod curl;
pub mod daemon;
pub mod echo;
pub mod express;
pub mod frames;
pub mod http2_origin;
pub mod http3;
pub mod memory;
pub mod ocsp;
pub mod one_origin;
pub mod stock;
pub mod tls;
pub mod tls_peer;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::Server;

/// Long enough for a loaded machine; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary.
pub const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

/// Runs a program to its end with a text on standard input.
pub fn output_of(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    child.wait_with_output().unwrap()
}

/// Runs the binary to its end, in a folder where everybody may make a socket.
pub fn turnpike(arguments: &[&str]) -> Output {
    let mut command = Command::new(TURNPIKE);
    command
        .args(arguments)
        .current_dir(std::env::temp_dir())
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

/// Starts the binary in the foreground, in a folder as an installation has it, and waits until its
/// pid file exists. `main` precedes a plain configuration.
pub fn start(main: &str) -> Server {
    start_as(main, |_| {})
}

/// As [`start`], with a change of the command.
pub fn start_as(main: &str, prepare: impl Fn(&mut Command) + 'static) -> Server {
    Server::builder(TURNPIKE)
        .installed()
        .configuration(&configuration(main))
        .command(prepare)
        .start()
}

/// The number of the master.
pub fn master_of(server: &Server) -> i32 {
    i32::try_from(server.pid()).unwrap()
}

/// The master's children.
pub fn serving_of(server: &Server) -> Vec<i32> {
    children(master_of(server))
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
    let sandbox = if is_sandboxed() && !main.contains("sandbox ") {
        "sandbox on;"
    } else {
        ""
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
    // A killed one has its sockets until its last thread has ended.
    let has_ended = status.contains("State:\tZ")
        && ["Threads:\t0\n", "Threads:\t1\n"]
            .iter()
            .any(|line| status.contains(line));
    !status.is_empty() && !has_ended
}
