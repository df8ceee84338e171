//! Where the servers are measured: two namespaces, and the clients in one of them.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use serde_json::Value;
use turnpike_host::Host;
use turnpike_testkit::network::{Network, SERVER_V4};
use turnpike_testkit::{Folder, Server};

use super::meter::{MeterProgram, Reading, children_ns};
use super::{Client, Kind, Sample};
use crate::contender::{self, Contender, serving_pid};
use crate::machine;
use crate::options::Options;
use crate::workspace::must;

/// Connections at a time: enough that the server always has one to answer.
const CONNECTIONS: usize = 64;

/// Transactions before those that count: the caches are filled, and the answer is published.
const WARM_UP: usize = 2_000;

/// What a request has besides its padding, at least: the padded request is no shorter than the
/// answer.
const REQUEST_BYTES_MIN: usize = 60;

/// How long a request may take: none takes a hundredth of it, and a run ends soon that would not.
const TIMEOUT: &str = "3s";

/// How a run is made.
pub(super) struct Place {
    network: Network,
    /// The program for the client's interface.
    passing: Folder,
    /// Whether it is there: it cannot take its own place.
    is_passing: AtomicBool,
    /// The interfaces of the server and of the client: their names are of this process only.
    interfaces: [String; 2],
    meter: MeterProgram,
    contenders: [Contender; 2],
    mode: String,
    seconds: u64,
    server_cpu: usize,
    client_cpu: usize,
}

/// What a client has done.
struct Load {
    answered: u64,
    per_s: f64,
    process: u32,
    run_ns: u64,
}

impl Place {
    /// The namespaces and their interfaces.
    ///
    /// # Errors
    /// This needs root and ethtool.
    pub(super) fn new(
        contenders: [Contender; 2],
        seconds: u64,
        options: &Options,
    ) -> Result<Place, String> {
        let process = std::process::id();
        let interfaces = [format!("s{process}"), format!("c{process}")];
        let network = Network::join(&interfaces[0], &interfaces[1])
            .map_err(|error| format!("no network namespaces (needs root): {error}"))?;
        let place = Place {
            network,
            passing: passing_program()?,
            is_passing: AtomicBool::new(false),
            interfaces,
            meter: MeterProgram::build()?,
            contenders,
            mode: options.text("--mode").unwrap_or("auto").to_owned(),
            seconds,
            server_cpu: options.number("--cpu", machine::cpus() - 1)?,
            client_cpu: 0,
        };
        for side in 0..2 {
            place.at(side, |interface| {
                must(Command::new("ethtool").args(["-K", interface, "gro", "on", "tso", "off"]))
            })?;
        }
        place.at(1, |_| {
            let path = "/proc/sys/net/ipv4/ip_local_port_range";
            std::fs::write(path, "1024 65535").map_err(|error| format!("{path}: {error}"))
        })?;
        Ok(place)
    }

    /// A server's name.
    pub(super) fn name(&self, server: usize) -> &str {
        &self.contenders[server].name
    }

    /// Does something with an interface in its namespace; 0 is the server's.
    fn at<T: Send>(&self, side: usize, work: impl FnOnce(&str) -> T + Send) -> T {
        let interface = &self.interfaces[side];
        match side {
            0 => work(interface),
            _ => self.network.on_client(|| work(interface)),
        }
    }

    /// Gives the client's interface a program that passes every frame on, or takes it away. What a
    /// program sends back from the other interface is taken in by one with a program only
    /// (veth_xdp_flush in Linux 6.18). For all else it is a burden: the driver copies frames.
    fn receive_from_program(&self, is_so: bool) -> Result<(), String> {
        if self.is_passing.swap(is_so, Relaxed) == is_so {
            return Ok(());
        }
        let object = self.passing.path().join("pass.o").display().to_string();
        let words: &[&str] = if is_so {
            &["obj", &object, "sec", "xdp"]
        } else {
            &["off"]
        };
        self.at(1, |interface| {
            must(
                Command::new("ip")
                    .args(["link", "set", "dev", interface, "xdpdrv"])
                    .args(words),
            )
        })
    }

    /// CPUs that others keep busy, within a second.
    pub(super) fn background(&self) -> Result<f64, String> {
        let before = CpuTimes::now();
        must(Command::new("sleep").arg("1"))?;
        let since = before.elapsed();
        Ok(since.busy_us / since.elapsed_us)
    }

    fn configuration(&self, server: usize) -> Result<String, String> {
        let text = contender::pinned(self.server_cpu)?;
        let [http, metrics] = match server {
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
            .replace("location / {", &format!("{metrics} {gif}")))
    }

