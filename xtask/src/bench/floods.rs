//! What floods of one client cost another one: a client that the lanes have refused too often goes
//! on and sends SYN segments, or opens connections and asks on them, by raw packets.
//!
//! The good client asks at a fixed rate, one request per connection, so that its latency counts
//! from when each request was due. Its p99 is measured beside
//!
//! - **drop lane**: `express_drop` has the flood dropped in the driver;
//! - **bare XDP_DROP**: a program of three comparisons drops it, the least that can be done there;
//! - **without** either, the lanes refuse each request;
//! - **nginx** does the same, with the same limit.
//!
//! All that differs between the first two is what the drop lane costs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_testkit::network::{Network, SERVER_V4};
use turnpike_testkit::raw_tcp::{ACK, FIN, PSH, RST, RawTcp, SYN, Segment};
use turnpike_testkit::{Folder, Server};

use super::median;
use super::progress::Progress;
use crate::contender::{self, Contender};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::must;

/// Interleaved rounds.
const ROUNDS: usize = 5;
/// Seconds of a measurement.
const SECONDS: u64 = 4;
/// Enough to see that everything works; its figures are held against no goal.
const QUICK: (usize, u64) = (1, 1);

/// What is to be reached: the good client's p99 with the drop lane, beside the bare program.
const GOAL: f64 = 2.0;

/// SYN segments in a millisecond: as many connections as keep a core busy that refuses them, and as
/// one core can send beside its other work.
const SYNS_PER_MS: u64 = 20;
/// Segments that are answered in a millisecond, at most.
const ANSWERS_PER_MS: u64 = 4 * SYNS_PER_MS;

/// Requests of the good client in a second: few beside the flood's.
const GOOD_PER_S: u64 = 300;

/// How long the flood may last until its client is dropped.
const DROPPED_WITHIN: Duration = Duration::from_secs(10);

/// The flood's address, of which the client's kernel knows nothing.
const FLOOD: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 7);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syn,
    Get,
}

const KINDS: &[Kind] = &[Kind::Syn, Kind::Get];

/// What stands in the flood's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    DropLane,
    Bare,
    Without,
    Nginx,
}

const GUARDS: &[(Guard, &str)] = &[
    (Guard::DropLane, "drop lane"),
    (Guard::Bare, "bare XDP_DROP"),
    (Guard::Without, "without"),
    (Guard::Nginx, "nginx"),
];

/// What the good client met.
#[derive(Clone, Copy, Debug)]
struct Sample {
    p99_us: f64,
    failed: u64,
    /// SYN segments of the flood in a second.
    flood_per_s: f64,
}

struct Place {
    network: Network,
    interfaces: [String; 2],
    contenders: [Contender; 2],
    dropping: Folder,
    seconds: u64,
}

/// Measures, prints a table, and judges it.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--rounds", "--seconds"];
    let options = Options::parse(arguments, &valued, &["--quick", "--debug"])?;
    let is_quick = options.has("--quick");
    let (rounds, seconds) = if is_quick { QUICK } else { (ROUNDS, SECONDS) };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    turnpike_host::raise_file_limit();
    let place = Place::new(contenders, options.number("--seconds", seconds)?.max(1))?;
    let mut progress = Progress::of(rounds * KINDS.len() * GUARDS.len());
    let mut samples = vec![Vec::new(); KINDS.len() * GUARDS.len()];
    for round in 0..rounds {
        for (number, samples) in samples.iter_mut().enumerate() {
            let kind = KINDS[number / GUARDS.len()];
            let (guard, name) = GUARDS[number % GUARDS.len()];
            progress.step(&format!("round {}, {kind:?}, {name}", round + 1));
            samples.push(place.sample(kind, guard)?);
        }
    }
    progress.end();
    print!("{}", table(&samples));
    println!();
    match judge(&samples) {
        _ if is_quick => Ok(()),
        outcome => outcome,
    }
}

impl Place {
    fn new(contenders: [Contender; 2], seconds: u64) -> Result<Place, String> {
        let process = std::process::id();
        let interfaces = [format!("s{process}"), format!("c{process}")];
        let refused = |error: std::io::Error| format!("no network namespaces (root): {error}");
        let network = Network::join(&interfaces[0], &interfaces[1]).map_err(refused)?;
        let names = [interfaces[0].as_str(), interfaces[1].as_str()];
        network.lend(names, FLOOD.into()).map_err(refused)?;
        Ok(Place {
            network,
            interfaces,
            contenders,
            dropping: dropping_program()?,
            seconds,
        })
    }

    /// Attaches the bare program to the server's interface, or takes it away.
    fn drop_bare(&self, is_so: bool) -> Outcome {
        let object = self.dropping.path().join("drop.o").display().to_string();
        let words: &[&str] = if is_so {
            &["obj", &object, "sec", "xdp"]
        } else {
            &["off"]
        };
        must(
            Command::new("ip")
                .args(["link", "set", "dev", &self.interfaces[0], "xdpdrv"])
                .args(words),
        )
    }

