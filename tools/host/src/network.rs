//! Network interfaces: what they are, never their addresses.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    pub name: String,
    /// The driver's name; `None` for one that no device stands behind.
    pub driver: Option<String>,
    pub receive_queues: usize,
    pub transmit_queues: usize,
    /// The CPUs that software spreads each receive queue over (RPS), as the kernel's masks.
    pub receive_masks: Vec<String>,
    /// The CPUs that each transmit queue serves (XPS), as the kernel's masks.
    pub transmit_masks: Vec<String>,
    /// The interrupts of its device, by number; configuration interrupts are among them.
    pub interrupts: Vec<u32>,
    /// Largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Speed in Mbit/s, where there is one.
    pub speed: Option<u32>,
    /// The memory node that its device is near to, where that is known.
    pub node: Option<usize>,
}

impl Host {
    /// The network interfaces, by name.
    pub fn interfaces(&self) -> Vec<Interface> {
        let names = self.names("sys/class/net").into_iter();
        names.map(|name| self.interface(name)).collect()
    }

    fn interface(&self, name: String) -> Interface {
        let folder = format!("sys/class/net/{name}");
        let driver = std::fs::read_link(self.path(format!("{folder}/device/driver")));
        let driver = driver.ok().and_then(|link| {
            let name = link.file_name()?;
            Some(name.to_string_lossy().into_owned())
        });
        let queues = self.names(format!("{folder}/queues"));
        let count = |kind: &str| queues.iter().filter(|name| name.starts_with(kind)).count();
        let masks = |kind: &str, file: &str| {
            let names = (0..count(kind)).map(|queue| format!("{kind}{queue}/{file}"));
            names
                .map(|name| self.line(format!("{folder}/queues/{name}")))
                .collect()
        };
        Interface {
            driver,
            receive_queues: count("rx-"),
            transmit_queues: count("tx-"),
            receive_masks: masks("rx-", "rps_cpus"),
            transmit_masks: masks("tx-", "xps_cpus"),
            interrupts: self.device_interrupts(&folder),
            mtu: self.number(format!("{folder}/mtu")),
            // -1 where it is not known.
            speed: self.number(format!("{folder}/speed")),
            node: self.number(format!("{folder}/device/numa_node")),
            name,
        }
    }
    /// The message interrupts of an interface's device. A virtio device is a child of the PCI
    /// device that has them.
    fn device_interrupts(&self, folder: &str) -> Vec<u32> {
        let folders = ["device/msi_irqs", "device/../msi_irqs"];
        let names = folders.map(|below| self.names(format!("{folder}/{below}")));
        let numbers = names.iter().flatten().filter_map(|name| name.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }
}
