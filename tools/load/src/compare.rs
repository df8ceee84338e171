//! `turnpike load compare`: two JSON reports, figure by figure, with intervals.
//!
//! The intervals come from the seconds of each run. They say how far a run differs within itself;
//! two runs of the same server differ by more, so a claim needs several runs in turn.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};
use serde_json::Value;

use crate::mix::Random;
use crate::units::{counted, format_metric, show_time_us};

/// Resamples of an interval: enough for two digits of its ends.
const RESAMPLES: usize = 2000;
/// Seconds that a run needs for an interval.
const SECONDS_MIN: usize = 5;
/// The seed of the resamples, so that a comparison can be repeated.
const SEED: u64 = 1;

/// Compares two reports written by --json: figures, ratios, and 95 % intervals.
#[derive(Debug, Parser)]
#[command(name = "turnpike load compare")]
struct CompareOptions {
    /// The report to compare with
    a: PathBuf,
    /// The report that is compared
    b: PathBuf,
    /// Compare also runs that were set up differently
    #[arg(long)]
    force: bool,
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    CompareOptions::command()
}

/// Runs the subcommand; `arguments` begin after its name.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("turnpike load compare");
    let words = std::iter::once(&name).chain(arguments);
    let options = match CompareOptions::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            crate::print_refusal("turnpike load compare", &error);
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match (read(&options.a), read(&options.b)) {
        (Ok(a), Ok(b)) => {
            crate::say(&format!("A: {}\nB: {}\n\n", setup(&a), setup(&b)));
            let differences = differences(&a, &b);
            if !differences.is_empty() && !options.force {
                eprintln!(
                    "turnpike load: A and B differ in more than the server: {}. so their figures \
                     do not compare the servers; --force compares them anyway",
                    differences.join(", ")
                );
                return ExitCode::FAILURE;
            }
            crate::say(&table(&a, &b));
            ExitCode::SUCCESS
        }
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("turnpike load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<Value, String> {
    let failed = |text: String| format!("{}: {text}", path.display());
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let report: Value = serde_json::from_slice(&text)
        .map_err(|error| failed(format!("this is not a JSON report ({error})")))?;
    match report["schema"].as_str() {
        Some(schema) if schema.starts_with("turnpike-load/") => Ok(report),
        _ => Err(failed(
            "this is not a report of \"load --json=FILE\"".to_owned(),
        )),
    }
}

/// How a run was set up, in a line: `http://127.0.0.1:80, http/1.1, 10 connections, 2 threads`.
fn setup(report: &Value) -> String {
    let servers = report["servers"].as_array();
    let servers = servers.into_iter().flatten().filter_map(Value::as_str);
    let servers: Vec<&str> = servers.collect();
    let servers = if servers.is_empty() {
        // Reports of older versions do not name it.
        "server unknown".to_owned()
    } else {
        servers.join(" ")
    };
    let count = |name: &str| report[name].as_u64().unwrap_or_default() as usize;
    let mut parts = vec![
        servers,
        report["protocol"].as_str().unwrap_or("?").to_owned(),
        counted(count("connections"), "connection"),
    ];
    if report["protocol"] == "h2" {
        parts.push(format!("{} each", counted(count("streams"), "stream")));
    }
    parts.push(counted(count("threads"), "thread"));
    if let Some(per_s) = report["planned_per_s"].as_f64() {
        let what = report["pacing"].as_str().unwrap_or("requests");
        parts.push(format!("{} {what}/s planned", format_metric(per_s)));
    }
    parts.push(format!("{:.0} s", number(&report["duration_s"])));
    parts.join(", ")
}

/// What must be alike in runs whose figures are compared, with its name.
const ALIKE: &[(&str, &str)] = &[
    ("protocol", "protocol"),
    ("connections", "number of connections"),
    ("streams", "number of streams"),
    ("pacing", "what starts a request"),
    ("planned_per_s", "planned rate"),
];

/// The names of what two runs differ in. What an older report does not say is no difference.
fn differences(a: &Value, b: &Value) -> Vec<&'static str> {
    let differs = |name: &str| match (a.get(name), b.get(name)) {
        (Some(first), Some(second)) => first != second,
        _ => false,
    };
    let rows = ALIKE.iter().filter(|(name, _)| differs(name));
    rows.map(|(_, shown)| *shown).collect()
}

