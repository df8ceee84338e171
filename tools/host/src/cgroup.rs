//! What the control groups of this process leave of the machine, version 2 or 1.

use serde::{Deserialize, Serialize};

use crate::host::{Host, list};

/// Limits of the control groups that this process is in, the tightest of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// CPUs' worth of time; `None`: without limit.
    pub cpu_quota: Option<f64>,
    pub memory_bytes_max: Option<u64>,
    /// Processes and threads.
    pub tasks_max: Option<u64>,
    /// The CPUs that may be used; `None`: all.
    pub cpus: Option<Vec<usize>>,
}

const MOUNT: &str = "sys/fs/cgroup";

impl Host {
    /// The limits of the control groups that this process is in.
    pub fn cgroup(&self) -> Cgroup {
        let (cpu, memory) = (self.groups("cpu"), self.groups("memory"));
        let (pids, cpuset) = (self.groups("pids"), self.groups("cpuset"));
        let least = |folders: &[String], names: &[&str]| {
            let files = folders
                .iter()
                .flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}")));
            // `max` is no number: there is no limit.
            files.filter_map(|file| self.number::<u64>(file)).min()
        };
        let memory = least(&memory, &["memory.max", "memory.limit_in_bytes"]);
        let quotas = cpu.iter().filter_map(|folder| self.cpu_quota(folder));
        let cpus = cpuset.first().map(|folder| {
            let names = ["cpuset.cpus.effective", "cpuset.effective_cpus"];
            let texts = names.map(|name| self.text(format!("{folder}/{name}")));
            list(&texts.concat())
        });
        Cgroup {
            cpu_quota: quotas.reduce(f64::min),
            memory_bytes_max: memory.filter(|bytes| *bytes < UNLIMITED_BYTES),
            tasks_max: least(&pids, &["pids.max"]),
            cpus: cpus.filter(|cpus| !cpus.is_empty()),
        }
    }

    /// The folders of a controller's groups that this process is in, the innermost first.
    fn groups(&self, controller: &str) -> Vec<String> {
        let text = self.text("proc/self/cgroup");
        let mut unified = None;
        let mut own = None;
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (number, names, path) = (fields.next(), fields.next(), fields.next());
            if number == Some("0") {
                unified = path;
            } else if names.is_some_and(|names| names.split(',').any(|name| name == controller)) {
                own = path;
            }
        }
        let (mount, path) = match (own, unified) {
            (Some(path), _) => (format!("{MOUNT}/{controller}"), path),
            (None, Some(path)) => (MOUNT.to_owned(), path),
            (None, None) => return Vec::new(),
        };
        let mut folders = vec![format!("{mount}{}", path.trim_end_matches('/'))];
        let mut rest = path.trim_end_matches('/');
        while let Some((outer, _)) = rest.rsplit_once('/') {
            folders.push(format!("{mount}{outer}"));
            rest = outer;
        }
        folders
    }

    fn cpu_quota(&self, folder: &str) -> Option<f64> {
        let both = self.line(format!("{folder}/cpu.max"));
        let (quota, period) = match both.split_once(' ') {
            Some((quota, period)) => (quota.parse().ok(), period.parse().ok()),
            None => (
                self.number(format!("{folder}/cpu.cfs_quota_us")),
                self.number(format!("{folder}/cpu.cfs_period_us")),
            ),
        };
        let (quota, period): (f64, f64) = (quota?, period?);
        // Version 1 writes -1 where there is no limit.
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    }
}

/// Version 1 writes a number near the largest where there is no limit.
const UNLIMITED_BYTES: u64 = 1 << 60;
