//! Foreign clients and their reports. They share no code with this project, so they can judge it.

use std::fmt;
use std::io;
use std::process::{Command, Output, Stdio};

/// The report of a load generator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// Requests answered.
    pub requests: u64,
    /// Answers with a status other than 2xx (wrk accepts 3xx).
    pub not_2xx: u64,
    /// Connections refused or reset while being made.
    pub connect_errors: u64,
    /// Connections that broke while a response was awaited or read.
    pub read_errors: u64,
    /// Connections that broke while a request was written.
    pub write_errors: u64,
    /// Answers after the client's time limit; they may have come later.
    pub timeouts: u64,
    /// Answers of another length than the first one's (ab only).
    pub length_errors: u64,
    /// Answers per second.
    pub requests_per_second: f64,
    /// Latency in microseconds.
    pub latency: Latency,
}

/// A distribution of latency, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    pub mean_us: f64,
    /// The standard deviation.
    pub stdev_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
}

impl Load {
    /// The number of failed requests.
    pub fn failed(&self) -> u64 {
        self.not_2xx
            + self.connect_errors
            + self.read_errors
            + self.write_errors
            + self.timeouts
            + self.length_errors
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load {
            requests,
            not_2xx,
            connect_errors,
            read_errors,
            write_errors,
            ..
        } = self;
        write!(formatter, "{requests} requests, {} failed", self.failed())?;
        if self.failed() == 0 {
            return Ok(());
        }
        write!(
            formatter,
            " (not 2xx {not_2xx}, connect {connect_errors}, read {read_errors}, write \
             {write_errors}, timeout {}, length {})",
            self.timeouts, self.length_errors
        )
    }
}

/// Runs a client to its end.
///
/// # Errors
/// It is not installed or does not start.
pub fn run(program: &str, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
}

/// The output of curl, with status 0 required; adds `--silent --show-error`.
///
/// # Panics
/// It is not installed or fails.
pub fn curl(arguments: &[&str]) -> String {
    let arguments = [&["--silent", "--show-error", "--max-time", "30"], arguments].concat();
    report("curl", &arguments)
}

/// Runs wrk and reads its report.
///
/// # Panics
/// It is not installed, fails, or prints something else.
pub fn wrk(arguments: &[&str]) -> Load {
    wrk_by("wrk", arguments)
}

/// Runs wrk through another program, whose words come first: `taskset`, `nice`.
///
/// # Panics
/// As [`wrk`].
pub fn wrk_by(program: &str, arguments: &[&str]) -> Load {
    let text = report(program, arguments);
    parse_wrk(&text).unwrap_or_else(|| panic!("not a report of wrk:\n{text}"))
}

/// Runs ab and reads its report.
///
/// # Panics
/// It is not installed, gives up, or prints something else.
pub fn ab(arguments: &[&str]) -> Load {
    let text = report("ab", arguments);
    parse_ab(&text).unwrap_or_else(|| panic!("not a report of ab:\n{text}"))
}

fn report(program: &str, arguments: &[&str]) -> String {
    let output = match run(program, arguments) {
        Ok(output) => output,
        Err(error) => panic!("{program}: {error}; please run: cargo xtask setup test"),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{stderr}{text}",
        output.status
    );
    text
}

/// Reads a report of wrk (with or without `--latency`).
pub fn parse_wrk(text: &str) -> Option<Load> {
    let mut load = Load::default();
    let requests = line_with(text, " requests in ")?;
    load.requests = requests.split_ascii_whitespace().next()?.parse().ok()?;
    load.requests_per_second = number_after(text, "Requests/sec:")?;
    if let Some(line) = line_with(text, "Socket errors:") {
        let count = |name: &str| number_after(line, name).map(whole);
        load.connect_errors = count("connect ")?;
        load.read_errors = count("read ")?;
        load.write_errors = count("write ")?;
        load.timeouts = count("timeout ")?;
    }
    load.not_2xx = number_after(text, "Non-2xx or 3xx responses:").map_or(0, whole);
    let mut words = line_with(text, "    Latency ")?
        .split_ascii_whitespace()
        .skip(1);
    load.latency.mean_us = time_us(words.next()?)?;
    load.latency.stdev_us = time_us(words.next()?)?;
    let percentile = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name))?;
        time_us(line.split_ascii_whitespace().nth(1)?)
    };
    load.latency.p50_us = percentile("50% ").unwrap_or_default();
    load.latency.p99_us = percentile("99% ").unwrap_or_default();
    Some(load)
}

/// Reads a report of ab.
pub fn parse_ab(text: &str) -> Option<Load> {
    let mut load = Load {
        requests: number_after(text, "Complete requests:").map(whole)?,
        not_2xx: number_after(text, "Non-2xx responses:").map_or(0, whole),
        requests_per_second: number_after(text, "Requests per second:")?,
        ..Load::default()
    };
    if let Some(line) = line_with(text, "(Connect:") {
        let count = |name: &str| number_after(line, name).map(whole);
        load.connect_errors = count("Connect:")?;
        load.read_errors = count("Receive:")? + count("Exceptions:")?;
        load.length_errors = count("Length:")?;
    }
    load.write_errors = number_after(text, "Write errors:").map_or(0, whole);
    if let Some(line) = text.lines().find(|line| line.starts_with("Total:")) {
        let mut words = line.split_ascii_whitespace().skip(2);
        load.latency.mean_us = words.next()?.parse::<f64>().ok()? * 1000.0;
        load.latency.stdev_us = words.next()?.parse::<f64>().ok()? * 1000.0;
    }
    let percentile = |name: &str| number_after(text, name).unwrap_or_default() * 1000.0;
    load.latency.p50_us = percentile("  50%");
    load.latency.p99_us = percentile("  99%");
    Some(load)
}

fn line_with<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.lines().find(|line| line.contains(mark))
}

fn number_after(text: &str, mark: &str) -> Option<f64> {
    let after = &text[text.find(mark)? + mark.len()..];
    let digits = after.trim_start();
    let end = digits.find(|byte: char| !byte.is_ascii_digit() && byte != '.');
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// A count in a report; it has no fraction.
fn whole(number: f64) -> u64 {
    number as u64
}

/// A time in wrk's format: `1.05ms`, `640.00us`, `1.21s`, `1.00m`.
fn time_us(text: &str) -> Option<f64> {
    let split = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 6e7,
        "h" => 3.6e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests;
