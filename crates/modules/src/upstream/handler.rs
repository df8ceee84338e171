//! What a request is given: peers of a group, and the lane's connections to them.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LanePlan, LaneSlot, LaneState};
use turnpike_upstream::{Address, Group, GroupSettings, GroupStates, Peer, PeerSettings};
use turnpike_upstream::{PeerState, Pool, Selection, Tries};

/// A lane's idle connections to a group.
pub(super) struct LanePool(pub(super) Pool);

impl LaneState for LanePool {
    fn tick(&self, now_ms: u64) {
        self.0.tick(now_ms);
    }
}

/// A group as a plan has it.
pub struct Upstream {
    group: Arc<Group>,
    pool: LaneSlot<LanePool>,
}

impl Upstream {
    pub(super) fn new(group: Arc<Group>, pool: LaneSlot<LanePool>) -> Upstream {
        Upstream { group, pool }
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Begins the tries of a request.
    pub fn begin(&self, exchange: &Exchange) -> Tries {
        let client = exchange.client.peer.inet();
        self.group.begin(&Selection {
            key: b"",
            client: client.map(|address| address.ip()),
            sticky: None,
            random: exchange.lane.random(),
        })
    }

    /// The lane's idle connections to the group.
    pub fn pool<'a>(&self, plan: &'a LanePlan) -> &'a Pool {
        &plan.state(&self.pool).0
    }
}

/// Groups for addresses that are made of variables.
pub struct Directory {
    named: HashMap<String, Arc<Upstream>>,
    pool: LaneSlot<LanePool>,
}

impl Directory {
    pub(super) fn new(
        named: HashMap<String, Arc<Upstream>>,
        pool: LaneSlot<LanePool>,
    ) -> Directory {
        Directory { named, pool }
    }

    /// The `upstream` block of that name.
    pub fn named(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.named.get(name)
    }

    /// A group of these addresses, for one request: nothing is remembered of its peers.
    pub fn passing(&self, name: &str, addresses: Vec<Address>) -> Upstream {
        let settings = PeerSettings::default();
        let peer = |address: Address| {
            let state = PeerState::new(settings.weight);
            Arc::new(Peer::new(name, address, settings.clone(), state))
        };
        let peers = addresses.into_iter().map(peer).collect();
        let states = Arc::new(GroupStates::default());
        let group = Group::new(name, GroupSettings::default(), peers, states);
        Upstream::new(group, self.pool)
    }
}
