//! HTTPS beside nginx: handshakes, requests of open connections, and HTTP/2.
//!
//! What is measured is the time that the serving process runs for an operation. All cases and both
//! servers are interleaved in one run, with the server on one core and the client on another. What
//! the TLS library alone takes for 1 MB is the floor of that case.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use turnpike_testkit::Folder;

use super::progress::Progress;
use super::table;
use crate::contender::{Contender, serving_pid};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Interleaved rounds.
const ROUNDS: usize = 7;
/// Enough to see that everything works.
const QUICK_ROUNDS: usize = 1;

/// In a quick run each case has this part of its requests.
const QUICK_PART: u64 = 10;

/// Requests before those that count: connections are made, and the caches of the CPU filled.
const WARM_UP_PART: u64 = 10;

/// The name that nginx 1.22 has for HTTP/2 on a listener is the older one.
const CONFIGURATION: &str = r"
worker_processes 1;
worker_cpu_affinity %MASK%;
error_log %FOLDER%/error.log crit;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    ssl_protocols TLSv1.3;
    ssl_session_tickets %TICKETS%;
    server {
        listen 127.0.0.1:%PORT% ssl http2;
        ssl_certificate %KEYS%/%KEY%.pem;
        ssl_certificate_key %KEYS%/%KEY%.key;
        root %FOLDER%/html;
    }
}
";

/// An operation and how `turnpike load` offers it.
#[derive(Debug)]
struct Case {
    name: &'static str,
    /// The certificate's file.
    key: &'static str,
    tickets: &'static str,
    object: &'static str,
    requests: u64,
    options: &'static [&'static str],
}

/// The case that has a floor.
const LARGE: Case = Case {
    name: "request of an open connection, 1 MB",
    key: "ec",
    tickets: "off",
    object: "/1M.bin",
    requests: 1_000,
    options: &["-c", "16"],
};

/// Bytes of its object.
const LARGE_BYTES: usize = 1024 * 1024;

const CASES: &[Case] = &[
    Case {
        name: "full handshake, ECDSA P-256",
        key: "ec",
        tickets: "off",
        object: "/",
        requests: 4_000,
        options: &["-c", "16", "--connect-only", "--tls-resume", "0"],
    },
    Case {
        name: "full handshake, RSA-2048",
        key: "rsa",
        tickets: "off",
        object: "/",
        requests: 2_000,
        options: &["-c", "16", "--connect-only", "--tls-resume", "0"],
    },
    Case {
        name: "resumed handshake",
        key: "ec",
        tickets: "on",
        object: "/",
        requests: 4_000,
        options: &["-c", "16", "--connect-only", "--tls-resume", "100"],
    },
    Case {
        name: "full handshake and one request, ECDSA P-256",
        key: "ec",
        tickets: "off",
        object: "/600.html",
        requests: 4_000,
        options: &["-c", "16", "--connreqs", "1", "--tls-resume", "0"],
    },
    Case {
        name: "full handshake and one request, RSA-2048",
        key: "rsa",
        tickets: "off",
        object: "/600.html",
        requests: 2_000,
        options: &["-c", "16", "--connreqs", "1", "--tls-resume", "0"],
    },
    Case {
        name: "resumed handshake and one request",
        key: "ec",
        tickets: "on",
        object: "/600.html",
        requests: 4_000,
        options: &["-c", "16", "--connreqs", "1", "--tls-resume", "100"],
    },
    Case {
        name: "request of an open connection, 600 B",
        key: "ec",
        tickets: "off",
        object: "/600.html",
        requests: 60_000,
        options: &["-c", "64"],
    },
    Case {
        name: "request of an open connection, 16 KB",
        key: "ec",
        tickets: "off",
        object: "/16K.bin",
        requests: 30_000,
        options: &["-c", "64"],
    },
    LARGE,
    Case {
        name: "HTTP/2 request, 600 B, 100 streams a connection",
        key: "ec",
        tickets: "off",
        object: "/600.html",
        requests: 100_000,
        options: &["-c", "8", "--h2", "--streams", "100"],
    },
    Case {
        name: "HTTP/2 request, 16 KB, 100 streams a connection",
        key: "ec",
        tickets: "off",
        object: "/16K.bin",
        requests: 30_000,
        options: &["-c", "8", "--h2", "--streams", "100"],
    },
];

/// How a run is made.
struct Plan<'a> {
    /// The program whose `load` is the client.
    client: &'a Path,
    keys: &'a Folder,
    server_cpu: usize,
    client_cpu: usize,
    part: u64,
}

/// Measures, and prints a table.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--rounds", "--cpu"];
    let options = Options::parse(arguments, &valued, &["--quick", "--debug"])?;
    let (rounds, part) = match options.has("--quick") {
        true => (QUICK_ROUNDS, QUICK_PART),
        false => (ROUNDS, 1),
    };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let keys = keys()?;
    let plan = Plan {
        client: &contenders[0].program,
        keys: &keys,
        server_cpu: options.number("--cpu", machine::cpus() - 1)?,
        client_cpu: 0,
        part,
    };
    let floor = match options.has("--debug") {
        true => None,
        false => Some(Floor::built()?),
    };
    let mut progress = Progress::of(rounds * CASES.len() * contenders.len());
    let mut floor_samples = Vec::new();
    // Microseconds of each case and server, in each round.
    let mut samples = vec![[Vec::new(), Vec::new()]; CASES.len()];
    for round in 0..rounds {
        for (case, samples) in CASES.iter().zip(&mut samples) {
            // A B, B A: a machine that slows down slows both.
            for place in [round % 2, 1 - round % 2] {
                let contender = &contenders[place];
                let number = round + 1;
                progress.step(&format!(
                    "round {number}, {}, {}",
                    case.name, contender.name
                ));
                samples[place].push(sample(&plan, contender, case)?);
            }
        }
        if let Some(floor) = &floor {
            floor_samples.push(floor.sample(&plan)?);
        }
    }
    progress.end();
    let names = contenders.each_ref().map(|one| one.name.as_str());
    let rows = CASES.iter().map(|case| case.name).zip(&samples);
    print!("{}", table::table(names, rows));
    if floor.is_some() {
        let floor_us = table::median(&floor_samples);
        println!("\nrustls alone, without a server, takes {floor_us:.1} for 1 MB.");
    }
    Ok(())
}

