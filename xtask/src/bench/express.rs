//! The express lane beside nginx: small objects, one request per connection, over a pair of virtual
//! interfaces between two network namespaces.
//!
//! Two figures are measured for a transaction (connect, request, answer, close):
//!
//! - **whole**: the time that all CPUs of the machine were busy, of clients, server and kernel.
//! - **server**: that without the client's part. In runs of their own, the frames of each interface
//!   are taken in by a thread of the kernel (threaded NAPI), the server's pinned to its core. What
//!   counts is the run time of that thread, in which the driver's program runs too, and of the
//!   serving process. The client's own interface and program run elsewhere.
//!
//! Requests are padded to the size of the answer, so that it has room in the request's frame;
//! figures without padding stand beside. With padding, a run with less than 99 % of requests
//! answered in the driver is void.

use std::process::{Command, Stdio};

use serde_json::Value;
use turnpike_testkit::network::{Network, SERVER_V4};
use turnpike_testkit::{Folder, Server};

use super::progress::Progress;
use crate::contender::{self, Contender, serving_pid};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::must;

/// Interleaved rounds.
const ROUNDS: usize = 5;
/// Seconds of a measurement.
const SECONDS: u64 = 4;
/// Enough to see that everything works.
const QUICK: (usize, u64) = (1, 1);

/// Connections at a time: enough that the server always has one to answer.
const CONNECTIONS: usize = 64;

/// Transactions before those that count: the caches are filled, and the answer is published.
const WARM_UP: usize = 2_000;

/// A run with fewer hits says nothing about the express lane.
const HIT_SHARE_MIN: f64 = 0.99;

/// What is to be reached, as a part of nginx's.
const WHOLE_GOAL: f64 = 0.45;
const SERVER_GOAL: f64 = 0.15;

/// What a request has besides its padding, at least: the padded request is no shorter than the
/// answer.
const REQUEST_BYTES_MIN: usize = 60;

const OBJECTS: &[(&str, &str)] = &[
    ("file, 600 B", contender::OBJECT),
    ("file, 1 KB", "/1K.bin"),
    ("empty_gif", "/empty.gif"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Wrk,
    Load,
}

/// What is measured, for each object.
#[derive(Clone, Copy, Debug)]
struct Kind {
    client: Client,
    is_padded: bool,
    /// Whether the server's part is measured: see above.
    is_apart: bool,
}

const fn kind(client: Client, is_padded: bool, is_apart: bool) -> Kind {
    Kind {
        client,
        is_padded,
        is_apart,
    }
}

const KINDS: &[Kind] = &[
    kind(Client::Wrk, true, false),
    kind(Client::Wrk, false, false),
    kind(Client::Load, true, false),
    kind(Client::Load, false, false),
    kind(Client::Wrk, true, true),
    kind(Client::Wrk, false, true),
];

/// A measurement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    whole_us: f64,
    server_us: f64,
    per_s: f64,
    /// The part of requests that the driver answered.
    hit_share: f64,
}

/// How a run is made.
struct Plan {
    network: Network,
    /// The interfaces of the server and of the client: their names are of this process only, and so
    /// are those of the kernel's threads for them.
    interfaces: [String; 2],
    contenders: [Contender; 2],
    mode: String,
    seconds: u64,
    server_cpu: usize,
    client_cpu: usize,
}

/// Measures, and prints two tables.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--rounds", "--seconds", "--cpu", "--mode"];
    let options = Options::parse(arguments, &valued, &["--quick", "--debug"])?;
    let (rounds, seconds) = match options.has("--quick") {
        true => QUICK,
        false => (ROUNDS, SECONDS),
    };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    turnpike_host::raise_file_limit();
    let plan = Plan {
        seconds: options.number("--seconds", seconds)?.max(1),
        ..Plan::new(contenders, &options)?
    };
    let background = plan.background()?;
    let mut progress = Progress::of(rounds * OBJECTS.len() * KINDS.len() * 2);
    // The samples of both servers, for each object and kind.
    let mut samples = vec![[Vec::new(), Vec::new()]; OBJECTS.len() * KINDS.len()];
    for round in 0..rounds {
        for (number, samples) in samples.iter_mut().enumerate() {
            let (object, kind) = (OBJECTS[number / KINDS.len()], KINDS[number % KINDS.len()]);
            // A B, B A: a machine that slows down slows both.
            for place in [round % 2, 1 - round % 2] {
                let name = &plan.contenders[place].name;
                let client = kind.client;
                progress.step(&format!(
                    "round {}, {}, {client:?}, {name}",
                    round + 1,
                    object.0
                ));
                samples[place].push(plan.sample(place, object.1, kind)?);
            }
        }
    }
    progress.end();
    println!("The machine was busy for {background:.2} of a CPU before the run.\n");
    print!("{}", table(&samples, false));
    println!();
    print!("{}", table(&samples, true));
    judge(&samples)
}