/// A figure: its name, its value in all of a report, and its values in each second.
struct Figure {
    name: &'static str,
    whole: fn(&Value) -> f64,
    seconds: fn(&Value) -> Vec<f64>,
    show: fn(f64) -> String,
    /// Whether more of it is better.
    is_more_better: bool,
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "requests/s",
        whole: |report| number(&report["requests_per_s"]),
        seconds: rates,
        show: format_metric,
        is_more_better: true,
    },
    Figure {
        name: "latency p50",
        whole: |report| number(&report["latency_us"]["p50"]),
        seconds: |report| times(report, "p50_us"),
        show: show_time_us,
        is_more_better: false,
    },
    Figure {
        name: "latency p99",
        whole: |report| number(&report["latency_us"]["p99"]),
        seconds: |report| times(report, "p99_us"),
        show: show_time_us,
        is_more_better: false,
    },
    Figure {
        name: "latency max",
        whole: |report| number(&report["latency_us"]["max"]),
        seconds: |report| times(report, "max_us"),
        show: show_time_us,
        is_more_better: false,
    },
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn list(report: &Value, name: &str) -> Vec<Option<f64>> {
    let values = report["series"][name].as_array();
    let values = values.map_or(&[][..], Vec::as_slice);
    // The last interval is seldom whole.
    let whole = values.get(..values.len().saturating_sub(1));
    whole
        .unwrap_or_default()
        .iter()
        .map(Value::as_f64)
        .collect()
}

fn rates(report: &Value) -> Vec<f64> {
    let interval_s = number(&report["series"]["interval_s"]).max(1e-9);
    let answered = list(report, "answered").into_iter().flatten();
    answered.map(|count| count / interval_s).collect()
}

fn times(report: &Value, name: &str) -> Vec<f64> {
    list(report, name).into_iter().flatten().collect()
}

fn table(a: &Value, b: &Value) -> String {
    let mut text = format!(
        "{:<12}{:>12}{:>12}{:>8}  {:<16}\n",
        "", "A", "B", "B/A", "95 % interval"
    );
    let mut has_intervals = false;
    for figure in FIGURES {
        let (first, second) = ((figure.whole)(a), (figure.whole)(b));
        let bounds = interval(&(figure.seconds)(a), &(figure.seconds)(b));
        has_intervals |= bounds.is_some();
        let ratio = if first > 0.0 {
            format!("{:.3}", second / first)
        } else {
            "-".to_owned()
        };
        let (shown, said) = match bounds {
            None => ("-".to_owned(), ""),
            Some((low, high)) => (
                format!("{low:.3} to {high:.3}"),
                verdict(low, high, figure.is_more_better),
            ),
        };
        let line = format!(
            "{:<12}{:>12}{:>12}{ratio:>8}  {shown:<16}  {said}",
            figure.name,
            (figure.show)(first),
            (figure.show)(second),
        );
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let errors = |report: &Value| number(&report["errors_total"]);
    let _ = writeln!(text, "{:<12}{:>12}{:>12}", "errors", errors(a), errors(b));
    for (name, report) in [("A", a), ("B", b)] {
        if report["client_limited"] == true {
            let _ = writeln!(text, "{name} was limited by the client: compare with care.");
        }
    }
    text.push_str(if has_intervals {
        "The intervals are of the seconds within the two runs. Runs of one server differ by \
         more:\nrepeat them in turn (A B B A) before you claim a difference.\n"
    } else {
        "There are no intervals: both runs must last six seconds or more.\n"
    });
    text
}

fn verdict(low: f64, high: f64, is_more_better: bool) -> &'static str {
    match (low > 1.0, high < 1.0) {
        (false, false) => "no difference shown",
        (above, _) if above == is_more_better => "B is better",
        _ => "A is better",
    }
}

