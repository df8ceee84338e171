//! CPU time during a run: what its own processes used, and what others did.

use std::collections::BTreeMap;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use turnpike_host::{CpuTimes, Host};

/// The state when a run began.
pub(super) struct Clock {
    at: Instant,
    times: Vec<CpuTimes>,
    children_us: u64,
}

/// CPU time since then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// Of the processes that have ended since, with their descendants, and of a server beside them,
    /// in microseconds.
    pub(super) ours_us: f64,
    /// The share of all CPUs' time that other processes and the hypervisor took.
    pub(super) others_share: f64,
    /// The largest share of a CPU's time in soft interrupts.
    pub(super) softirq_share: f64,
    /// The share of all CPUs' time that was idle.
    pub(super) idle_share: f64,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock {
            at: Instant::now(),
            times: Host::here().cpu_times(),
            children_us: children_us(),
        }
    }

    /// To be asked once the run's processes have ended: the kernel adds a child's time then.
    pub(super) fn spent(&self) -> Spent {
        self.spent_beside(0.0)
    }

    /// The same beside a server that is none of our processes; its CPU time, in microseconds.
    pub(super) fn spent_beside(&self, server_us: f64) -> Spent {
        let now = Clock::start();
        let elapsed_us = now.at.duration_since(self.at).as_micros() as f64;
        let all = |of: fn(&CpuTimes) -> u64| {
            let sum = |times: &[CpuTimes]| times.iter().map(of).sum::<u64>();
            sum(&now.times).saturating_sub(sum(&self.times)) as f64
        };
        let machine_us = all(|cpu| cpu.busy_us + cpu.steal_us);
        let ours_us = now.children_us.saturating_sub(self.children_us) as f64 + server_us;
        let whole_us = (elapsed_us * self.times.len().max(1) as f64).max(1.0);
        let pairs = self.times.iter().zip(&now.times);
        let softirq_us = pairs.map(|(old, new)| new.softirq_us.saturating_sub(old.softirq_us));
        let softirq_us = softirq_us.max().unwrap_or(0) as f64;
        Spent {
            ours_us,
            others_share: ((machine_us - ours_us) / whole_us).clamp(0.0, 1.0),
            softirq_share: (softirq_us / elapsed_us.max(1.0)).clamp(0.0, 1.0),
            idle_share: (all(|cpu| cpu.idle_us) / whole_us).clamp(0.0, 1.0),
        }
    }
}

/// The CPU time of the descendants of a process that run.
pub(super) struct Meter {
    process: u32,
    spent_ns: BTreeMap<u32, u64>,
}

impl Meter {
    /// The descendants of this process: a server, before a load generator starts.
    pub(super) fn start() -> Meter {
        Meter::of(std::process::id())
    }

    /// The descendants of a process: the workers of a master.
    pub(super) fn of(process: u32) -> Meter {
        let host = Host::here();
        let descendants = host.family(process).into_iter().skip(1);
        Meter {
            process,
            spent_ns: descendants.map(|id| (id, host.run_ns(id))).collect(),
        }
    }

    /// CPU time since then of those that run now, in microseconds.
    pub(super) fn spent_us(&self) -> f64 {
        let now = Meter::of(self.process).spent_ns.into_iter();
        let old = |id: u32| self.spent_ns.get(&id).copied().unwrap_or(0);
        let since = |(id, ns): (u32, u64)| ns.saturating_sub(old(id));
        now.map(since).sum::<u64>() as f64 / 1000.0
    }
}

/// CPU time of all children that were waited for, and of theirs.
fn children_us() -> u64 {
    let micros = |time: TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| {
        micros(usage.user_time()) + micros(usage.system_time())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::{Clock, Meter};

    #[test]
    fn the_time_of_an_ended_child_is_ours() {
        let clock = Clock::start();
        let loops = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let status = Command::new("sh").args(["-c", loops]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let spent = clock.spent();
        assert!(spent.ours_us > 1000.0, "{spent:?}");
        let shares = [spent.others_share, spent.softirq_share, spent.idle_share];
        assert!(
            shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "{spent:?}"
        );
    }

    #[test]
    fn the_time_of_a_child_that_runs_is_metered() {
        let meter = Meter::start();
        let loops = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo x; read end";
        let mut command = Command::new("sh");
        command.args(["-c", loops]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        let spent_us = meter.spent_us();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(spent_us > 1000.0, "{spent_us}");
    }
}
