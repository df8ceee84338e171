//! Where the network's part of the kernel and where the workers run: interrupts and RPS on some
//! CPUs, workers on the others. Facts in, a plan out, pure. Which split is best only an experiment
//! says: study S3 tried all three.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use turnpike_host::{Cpu, Interface};

use crate::change::Change;
use crate::facts::Facts;
use crate::findings::{cards, queue_interrupts};
use crate::plan::{Plan, SCHEMA, Step};

/// The share of the cores that interrupts get where cores are split: study S3 ended with 4 of 12.
const CORE_SHARE: usize = 3;

/// How CPUs are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    /// Interrupts on one thread of each core, workers on the other
    Thread,
    /// Interrupts on a third of the cores, near to the card, workers on the other cores
    Core,
    /// Interrupts on the card's processor, workers on the other processors
    Socket,
}

impl Placement {
    pub(crate) const ALL: [Placement; 3] = [Placement::Thread, Placement::Core, Placement::Socket];

    fn name(self) -> &'static str {
        match self {
            Placement::Thread => "thread",
            Placement::Core => "core",
            Placement::Socket => "socket",
        }
    }
}

/// The CPUs of either part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) interrupts: Vec<usize>,
    pub(crate) workers: Vec<usize>,
}

/// The plan of a placement.
///
/// # Errors
/// Why it is not possible on this machine.
pub(crate) fn plan(facts: &Facts, placement: Placement) -> Result<Plan, String> {
    let main = cards(facts).max_by_key(|card| card.receive_queues);
    let main = main.ok_or("no network card is seen here")?;
    let split = split(facts, placement, main.node)?;
    let changes = cards(facts).flat_map(|card| of_card(facts, card, &split.interrupts));
    let name = format!("placement by {}", placement.name());
    let step = |change: Change| Step::new(vec![name.clone()], change);
    Ok(Plan {
        schema: SCHEMA.to_owned(),
        machine: facts.machine(),
        steps: changes.map(step).collect(),
        workers: split.workers,
    })
}

/// The CPUs that may be used, by cores.
fn cores(facts: &Facts) -> Vec<Vec<&Cpu>> {
    let allowed = facts.cgroup.cpus.as_ref();
    let cpus = facts.processor.cpus.iter();
    let usable = cpus.filter(|cpu| allowed.is_none_or(|set| set.contains(&cpu.number)));
    let mut cores: BTreeMap<usize, Vec<&Cpu>> = BTreeMap::new();
    for cpu in usable {
        let first = cpu.threads.iter().min().copied().unwrap_or(cpu.number);
        cores.entry(first).or_default().push(cpu);
    }
    cores.into_values().collect()
}

/// The CPUs of either part on a machine whose card is near to this memory node.
///
/// # Errors
/// Why the split is not possible on this machine.
pub(crate) fn split(
    facts: &Facts,
    placement: Placement,
    node: Option<usize>,
) -> Result<Split, String> {
    let cores = cores(facts);
    let is_near = |cpu: &Cpu| node.is_none_or(|node| node == cpu.node);
    let mut split = Split::default();
    match placement {
        Placement::Thread => {
            if cores.iter().all(|core| core.len() < 2) {
                return Err("each core has one thread".to_owned());
            }
            for core in cores {
                let (first, others) = core.split_at(1.min(core.len()));
                split.interrupts.extend(first.iter().map(|cpu| cpu.number));
                split.workers.extend(others.iter().map(|cpu| cpu.number));
            }
        }
        Placement::Core => {
            if cores.len() < 2 {
                return Err("there is one core only".to_owned());
            }
            let count = (cores.len() / CORE_SHARE).max(1);
            let (near, far): (Vec<_>, Vec<_>) = cores
                .into_iter()
                .partition(|core| core.iter().all(|cpu| is_near(cpu)));
            for (index, core) in near.into_iter().chain(far).enumerate() {
                let numbers = core.into_iter().map(|cpu| cpu.number);
                if index < count {
                    split.interrupts.extend(numbers);
                } else {
                    split.workers.extend(numbers);
                }
            }
        }
        Placement::Socket => {
            let cpus: Vec<&Cpu> = cores.into_iter().flatten().collect();
            let packages: BTreeSet<usize> = cpus.iter().map(|cpu| cpu.package).collect();
            if packages.len() < 2 {
                return Err("there is one processor only".to_owned());
            }
            let near = cpus.iter().find(|cpu| is_near(cpu)).or(cpus.first());
            let package = near.map(|cpu| cpu.package);
            for cpu in cpus {
                if Some(cpu.package) == package {
                    split.interrupts.push(cpu.number);
                } else {
                    split.workers.push(cpu.number);
                }
            }
        }
    }
    split.interrupts.sort_unstable();
    split.workers.sort_unstable();
    Ok(split)
}

/// A card's interrupts, one CPU for each by turns, and RPS where that leaves a CPU without one.
fn of_card(facts: &Facts, card: &Interface, cpus: &[usize]) -> Vec<Change> {
    let interrupts = queue_interrupts(facts, card);
    let each = interrupts.iter().zip(cpus.iter().cycle());
    let mut changes: Vec<Change> = each
        .map(|(one, cpu)| Change::Interrupt {
            number: one.number,
            name: one.name.clone(),
            cpus: cpu.to_string(),
        })
        .collect();
    // Each CPU has a queue: handing on would only cost. Also where RPS names the workers' CPUs.
    let spread: &[usize] = if interrupts.len() < cpus.len() || interrupts.is_empty() {
        cpus
    } else {
        &[]
    };
    changes.extend((0..card.receive_queues).map(|queue| Change::ReceiveMask {
        interface: card.name.clone(),
        queue,
        mask: mask(spread),
    }));
    changes
}

/// A mask as the kernel writes it: groups of eight digits, the highest CPUs first.
pub(crate) fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let bits = |group: usize| {
        let of_group = cpus.iter().filter(|cpu| **cpu / 32 == group);
        of_group.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    let texts = (0..groups).rev().map(|group| {
        if group + 1 == groups {
            format!("{:x}", bits(group))
        } else {
            format!("{:08x}", bits(group))
        }
    });
    texts.collect::<Vec<String>>().join(",")
}

/// The lines of a server's configuration that put a worker on each of these CPUs.
pub(crate) fn lines(workers: &[usize]) -> String {
    let width = workers.iter().max().map_or(1, |highest| highest + 1);
    let masks = workers.iter().map(|worker| {
        let digits = (0..width)
            .rev()
            .map(|cpu| if cpu == *worker { '1' } else { '0' });
        digits.collect::<String>()
    });
    format!(
        "worker_processes {};\nworker_cpu_affinity {};\n",
        workers.len(),
        masks.collect::<Vec<String>>().join(" ")
    )
}

#[cfg(test)]
mod tests;
