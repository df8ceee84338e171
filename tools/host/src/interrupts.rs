//! Interrupts: who has them, where they may go and where they went.

use serde::{Deserialize, Serialize};

use crate::host::{Host, list};

/// A device's interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupt {
    pub number: u32,
    /// The driver's name for it, such as `eth0-rx-0`.
    pub name: String,
    /// The CPUs that it may go to.
    pub allowed: Vec<usize>,
    /// The CPUs that the kernel has chosen of these.
    pub effective: Vec<usize>,
    /// How often each CPU has taken it, in the order of `/proc/interrupts`.
    pub counts: Vec<u64>,
}

impl Host {
    /// The devices' interrupts.
    pub fn interrupts(&self) -> Vec<Interrupt> {
        let text = self.text("proc/interrupts");
        let mut lines = text.lines();
        let cpus = lines.next().unwrap_or_default().split_whitespace().count();
        lines
            .filter_map(|line| self.interrupt(line, cpus))
            .collect()
    }

    /// A row ` 41:  4052  0  PCI-MSIX-0000:00:04.0  1-edge  virtio3-rx`.
    fn interrupt(&self, line: &str, cpus: usize) -> Option<Interrupt> {
        let (number, rest) = line.trim().split_once(':')?;
        let number: u32 = number.parse().ok()?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let counts = words.iter().take(cpus);
        let counts: Vec<u64> = counts.filter_map(|word| word.parse().ok()).collect();
        let affinity = |file: &str| list(&self.text(format!("proc/irq/{number}/{file}")));
        Some(Interrupt {
            number,
            name: words.last().unwrap_or(&"").to_string(),
            allowed: affinity("smp_affinity_list"),
            effective: affinity("effective_affinity_list"),
            counts,
        })
    }
}
