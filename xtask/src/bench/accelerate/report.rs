//! The results as a table, rows and a summary, and whether the goals were met.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Case, Plan, Sample};
use crate::bench::plan::Mode;
use crate::bench::report::{CORE_SHARE_MAX, Papers, Spread, commit, list_environment, verdict};
use crate::machine;
use crate::outcome::Outcome;

/// Between these lines the README's table is rewritten.
const MARKERS: (&str, &str) = ("<!-- accelerate:begin -->", "<!-- accelerate:end -->");

/// A goal: a case, the case that it is compared with, the modes, and the largest allowed ratio of
/// their times.
type Goal = (Case, Case, &'static [Mode], f64);

const GOALS: &[Goal] = &[
    (
        Case::TurnpikeCache,
        Case::TurnpikeStatic,
        &[Mode::OneRequest, Mode::KeepAlive],
        1.1,
    ),
    (
        Case::TurnpikeCache,
        Case::NginxStatic,
        &[Mode::KeepAlive],
        0.65,
    ),
    (
        Case::TurnpikeProxy,
        Case::NginxProxy,
        &[Mode::KeepAlive],
        0.75,
    ),
];

/// A measured figure: its name in data, its title, its digits, how it is read.
type Figure = (&'static str, &'static str, usize, fn(&Sample) -> f64);

const FIGURES: &[Figure] = &[
    ("requests_per_second", "requests/s", 0, |sample| {
        sample.load.requests_per_second
    }),
    ("core_us", "server core, µs", 2, |sample| sample.core_us),
    ("process_us", "server processes, µs", 2, |sample| {
        sample.process_us
    }),
    ("p50_us", "p50, µs", 0, |sample| sample.load.latency.p50_us),
    ("p99_us", "p99, µs", 0, |sample| sample.load.latency.p99_us),
    ("failed", "failed", 0, |sample| sample.load.failed() as f64),
];

/// Everything that one run found.
pub(super) struct Results {
    pub(super) plan: Plan,
    pub(super) cases: Vec<Case>,
    /// Ours, nginx's, varnish's.
    pub(super) versions: [String; 3],
    pub(super) samples: Vec<Sample>,
}

impl Results {
    /// The whole report.
    pub(super) fn markdown(&self) -> String {
        let Plan {
            rounds,
            seconds,
            server_cpu,
            client_cpu,
        } = &self.plan;
        let mut text = String::new();
        let _ = write!(
            text,
            "{}. Configuration of study S2 with one worker on CPU {server_cpu}, 600 bytes; wrk \
             and the origin (nginx) on CPU {client_cpu}; {rounds} interleaved rounds of {seconds} \
             s. CPU time is per request. Median (min..max).\n\n",
            self.versions.join(", "),
        );
        for mode in Mode::ALL {
            let titles: Vec<&str> = FIGURES.iter().map(|(_, title, ..)| *title).collect();
            let _ = writeln!(text, "| {} | {} |", mode.text(), titles.join(" | "));
            let _ = writeln!(text, "|---{}|", "|---".repeat(FIGURES.len()));
            for case in &self.cases {
                let cells = FIGURES
                    .iter()
                    .map(|(_, _, digits, read)| self.spread(*case, mode, *read).text(*digits));
                let cells: Vec<String> = cells.collect();
                let _ = writeln!(text, "| {} | {} |", case.title(), cells.join(" | "));
            }
            text.push('\n');
        }
        self.write_goals(&mut text);
        text
    }

    fn write_goals(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "| CPU of one over the other | core | processes | goal |\n|---|---|---|---|"
        );
        let disturbed = self.core_share() > CORE_SHARE_MAX;
        for (case, other, modes, most) in GOALS {
            for mode in *modes {
                let core = self.ratio(*case, *other, *mode, |sample| sample.core_us);
                let process = self.ratio(*case, *other, *mode, |sample| sample.process_us);
                let judged = if disturbed { process } else { core };
                let _ = writeln!(
                    text,
                    "| {} over {}, {} | {} | {} | {} |",
                    case.title(),
                    other.title(),
                    mode.text(),
                    core.text(2),
                    process.text(2),
                    verdict(judged.median <= *most, &format!("at most {most}")),
                );
            }
        }
        if disturbed {
            let _ = writeln!(
                text,
                "\nOther work disturbed the server's core in this run (busy {:.1} times as long \
                 as the server ran): judged by the processes' time.",
                self.core_share()
            );
        }
    }

    fn core_share(&self) -> f64 {
        let shares = self.samples.iter();
        let shares = shares.map(|sample| sample.core_us / sample.process_us);
        Spread::of(shares.collect()).median
    }

    fn of(&self, case: Case, mode: Mode) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.mode == mode && sample.case == case)
    }

    fn spread(&self, case: Case, mode: Mode, read: fn(&Sample) -> f64) -> Spread {
        Spread::of(self.of(case, mode).map(read).collect())
    }

    /// One case over another, round by round.
    fn ratio(&self, case: Case, other: Case, mode: Mode, read: fn(&Sample) -> f64) -> Spread {
        let pairs = self.of(case, mode).zip(self.of(other, mode));
        Spread::of(pairs.map(|(one, two)| read(one) / read(two)).collect())
    }

    /// Writes the run's folder and the README's table.
    pub(super) fn write(&self) -> Outcome {
        let date = machine::first_line("date", &["-u", "+%Y-%m-%d"]);
        let table = self.markdown();
        Papers {
            name: format!("{date}-accelerate-{}", machine::slug()),
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
        let mut text = format!("# Benchmark of the accelerator, {date}\n\n{table}\n## Machine\n\n");
        list_environment(&environment(), &mut text);
        let _ = writeln!(
            text,
            "\nClient, origin and server share the machine: absolute figures hold for it alone, \
             ratios carry over. A core's time is all that it was busy (/proc/stat), the kernel's \
             part for its connections included; the processes' time is what their threads ran \
             (schedstat). The proxied cases keep their connections to the origin, \
             which answers from its configuration, not from a file: so the server's core is the \
             one that is full.\n"
        );
        for case in &self.cases {
            let Ok(configuration) = case.configuration(self.plan.server_cpu, 9090) else {
                continue;
            };
            if *case != Case::Varnish {
                let _ = writeln!(
                    text,
                    "## {}\n\n```nginx\n{configuration}```\n",
                    case.title()
                );
            }
        }
        text
    }

    fn summary(&self, date: &str) -> Value {
        let one = |mode: Mode, case: &Case| {
            let figures = FIGURES.iter().map(|(key, _, _, read)| {
                ((*key).to_owned(), self.spread(*case, mode, *read).json())
            });
            let figures: serde_json::Map<String, Value> = figures.collect();
            json!({ "mode": mode.key(), "case": case.key(), "figures": figures })
        };
        let rounds = Mode::ALL.iter().flat_map(|mode| {
            let cases = self.cases.iter();
            cases.map(|case| one(*mode, case)).collect::<Vec<_>>()
        });
        let goals = GOALS.iter().flat_map(|(case, other, modes, most)| {
            let ratio = |mode: &Mode| {
                json!({
                    "case": case.key(),
                    "other": other.key(),
                    "mode": mode.key(),
                    "at_most": most,
                    "core_us": self.ratio(*case, *other, *mode, |sample| sample.core_us).json(),
                    "process_us":
                        self.ratio(*case, *other, *mode, |sample| sample.process_us).json(),
                })
            };
            modes.iter().map(ratio).collect::<Vec<_>>()
        });
        json!({
            "date": date,
            "environment": environment(),
            "versions": self.versions,
            "plan": { "rounds": self.plan.rounds, "seconds": self.plan.seconds },
            "rounds": rounds.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> String {
        let names: Vec<&str> = FIGURES.iter().map(|(key, ..)| *key).collect();
        let mut text = format!("round,mode,case,requests,{}\n", names.join(","));
        for sample in &self.samples {
            let (round, mode, case) = (sample.round, sample.mode.key(), sample.case.key());
            let _ = write!(text, "{round},{mode},{case},{}", sample.load.requests);
            for (_, _, digits, read) in FIGURES {
                let _ = write!(text, ",{:.*}", digits + 1, read(sample));
            }
            text.push('\n');
        }
        text
    }
}

fn environment() -> Value {
    json!({
        "processor": turnpike_host::Host::here().processor().model,
        "cpus": machine::cpus(),
        "kernel": turnpike_host::Host::here().kernel().version(),
        "wrk": machine::first_line("wrk", &["-v"]),
        "commit": commit(),
        "settings": machine::settings(),
    })
}