    fn configuration(&self, guard: Guard) -> Result<String, String> {
        let text = contender::pinned(machine::cpus() - 1)?;
        let zone = "limit_req_zone $binary_remote_addr zone=clients:1m rate=1000r/s;";
        let lane = format!(
            "express_interface {}; express_mode native; express_drop on; express_drop_time 1h;",
            self.interfaces[0]
        );
        let (http, metrics) = match guard {
            Guard::DropLane => (lane.as_str(), "location = /metrics { metrics; }"),
            _ => ("", ""),
        };
        Ok(text
            .replace("http {", &format!("http {{ {zone} {http}"))
            .replace(
                "location / {",
                &format!("{metrics} location / {{ limit_req zone=clients burst=100 nodelay;"),
            ))
    }

    fn sample(&self, kind: Kind, guard: Guard) -> Result<Sample, String> {
        let contender = &self.contenders[usize::from(guard == Guard::Nginx)];
        let server = contender.start(&self.configuration(guard)?)?;
        if guard == Guard::DropLane {
            self.have_dropped(&server)?;
        }
        if guard == Guard::Bare {
            self.drop_bare(true)?;
        }
        let mut load = None;
        let started = Instant::now();
        let sent = self.while_flooded(kind, &server, || load = Some(self.good(&server)));
        let flood_s = started.elapsed().as_secs_f64();
        if guard == Guard::Bare {
            self.drop_bare(false)?;
        }
        let (p99_us, failed) = load.ok_or("no load")??;
        Ok(Sample {
            p99_us,
            failed,
            flood_per_s: sent? as f64 / flood_s,
        })
    }

    /// Floods the server until it has the flood's client dropped.
    fn have_dropped(&self, server: &Server) -> Outcome {
        let is_dropped = || {
            let page = server.get("/metrics").text();
            page.contains("\nturnpike_express_dropped_clients 1\n")
        };
        let end = Instant::now() + DROPPED_WITHIN;
        self.while_flooded(Kind::Get, server, || {
            while !is_dropped() && Instant::now() < end {
                thread::sleep(Duration::from_millis(10));
            }
        })?;
        if is_dropped() {
            Ok(())
        } else {
            Err("the flood's client was not dropped".to_owned())
        }
    }

    /// Does something while the server is flooded; returns how many SYN segments were sent.
    fn while_flooded(
        &self,
        kind: Kind,
        server: &Server,
        work: impl FnOnce(),
    ) -> Result<u64, String> {
        let over = AtomicBool::new(false);
        let port = server.port();
        let sent = thread::scope(|scope| {
            let flood = scope.spawn(|| self.network.on_client(|| flood(kind, port, &over)));
            work();
            over.store(true, Relaxed);
            flood.join()
        });
        let sent = sent.map_err(|_| "the flood has panicked")?;
        sent.map_err(|error| format!("the flood: {error}"))
    }

    /// The good client's p99 in microseconds, and how many of its requests failed.
    fn good(&self, server: &Server) -> Result<(f64, u64), String> {
        let report = server.folder().join("load.json");
        let url = format!("http://{SERVER_V4}:{}{}", server.port(), contender::OBJECT);
        self.network.on_client(|| {
            must(
                Command::new("taskset")
                    .args(["-c", "0"])
                    .arg(&self.contenders[0].program)
                    .args(["load", "--quiet", "--threads", "1", "--no-keepalive"])
                    .args(["--rate", &GOOD_PER_S.to_string()])
                    .args(["-d", &format!("{}s", self.seconds), "-c", "64"])
                    .arg(format!("--json={}", report.display()))
                    .arg(url)
                    .stdout(Stdio::null()),
            )
        })?;
        let text = std::fs::read_to_string(&report).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let p99_us = report["latency_us"]["p99"].as_f64().unwrap_or(f64::NAN);
        Ok((p99_us, report["requests"]["failed"].as_u64().unwrap_or(0)))
    }
}

