//! The peers of a choice.

use std::sync::Arc;

use super::consistent::Ring;
use super::method::Balancer;
use crate::peer::{Mode, Peer};

/// The current peers of a group.
#[derive(Default)]
pub(crate) struct Members {
    /// The primary peers.
    pub(crate) primary: Vec<Arc<Peer>>,
    /// The backups, which are used if no primary can be.
    pub(crate) backup: Vec<Arc<Peer>>,
    /// The ring of consistent hashing.
    ring: Option<Ring>,
}

impl Members {
    /// All peers of a group, for its method.
    pub(crate) fn new(all: impl Iterator<Item = Arc<Peer>>, balancer: Balancer) -> Members {
        let (backup, primary): (Vec<_>, Vec<_>) = all.partition(|peer| peer.settings().backup);
        let ring = match balancer {
            Balancer::ConsistentHash => Some(Ring::new(&primary)),
            _ => None,
        };
        Members {
            primary,
            backup,
            ring,
        }
    }

    /// Whether there is only one peer: its failures are then ignored.
    pub(crate) fn is_single(&self) -> bool {
        self.primary.len() == 1 && self.backup.is_empty()
    }

    pub(crate) fn ring(&self) -> Option<&Ring> {
        self.ring.as_ref()
    }

    /// The most tries of a request.
    pub(crate) fn tries_max(&self) -> u32 {
        let all = self.primary.iter().chain(&self.backup);
        let up = all.filter(|peer| peer.mode() != Mode::Down).count();
        u32::try_from(up).unwrap_or(u32::MAX)
    }
}
