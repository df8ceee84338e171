//! The results as a table for people, rows for other tools, and a summary for comparison.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::counts::{Allocations, Calls};
use super::idle::Idle;
use super::plan::{Mode, Plan};
use super::rounds::Sample;
use crate::contender::Contender;
use crate::outcome::Outcome;
use crate::{machine, workspace};

/// The project's goals; a run shows for each whether it was met.
const CALLS_MAX: f64 = 4.0;
const ALLOCATIONS_MAX: f64 = 0.0;
const ONE_REQUEST_RATIO_MAX: f64 = 0.90;
const KEEP_ALIVE_RATIO_MAX: f64 = 0.65;
const IDLE_BYTES_MAX: f64 = 4096.0;

/// Allocations per request below this are the run's own (a timer, a log line), not the path's.
const ALLOCATIONS_NOISE: f64 = 0.001;

/// A core that is busy for more than this many times the serving process's time does other work.
pub(super) const CORE_SHARE_MAX: f64 = 1.3;

/// Between these lines the README's table is rewritten.
const MARKERS: (&str, &str) = ("<!-- bench:begin -->", "<!-- bench:end -->");

/// Everything that one run found.
pub(super) struct Results {
    pub(super) plan: Plan,
    pub(super) contenders: [Contender; 2],
    pub(super) calls: Vec<Calls>,
    pub(super) allocations: Vec<Allocations>,
    pub(super) memory: Vec<Idle>,
    pub(super) samples: Vec<Sample>,
}

/// Median and extremes over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => {
                return Spread {
                    median: f64::NAN,
                    min: f64::NAN,
                    max: f64::NAN,
                };
            }
            count if count % 2 == 1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Spread {
            median,
            min: values[0],
            max: values[values.len() - 1],
        }
    }

    pub(super) fn text(self, digits: usize) -> String {
        let Spread { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$}..{max:.digits$})")
    }

    pub(super) fn json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// A measured figure of the rounds: its name in data, its title, its digits, how it is read.
type Figure = (&'static str, &'static str, usize, fn(&Sample) -> f64);

const FIGURES: &[Figure] = &[
    ("core_us", "server core, µs per request", 2, |sample| {
        sample.core_us
    }),
    (
        "process_us",
        "serving process, µs per request",
        2,
        |sample| sample.process_us,
    ),
    ("requests_per_second", "requests per second", 0, |sample| {
        sample.load.requests_per_second
    }),
    ("p50_us", "latency p50, µs", 0, |sample| {
        sample.load.latency.p50_us
    }),
    ("p99_us", "latency p99, µs", 0, |sample| {
        sample.load.latency.p99_us
    }),
    ("stdev_us", "latency stdev, µs", 0, |sample| {
        sample.load.latency.stdev_us
    }),
    ("failed", "failed requests", 0, |sample| {
        sample.load.failed() as f64
    }),
];

