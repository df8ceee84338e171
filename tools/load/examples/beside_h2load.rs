//! Client CPU per request over HTTP/2, beside h2load, against the same nginx.
//!
//! `cargo run --release -p turnpike-load --example beside_h2load [ROUNDS [REQUESTS [PROGRAM]]]`
//!
//! Needs nginx, h2load (Debian's nghttp2-client), openssl and taskset, and the program that is
//! measured: `target/release/turnpike-load`, or a `turnpike` elsewhere. nginx is pinned to CPU 0
//! and each client, one thread, to CPU 1; rounds are interleaved, and the ratio of a mode is the
//! median of its rounds' ratios. CPU is the user time of the client process (getrusage), and
//! beside it the user and system time, which on loopback includes the network stack's work on its
//! behalf. Every client must have got all bodies whole.

#![allow(clippy::unwrap_used)]

mod beside;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use beside::{Server, built, free_port};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::Value;

const CONNECTIONS: &str = "10";
const STREAMS: [&str; 3] = ["1", "10", "100"];
const BODY_BYTES: usize = 600;

/// Microseconds of a client for a request: of its own, and with the kernel's.
#[derive(Clone, Copy, Default)]
struct Cost {
    user_us: f64,
    all_us: f64,
}

/// What is measured beside what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    H2load,
    Ours,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        let word = words.get(at).map(|word| word.parse().unwrap());
        word.unwrap_or(default)
    };
    let (rounds, requests) = (number(0, 7), number(1, 100_000));
    let ours = match words.get(2) {
        Some(program) => PathBuf::from(program),
        None => built(),
    };
    let ports = [free_port(), free_port()];
    let server = start(ports);
    for (scheme, port) in ["https", "http"].into_iter().zip(ports) {
        for streams in STREAMS {
            let mode = format!("{scheme:<5} {streams:>3} streams");
            let url = format!("{scheme}://127.0.0.1:{port}/");
            check_bodies(&ours, &server, &url);
            let mut ratios = Vec::new();
            for round in 0..rounds {
                let mut costs = [Cost::default(); 2];
                for turn in 0..2 {
                    // Who goes first changes from round to round.
                    let at = usize::try_from((round + turn) % 2).unwrap();
                    let client = [Client::H2load, Client::Ours][at];
                    costs[at] = run(client, &ours, streams, requests, &url);
                }
                let [theirs, own] = costs;
                ratios.push((own.user_us / theirs.user_us, own.all_us / theirs.all_us));
                println!(
                    "{mode} round {round}: user us per request: h2load {:.2}, load {:.2}; with the \
                     kernel's: {:.2}, {:.2}",
                    theirs.user_us, own.user_us, theirs.all_us, own.all_us
                );
            }
            let (user, all): (Vec<f64>, Vec<f64>) = ratios.into_iter().unzip();
            println!(
                "{mode} median ratio: user {:.3}, with the kernel's {:.3}",
                median(user),
                median(all)
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Has our client compare every body of a short run.
fn check_bodies(ours: &Path, server: &Server, url: &str) {
    let mut command = own_command(ours, "10", 1000, url);
    command.arg("--expect-body");
    command.arg(server.folder.join("html/index.html"));
    let report = report(&mut command);
    assert_eq!(report["requests"]["answered"], 1000, "{report}");
    assert_eq!(report["errors_total"], 0, "{report}");
}

fn own_command(ours: &Path, streams: &str, requests: u64, url: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(ours);
    if ours.file_name().is_some_and(|name| name != "turnpike-load") {
        command.arg("load");
    }
    command
        .args(["--h2", "--insecure", "--quiet", "--json", "-t", "1"])
        .args(["-c", CONNECTIONS, "--streams", streams])
        .args(["-n", &requests.to_string()])
        .arg(url);
    command
}

fn report(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"))
}

fn run(client: Client, ours: &Path, streams: &str, requests: u64, url: &str) -> Cost {
    let before = children_us();
    match client {
        Client::Ours => {
            let report = report(&mut own_command(ours, streams, requests, url));
            assert_eq!(report["requests"]["answered"], requests, "{report}");
            assert_eq!(report["errors_total"], 0, "{report}");
            let bytes = report["bytes_read"].as_u64().unwrap();
            assert!(bytes > requests * BODY_BYTES as u64, "{report}");
        }
        Client::H2load => {
            let output = Command::new("taskset")
                .args(["-c", "1", "h2load", "-t", "1", "-c", CONNECTIONS])
                .args(["-m", streams, "-n", &requests.to_string(), url])
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let bodies = format!("({}) data", requests * BODY_BYTES as u64);
            let answered = format!("{requests} succeeded, 0 failed, 0 errored");
            assert!(text.contains(&bodies) && text.contains(&answered), "{text}");
        }
    }
    let after = children_us();
    let per_request = |after: f64, before: f64| (after - before) / requests as f64;
    Cost {
        user_us: per_request(after.user_us, before.user_us),
        all_us: per_request(after.all_us, before.all_us),
    }
}

fn children_us() -> Cost {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let user_us = usage.user_time().num_microseconds() as f64;
    Cost {
        user_us,
        all_us: user_us + usage.system_time().num_microseconds() as f64,
    }
}

/// nginx with HTTP/2 over TLS at the first port, and without at the second.
fn start(ports: [u16; 2]) -> Server {
    let [secure, plain] = ports;
    Server::start("beside-h2load", BODY_BYTES, &ports, |folder| {
        make_key(folder);
        let at = folder.display();
        format!(
            "events {{ worker_connections 1024; accept_mutex off; }}\n\
             http {{ access_log off; keepalive_timeout 600; keepalive_requests 100000000;\n\
             sendfile off; tcp_nodelay on; open_file_cache max=1000;\n\
             ssl_certificate {at}/pem; ssl_certificate_key {at}/key;\n\
             server {{ listen 127.0.0.1:{secure} ssl http2; listen 127.0.0.1:{plain} http2;\n\
             root {at}/html; }} }}\n"
        )
    })
}

fn make_key(folder: &Path) {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=a"])
        .args(["-keyout", "key", "-out", "pem"])
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
}
