//! Processors: their clocks, what protects them, and who else uses them.

use crate::facts::Facts;
use crate::row::{Row, Seen};

/// The share of time that the hypervisor may keep before it counts.
const STEAL_SHARE_MAX: f64 = 0.05;
/// Percent of time waited for a CPU from which the machine is full.
const WAITING_PERCENT_MAX: f64 = 50.0;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "frequency-saving",
        title: "CPUs save power",
        why: "The governor raises the clock only after the load has arrived: short bursts are \
            served at the lowest frequency, and measurements spread.",
        source: "Documentation/admin-guide/pm/cpufreq.rst",
        fix: "cpupower frequency-set -g performance, or tuned-adm profile throughput-performance.",
        effect: "Steadier latency; up to the ratio of the frequencies in bursts.",
        find: governor,
    },
    Row {
        id: "clock-slow",
        title: "Reading the clock is a system call",
        why: "A server reads the clock several times for each request. Only tsc, kvm-clock and \
              hyperv clocks are read without the kernel.",
        source: "Documentation/virt/kvm/x86/timekeeping.rst",
        fix: "Write tsc to /sys/devices/system/clocksource/clocksource0/current_clocksource if it \
              is available and stable there.",
        effect: "About a microsecond less for each reading.",
        find: clock,
    },
    Row {
        id: "mitigations",
        title: "Mitigations of processor vulnerabilities are active",
        why: "Some cost at each system call or switch of tasks, and a short connection is a dozen \
              of them.",
        source: "Documentation/admin-guide/hw-vuln/; /sys/devices/system/cpu/vulnerabilities",
        fix: "Leave them, unless the machine runs nothing but trusted code and nobody else shares \
              it; a newer processor needs fewer.",
        effect: "mitigations=off gives between nothing and a fifth; it also makes the machine \
            vulnerable.",
        find: mitigations,
    },
    Row {
        id: "hypervisor-takes",
        title: "The hypervisor takes CPU time away",
        why: "Time that other guests use looks like a slow machine, and no setting regains it.",
        source: "proc_stat(5) (steal)",
        fix: "A machine with CPUs of its own; and no measurement at such a time.",
        effect: "Steady figures.",
        find: steal,
    },
    Row {
        id: "cpus-full",
        title: "Tasks wait for CPUs",
        why: "More tasks are ready than there are CPUs: a worker waits before it accepts.",
        source: "Documentation/accounting/psi.rst",
        fix: "Find what else runs; fewer workers; interrupts on CPUs of their own.",
        effect: "Lower latency.",
        find: waiting,
    },
    Row {
        id: "cpus-offline",
        title: "The processes may not use all CPUs",
        why: "A control group (cpuset) leaves fewer CPUs than the machine has. nginx's \
              worker_processes auto counts the machine's.",
        source: "Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus)",
        fix: "worker_processes: the number of CPUs that may be used.",
        effect: "Workers do not share CPUs.",
        find: cpuset,
    },
];

fn governor(facts: &Facts) -> Option<Seen> {
    let governor = facts.processor.frequency_governor.as_deref()?;
    let saves = matches!(
        governor,
        "powersave" | "ondemand" | "conservative" | "schedutil"
    );
    saves
        .then(|| format!("the governor is {governor}"))
        .and_then(Seen::note)
}

fn clock(facts: &Facts) -> Option<Seen> {
    let source = facts.kernel.clock_source.as_str();
    let is_slow = matches!(
        source,
        "hpet" | "acpi_pm" | "jiffies" | "pit" | "xen" | "refined-jiffies"
    );
    is_slow
        .then(|| format!("the clock source is {source}"))
        .and_then(Seen::warning)
}

fn mitigations(facts: &Facts) -> Option<Seen> {
    let all = &facts.kernel.vulnerabilities;
    let active = all
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"));
    let names: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    (!names.is_empty())
        .then(|| format!("{} of {}: {}", names.len(), all.len(), names.join(", ")))
        .and_then(Seen::note)
}

fn steal(facts: &Facts) -> Option<Seen> {
    let times = &facts.sample.cpu_times;
    let stolen: u64 = times.iter().map(|cpu| cpu.steal_us).sum();
    let all: u64 = times
        .iter()
        .map(|cpu| cpu.busy_us + cpu.idle_us + cpu.steal_us)
        .sum();
    let share = stolen as f64 / all.max(1) as f64;
    (share > STEAL_SHARE_MAX)
        .then(|| {
            format!(
                "{:.0} % of the time in {} s",
                share * 100.0,
                facts.sample.seconds
            )
        })
        .and_then(Seen::warning)
}

fn waiting(facts: &Facts) -> Option<Seen> {
    let percent = facts.pressure.cpu_some;
    (percent > WAITING_PERCENT_MAX)
        .then(|| format!("in the last ten seconds a task waited for a CPU {percent} % of the time"))
        .and_then(Seen::note)
}

fn cpuset(facts: &Facts) -> Option<Seen> {
    let allowed = facts.cgroup.cpus.as_ref()?.len();
    let online = facts.processor.cpus.len();
    if allowed >= online {
        return None;
    }
    let evidence = format!("{allowed} of {online} CPUs");
    let auto = facts
        .configuration
        .as_ref()
        .is_some_and(|all| all.workers.text == "auto");
    if auto {
        Seen::warning(format!("{evidence}, and worker_processes is auto"))
    } else {
        Seen::note(evidence)
    }
}
