//! `stream` beside nginx: bytes and short connections over TCP, datagrams over UDP.
//!
//! What is measured is the time that the serving process runs for an operation. All cases and both
//! servers are interleaved in one run, with the server on one core, and clients and origins, which
//! are threads of this program, on another.

use std::path::Path;

use super::progress::Progress;
use super::table;
use super::traffic::{self, Traffic};
use crate::contender::{Contender, serving_pid};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;

/// Interleaved rounds.
const ROUNDS: usize = 7;
/// Enough to see that everything works.
const QUICK_ROUNDS: usize = 1;

/// In a quick run each case has this part of its operations.
const QUICK_PART: u64 = 10;

/// Operations before those that count: the caches of the CPU are filled.
const WARM_UP_PART: u64 = 10;

/// Debian has nginx's stream in a module of its own.
const NGINX_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// `reuseport` gives nginx's only worker and our only lane a socket each; it changes nothing else.
const CONFIGURATION: &str = r"
worker_processes 1;
worker_cpu_affinity %MASK%;
error_log %FOLDER%/error.log crit;
events { worker_connections 8192; }
stream {
    server { listen 127.0.0.1:%PORT%; proxy_pass 127.0.0.1:%TCP%; }
    server { listen 127.0.0.1:%PORT% udp; proxy_pass 127.0.0.1:%UDP%; proxy_timeout 10s; }
    server {
        listen 127.0.0.1:%PORT_ONCE% udp;
        proxy_pass 127.0.0.1:%UDP%;
        proxy_responses 1;
    }
}
";

/// An operation.
struct Case {
    name: &'static str,
    traffic: Traffic,
    operations: u64,
}

const CASES: &[Case] = &[
    Case {
        name: "TCP, 1 MB to a client",
        traffic: Traffic::Download,
        operations: 2_000,
    },
    Case {
        name: "TCP, 1 MB to a server",
        traffic: Traffic::Upload,
        operations: 2_000,
    },
    Case {
        name: "TCP, a connection with 100 B both ways",
        traffic: Traffic::Short,
        operations: 10_000,
    },
    Case {
        name: "TCP, 100 B both ways on an open connection",
        traffic: Traffic::Exchange,
        operations: 100_000,
    },
    Case {
        name: "UDP, a datagram and its answer, a session each",
        traffic: Traffic::Once,
        operations: 20_000,
    },
    Case {
        name: "UDP, a datagram and its answer, 16 flows with 8 on the way",
        traffic: Traffic::Flows,
        operations: 100_000,
    },
    Case {
        name: "UDP, a datagram of 1200 B to a client",
        traffic: Traffic::Datagrams,
        operations: 200_000,
    },
];

/// Measures, and prints a table.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--rounds", "--cpu", "--module", "--case"];
    let options = Options::parse(arguments, &valued, &["--quick", "--debug"])?;
    let (rounds, part) = match options.has("--quick") {
        true => (QUICK_ROUNDS, QUICK_PART),
        false => (ROUNDS, 1),
    };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let module = options.text("--module").unwrap_or(NGINX_MODULE);
    if !Path::new(module).exists() {
        return Err(format!(
            "{module} is missing; please run: cargo xtask setup bench"
        ));
    }
    let wanted = options.text("--case").unwrap_or_default();
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| case.name.contains(wanted))
        .collect();
    let server_cpu = options.number("--cpu", machine::cpus() - 1)?;
    traffic::run_on(0)?;
    let mut progress = Progress::of(rounds * cases.len() * contenders.len());
    // Microseconds of each case and server, in each round.
    let mut samples = vec![[Vec::new(), Vec::new()]; cases.len()];
    for round in 0..rounds {
        for (case, samples) in cases.iter().zip(&mut samples) {
            // A B, B A: a machine that slows down slows both.
            for place in [round % 2, 1 - round % 2] {
                let contender = &contenders[place];
                let (number, name) = (round + 1, case.name);
                progress.step(&format!("round {number}, {name}, {}", contender.name));
                let load = match place {
                    0 => String::new(),
                    _ => format!("load_module {module};"),
                };
                let operations = case.operations / part;
                let mask = format!("1{}", "0".repeat(server_cpu));
                let text = format!("{load}{CONFIGURATION}").replace("%MASK%", &mask);
                samples[place].push(sample(contender, &text, case, operations)?);
            }
        }
    }
    progress.end();
    let names = contenders
        .each_ref()
        .map(|contender| contender.name.as_str());
    let rows = cases.iter().map(|case| case.name);
    print!("{}", table::table(names, rows.zip(&samples)));
    Ok(())
}

/// Microseconds that the serving process ran for an operation.
fn sample(
    contender: &Contender,
    configuration: &str,
    case: &Case,
    operations: u64,
) -> Result<f64, String> {
    let origin = traffic::Origin::start(case.traffic)?;
    let text = configuration
        .replace("%TCP%", &origin.tcp.to_string())
        .replace("%UDP%", &origin.udp.to_string());
    let server = contender.start(&text)?;
    let pid = serving_pid(&server)?;
    let port = match case.traffic {
        Traffic::Once => server.port_named("ONCE"),
        _ => server.port(),
    };
    let drive = |operations| {
        let done = traffic::drive(case.traffic, port, operations);
        done.map_err(|error| format!("{}, {}: {error}", contender.name, case.name))
    };
    drive((operations / WARM_UP_PART).max(1))?;
    let before = machine::process_us(pid);
    let done = drive(operations)?;
    let spent_us = machine::process_us(pid) - before;
    Ok(spent_us as f64 / done.max(1) as f64)
}
