//! Client CPU per request and system calls per request, beside wrk, against the same nginx.
//!
//! `cargo run --release -p turnpike-load --example beside_wrk [ROUNDS [SECONDS [CONNECTIONS]]]`
//!
//! Needs nginx, wrk, taskset and strace, and `target/release/turnpike-load`. nginx is pinned to
//! CPU 0 and each client, one thread, to CPU 1; rounds are interleaved, and the ratio of a mode is
//! the median of its rounds' ratios. CPU is user and system time of the client process
//! (getrusage), which on loopback includes the network stack's work on its behalf.

#![allow(clippy::unwrap_used)]

mod beside;

use std::path::{Path, PathBuf};
use std::process::Command;

use beside::{Server, built, free_port};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use turnpike_testkit::tracer;

const MODES: [(&str, &[&str]); 2] = [
    ("keep-alive", &[]),
    ("one request", &["-H", "Connection: close"]),
];

fn main() {
    let mut words = std::env::args()
        .skip(1)
        .map(|word| word.parse::<u64>().unwrap());
    let rounds = words.next().unwrap_or(7);
    let seconds = words.next().unwrap_or(3).to_string();
    let connections = words.next().unwrap_or(50).to_string();
    let clients = [PathBuf::from("wrk"), built()];
    let port = free_port();
    let server = start(port);
    let url = format!("http://127.0.0.1:{port}/");
    for (mode, options) in MODES {
        let mut ratios = Vec::new();
        for round in 0..rounds {
            let mut cpu_us = [0.0; 2];
            for turn in 0..2 {
                // Who goes first changes from round to round.
                let client = usize::try_from((round + turn) % 2).unwrap();
                let line = command_line(&seconds, &connections, options, &url);
                cpu_us[client] = run(&clients[client], &line).0;
            }
            ratios.push(cpu_us[1] / cpu_us[0]);
            println!(
                "{mode:<12} round {round}: wrk {:.2} us, load {:.2} us of CPU per request, {:.3}",
                cpu_us[0],
                cpu_us[1],
                cpu_us[1] / cpu_us[0]
            );
        }
        ratios.sort_by(f64::total_cmp);
        println!("{mode:<12} median ratio {:.3}", ratios[ratios.len() / 2]);
        for client in &clients {
            let line = command_line("1", &connections, options, &url);
            let calls = system_calls(client, &line, &server.folder);
            println!(
                "{mode:<12} {}: {calls:.2} system calls per request",
                client.display()
            );
        }
    }
}

fn command_line(seconds: &str, connections: &str, options: &[&str], url: &str) -> Vec<String> {
    let mut line = ["-t", "1", "-c", connections, "-d", seconds]
        .map(str::to_owned)
        .to_vec();
    line.extend(options.iter().map(|word| (*word).to_owned()));
    line.push(url.to_owned());
    line
}

/// Microseconds of CPU per request, and requests.
fn run(client: &Path, line: &[String]) -> (f64, f64) {
    let before = children_cpu_us();
    let output = Command::new("taskset")
        .args(["-c", "1"])
        .arg(client)
        .args(line)
        .output()
        .unwrap();
    let cpu_us = children_cpu_us() - before;
    let requests = requests(&String::from_utf8_lossy(&output.stdout));
    (cpu_us / requests, requests)
}

fn requests(text: &str) -> f64 {
    let line = text
        .lines()
        .find(|line| line.contains(" requests in "))
        .unwrap_or("0");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn children_cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
}

/// System calls per request, start and end of the program included.
fn system_calls(client: &Path, line: &[String], folder: &Path) -> f64 {
    let (output, counts) = tracer::run(client, line, &folder.join("strace")).unwrap();
    let calls: u64 = counts.values().sum();
    calls as f64 / requests(&String::from_utf8_lossy(&output.stdout))
}

/// nginx with the settings of study S2, at this port.
fn start(port: u16) -> Server {
    Server::start("beside-wrk", 600, &[port], |folder| {
        format!(
            "worker_rlimit_nofile 16384;\n\
             events {{ worker_connections 8192; multi_accept on; accept_mutex off; }}\n\
             http {{ access_log off; keepalive_timeout 600; keepalive_requests 10000000;\n\
             sendfile on; tcp_nopush on; tcp_nodelay on; open_file_cache max=1000;\n\
             server {{ listen 127.0.0.1:{port} backlog=65535 deferred; root {}/html; }} }}\n",
            folder.display()
        )
    })
}