/// Certificates with keys of both kinds.
fn keys() -> Result<Folder, String> {
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let kinds: [(&str, &[&str]); 2] = [
        ("ec", &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ("rsa", &["rsa:2048"]),
    ];
    for (name, kind) in kinds {
        must(
            Command::new("openssl")
                .current_dir(folder.path())
                .args([
                    "req",
                    "-x509",
                    "-nodes",
                    "-days",
                    "30",
                    "-subj",
                    "/CN=a.test",
                ])
                .args(["-keyout", &format!("{name}.key"), "-out"])
                .args([&format!("{name}.pem"), "-newkey"])
                .args(kind)
                .stderr(Stdio::null()),
        )?;
    }
    Ok(folder)
}

/// Microseconds that the serving process ran for an operation.
fn sample(plan: &Plan<'_>, contender: &Contender, case: &Case) -> Result<f64, String> {
    let mask = format!("1{}", "0".repeat(plan.server_cpu));
    let text = CONFIGURATION
        .replace("%MASK%", &mask)
        .replace("%TICKETS%", case.tickets)
        .replace("%KEYS%", &plan.keys.path().display().to_string())
        .replace("%KEY%", case.key);
    let server = contender
        .builder(&text)
        .file("html/16K.bin", vec![b'x'; 16 * 1024])
        .file("html/1M.bin", vec![b'x'; LARGE_BYTES])
        .try_start()
        .map_err(|error| format!("{}: {error}", contender.name))?;
    measure(
        plan,
        case,
        &Target {
            folder: server.folder(),
            port: server.port(),
            pid: serving_pid(&server)?,
        },
    )
}

/// What is measured.
struct Target<'a> {
    /// Where reports are written.
    folder: &'a Path,
    port: u16,
    pid: u32,
}

/// Microseconds that a process ran for an operation.
fn measure(plan: &Plan<'_>, case: &Case, target: &Target<'_>) -> Result<f64, String> {
    let requests = case.requests / plan.part;
    drive(plan, case, target, (requests / WARM_UP_PART).max(1))?;
    let before = machine::process_us(target.pid);
    let answered = drive(plan, case, target, requests)?;
    let spent_us = machine::process_us(target.pid) - before;
    Ok(spent_us as f64 / answered.max(1) as f64)
}

/// Sends requests from the client's core; returns the number of answers.
fn drive(plan: &Plan<'_>, case: &Case, target: &Target<'_>, requests: u64) -> Result<u64, String> {
    let report = target.folder.join("load.json");
    must(
        Command::new("taskset")
            .args(["-c", &plan.client_cpu.to_string()])
            .arg(plan.client)
            .args(["load", "--insecure", "--quiet", "--threads", "1"])
            .args(["--timeout", "60s", "--requests", &requests.to_string()])
            .arg(format!("--json={}", report.display()))
            .args(case.options)
            .arg(format!("https://127.0.0.1:{}{}", target.port, case.object))
            .stdout(Stdio::null()),
    )?;
    let text = std::fs::read_to_string(&report).map_err(|error| error.to_string())?;
    let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let count = |name: &str| report["requests"][name].as_u64().unwrap_or(0);
    match count("failed") {
        0 => Ok(count("answered")),
        failed => Err(format!("{}: {failed} requests failed", case.name)),
    }
}

/// A bare loop of the TLS library.
struct Floor(PathBuf);

impl Floor {
    fn built() -> Result<Floor, String> {
        must(
            workspace::cargo()
                .args(["build", "--quiet", "--release", "--locked"])
                .args(["--package", "turnpike-load", "--example", "rustls_floor"]),
        )?;
        let program = workspace::target().join("release/examples/rustls_floor");
        Ok(Floor(program))
    }

    /// Microseconds for an answer of the large case.
    fn sample(&self, plan: &Plan<'_>) -> Result<f64, String> {
        let file = |kind: &str| plan.keys.path().join(format!("{}.{kind}", LARGE.key));
        let child = Command::new("taskset")
            .args(["-c", &plan.server_cpu.to_string()])
            .arg(&self.0)
            .args([file("pem"), file("key")])
            .arg(LARGE_BYTES.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let mut running = Running(child);
        let mut line = String::new();
        let output = running.0.stdout.take().ok_or("it has no output")?;
        let read = BufReader::new(output).read_line(&mut line);
        let port = read.ok().and_then(|_| line.trim().parse().ok());
        let target = Target {
            folder: plan.keys.path(),
            port: port.ok_or_else(|| format!("{}: it names no port", self.0.display()))?,
            pid: running.0.id(),
        };
        measure(plan, &LARGE, &target)
    }
}

/// A program that is ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended needs neither.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
