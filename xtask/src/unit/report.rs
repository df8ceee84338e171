//! The results of the suites: passed, failed, skipped without root, and their times.

use std::process::Output;
use std::time::Duration;

use super::failures::FailedSuite;
use crate::outcome::Outcome;
use crate::suites;

/// How `testkit::needs_root` begins its line.
const SKIPPED: &str = "skipped: ";

/// The totals so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    passed: u64,
    skipped: u64,
    failed: Vec<FailedSuite>,
}

impl Report {
    /// Counts the results of a suite, and prints its line; its failures and its whole output if it
    /// failed.
    pub(super) fn add(&mut self, name: &str, output: &Output, time: Duration) {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let passed = passed(&stdout);
        let skipped: Vec<&str> = stderr
            .lines()
            .filter(|line| line.starts_with(SKIPPED))
            .collect();
        // A test that was skipped returned, which the harness takes for a pass.
        let ran = passed.saturating_sub(skipped.len() as u64);
        println!(
            "unit: {name:<44} {ran:>4} passed {:>6.1} s",
            time.as_secs_f64()
        );
        for line in &skipped {
            println!("{line}");
        }
        self.passed += ran;
        self.skipped += skipped.len() as u64;
        if !output.status.success() {
            let failed = FailedSuite::new(name, &output.status.to_string(), &stdout, &stderr);
            failed.print();
            println!("{stdout}{stderr}");
            self.failed.push(failed);
        }
    }

    /// The totals, kept for the end of `make test` too, and once more what failed.
    ///
    /// # Errors
    /// A suite failed.
    pub(super) fn finish(self) -> Outcome {
        let totals = format!("{} tests passed, skipped: {}", self.passed, self.skipped);
        println!("unit: {totals}");
        suites::note(&totals)?;
        match self.failed.is_empty() {
            true => Ok(()),
            false => {
                self.failed.iter().for_each(FailedSuite::print);
                let titles: Vec<&str> = self.failed.iter().map(|suite| &*suite.title).collect();
                Err(format!("failed: {}", titles.join("; ")))
            }
        }
    }
}

/// The number of passed tests in the last line of the test harness.
fn passed(stdout: &str) -> u64 {
    let result = stdout
        .lines()
        .rev()
        .find(|line| line.starts_with("test result: "));
    let words = result.map(|line| line.split_once(". ").map_or("", |(_, rest)| rest));
    let number = words.and_then(|rest| rest.split_once(" passed")?.0.parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests;
