//! Who is next: one file a method.

mod round_robin;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::group::{Members, Mode, Peer, Selection, Tried};

/// A method of choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Weighted round robin, smooth.
    #[default]
    RoundRobin,
}

/// Where the choosing of one request is.
pub(crate) struct Choice {
    balancer: Balancer,
    tried: Tried,
    /// Whether the backups are asked by now.
    backup: bool,
    sticky: Option<Box<[u8]>>,
}

impl Choice {
    pub(crate) fn new(balancer: &Balancer, selection: &Selection<'_>) -> Choice {
        Choice {
            balancer: *balancer,
            tried: Tried::new(),
            backup: false,
            sticky: selection.sticky.map(Box::from),
        }
    }

    /// Lets a peer be chosen again.
    pub(crate) fn forget(&mut self, id: u64) {
        self.tried.retain(|tried| *tried != id);
    }

    fn was_tried(&self, peer: &Peer) -> bool {
        self.tried.contains(&peer.state().id())
    }
}

/// The next peer of a request: from those asked first, then from the backups.
pub(crate) fn choose(members: &Members, choice: &mut Choice, now_ms: u64) -> Option<Arc<Peer>> {
    if members.is_single() {
        let peer = &members.primary[0];
        let usable = peer.mode() == Mode::Up || bound(choice, peer);
        let usable = usable && peer.has_room() && peer.state().is_healthy();
        return usable.then(|| Arc::clone(peer));
    }
    if !choice.backup {
        if let Some(peer) = among(&members.primary, choice, now_ms) {
            return Some(peer);
        }
        if members.backup.is_empty() {
            return None;
        }
        choice.backup = true;
        choice.tried.clear();
    }
    among(&members.backup, choice, now_ms)
}

fn among(peers: &[Arc<Peer>], choice: &mut Choice, now_ms: u64) -> Option<Arc<Peer>> {
    let peer = match choice.balancer {
        Balancer::RoundRobin => round_robin::next(peers, choice, now_ms),
    }?;
    choice.tried.push(peer.state().id());
    peer.was_chosen(now_ms);
    Some(Arc::clone(peer))
}

/// Whether the request is bound to this peer.
fn bound(choice: &Choice, peer: &Peer) -> bool {
    match &choice.sticky {
        Some(sticky) => peer.sticky_id().as_bytes() == &**sticky,
        None => false,
    }
}
