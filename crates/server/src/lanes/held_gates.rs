//! The listening sockets of a service by their own numbers: those of the configuration in force,
//! and those that it has no more and that something still uses. These are flows of UDP and
//! connections of QUIC, which send by the socket of their address, and lanes that have not taken
//! the configuration up. The master must know of them, since nobody else can have the address.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use turnpike_lane::steering;

use crate::channel::ListeningSocket;

/// Sockets, each with its listen and its lane.
pub(super) type ListeningSockets = Vec<(usize, Option<usize>, Arc<OwnedFd>)>;

/// How the sockets of a listen are steered.
pub(super) type SteeringLevels = BTreeMap<usize, steering::Level>;

/// The listening sockets of a service.
#[derive(Default)]
pub(super) struct HeldGates {
    in_force: HashMap<u64, Arc<OwnedFd>>,
    closing: Vec<(u64, Weak<OwnedFd>)>,
}

impl HeldGates {
    /// Takes the sockets of a configuration, those that are held already under their old handles,
    /// and how those of each listen are steered. The others close when nothing uses them.
    pub(super) fn replace(
        &mut self,
        listening_sockets: Vec<ListeningSocket>,
    ) -> (ListeningSockets, SteeringLevels) {
        let mut before = std::mem::take(&mut self.in_force);
        let mut levels = BTreeMap::new();
        let mut taken = Vec::with_capacity(listening_sockets.len());
        for listening in listening_sockets {
            let number = listening.gate;
            let held = before.remove(&number).or_else(|| self.take_back(number));
            let socket = held.unwrap_or_else(|| Arc::new(listening.descriptor));
            self.in_force.insert(number, socket.clone());
            taken.push((listening.listen, listening.lane, socket));
            levels.extend(listening.steering.map(|level| (listening.listen, level)));
        }
        let gone = before.into_iter();
        self.closing
            .extend(gone.map(|(number, socket)| (number, Arc::downgrade(&socket))));
        (taken, levels)
    }

    /// A socket that something still uses. Where nothing does, it is not remembered either.
    fn take_back(&mut self, number: u64) -> Option<Arc<OwnedFd>> {
        let place = self.closing.iter().position(|(own, _)| *own == number)?;
        self.closing.swap_remove(place).1.upgrade()
    }

    /// The numbers of the sockets that nothing uses any more, each once.
    pub(super) fn take_closed(&mut self) -> Vec<u64> {
        let is_closed = |(_, socket): &mut (u64, Weak<OwnedFd>)| socket.strong_count() == 0;
        let closed = self.closing.extract_if(.., is_closed);
        closed.map(|(number, _)| number).collect()
    }

    /// Whether something uses sockets that the configuration has no more.
    pub(super) fn are_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// The number of a socket of the configuration.
    pub(super) fn number_of(&self, socket: &Arc<OwnedFd>) -> Option<u64> {
        let mut gates = self.in_force.iter();
        let found = gates.find(|(_, gate)| Arc::ptr_eq(gate, socket));
        found.map(|(number, _)| *number)
    }

    /// Lets go of all of them.
    pub(super) fn clear(&mut self) {
        self.in_force.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::sync::Arc;

    use super::HeldGates;
    use crate::channel::ListeningSocket;

    /// Has the gates take sockets of these numbers.
    fn replace(gates: &mut HeldGates, numbers: &[u64]) -> super::ListeningSockets {
        let listening = numbers.iter().map(|number| ListeningSocket {
            listen: 0,
            gate: *number,
            lane: None,
            steering: None,
            descriptor: File::open("/dev/null").unwrap().into(),
        });
        gates.replace(listening.collect()).0
    }

    #[test]
    fn a_socket_that_is_used_is_taken_back_and_one_that_is_not_is_told_of() {
        let mut gates = HeldGates::default();
        let first = replace(&mut gates, &[1, 2]);
        let used = Arc::clone(&first[0].2);
        drop(first);
        drop(replace(&mut gates, &[3]));
        assert_eq!(gates.take_closed(), [2]);
        assert!(gates.are_closing());
        let again = replace(&mut gates, &[3, 1]);
        assert!(Arc::ptr_eq(&again[1].2, &used));
        assert!(!gates.are_closing());
        assert_eq!(gates.number_of(&used), Some(1));
        drop((again, replace(&mut gates, &[3])));
        assert_eq!(gates.take_closed(), [0_u64; 0]);
        drop(used);
        assert_eq!(gates.take_closed(), [1]);
        assert!(!gates.are_closing());
    }
}
