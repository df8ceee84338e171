//! Interleaved rounds (A B, B A, A B, ...): a machine that slows down slows both.

use std::time::Duration;

use turnpike_testkit::clients::{self, Load};

use super::plan::{Mode, Plan};
use super::progress::Progress;
use crate::contender::{Contender, serving_pid, url};
use crate::machine;

/// The number of the client's open connections.
const CONNECTIONS: &str = "256";

/// Seconds of load before a round counts: caches and the congestion control settle.
const WARM_UP_SECONDS: u64 = 1;

/// The core is given this long to finish the last round's work.
const SETTLE: Duration = Duration::from_millis(200);

/// One server in one mode in one round.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) round: usize,
    pub(super) mode: Mode,
    pub(super) server: String,
    pub(super) load: Load,
    /// Busy microseconds of the server's core per request: softirq and all.
    pub(super) core_us: f64,
    /// Microseconds that the serving process ran per request.
    pub(super) process_us: f64,
}

/// Runs every round.
///
/// # Errors
/// A server does not start.
pub(super) fn run(
    plan: &Plan,
    contenders: &[Contender],
    progress: &mut Progress,
) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    for round in 0..plan.rounds {
        for mode in Mode::ALL {
            let mut order: Vec<&Contender> = contenders.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for contender in order {
                let (number, mode_text) = (round + 1, mode.text());
                progress.step(&format!("round {number}, {mode_text}, {}", contender.name));
                samples.push(sample(plan, contender, mode, number)?);
            }
        }
    }
    Ok(samples)
}

fn sample(plan: &Plan, contender: &Contender, mode: Mode, round: usize) -> Result<Sample, String> {
    let server = contender.start(&plan.configuration)?;
    let pid = serving_pid(&server)?;
    let url = url(&server);
    drive(plan, mode, WARM_UP_SECONDS, &url);
    std::thread::sleep(SETTLE);
    let (core, process) = (
        machine::core_busy_us(plan.server_cpu),
        machine::process_us(pid),
    );
    let load = drive(plan, mode, plan.seconds, &url);
    let core = machine::core_busy_us(plan.server_cpu) - core;
    let process = machine::process_us(pid) - process;
    let each = |time_us: u64| time_us as f64 / load.requests.max(1) as f64;
    let (core_us, process_us) = (each(core), each(process));
    Ok(Sample {
        round,
        mode,
        server: contender.name.clone(),
        load,
        core_us,
        process_us,
    })
}

/// Load from the client's core.
fn drive(plan: &Plan, mode: Mode, seconds: u64, url: &str) -> Load {
    wrk(plan.client_cpu, mode, CONNECTIONS, seconds, url)
}

/// wrk with one thread on this core.
pub(super) fn wrk(cpu: usize, mode: Mode, connections: &str, seconds: u64, url: &str) -> Load {
    let (cpu, seconds) = (cpu.to_string(), seconds.to_string());
    let mut arguments = vec!["-c", &cpu, "wrk", "--latency", "-t", "1", "-c", connections];
    arguments.extend(["-d", &seconds]);
    if mode == Mode::OneRequest {
        arguments.extend(["-H", "Connection: close"]);
    }
    arguments.push(url);
    clients::wrk_by("taskset", &arguments)
}
