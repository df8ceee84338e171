//! Configurations of many servers, locations and map keys beside nginx: the CPU time of their
//! check, and what the serving process holds of them.

use std::fmt::Write as _;

use nix::sys::resource::{UsageWho, getrusage};
use turnpike_host::Host;

use super::progress::Progress;
use crate::contender::{Contender, serving_pid};
use crate::options::Options;
use crate::outcome::Outcome;

/// Rounds of a case, of which the fastest counts: what other processes add is no part of it.
const ROUNDS: usize = 3;
/// Enough to see that everything works.
const QUICK_ROUNDS: usize = 1;

/// In a quick run each configuration has this part of its blocks.
const QUICK_PART: usize = 10;

/// Bytes of a kilobyte in tables.
const KILOBYTE: f64 = 1024.0;

/// A kind of configuration.
struct Case {
    name: &'static str,
    /// Blocks or keys.
    count: usize,
    /// What stands at the level of http before and behind them.
    around: [&'static str; 2],
    each: fn(usize) -> String,
}

const CASES: &[Case] = &[
    Case {
        name: "servers with two names",
        count: 20_000,
        around: ["", ""],
        each: |number| {
            format!(
                "server {{ listen 127.0.0.1:%PORT%; server_name h{number}.test *.w{number}.test; \
                 location / {{ return 200 {number}; }} }}\n"
            )
        },
    },
    Case {
        name: "locations of a server",
        count: 20_000,
        around: ["server { listen 127.0.0.1:%PORT%;\n", "}\n"],
        each: |number| format!("location /p{number}/ {{ return 200 {number}; }}\n"),
    },
    Case {
        name: "keys of a map",
        count: 100_000,
        around: [
            "map $arg_k $mapped {\n",
            "}\nserver { listen 127.0.0.1:%PORT%; return 200 $mapped; }\n",
        ],
        each: |number| format!("key-{number} value-{number};\n"),
    },
];

/// What a server needs for a configuration.
struct Cost {
    load_s: f64,
    held_bytes: f64,
}

/// Measures, and prints a table.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--server", "--rounds"],
        &["--quick", "--debug"],
    )?;
    let (rounds, part) = if options.has("--quick") {
        (QUICK_ROUNDS, QUICK_PART)
    } else {
        (ROUNDS, 1)
    };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    let mut progress = Progress::of(CASES.len() * contenders.len());
    let [ours, theirs] = contenders.each_ref().map(|contender| &contender.name);
    let mut table = format!(
        "CPU seconds of `-t`, and kilobytes of the serving process for 1,000\n\n\
         | configuration | {ours} s | {theirs} s | ratio | {ours} KB | {theirs} KB |\n\
         |---|---|---|---|---|---|\n"
    );
    for case in CASES {
        let count = case.count / part;
        let mut costs = Vec::new();
        for contender in &contenders {
            progress.step(&format!("{count} {}, {}", case.name, contender.name));
            costs.push(cost(contender, case, count, rounds)?);
        }
        let [own, other] = costs.as_slice() else {
            unreachable!("there are two servers");
        };
        let held = |cost: &Cost| cost.held_bytes / KILOBYTE * 1000.0 / count as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {count} {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
            case.name,
            own.load_s,
            other.load_s,
            own.load_s / other.load_s,
            held(own),
            held(other)
        );
    }
    progress.end();
    print!("{table}");
    Ok(())
}

fn cost(contender: &Contender, case: &Case, count: usize, rounds: usize) -> Result<Cost, String> {
    let text = configuration(case, count);
    let mut load_s = f64::INFINITY;
    for _ in 0..rounds {
        let before = children_s()?;
        let (passed, output) = contender.test(&text)?;
        if !passed {
            return Err(format!("{}: {output}", contender.name));
        }
        load_s = load_s.min(children_s()? - before);
    }
    let held = resident_bytes(contender, &text)?;
    let empty = resident_bytes(contender, &configuration(case, 1))?;
    Ok(Cost {
        load_s,
        held_bytes: held.saturating_sub(empty) as f64,
    })
}

/// Resident memory of the serving process of that configuration.
fn resident_bytes(contender: &Contender, configuration: &str) -> Result<u64, String> {
    let server = contender.start(configuration)?;
    let pid = serving_pid(&server)?;
    Ok(Host::here().process_memory(pid).resident_bytes)
}

/// CPU seconds of the processes that were waited for.
fn children_s() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The sizes of nginx's tables are large enough for all cases.
fn configuration(case: &Case, count: usize) -> String {
    let [before, behind] = case.around;
    let inside: String = (1..=count).map(case.each).collect();
    format!(
        "worker_processes 1;
        error_log %FOLDER%/error.log crit;
        events {{ }}
        http {{
            access_log off;
            server_names_hash_max_size 1000000;
            server_names_hash_bucket_size 128;
            map_hash_max_size 1000000;
            {before}{inside}{behind}
        }}"
    )
}
