//! One of two lanes stops for two seconds under a fixed rate of connections: how long do requests
//! wait? Ours with steering and rescue, ours by the plain hash, and nginx by the plain hash.
//!
//! The lane is stopped as a debugger stops it, in the middle of its work and not while it waits for
//! events, and something else keeps a CPU busy meanwhile: what a loop in a handler would do. The
//! figures inform; nothing is asserted of times.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_testkit::Server;
use turnpike_testkit::process::{self, Moment};

use crate::contender::{Contender, OBJECT};
use crate::options::Options;
use crate::{Outcome, machine, workspace};

/// Connections begun in a second, one request each.
const RATE: u32 = 500;
/// Length of a run in seconds.
const SECONDS: u64 = 20;
/// When the lane is stopped, and for how long.
const STALL_AFTER: Duration = Duration::from_secs(5);
const STALL: Duration = Duration::from_secs(2);

/// A way to share connections between two lanes.
struct Way {
    name: &'static str,
    is_nginx: bool,
    main: &'static str,
    listen: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        name: "turnpike, steering and rescue",
        is_nginx: false,
        main: "",
        listen: "reuseport=steer",
    },
    Way {
        name: "turnpike, plain reuseport and rescue",
        is_nginx: false,
        main: "",
        listen: "reuseport",
    },
    Way {
        name: "turnpike, plain reuseport",
        is_nginx: false,
        main: "lane_rescue_timeout off;",
        listen: "reuseport",
    },
    Way {
        name: "nginx, reuseport",
        is_nginx: true,
        main: "",
        listen: "reuseport",
    },
];

/// Runs every way and prints the table.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--rate", "--seconds", "--server"];
    let options = Options::parse(arguments, &valued, &["--debug", "--write"])?;
    let rate = options.number("--rate", RATE)?;
    let seconds = options.number("--seconds", SECONDS)?;
    machine::raise_file_limit();
    let (ours, nginx) = (Contender::ours(&options)?, Contender::nginx()?);
    let mut text = format!(
        "{rate} connections/s for {seconds} s, one request each, two lanes on {} CPUs; one stops \
         for {} s, and a CPU is busy meanwhile\n\n\
         | server | requests | failed | p50 | p99 | p99.9 | longest, ms |\n\
         |---|---|---|---|---|---|---|\n",
        machine::cpus(),
        STALL.as_secs()
    );
    for way in WAYS {
        let contender = if way.is_nginx { &nginx } else { &ours };
        let report = stall(way, contender, &ours, rate, seconds)?;
        let ms = |name: &str| report["latency_us"][name].as_f64().unwrap_or(0.0) / 1000.0;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            way.name,
            report["requests"]["answered"],
            report["errors_total"],
            ms("p50"),
            ms("p99"),
            ms("p999"),
            ms("max")
        );
    }
    println!("{text}");
    match options.has("--write") {
        true => write(&text),
        false => Ok(()),
    }
}

/// The report of the load.
fn stall(
    way: &Way,
    contender: &Contender,
    load: &Contender,
    rate: u32,
    seconds: u64,
) -> Result<Value, String> {
    let server = contender.start(&format!(
        "worker_processes 2; worker_cpu_affinity auto; {} events {{ worker_connections 4096; }}
         http {{ access_log off; server {{ listen 127.0.0.1:%PORT% {}; root %FOLDER%/html; }} }}",
        way.main, way.listen
    ))?;
    let lane = lane(way, &server).ok_or("there is no lane to stop")?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let holder = scope.spawn(move || {
            std::thread::sleep(STALL_AFTER);
            let begun = Instant::now();
            let held = process::hold_thread(lane, Moment::Awake, || {
                // In place of the loop that the stopped lane is thought to be in.
                let now = Instant::now();
                while now.elapsed() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
                begun.elapsed() < STALL && !is_over.load(Ordering::Acquire)
            });
            held.map_err(|error| format!("the lane cannot be stopped: {error}"))
        });
        let output = Command::new(&load.program)
            .args([
                "load",
                "--quiet",
                "--threads",
                "1",
                "--timeout",
                "30s",
                "--json",
            ])
            .args(["--duration", &format!("{seconds}s")])
            .args(["--connrate", &rate.to_string()])
            .arg(format!("http://127.0.0.1:{}{OBJECT}", server.port()))
            .output()
            .map_err(|error| error.to_string());
        is_over.store(true, Ordering::Release);
        holder
            .join()
            .map_err(|_| "the holder panicked".to_owned())??;
        serde_json::from_slice(&output?.stdout).map_err(|error| error.to_string())
    })
}

/// The thread of the second lane, or the second worker.
fn lane(way: &Way, server: &Server) -> Option<u32> {
    let serving = server.serving_pids();
    if way.is_nginx {
        return serving.last().copied();
    }
    let threads = process::threads(*serving.first()?);
    let lane = threads.into_iter().find(|(_, name)| name == "lane 1");
    lane.map(|(thread, _)| thread)
}

fn write(text: &str) -> Outcome {
    let date = machine::first_line("date", &["-u", "+%Y-%m-%d"]);
    let name = format!("{date}-stall-{}", machine::slug());
    let folder = workspace::root().join("bench/results").join(name);
    let title =
        "# One of two lanes stops for two seconds\n\nMade by `cargo xtask stall --write`.\n\n";
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("README.md"), format!("{title}{text}")))
        .map_err(|error| format!("{}: {error}", folder.display()))
}