    /// Has a server answer for a while.
    ///
    /// # Errors
    /// A request failed, or something did not start.
    pub(super) fn sample(&self, number: usize, object: &str, kind: Kind) -> Result<Sample, String> {
        self.receive_from_program(number == 0)?;
        let server = self.contenders[number].start(&self.configuration(number)?)?;
        let answer = server.exchange(format!(
            "GET {object} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ));
        let pad = if kind.is_padded {
            answer.len().saturating_sub(REQUEST_BYTES_MIN)
        } else {
            0
        };
        let url = format!("http://{SERVER_V4}:{}{object}", server.port());
        self.load(&server, &["-n".to_owned(), WARM_UP.to_string()], pad, &url)?;
        let meter = kind.is_metered.then(|| self.meter.start(&self.interfaces));
        let meter = RefCell::new(meter.transpose()?);
        let read = || match meter.borrow_mut().as_mut() {
            Some(meter) => meter.read(),
            None => Ok(Reading::default()),
        };
        let serving = serving_pid(&server)?;
        let hits = || if number == 0 { hits(&server) } else { 0 };
        let (hits_before, reading) = (hits(), read()?);
        let (run_before, before) = (machine::process_us(serving), CpuTimes::now());
        let load = match kind.client {
            Client::Wrk => self.wrk(pad, &url)?,
            Client::Load => {
                let duration = ["-d".to_owned(), format!("{}s", self.seconds)];
                self.load(&server, &duration, pad, &url)?
            }
        };
        let (times, run) = (before.elapsed(), machine::process_us(serving) - run_before);
        let since = read()?.since(&reading);
        let answered = load.answered.max(1) as f64;
        let part_us = |ns: u64| {
            if kind.is_metered {
                ns as f64 / 1e3 / answered
            } else {
                0.0
            }
        };
        Ok(Sample {
            whole_us: times.busy_us / answered,
            client_us: part_us(since.client_ns(load.process, load.run_ns)),
            seen_us: part_us(since.server_ns(serving, run * 1000)),
            per_s: load.per_s,
            // The client leaves some requests behind when its time is over.
            hit_share: ((hits() - hits_before) as f64 / answered).min(1.0),
            stolen_share: times.stolen_us / (times.elapsed_us * machine::cpus() as f64),
        })
    }

    /// Runs a client's program on the client's core to its end.
    fn client(
        &self,
        program: &Path,
        change: impl FnOnce(&mut Command) + Send,
    ) -> Result<(Output, u32, u64), String> {
        let before_ns = children_ns()?;
        let ran = self.network.on_client(|| {
            let mut command = Command::new("taskset");
            command.args(["-c", &self.client_cpu.to_string()]);
            change(command.arg(program));
            let child = command.stdout(Stdio::piped()).spawn()?;
            let process = child.id();
            child.wait_with_output().map(|output| (output, process))
        });
        let (output, process) = ran.map_err(|error| format!("{}: {error}", program.display()))?;
        if output.status.success() {
            Ok((output, process, children_ns()? - before_ns))
        } else {
            Err(format!(
                "{} ended with {}",
                program.display(),
                output.status
            ))
        }
    }

    /// Answered requests of `turnpike load`, and their rate.
    fn load(
        &self,
        server: &Server,
        until: &[String],
        pad: usize,
        url: &str,
    ) -> Result<Load, String> {
        let report = server.folder().join("load.json");
        let (_, process, run_ns) = self.client(&self.contenders[0].program, |command| {
            command
                .args(["load", "--quiet", "--threads", "1", "--no-keepalive"])
                .args(["--timeout", TIMEOUT, "-c", &CONNECTIONS.to_string()])
                .args(until)
                .args(["-H", &padding(pad)])
                .arg(format!("--json={}", report.display()))
                .arg(url);
        })?;
        let text = std::fs::read_to_string(&report).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let count = |name: &str| report["requests"][name].as_u64().unwrap_or(0);
        match count("failed") {
            0 => Ok(Load {
                answered: count("answered"),
                per_s: report["requests_per_s"].as_f64().unwrap_or(f64::NAN),
                process,
                run_ns,
            }),
            failed => Err(format!("{url}: {failed} requests failed")),
        }
    }

    /// The same by wrk.
    fn wrk(&self, pad: usize, url: &str) -> Result<Load, String> {
        let (output, process, run_ns) = self.client("wrk".as_ref(), |command| {
            command
                .args(["-t", "1", "-c", &CONNECTIONS.to_string()])
                .args(["-d", &format!("{}s", self.seconds), "--timeout", TIMEOUT])
                .args(["-H", "Connection: close", "-H", &padding(pad), url]);
        })?;
        let (answered, per_s) = read_wrk(&String::from_utf8_lossy(&output.stdout))?;
        Ok(Load {
            answered,
            per_s,
            process,
            run_ns,
        })
    }
}

fn passing_program() -> Result<Folder, String> {
    let source = "__attribute__((section(\"xdp\"))) int pass(void *context) { return 2; }\n\
        char _license[] __attribute__((section(\"license\"))) = \"Dual BSD/GPL\";\n";
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let written = folder.write("pass.c", source);
    written.map_err(|error| error.to_string())?;
    must(
        Command::new(crate::bpf::CLANG)
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

/// The time, and those of all CPUs together.
struct CpuTimes {
    at: Instant,
    /// Without work, since the start.
    idle_us: u64,
    stolen_us: u64,
}

/// Times of a measurement.
struct Elapsed {
    elapsed_us: f64,
    /// What was neither idle nor stolen. The kernel counts the times of work by samples, some
    /// hundred a second, and those of idleness by the clock, so this is what is left of all time.
    busy_us: f64,
    stolen_us: f64,
}

impl CpuTimes {
    fn now() -> CpuTimes {
        let times = Host::here().cpu_times();
        let sum = |part: fn(&turnpike_host::CpuTimes) -> u64| times.iter().map(part).sum();
        CpuTimes {
            at: Instant::now(),
            idle_us: sum(|times| times.idle_us),
            stolen_us: sum(|times| times.steal_us),
        }
    }

    fn elapsed(&self) -> Elapsed {
        let now = CpuTimes::now();
        let elapsed_us = (now.at - self.at).as_secs_f64() * 1e6;
        let since = |before: u64, after: u64| after.saturating_sub(before) as f64;
        let stolen_us = since(self.stolen_us, now.stolen_us);
        let rest_us = since(self.idle_us, now.idle_us) + stolen_us;
        Elapsed {
            elapsed_us,
            busy_us: elapsed_us * machine::cpus() as f64 - rest_us,
            stolen_us,
        }
    }
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
}