impl Results {
    /// The whole report.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        let [ours, theirs] = &self.contenders;
        let _ = write!(
            text,
            "{} beside {}, configuration of study S2 with one worker pinned to CPU {}, {} bytes, \
             wrk pinned to CPU {}, {} interleaved rounds of {} s. Median (min..max).\n\n",
            ours.version(),
            theirs.version(),
            self.plan.server_cpu,
            600,
            self.plan.client_cpu,
            self.plan.rounds,
            self.plan.seconds,
        );
        let _ = writeln!(
            text,
            "| | turnpike | nginx | ratio | goal |\n|---|---|---|---|---|"
        );
        self.write_counts(&mut text);
        for mode in Mode::ALL {
            for figure in FIGURES {
                self.write_figure(&mut text, mode, figure);
            }
        }
        let shares = self
            .samples
            .iter()
            .map(|sample| sample.core_us / sample.process_us);
        let share = Spread::of(shares.collect()).median;
        if share > CORE_SHARE_MAX {
            let _ = writeln!(
                text,
                "\nOther work disturbed the server's core in this run (busy {share:.1} times \
                 as long as the serving process ran): judge by the process's time."
            );
        }
        text
    }

    fn write_counts(&self, text: &mut String) {
        let [ours, theirs] = [0, 1].map(|at| self.contenders[at].name.as_str());
        for mode in Mode::ALL {
            let [Some(our), Some(their)] = [ours, theirs].map(|name| self.calls(name, mode)) else {
                continue;
            };
            let goal = match mode {
                Mode::OneRequest => verdict(our.working() <= CALLS_MAX + 0.005, "at most 4"),
                Mode::KeepAlive => String::new(),
            };
            let cell = |calls: &Calls| {
                format!(
                    "{:.2} ({}) and {:.2} waits",
                    calls.working(),
                    calls.names(),
                    calls.waiting()
                )
            };
            let title = format!("system calls per transaction, {}", mode.text());
            row(
                text,
                &title,
                &cell(our),
                &cell(their),
                our.working() / their.working(),
                &goal,
            );
        }
        for Allocations { mode, per_request } in &self.allocations {
            let held = *per_request <= ALLOCATIONS_MAX + ALLOCATIONS_NOISE;
            let _ = writeln!(
                text,
                "| heap allocations per request, {} | {per_request:.4} | | | {} |",
                mode.text(),
                verdict(held, "0")
            );
        }
        if let [our, their] = &self.memory[..] {
            let goal = verdict(our.pss_bytes <= IDLE_BYTES_MAX, "at most 4096");
            let cell = |idle: &Idle| format!("{:.0}", idle.pss_bytes);
            let title = format!("bytes per idle connection, of {}", our.connections);
            row(
                text,
                &title,
                &cell(our),
                &cell(their),
                our.pss_bytes / their.pss_bytes,
                &goal,
            );
        }
    }

    fn write_figure(&self, text: &mut String, mode: Mode, (key, title, digits, read): &Figure) {
        let [our, their] = [0, 1].map(|at| self.spread(at, mode, *read).text(*digits));
        let ratio = self.ratio(mode, *read);
        let goal = match (*key, mode) {
            ("core_us", Mode::OneRequest) => {
                verdict(ratio.median <= ONE_REQUEST_RATIO_MAX, "at most 0.90")
            }
            ("core_us", Mode::KeepAlive) => {
                verdict(ratio.median <= KEEP_ALIVE_RATIO_MAX, "at most 0.65")
            }
            _ => String::new(),
        };
        let ratio = if *key == "failed" {
            String::new()
        } else {
            ratio.text(2)
        };
        let title = format!("{title}, {}", mode.text());
        let _ = writeln!(text, "| {title} | {our} | {their} | {ratio} | {goal} |");
    }

    fn calls(&self, server: &str, mode: Mode) -> Option<&Calls> {
        self.calls
            .iter()
            .find(|calls| calls.server == server && calls.mode == mode)
    }

    fn of(&self, contender: usize, mode: Mode) -> impl Iterator<Item = &Sample> {
        let name = &self.contenders[contender].name;
        self.samples
            .iter()
            .filter(move |sample| sample.mode == mode && sample.server == *name)
    }

    fn spread(&self, contender: usize, mode: Mode, read: fn(&Sample) -> f64) -> Spread {
        Spread::of(self.of(contender, mode).map(read).collect())
    }

    /// Ours over theirs, round by round.
    fn ratio(&self, mode: Mode, read: fn(&Sample) -> f64) -> Spread {
        let pairs = self.of(0, mode).zip(self.of(1, mode));
        Spread::of(
            pairs
                .map(|(ours, theirs)| read(ours) / read(theirs))
                .collect(),
        )
    }

    /// Writes the run's folder and the README's table.
    pub(super) fn write(&self) -> Outcome {
        let date = machine::first_line("date", &["-u", "+%Y-%m-%d"]);
        let table = self.markdown();
        Papers {
            name: format!("{date}-{}", machine::slug()),
            readme: self.readme(&date, &table),
            rows: self.csv(),
            summary: self.summary(&date),
            markers: MARKERS,
            table,
            date,
        }
        .write()
    }

    fn readme(&self, date: &str, table: &str) -> String {
        let mut text = format!("# Benchmark of {date}\n\n{table}\n## Machine\n\n");
        list_environment(&self.environment(), &mut text);
        let _ = write!(
            text,
            "\nClient and server share the machine: absolute figures hold for it alone, ratios \
             carry over. A core's time is all that it was busy (/proc/stat), the kernel's part for \
             its connections included; the process's time is what its threads ran. Calls were \
             counted by strace on the lanes over {} transactions of ab (waits: one a turn of the \
             loop, so are accepts without a connection; the main thread looks after the lanes by \
             the clock), allocations by the server itself, \
             memory as PSS from smaps_rollup before and after.\n\n\
             ## Configuration\n\n```nginx\n{}```\n",
            self.plan.transactions, self.plan.configuration,
        );
        text
    }

    fn environment(&self) -> Value {
        let versions: Vec<String> = self.contenders.iter().map(Contender::version).collect();
        json!({
            "processor": turnpike_host::Host::here().processor().model,
            "cpus": machine::cpus(),
            "kernel": turnpike_host::Host::here().kernel().version(),
            "servers": versions.join(", "),
            "wrk": machine::first_line("wrk", &["-v"]),
            "commit": commit(),
            "settings": machine::settings(),
        })
    }

    fn summary(&self, date: &str) -> Value {
        let figures = |contender: usize, mode: Mode| {
            let one = |(key, _, _, read): &Figure| {
                (
                    (*key).to_owned(),
                    self.spread(contender, mode, *read).json(),
                )
            };
            Value::Object(FIGURES.iter().map(one).collect())
        };
        let ratios = |mode: Mode| {
            let one =
                |(key, _, _, read): &Figure| ((*key).to_owned(), self.ratio(mode, *read).json());
            let real = FIGURES.iter().filter(|(key, ..)| *key != "failed");
            Value::Object(real.map(one).collect())
        };
        let rounds = Mode::ALL.map(|mode| {
            json!({
                "mode": mode.key(),
                "turnpike": figures(0, mode),
                "nginx": figures(1, mode),
                "ratio": ratios(mode),
            })
        });
        let calls = self.calls.iter().map(|calls| {
            json!({
                "server": calls.server,
                "mode": calls.mode.key(),
                "per_transaction": calls.working(),
                "waits_per_transaction": calls.waiting(),
                "by_name": calls.by_name,
            })
        });
        let allocations = self.allocations.iter().map(|allocations| {
            json!({ "mode": allocations.mode.key(), "per_request": allocations.per_request })
        });
        let memory = self.memory.iter().map(|idle| {
            json!({
                "server": idle.server,
                "connections": idle.connections,
                "pss_bytes_each": idle.pss_bytes,
                "rss_bytes_each": idle.rss_bytes,
                "empty_rss_kib": idle.empty_rss_kib,
            })
        });
        json!({
            "date": date,
            "environment": self.environment(),
            "plan": { "rounds": self.plan.rounds, "seconds": self.plan.seconds },
            "system_calls": calls.collect::<Vec<_>>(),
            "allocations": allocations.collect::<Vec<_>>(),
            "idle_connections": memory.collect::<Vec<_>>(),
            "rounds": rounds,
        })
    }

    fn csv(&self) -> String {
        let names: Vec<&str> = FIGURES.iter().map(|(key, ..)| *key).collect();
        let mut text = format!("round,mode,server,requests,{}\n", names.join(","));
        for sample in &self.samples {
            let Sample {
                round,
                mode,
                server,
                load,
                ..
            } = sample;
            let _ = write!(text, "{round},{},{server},{}", mode.key(), load.requests);
            for (_, _, digits, read) in FIGURES {
                let _ = write!(text, ",{:.*}", digits + 1, read(sample));
            }
            text.push('\n');
        }
        text
    }
}

