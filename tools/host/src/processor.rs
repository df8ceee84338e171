//! Processors: their model, how CPUs share cores, packages, memory nodes and caches.

use serde::{Deserialize, Serialize};

use crate::host::{Host, list};

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// The model, for people.
    pub model: String,
    /// Whether they are those of a virtual machine.
    pub is_guest: bool,
    /// The CPUs that are online, by number.
    pub cpus: Vec<Cpu>,
    /// The caches of the first CPU, those next to it first.
    pub caches: Vec<Cache>,
    /// What chooses the frequency of the first CPU, where something does.
    pub frequency_governor: Option<String>,
}

/// A CPU: a hardware thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    pub number: usize,
    /// The package that it is in.
    pub package: usize,
    /// The memory node that it is near to.
    pub node: usize,
    /// The CPUs of its core, itself among them.
    pub threads: Vec<usize>,
}

/// A cache of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    pub level: u32,
    /// What it holds: `data`, `instruction` or `unified`.
    pub kind: String,
    /// The size as the kernel writes it, such as `32K`.
    pub size: String,
    /// The CPUs that share it.
    pub cpus: Vec<usize>,
}

const FOLDER: &str = "sys/devices/system/cpu";

impl Host {
    /// The processors.
    pub fn processor(&self) -> Processor {
        let info = self.text("proc/cpuinfo");
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let model = field("model name").or_else(|| field("CPU part"));
        let flags = field("flags").unwrap_or_default();
        let governor = self.line(format!("{FOLDER}/cpu0/cpufreq/scaling_governor"));
        Processor {
            model: model.unwrap_or_else(|| "unknown processor".to_owned()),
            is_guest: flags.split(' ').any(|flag| flag == "hypervisor"),
            cpus: self.cpus(),
            caches: self.caches(),
            frequency_governor: (!governor.is_empty()).then_some(governor),
        }
    }

    fn cpus(&self) -> Vec<Cpu> {
        let nodes = self.nodes();
        let online = list(&self.text(format!("{FOLDER}/online")));
        let cpu = |number: usize| {
            let topology = format!("{FOLDER}/cpu{number}/topology");
            let near = nodes.iter().find(|(_, cpus)| cpus.contains(&number));
            Cpu {
                number,
                package: self
                    .number(format!("{topology}/physical_package_id"))
                    .unwrap_or(0),
                node: near.map_or(0, |(node, _)| *node),
                threads: list(&self.text(format!("{topology}/thread_siblings_list"))),
            }
        };
        online.into_iter().map(cpu).collect()
    }

    /// Memory nodes with their CPUs.
    fn nodes(&self) -> Vec<(usize, Vec<usize>)> {
        let folder = "sys/devices/system/node";
        let online = list(&self.text(format!("{folder}/online")));
        let nodes = online.into_iter().map(|node| {
            let cpus = self.text(format!("{folder}/node{node}/cpulist"));
            (node, list(&cpus))
        });
        nodes.collect()
    }

    fn caches(&self) -> Vec<Cache> {
        let folder = format!("{FOLDER}/cpu0/cache");
        let names = self.names(&folder);
        let caches = names.iter().filter_map(|name| {
            let file = |file: &str| format!("{folder}/{name}/{file}");
            Some(Cache {
                level: self.number(file("level"))?,
                kind: self.line(file("type")).to_lowercase(),
                size: self.line(file("size")),
                cpus: list(&self.text(file("shared_cpu_list"))),
            })
        });
        caches.collect()
    }
}

impl Processor {
    /// CPUs of a core: more than one where cores have several threads.
    pub fn threads_per_core(&self) -> usize {
        let threads = self.cpus.iter().map(|cpu| cpu.threads.len());
        threads.max().unwrap_or(1).max(1)
    }

    /// How many packages there are.
    pub fn packages(&self) -> usize {
        count(self.cpus.iter().map(|cpu| cpu.package))
    }

    /// How many memory nodes have CPUs.
    pub fn nodes(&self) -> usize {
        count(self.cpus.iter().map(|cpu| cpu.node))
    }
}

fn count(numbers: impl Iterator<Item = usize>) -> usize {
    numbers.collect::<std::collections::BTreeSet<_>>().len()
}
