//! How each CPU spent its time, from /proc/stat.

use std::collections::BTreeMap;

use crate::metric::Figure;

/// A CPU's times in ticks, or their shares of all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CoreTimes {
    /// The CPU's number.
    pub(crate) cpu: usize,
    /// Everything but idle and steal; softirq is in it.
    pub(crate) busy: f64,
    pub(crate) idle: f64,
    pub(crate) softirq: f64,
    /// What the hypervisor gave to others while we wanted it.
    pub(crate) steal: f64,
}

pub(super) fn read() -> Vec<CoreTimes> {
    parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The rows `cpuN user nice system idle iowait irq softirq steal ...`.
pub(super) fn parse(text: &str) -> Vec<CoreTimes> {
    text.lines()
        .filter_map(|line| {
            // "cpu" alone is the sum: a number has to follow at once.
            let mut fields = line.strip_prefix("cpu")?.split(' ');
            let cpu = fields.next()?.parse().ok()?;
            let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
                return None;
            };
            Some(CoreTimes {
                cpu,
                busy: user + nice + system + irq + softirq,
                idle: idle + iowait,
                softirq,
                steal,
            })
        })
        .collect()
}

pub(super) fn shares(before: &[CoreTimes], after: &[CoreTimes]) -> Vec<CoreTimes> {
    let pairs = before.iter().zip(after).filter(|(a, b)| a.cpu == b.cpu);
    pairs
        .map(|(a, b)| {
            let all = (b.busy - a.busy) + (b.idle - a.idle) + (b.steal - a.steal);
            let share = |from: f64, to: f64| if all > 0.0 { (to - from) / all } else { 0.0 };
            CoreTimes {
                cpu: a.cpu,
                busy: share(a.busy, b.busy),
                idle: share(a.idle, b.idle),
                softirq: share(a.softirq, b.softirq),
                steal: share(a.steal, b.steal),
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
