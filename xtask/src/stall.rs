//! Measures how long requests wait if one of two lanes stops for two seconds, under a fixed rate of
//! connections: ours with steering and rescue, ours with the plain hash, and nginx with the plain
//! hash.
//!
//! A debugger stops the lane in the middle of its work, not while it waits for events, and a thread
//! keeps its CPU busy meanwhile, as a loop in a handler would.
//!
//! The server is measured, so the generator must not wait for a CPU: it has a thread on each, with
//! priority over all others (SCHED_FIFO, where the kernel permits it), at a rate that is a small
//! part of one lane's capacity. Both lanes get connections, since steering prefers the lane on the
//! CPU of the packet. The table shows the generator's delay; latency counts from the time at which
//! a connection was due, so it includes this delay. The figures are for information; no time is
//! asserted.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;
use turnpike_testkit::Server;
use turnpike_testkit::process::{self, Moment};

use crate::contender::{Contender, OBJECT};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::{machine, workspace};

/// The connections per second, with one request each: a twentieth of the capacity of one CPU that
/// the generator shares.
const RATE: u32 = 500;
/// Length of a run in seconds.
const SECONDS: u64 = 20;
/// When the lane is stopped, and for how long.
const STALL_AFTER: Duration = Duration::from_secs(5);
const STALL: Duration = Duration::from_secs(2);
/// The time of the loop between two checks of the stopped thread, which leave the CPU idle for 5
/// milliseconds.
const SPIN: Duration = Duration::from_millis(95);

/// The log message of an active steering program.
const STEERED: &str = "by the steering program";

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
    turnpike_host::raise_file_limit();
    let first = before_all_others();
    let (ours, nginx) = (Contender::ours(&options)?, Contender::nginx()?);
    let mut text = format!(
        "{rate} connections/s for {seconds} s, one request each, two lanes on {} CPUs; one stops \
         for {} s, in which its CPU is busy. The generator has a thread on each CPU{}. Latency in \
         ms, from the moment at which a connection was due; \"late\" is the generator's part of it.\
         \n\n\
         | server | requests | failed | p50 | p99 | p99.9 | longest | late, p99 | late, p99.9 |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        machine::cpus(),
        STALL.as_secs(),
        if first.is_empty() {
            ", at ordinary priority: the kernel permits no other"
        } else {
            ", at real-time priority"
        }
    );
    for way in WAYS {
        let contender = if way.is_nginx { &nginx } else { &ours };
        let load = load_command(&ours, first, rate, seconds);
        let report = stall(way, contender, load)?;
        let ms = |figure: &Value| figure.as_f64().unwrap_or(0.0) / 1000.0;
        let (latency, late) = (&report["latency_us"], &report["parts_us"]["late_start"]);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            way.name,
            report["requests"]["answered"],
            report["errors_total"],
            ms(&latency["p50"]),
            ms(&latency["p99"]),
            ms(&latency["p999"]),
            ms(&latency["max"]),
            ms(&late["p99"]),
            ms(&late["p999"]),
        );
    }
    println!("{text}");
    if options.has("--write") {
        write(&text)
    } else {
        Ok(())
    }
}

/// The report of the load.
fn stall(way: &Way, contender: &Contender, mut load: Command) -> Result<Value, String> {
    let server = contender.start(&format!(
        "worker_processes 2; worker_cpu_affinity auto; error_log %FOLDER%/error.log notice;
         {} events {{ worker_connections 4096; }}
         http {{ access_log off; server {{ listen 127.0.0.1:%PORT% {}; root %FOLDER%/html; }} }}",
        way.main, way.listen
    ))?;
    if way.listen.contains("steer") && !server.log("error.log").contains(STEERED) {
        return Err("the kernel does not permit the steering program".to_owned());
    }
    let lane = lane(way, &server).ok_or("there is no lane to stop")?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let holder = scope.spawn(move || {
            std::thread::sleep(STALL_AFTER);
            hold(lane, is_over)
        });
        let output = load.arg(format!("http://127.0.0.1:{}{OBJECT}", server.port()));
        let output = output.output().map_err(|error| error.to_string());
        is_over.store(true, Ordering::Release);
        holder
            .join()
            .map_err(|_| "the holder panicked".to_owned())??;
        serde_json::from_slice(&output?.stdout).map_err(|error| error.to_string())
    })
}

/// Stops the lane for the time of the stall, and keeps its CPU busy instead.
fn hold(lane: u32, is_over: &AtomicBool) -> Outcome {
    go_where(lane)?;
    let mut begun = None;
    let held = process::hold_thread(lane, Moment::Awake, || {
        let begun = *begun.get_or_insert_with(Instant::now);
        let now = Instant::now();
        while now.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        begun.elapsed() < STALL && !is_over.load(Ordering::Acquire)
    });
    held.map_err(|error| format!("the lane cannot be stopped: {error}"))?;
    match begun {
        Some(_) => Ok(()),
        None => Err("the lane had nothing to do".to_owned()),
    }
}

/// Ties this thread to the CPUs of another one.
fn go_where(thread: u32) -> Outcome {
    let number = i32::try_from(thread).map_err(|error| error.to_string())?;
    let cpus = sched_getaffinity(Pid::from_raw(number));
    let tied = cpus.and_then(|cpus| sched_setaffinity(Pid::from_raw(0), &cpus));
    tied.map_err(|error| format!("the lane's CPU: {error}"))
}

fn load_command(ours: &Contender, first: &[&str], rate: u32, seconds: u64) -> Command {
    let program = ours.program.as_os_str();
    let words = first.iter().map(OsStr::new).chain([program]);
    let words: Vec<&OsStr> = words.collect();
    let mut load = Command::new(words[0]);
    load.args(&words[1..])
        .args(["load", "--quiet", "--timeout", "30s", "--json", "--bindcpu"])
        .args(["--threads", &machine::cpus().to_string()])
        .args(["--duration", &format!("{seconds}s")])
        .args(["--connrate", &rate.to_string()]);
    load
}

/// The prefix of a command that must not wait for other processes.
fn before_all_others() -> &'static [&'static str] {
    let chrt: &[&str] = &["chrt", "--fifo", "1"];
    let tried = Command::new(chrt[0]).args(&chrt[1..]).arg("true").output();
    if tried.is_ok_and(|output| output.status.success()) {
        chrt
    } else {
        &[]
    }
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
