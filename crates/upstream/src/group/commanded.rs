//! What commands have changed in a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::peer::{Mode, Peer};

/// What commands have changed in a group: its servers, by the names of their addresses.
#[derive(Clone, Default)]
pub struct Commanded {
    /// Whether the configured servers do not count.
    pub replaces: bool,
    /// The servers that were added.
    pub added: Vec<Arc<Peer>>,
    /// The configured ones that were removed, also those that a name lookup finds again: by the
    /// names of addresses, or of servers as they are written.
    pub removed: HashSet<String>,
    /// The modes that hold instead of the configured ones.
    pub modes: HashMap<String, Mode>,
    /// The weights that hold instead of the configured ones.
    pub weights: HashMap<String, u32>,
}

impl Commanded {
    /// Puts the commanded mode and weight in force, or else the configured ones.
    pub(super) fn apply_to(&self, peer: &Peer) {
        peer.command_mode(self.modes.get(peer.name()).copied());
        peer.command_weight(self.weights.get(peer.name()).copied().unwrap_or(0));
    }
}

/// The servers of a group, by where they come from.
#[derive(Default)]
pub(super) struct Sources {
    /// The configured peers, by their line.
    pub(super) lines: Vec<Vec<Arc<Peer>>>,
    pub(super) commanded: Commanded,
}

impl Sources {
    /// The peers that take requests.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        let Commanded {
            replaces,
            added,
            removed,
            ..
        } = &self.commanded;
        let configured = self.lines.iter().flatten().filter(move |_| !replaces);
        let is_removed =
            |peer: &Peer| removed.contains(peer.name()) || removed.contains(peer.server());
        let configured = configured.filter(move |peer| !is_removed(peer));
        configured.chain(added)
    }
}