impl Plan {
    fn new(contenders: [Contender; 2], options: &Options) -> Result<Plan, String> {
        let process = std::process::id();
        let interfaces = [format!("s{process}"), format!("c{process}")];
        let network = Network::join(&interfaces[0], &interfaces[1])
            .map_err(|error| format!("no network namespaces (needs root): {error}"))?;
        let plan = Plan {
            network,
            interfaces,
            contenders,
            mode: options.text("--mode").unwrap_or("auto").to_owned(),
            seconds: SECONDS,
            server_cpu: options.number("--cpu", machine::cpus() - 1)?,
            client_cpu: 0,
        };
        // Both ends take frames in by NAPI, for both servers. What the driver's program sends back
        // is taken in by an end with a program of its own only.
        plan.at(0, |interface| {
            must(Command::new("ethtool").args(["-K", interface, "gro", "on"]))
        })?;
        let passing = passing_program()?;
        plan.at(1, |interface| {
            must(
                Command::new("ip")
                    .args(["link", "set", "dev", interface, "xdpdrv", "obj"])
                    .arg(passing.path().join("pass.o"))
                    .args(["sec", "xdp"]),
            )
        })?;
        plan.at(1, |_| {
            let path = "/proc/sys/net/ipv4/ip_local_port_range";
            std::fs::write(path, "1024 65535").map_err(|error| format!("{path}: {error}"))
        })?;
        Ok(plan)
    }

    /// Does something with an interface in its namespace; 0 is the server's.
    fn at<T: Send>(&self, place: usize, work: impl FnOnce(&str) -> T + Send) -> T {
        let interface = &self.interfaces[place];
        match place {
            0 => work(interface),
            _ => self.network.on_client(|| work(interface)),
        }
    }

    /// CPUs that others keep busy, within a second.
    fn background(&self) -> Result<f64, String> {
        let before = busy_us();
        must(Command::new("sleep").arg("1"))?;
        Ok((busy_us() - before) as f64 / 1e6)
    }

    fn configuration(&self, place: usize) -> Result<String, String> {
        let text = contender::pinned(self.server_cpu)?;
        let [http, server] = match place {
            0 => [
                format!(
                    "http {{ express_interface {}; express_mode {}; express on;",
                    self.interfaces[0], self.mode
                ),
                "location = /metrics { metrics; }".to_owned(),
            ],
            _ => ["http {".to_owned(), String::new()],
        };
        let gif = "location = /empty.gif { empty_gif; } location / {";
        Ok(text
            .replace("http {", &http)
            .replace("location / {", &format!("{server} {gif}")))
    }

