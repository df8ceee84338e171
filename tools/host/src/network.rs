//! Network interfaces: what they are, never their addresses.

use crate::host::Host;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// The driver's name; `None` for one that no device stands behind.
    pub driver: Option<String>,
    pub receive_queues: usize,
    pub transmit_queues: usize,
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
        Interface {
            driver,
            receive_queues: count("rx-"),
            transmit_queues: count("tx-"),
            mtu: self.number(format!("{folder}/mtu")),
            // -1 where it is not known.
            speed: self.number(format!("{folder}/speed")),
            node: self.number(format!("{folder}/device/numa_node")),
            name,
        }
    }
}
