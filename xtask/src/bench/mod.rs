//! The measurements that this project's claims stand on, ours beside nginx in one run.
//!
//! Counts first (system calls, allocations, memory): they are the same on every machine. Then
//! ratios from interleaved rounds: absolute times move with the machine, ratios stay. Nothing
//! here may favour a server: both read the same configuration and stand on the same core.

mod accelerate;
mod counts;
mod idle;
mod report;
mod rounds;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use turnpike_testkit::Server;

use crate::contender::{self, Contender};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    /// Interleaved rounds of each server and mode.
    rounds: usize,
    /// Seconds of each.
    seconds: u64,
    /// Transactions over which calls and allocations are counted.
    transactions: u64,
    /// Connections held idle.
    idle: usize,
    /// The core of the serving process.
    server_cpu: usize,
    /// The core of the client.
    client_cpu: usize,
    /// The configuration both read.
    configuration: String,
}

/// Enough rounds that a median means something, in about six minutes.
const FULL: (usize, u64, u64, usize) = (9, 6, 20_000, 10_000);
/// Enough to see that everything works, in under a minute.
const QUICK: (usize, u64, u64, usize) = (3, 2, 2_000, 2_000);

/// How a client uses its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    /// One request on each connection.
    OneRequest,
    /// Connections stay.
    KeepAlive,
}

impl Mode {
    const ALL: [Mode; 2] = [Mode::OneRequest, Mode::KeepAlive];

    fn text(self) -> &'static str {
        match self {
            Mode::OneRequest => "one request per connection",
            Mode::KeepAlive => "keep-alive",
        }
    }

    /// A name without spaces, for data.
    fn key(self) -> &'static str {
        match self {
            Mode::OneRequest => "one_request",
            Mode::KeepAlive => "keep_alive",
        }
    }
}

/// Measures, writes the results' folder and the README's table.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if let Some((first, rest)) = arguments.split_first()
        && first == "accelerate"
    {
        return accelerate::run(rest);
    }
    let options = Options::parse(
        arguments,
        &["--server", "--rounds", "--seconds", "--cpu"],
        &["--quick", "--no-write"],
    )?;
    let (rounds, seconds, transactions, idle) = if options.has("--quick") { QUICK } else { FULL };
    let server_cpu = options.number("--cpu", machine::cpus() - 1)?;
    let plan = Plan {
        rounds: options.number("--rounds", rounds)?,
        seconds: options.number("--seconds", seconds)?,
        transactions,
        idle,
        server_cpu,
        client_cpu: 0,
        configuration: contender::pinned(server_cpu)?,
    };
    machine::raise_file_limit();
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let mut progress = Progress::new(&plan);
    let calls = counts::system_calls(&plan, &contenders, &mut progress)?;
    let allocations = match options.text("--server") {
        Some(_) => Vec::new(), // a program that we did not build does not count
        None => counts::allocations(&plan, &Contender::counting()?, &mut progress)?,
    };
    let memory = idle::memory(&plan, &contenders, &mut progress)?;
    let samples = rounds::run(&plan, &contenders, &mut progress)?;
    progress.end();
    let results = report::Results {
        plan,
        contenders,
        calls,
        allocations,
        memory,
        samples,
    };
    print!("{}", results.markdown());
    if options.has("--no-write") {
        Ok(())
    } else {
        results.write()
    }
}

/// The process that serves: the master's only child, as the configuration asks for.
fn serving_pid(server: &Server) -> Result<u32, String> {
    match server.serving_pids()[..] {
        [pid] => Ok(pid),
        ref pids => Err(format!(
            "one serving process is expected, there are {}",
            pids.len()
        )),
    }
}

/// The URL of the measured object.
fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}{}", server.port(), contender::OBJECT)
}

/// One line on standard error: what is measured, and how long the rest will take.
struct Progress {
    started: Instant,
    steps: usize,
    done: usize,
}

impl Progress {
    fn new(plan: &Plan) -> Progress {
        let counts = 2 * 2 + 2 + 2; // calls by server and mode, allocations by mode, memory
        let rounds = 2 * 2 * plan.rounds;
        Progress::of(counts + rounds)
    }

    fn of(steps: usize) -> Progress {
        Progress {
            started: Instant::now(),
            steps,
            done: 0,
        }
    }

    fn step(&mut self, what: &str) {
        let left = match self.done {
            0 => "time left is not known yet".to_owned(),
            done => {
                let rest = self
                    .steps
                    .saturating_sub(done)
                    .try_into()
                    .unwrap_or(u32::MAX);
                let each = self.started.elapsed() / done.try_into().unwrap_or(1);
                format!("about {} s left", (each * rest).as_secs())
            }
        };
        self.done += 1;
        let line = format!("bench: {}/{} {what}, {left}", self.done, self.steps);
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush(); // progress only
        } else {
            eprintln!("{line}");
        }
    }

    fn end(&self) {
        let time = Duration::from_secs(self.started.elapsed().as_secs());
        let clear = if std::io::stderr().is_terminal() {
            "\r\x1b[K"
        } else {
            ""
        };
        eprintln!("{clear}bench: took {time:?}");
    }
}