    /// Has a server answer for a while.
    fn sample(&self, place: usize, object: &str, kind: Kind) -> Result<Sample, String> {
        let contender = &self.contenders[place];
        let server = contender.start(&self.configuration(place)?)?;
        let packet_threads = self.separate(kind.is_apart)?;
        let answer = server.exchange(format!(
            "GET {object} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ));
        let pad = match kind.is_padded {
            true => answer.len().saturating_sub(REQUEST_BYTES_MIN),
            false => 0,
        };
        let url = format!("http://{SERVER_V4}:{}{object}", server.port());
        let warm_up = ["-n".to_owned(), WARM_UP.to_string()];
        self.load(&server, &warm_up, pad, &url)?;
        let serving = serving_pid(&server)?;
        let run_us = || {
            let threads = packet_threads.iter().copied();
            let all = threads.chain([serving]).map(machine::process_us);
            all.sum::<u64>()
        };
        let hits = |server: &Server| if place == 0 { hits(server) } else { 0 };
        let (hits_before, run_before, busy_before) = (hits(&server), run_us(), busy_us());
        let (answered, per_s) = match kind.client {
            Client::Wrk => self.wrk(pad, &url)?,
            Client::Load => {
                let duration = ["-d".to_owned(), format!("{}s", self.seconds)];
                self.load(&server, &duration, pad, &url)?
            }
        };
        let (busy, run) = (busy_us() - busy_before, run_us() - run_before);
        let answered = answered.max(1) as f64;
        Ok(Sample {
            whole_us: busy as f64 / answered,
            server_us: run as f64 / answered,
            per_s,
            // The client leaves some requests behind when its time is over.
            hit_share: ((hits(&server) - hits_before) as f64 / answered).min(1.0),
        })
    }

    /// Has a thread of the kernel for the frames of each interface, pinned as its program is, or
    /// none. Returns those of the server's interface.
    fn separate(&self, is_apart: bool) -> Result<Vec<u32>, String> {
        let mut of_server = Vec::new();
        for place in 0..2 {
            self.at(place, |interface| {
                let file = format!("/sys/class/net/{interface}/threaded");
                let text = u32::from(is_apart);
                // The files of a namespace's interfaces are in a mount made inside it.
                let script = format!("mount -t sysfs sysfs /sys && echo {text} > {file}");
                must(Command::new("unshare").args(["--mount", "sh", "-c", &script]))
            })?;
            if !is_apart {
                continue;
            }
            let threads = packet_threads(&self.interfaces[place]);
            if threads.is_empty() {
                return Err("the kernel has no threaded NAPI here".to_owned());
            }
            let cpu = [self.server_cpu, self.client_cpu][place].to_string();
            for thread in &threads {
                let mut command = Command::new("taskset");
                command.args(["-pc", &cpu, &thread.to_string()]);
                must(command.stdout(Stdio::null()))?;
            }
            if place == 0 {
                of_server = threads;
            }
        }
        Ok(of_server)
    }

    /// A client's program on the client's core.
    fn client(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("taskset");
        command
            .args(["-c", &self.client_cpu.to_string()])
            .arg(program);
        command
    }

    /// Answered requests, and their rate.
    fn load(
        &self,
        server: &Server,
        until: &[String],
        pad: usize,
        url: &str,
    ) -> Result<(u64, f64), String> {
        let report = server.folder().join("load.json");
        self.network.on_client(|| {
            must(
                self.client(&self.contenders[0].program)
                    .args(["load", "--quiet", "--threads", "1", "--no-keepalive"])
                    .args(["--timeout", "30s", "-c", &CONNECTIONS.to_string()])
                    .args(until)
                    .args(["-H", &padding(pad)])
                    .arg(format!("--json={}", report.display()))
                    .arg(url)
                    .stdout(Stdio::null()),
            )
        })?;
        let text = std::fs::read_to_string(&report).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let count = |name: &str| report["requests"][name].as_u64().unwrap_or(0);
        match count("failed") {
            0 => Ok((
                count("answered"),
                report["requests_per_s"].as_f64().unwrap_or(f64::NAN),
            )),
            failed => Err(format!("{url}: {failed} requests failed")),
        }
    }

    /// The same by wrk.
    fn wrk(&self, pad: usize, url: &str) -> Result<(u64, f64), String> {
        let output = self.network.on_client(|| {
            self.client("wrk".as_ref())
                .args(["-t", "1", "-c", &CONNECTIONS.to_string()])
                .args(["-d", &format!("{}s", self.seconds), "--timeout", "30s"])
                .args(["-H", "Connection: close", "-H", &padding(pad), url])
                .output()
        });
        let output = output.map_err(|error| format!("wrk: {error}"))?;
        read_wrk(&String::from_utf8_lossy(&output.stdout))
    }
}

/// A program for the client's interface, in a folder: it passes every frame on (XDP_PASS).
fn passing_program() -> Result<Folder, String> {
    let source = "__attribute__((section(\"xdp\"))) int pass(void *context) { return 2; }\n\
        char _license[] __attribute__((section(\"license\"))) = \"Dual BSD/GPL\";\n";
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let written = folder.write("pass.c", source);
    written.map_err(|error| error.to_string())?;
    must(
        Command::new(crate::express::CLANG)
            .current_dir(folder.path())
            .args(["-O2", "-target", "bpf", "-c", "pass.c", "-o", "pass.o"]),
    )?;
    Ok(folder)
}

/// A field that makes a request so much longer.
fn padding(bytes: usize) -> String {
    format!("X-Pad: {}", "p".repeat(bytes))
}

/// The number of requests and their rate in wrk's report.
fn read_wrk(report: &str) -> Result<(u64, f64), String> {
    let is_failed = |line: &str| line.contains("Socket errors") || line.contains("Non-2xx");
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let requests = report
        .lines()
        .map(words)
        .find(|words| words.get(1).is_some_and(|word| word == "requests"));
    let requests = requests.and_then(|words| words.first()?.parse().ok());
    let rate = report
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    match (requests, rate) {
        (Some(requests), Some(rate)) if !report.lines().any(is_failed) => Ok((requests, rate)),
        _ => Err(format!("wrk failed:\n{report}")),
    }
}

/// Microseconds for which the CPUs were busy since start.
fn busy_us() -> u64 {
    (0..machine::cpus()).map(machine::core_busy_us).sum()
}

/// The kernel's threads that take in the frames of an interface.
fn packet_threads(interface: &str) -> Vec<u32> {
    let start = format!("napi/{interface}-");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.starts_with(&start))
        })
        .collect()
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

