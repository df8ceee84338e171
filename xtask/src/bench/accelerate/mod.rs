//! The accelerator's half of study S2: an origin has the object, and the server in front answers
//! from its cache, or fetches it every time.
//!
//! The server under measurement runs alone on one core; client and origin share another. All cases
//! are interleaved in one run, including our static answer and nginx's, since the goals are ratios
//! between cases.

mod report;
mod servers;

use std::time::Duration;

use super::plan::Mode;
use super::progress::Progress;
use crate::contender::Contender;
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use turnpike_testkit::process::find_program;

use servers::{Case, Front, Origin};

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    rounds: usize,
    seconds: u64,
    server_cpu: usize,
    /// Of client and origin.
    client_cpu: usize,
}

/// One case in one mode in one round.
#[derive(Debug, Clone)]
struct Sample {
    round: usize,
    mode: Mode,
    case: Case,
    load: turnpike_testkit::clients::Load,
    /// Busy microseconds of the server's core per request.
    core_us: f64,
    /// Microseconds that the server's processes ran per request.
    process_us: f64,
}

/// Rounds and seconds of each: about twelve minutes.
const FULL: (usize, u64) = (7, 6);
/// Does it work?
const QUICK: (usize, u64) = (1, 2);

/// The number of the client's open connections.
const CONNECTIONS: &str = "256";

/// Seconds of load before a round counts: caches are filled, pools of connections opened.
const WARM_UP_SECONDS: u64 = 1;

/// The cores are given this long to finish the last round's work.
const SETTLE: Duration = Duration::from_millis(200);

/// Measures, writes the results' folder and the README's table.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--server", "--rounds", "--seconds", "--cpu"],
        &["--quick", "--no-write"],
    )?;
    let (rounds, seconds) = if options.has("--quick") { QUICK } else { FULL };
    let plan = Plan {
        rounds: options.number("--rounds", rounds)?,
        seconds: options.number("--seconds", seconds)?,
        server_cpu: options.number("--cpu", machine::cpus() - 1)?,
        client_cpu: 0,
    };
    turnpike_host::raise_file_limit();
    let ours = Contender::ours(&options)?;
    let nginx = Contender::nginx()?;
    let mut cases = Case::ALL.to_vec();
    if find_program("varnishd").is_none() {
        eprintln!("bench: no varnish; to have it measured: cargo xtask setup bench");
        cases.retain(|case| *case != Case::Varnish);
    }
    let steps = plan.rounds * Mode::ALL.len() * cases.len();
    let mut progress = Progress::of(steps);
    let origin = Origin::start(&nginx, plan.client_cpu)?;
    let mut samples = Vec::new();
    for round in 1..=plan.rounds {
        for mode in Mode::ALL {
            let mut order = cases.clone();
            if round % 2 == 0 {
                order.reverse();
            }
            for case in order {
                let (mode_text, title) = (mode.text(), case.title());
                progress.step(&format!("round {round}, {mode_text}, {title}"));
                let front = Front::start(case, &ours, &nginx, &origin, plan.server_cpu)?;
                samples.push(sample(&plan, &front, case, mode, round));
            }
        }
    }
    progress.end();
    let versions = [ours.version(), nginx.version(), servers::varnish_version()];
    let results = report::Results {
        plan,
        cases,
        versions,
        samples,
    };
    print!("{}", results.markdown());
    match options.has("--no-write") {
        true => Ok(()),
        false => results.write(),
    }
}

fn sample(plan: &Plan, front: &Front, case: Case, mode: Mode, round: usize) -> Sample {
    let url = front.url();
    let cpu = plan.client_cpu;
    super::rounds::wrk(cpu, mode, CONNECTIONS, WARM_UP_SECONDS, &url);
    std::thread::sleep(SETTLE);
    let core = machine::core_busy_us(plan.server_cpu);
    let process = front.process_us();
    let load = super::rounds::wrk(cpu, mode, CONNECTIONS, plan.seconds, &url);
    let core = machine::core_busy_us(plan.server_cpu) - core;
    let process = front.process_us() - process;
    let each = |time_us: u64| time_us as f64 / load.requests.max(1) as f64;
    let (core_us, process_us) = (each(core), each(process));
    Sample {
        round,
        mode,
        case,
        load,
        core_us,
        process_us,
    }
}