/// Sends segments at a steady rate until it is over; returns how many were SYNs.
fn flood(kind: Kind, port: u16, over: &AtomicBool) -> std::io::Result<u64> {
    let raw = RawTcp::open()?;
    let address: IpAddr = SERVER_V4.parse().map_err(std::io::Error::other)?;
    let server = SocketAddr::new(address, port);
    let (started, mut sent) = (Instant::now(), 0);
    while !over.load(Relaxed) {
        let due = started.elapsed().as_millis() as u64 * SYNS_PER_MS;
        // What was not sent in time is not made up for.
        for _ in 0..(due.saturating_sub(sent)).min(SYNS_PER_MS) {
            let source = (FLOOD, 1024 + (sent % 60_000) as u16).into();
            raw.send(&Segment::syn(source, server, &[2, 4, 5, 180]))?;
            sent += 1;
        }
        for _ in 0..ANSWERS_PER_MS {
            let Some(segment) = raw.received(FLOOD.into())? else {
                break;
            };
            if let Some(answer) = answer(kind, &segment) {
                raw.send(&answer)?;
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(sent)
}

/// What the flood sends when a segment comes back.
fn answer(kind: Kind, segment: &Segment) -> Option<Segment> {
    let reply = |flags: u8, text: &[u8]| Segment {
        source: segment.destination,
        destination: segment.source,
        sequence: segment.acknowledgement,
        acknowledgement: segment.sequence.wrapping_add(segment.length()),
        flags,
        window: 64240,
        options: Vec::new(),
        text: text.to_vec(),
    };
    let request = b"GET /600.html HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    match kind {
        Kind::Syn => None,
        Kind::Get if segment.flags & RST != 0 => None,
        Kind::Get if segment.flags & SYN != 0 => Some(reply(ACK | PSH, request)),
        Kind::Get if segment.flags & FIN != 0 => Some(reply(RST | ACK, &[])),
        Kind::Get => None,
    }
}

/// A program that drops what comes from the flood's address by IPv4.
fn dropping_program() -> Result<Folder, String> {
    let address = u32::from_ne_bytes(FLOOD.octets());
    let source = format!(
        "#include <linux/bpf.h>
         __attribute__((section(\"xdp\"))) int drop(struct xdp_md *context)
         {{
             char *frame = (char *)(long)context->data;
             if (frame + 34 > (char *)(long)context->data_end)
                 return XDP_PASS;
             if (*(unsigned short *)(frame + 12) != 0x0008)
                 return XDP_PASS;
             return *(unsigned *)(frame + 26) == {address}u ? XDP_DROP : XDP_PASS;
         }}
         char _license[] __attribute__((section(\"license\"))) = \"Dual BSD/GPL\";
        "
    );
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let written = folder.write("drop.c", source);
    written.map_err(|error| error.to_string())?;
    let machine = std::env::consts::ARCH;
    must(
        Command::new(crate::bpf::CLANG)
            .current_dir(folder.path())
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .args(["-O2", "-target", "bpf", "-c", "drop.c", "-o", "drop.o"]),
    )?;
    Ok(folder)
}

/// The median of a figure.
fn of_all(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    let figures: Vec<f64> = samples.iter().map(figure).collect();
    median(&figures)
}

fn table(samples: &[Vec<Sample>]) -> String {
    let mut text = "A good client under a flood; medians of the rounds\n\n\
        | flood | guard | p99, ms | failed requests | SYN/s |\n|---|---|---|---|---|\n"
        .to_owned();
    for (number, samples) in samples.iter().enumerate() {
        text.push_str(&format!(
            "| {:?} | {} | {:.2} | {} | {:.0} |\n",
            KINDS[number / GUARDS.len()],
            GUARDS[number % GUARDS.len()].1,
            of_all(samples, |sample| sample.p99_us) / 1e3,
            samples.iter().map(|sample| sample.failed).sum::<u64>(),
            of_all(samples, |sample| sample.flood_per_s),
        ));
    }
    text
}

/// Prints a verdict for each kind of flood.
///
/// # Errors
/// The goal is missed, or a good request failed although the flood was dropped.
fn judge(samples: &[Vec<Sample>]) -> Outcome {
    let mut missed = 0;
    for (kind, samples) in KINDS.iter().zip(samples.chunks(GUARDS.len())) {
        let of = |guard: Guard| {
            let place = GUARDS.iter().position(|row| row.0 == guard);
            place
                .and_then(|place| samples.get(place))
                .map_or(&[][..], Vec::as_slice)
        };
        let (own, bare) = (of(Guard::DropLane), of(Guard::Bare));
        let rounds = own.iter().zip(bare);
        let ratios: Vec<f64> = rounds.map(|(own, bare)| own.p99_us / bare.p99_us).collect();
        let ratio = median(&ratios);
        let failed: u64 = own.iter().map(|sample| sample.failed).sum();
        // A figure that is not there meets nothing.
        let is_met = ratio <= GOAL && failed == 0;
        missed += usize::from(!is_met);
        println!(
            "{kind:?} flood: p99 {ratio:.2} of that with a bare XDP_DROP, {failed} failed, \
             goal {GOAL:.2}: {}",
            if is_met { "met" } else { "missed" }
        );
    }
    match missed {
        0 => Ok(()),
        count => Err(format!("{count} goals are missed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_judged_by_the_bare_program() {
        let run = |own_us: f64, failed: u64| {
            let sample = |p99_us: f64, failed: u64| Sample {
                p99_us,
                failed,
                flood_per_s: 1.0,
            };
            let of_guard = |place: usize| match place {
                0 => sample(own_us, failed),
                1 => sample(100.0, 0),
                _ => sample(10_000.0, 7),
            };
            let all = 0..KINDS.len() * GUARDS.len();
            judge(
                &all.map(|number| vec![of_guard(number % GUARDS.len()); 3])
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(run(199.0, 0), Ok(()));
        assert!(run(201.0, 0).is_err());
        assert!(run(150.0, 1).is_err());
        assert!(run(f64::NAN, 0).is_err());
    }
}
