//! The measurements behind this project's claims: our server and nginx in one run.
//!
//! Counts come first (system calls, allocations, memory), because they are the same on every
//! machine. Then come ratios from interleaved rounds: absolute times depend on the machine, ratios
//! much less. No server may be favoured: both read the same configuration and run on the same core.

mod counts;
mod express;
mod idle;
mod loading;
mod plan;
mod progress;
mod report;
mod rounds;
mod secure;
mod stream;
mod table;
mod traffic;

use crate::contender::{self, Contender};
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;

use plan::{Mode, Plan};
use progress::Progress;

/// Enough rounds that a median means something, in about six minutes.
const FULL: (usize, u64, u64, usize) = (9, 6, 20_000, 10_000);
/// Enough to see that everything works, in under a minute.
const QUICK: (usize, u64, u64, usize) = (3, 2, 2_000, 2_000);

/// Measures, writes the results' folder and the README's table.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments.split_first() {
        Some((first, rest)) if first == "express" => return express::run(rest),
        Some((first, rest)) if first == "loading" => return loading::run(rest),
        Some((first, rest)) if first == "secure" => return secure::run(rest),
        Some((first, rest)) if first == "stream" => return stream::run(rest),
        _ => {}
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
    turnpike_host::raise_file_limit();
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let mut progress = Progress::of(steps(&plan));
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

/// Steps of a run: system calls by server and mode, allocations by mode, memory by server, rounds.
fn steps(plan: &Plan) -> usize {
    let (servers, modes) = (2, Mode::ALL.len());
    servers * modes + modes + servers + servers * modes * plan.rounds
}