/// The state of the sources by git: a commit, and whether they differ from it.
pub(super) fn commit() -> String {
    machine::first_line(
        "git",
        &["describe", "--always", "--dirty", "--exclude", "*"],
    )
}

pub(super) fn verdict(is_held: bool, goal: &str) -> String {
    format!("{goal}: {}", if is_held { "held" } else { "**missed**" })
}

fn row(text: &mut String, title: &str, ours: &str, theirs: &str, ratio: f64, goal: &str) {
    let _ = writeln!(
        text,
        "| {title} | {ours} | {theirs} | {ratio:.2} | {goal} |"
    );
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files of a run.
pub(super) struct Papers {
    /// Of the run's folder.
    pub(super) name: String,
    pub(super) date: String,
    /// Of the folder.
    pub(super) readme: String,
    pub(super) rows: String,
    pub(super) summary: Value,
    /// The markers in the project's README around the last run's table.
    pub(super) markers: (&'static str, &'static str),
    pub(super) table: String,
}

impl Papers {
    /// Writes the folder and the table.
    pub(super) fn write(&self) -> Outcome {
        let name = &self.name;
        let folder = workspace::root().join("bench/results").join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{name}: {error}"))?;
        let summary = serde_json::to_string_pretty(&self.summary);
        let summary = summary.map_err(|error| format!("summary: {error}"))?;
        write(&folder.join("README.md"), &self.readme)?;
        write(&folder.join("raw.csv"), &self.rows)?;
        write(&folder.join("summary.json"), &(summary + "\n"))?;
        println!("\nbench: written to bench/results/{name}");
        let path = workspace::root().join("bench/README.md");
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(());
        };
        let link = format!("[{name}](results/{name}/README.md)");
        let table = format!("{}\nRun of {}: {link}.\n", self.table, self.date);
        let (begin, end) = self.markers;
        match between_markers(&text, &table, self.markers) {
            Some(text) => write(&path, &text),
            None => Err(format!("bench/README.md has no {begin} and {end}")),
        }
    }
}

/// The properties of a run's machine, one per line.
pub(super) fn list_environment(environment: &Value, text: &mut String) {
    for (name, value) in environment.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "- {name}: {value}");
    }
}

/// The text with `table` between the markers; `None` if they are missing or out of order.
fn between_markers(text: &str, table: &str, (begin, end): (&str, &str)) -> Option<String> {
    let start = text.find(begin)? + begin.len();
    let end = start + text[start..].find(end)?;
    Some(format!("{}\n{table}{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests;
