//! Values by network: the longest prefix that fits wins.

use std::net::IpAddr;

use turnpike_plan::keys::PlanMap;

use crate::common::address::{Network, masked};

/// A table of networks. A look-up asks once for each prefix length that occurs.
#[derive(Default)]
pub(super) struct Networks {
    /// From the longest prefix to the shortest.
    levels_v4: Vec<Level>,
    levels_v6: Vec<Level>,
}

struct Level {
    bits: u32,
    values: PlanMap<IpAddr, usize>,
}

impl Networks {
    /// Adds a network. Returns the value it had before, which is replaced.
    pub(super) fn insert(&mut self, network: Network, value: usize) -> Option<usize> {
        let levels = self.levels(network.first);
        let at = levels.partition_point(|level| level.bits > network.bits);
        if levels
            .get(at)
            .is_none_or(|level| level.bits != network.bits)
        {
            let values = PlanMap::default();
            let bits = network.bits;
            levels.insert(at, Level { bits, values });
        }
        levels[at].values.insert(network.first, value)
    }

    /// Removes a network. Returns whether it was there.
    pub(super) fn remove(&mut self, network: Network) -> bool {
        let levels = self.levels(network.first);
        let level = levels.iter_mut().find(|level| level.bits == network.bits);
        level.is_some_and(|level| level.values.remove(&network.first).is_some())
    }

    pub(super) fn find(&self, address: IpAddr) -> Option<usize> {
        let levels = match address {
            IpAddr::V4(_) => &self.levels_v4,
            IpAddr::V6(_) => &self.levels_v6,
        };
        levels
            .iter()
            .find_map(|level| level.values.get(&masked(address, level.bits)))
            .copied()
    }

    fn levels(&mut self, address: IpAddr) -> &mut Vec<Level> {
        match address {
            IpAddr::V4(_) => &mut self.levels_v4,
            IpAddr::V6(_) => &mut self.levels_v6,
        }
    }
}