/// The samples of both servers, for each object and kind.
type Samples = [[Vec<Sample>; 2]];

/// Each row of a table: its object, its kind and the samples of both servers.
fn rows(samples: &Samples) -> impl Iterator<Item = (&'static str, Kind, &[Vec<Sample>; 2])> {
    samples.iter().enumerate().map(|(number, samples)| {
        let object = OBJECTS[number / KINDS.len()].0;
        (object, KINDS[number % KINDS.len()], samples)
    })
}

fn middle(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    median(&samples.iter().map(value).collect::<Vec<_>>())
}

/// The middle value; the upper of the middle two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The table of the whole machine's CPU time, or of the server's part.
fn table(samples: &Samples, is_apart: bool) -> String {
    let (what, goal) = match is_apart {
        false => ("of all CPUs", WHOLE_GOAL),
        true => ("of the server's part", SERVER_GOAL),
    };
    let mut text = format!(
        "Microseconds {what} for a transaction; medians of the rounds; goal {goal:.2}\n\n\
         | object | request | client | turnpike | nginx | ratio | from | to | hits | \
         turnpike/s | nginx/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (object, kind, [own, other]) in rows(samples) {
        if kind.is_apart != is_apart {
            continue;
        }
        let cost = |sample: &Sample| match is_apart {
            false => sample.whole_us,
            true => sample.server_us,
        };
        let mut ratios: Vec<f64> = own
            .iter()
            .zip(other)
            .map(|(own, other)| cost(own) / cost(other))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let request = if kind.is_padded { "padded" } else { "plain" };
        text.push_str(&format!(
            "| {object} | {request} | {:?} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} % | \
             {:.0} | {:.0} |\n",
            kind.client,
            middle(own, cost),
            middle(other, cost),
            median(&ratios),
            ratios.first().unwrap_or(&f64::NAN),
            ratios.last().unwrap_or(&f64::NAN),
            100.0 * middle(own, |sample| sample.hit_share),
            middle(own, |sample| sample.per_s),
            middle(other, |sample| sample.per_s),
        ));
    }
    text
}

/// Whether the run counts.
fn judge(samples: &Samples) -> Outcome {
    let void: Vec<&str> = rows(samples)
        .filter(|(_, kind, [own, _])| {
            kind.is_padded && own.iter().any(|sample| sample.hit_share < HIT_SHARE_MIN)
        })
        .map(|(object, ..)| object)
        .collect();
    match void.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the run is void: less than 99 % of requests were answered in the driver ({})",
            void.join("; ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_wrk_are_read() {
        let report = "Running 1s test @ http://10.9.0.1:80/\n  1 threads and 64 connections\n  \
            47012 requests in 1.00s, 40.12MB read\nRequests/sec:  46987.30\nTransfer/sec: 40MB\n";
        assert_eq!(read_wrk(report), Ok((47012, 46987.30)));
        let failed = format!("{report}  Socket errors: connect 0, read 3, write 0, timeout 0\n");
        assert!(read_wrk(&failed).is_err());
        assert!(read_wrk("unable to connect").is_err());
    }

    #[test]
    fn a_run_with_few_hits_is_void_where_requests_are_padded() {
        let sample = |hit_share| Sample {
            whole_us: 1.0,
            server_us: 1.0,
            per_s: 1.0,
            hit_share,
        };
        let run = |padded: f64, plain: f64| {
            let own = KINDS.iter().map(|kind| match kind.is_padded {
                true => [vec![sample(padded)], vec![sample(0.0)]],
                false => [vec![sample(plain)], vec![sample(0.0)]],
            });
            judge(&own.collect::<Vec<_>>())
        };
        assert_eq!(run(0.995, 0.0), Ok(()));
        assert!(run(0.98, 1.0).is_err());
    }
}
