//! The times of each CPU.

use std::collections::BTreeMap;

use turnpike_host::CpuTimes;

use crate::metric::Figure;

/// A CPU's times as shares of all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CoreTimes {
    /// The CPU's number.
    pub(crate) cpu: usize,
    /// Everything except idle and steal; includes softirq.
    pub(crate) busy: f64,
    pub(crate) idle: f64,
    pub(crate) softirq: f64,
    /// The time that the hypervisor gave to others while this CPU was ready.
    pub(crate) steal: f64,
}

/// The times of each CPU between two states.
pub(super) fn shares(before: &[CpuTimes], after: &[CpuTimes]) -> Vec<CoreTimes> {
    let pairs = before.iter().zip(after).filter(|(a, b)| a.cpu == b.cpu);
    pairs
        .map(|(a, b)| {
            let took = |field: fn(&CpuTimes) -> u64| field(b).saturating_sub(field(a)) as f64;
            let (busy, idle) = (took(|times| times.busy_us), took(|times| times.idle_us));
            let (softirq, steal) = (took(|times| times.softirq_us), took(|times| times.steal_us));
            let all = busy + idle + steal;
            let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
            CoreTimes {
                cpu: a.cpu,
                busy: share(busy),
                idle: share(idle),
                softirq: share(softirq),
                steal: share(steal),
            }
        })
        .collect()
}

/// The means over all CPUs.
pub(super) fn figures(cores: &[CoreTimes]) -> BTreeMap<String, Figure> {
    type Field = fn(&CoreTimes) -> f64;
    let fields: [(&str, Field); 4] = [
        ("busy_share", |core| core.busy),
        ("idle_share", |core| core.idle),
        ("softirq_share", |core| core.softirq),
        ("steal_share", |core| core.steal),
    ];
    let mean = |field: Field| match cores.len() {
        0 => Figure::Missing("/proc/stat cannot be read".to_owned()),
        count => Figure::Value(cores.iter().map(field).sum::<f64>() / count as f64),
    };
    fields
        .into_iter()
        .map(|(name, field)| (name.to_owned(), mean(field)))
        .collect()
}
