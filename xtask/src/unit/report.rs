//! The results of the jobs: passed, failed, skipped without root, and their times.

use std::collections::HashMap;
use std::time::Duration;

use super::failures::FailedSuite;
use super::job::Ended;
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
    /// Groups of jobs of which some have not ended.
    open: HashMap<String, Group>,
}

/// A suite, or the tests of one of its files.
#[derive(Debug, Default)]
struct Group {
    /// Jobs that have not ended.
    waiting: usize,
    passed: u64,
    skipped: Vec<String>,
    /// The seconds of all jobs, which run side by side.
    time: Duration,
}

impl Report {
    /// Notes which jobs will be added, by the names of their groups.
    pub(super) fn expect(&mut self, groups: impl Iterator<Item = String>) {
        for group in groups {
            self.open.entry(group).or_default().waiting += 1;
        }
    }

    /// Counts the results of a job; prints its failures and its whole output if it failed, and the
    /// line of its group if it is the last.
    pub(super) fn add(&mut self, ended: Ended) {
        let Ended {
            group: group_name,
            name,
            status,
            stdout,
            stderr,
            time,
        } = ended;
        let mut group = self.open.remove(&group_name).unwrap_or_default();
        let skipped = stderr.lines().filter(|line| line.starts_with(SKIPPED));
        let skipped: Vec<String> = skipped.map(str::to_owned).collect();
        // A test that was skipped returned, which the harness takes for a pass.
        group.passed += passed(&stdout).saturating_sub(skipped.len() as u64);
        group.skipped.extend(skipped);
        group.time += time;
        group.waiting = group.waiting.saturating_sub(1);
        let failure = match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some((&group_name, status.to_string())),
            Err(why) => Some((&name, why)),
        };
        if let Some((name, how)) = failure {
            let failed = FailedSuite::new(name, &how, &stdout, &stderr);
            failed.print();
            println!("{stdout}{stderr}");
            self.failed.push(failed);
        }
        match group.waiting {
            0 => self.close(&group_name, group),
            _ => drop(self.open.insert(group_name, group)),
        }
    }

    fn close(&mut self, name: &str, group: Group) {
        let (passed, seconds) = (group.passed, group.time.as_secs_f64());
        println!("unit: {name:<44} {passed:>4} passed {seconds:>6.1} s");
        for line in &group.skipped {
            println!("{line}");
        }
        self.passed += group.passed;
        self.skipped += group.skipped.len() as u64;
    }

    /// Notes processes that tests of a pass left behind: each is a failure.
    pub(super) fn add_strays(&mut self, strays: Vec<String>) {
        if !strays.is_empty() {
            let failed = FailedSuite::of_strays(strays);
            failed.print();
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
        if self.failed.is_empty() {
            Ok(())
        } else {
            self.failed.iter().for_each(FailedSuite::print);
            let titles: Vec<&str> = self.failed.iter().map(|suite| &*suite.title).collect();
            Err(format!("failed: {}", titles.join("; ")))
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