/// The 95 % interval of the ratio of means, by a bootstrap of blocks: neighbouring seconds are
/// alike, so they are drawn together (Künsch 1989).
fn interval(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    if a.len() < SECONDS_MIN || b.len() < SECONDS_MIN {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (first, second) = (resampled(a, &mut random), resampled(b, &mut random));
        if first <= 0.0 {
            return None;
        }
        ratios.push(second / first);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| ratios[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some((at(0.025), at(0.975)))
}

/// The mean of values drawn in blocks of neighbours.
fn resampled(values: &[f64], random: &mut Random) -> f64 {
    let block = (values.len() as f64).cbrt().ceil().max(1.0) as usize;
    let (mut sum, mut count) = (0.0, 0);
    while count < values.len() {
        let start = (random.unit() * values.len() as f64) as usize;
        for offset in 0..block.min(values.len() - count) {
            sum += values[(start + offset) % values.len()];
            count += 1;
        }
    }
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(rate: f64, p99_us: f64, seconds: usize) -> Value {
        let ripple = |value: f64| -> Vec<f64> {
            let wave = |second: usize| 1.0 + 0.02 * (second % 3) as f64;
            (0..seconds).map(|second| value * wave(second)).collect()
        };
        json!({
            "schema": "turnpike-load/1", "requests_per_s": rate, "errors_total": 0,
            "latency_us": { "p50": 100.0, "p99": p99_us, "max": 9000.0 },
            "series": {
                "interval_s": 1.0, "answered": ripple(rate), "p50_us": ripple(100.0),
                "p99_us": ripple(p99_us), "max_us": ripple(9000.0),
            },
        })
    }

    #[test]
    fn differences_are_told_from_noise() {
        let text = table(&report(1000.0, 500.0, 12), &report(1300.0, 800.0, 12));
        let said: Vec<&str> = text
            .lines()
            .skip(1)
            .map(|line| line.rsplit("  ").next().unwrap_or_default())
            .take(4)
            .collect();
        let expected = [
            "B is better",
            "no difference shown",
            "A is better",
            "no difference shown",
        ];
        assert_eq!(said, expected, "{text}");
        assert!(text.contains("1.300  1.2"), "{text}");
    }

    /// A member of B's report with its value, and the name of the difference.
    const SETUPS: &[(&str, &str, &[&str])] = &[
        ("protocol", "\"h2\"", &["protocol"]),
        ("connections", "20", &["number of connections"]),
        ("streams", "4", &["number of streams"]),
        ("planned_per_s", "100.0", &["planned rate"]),
        ("threads", "1", &[]),
        ("duration_s", "3.0", &[]),
        ("servers", "[\"http://b:80\"]", &[]),
    ];

    #[test]
    fn runs_that_were_set_up_differently_are_told_apart() {
        let a = json!({
            "servers": ["http://a:80"], "protocol": "http/1.1", "connections": 10, "streams": 1,
            "threads": 2, "pacing": "answer", "planned_per_s": null, "duration_s": 10.0,
        });
        let line = "http://a:80, http/1.1, 10 connections, 2 threads, 10 s";
        assert_eq!(setup(&a), line);
        assert_eq!(differences(&a, &json!({})), [""; 0]);
        for (name, value, expected) in SETUPS {
            let mut b = a.clone();
            b[*name] = serde_json::from_str(value).unwrap_or_default();
            assert_eq!(differences(&a, &b), *expected, "{name}");
        }
    }

    #[test]
    fn short_runs_have_no_intervals() {
        let text = table(&report(1000.0, 500.0, 4), &report(1300.0, 800.0, 12));
        assert!(text.contains("both runs must last six seconds"), "{text}");
        assert!(!text.contains("better"), "{text}");
    }
}
