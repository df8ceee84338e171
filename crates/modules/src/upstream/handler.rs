//! What a request is given: peers of a group, and the lane's connections to them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LanePlan, LaneSlot, LaneState};
use turnpike_http::variables::Template;
use turnpike_lane::counters::Answer;
use turnpike_stream::session::Session;
use turnpike_upstream::{Address, Group, GroupSettings, GroupStates, Peer, PeerSettings};
use turnpike_upstream::{PeerState, Picked, Pool, Selection, Tries};

use super::sticky::Sticky;
use super::url::Url;

/// A lane's idle connections to a group.
pub(super) struct LanePool(pub(super) Pool);

impl LaneState for LanePool {
    fn tick(&self, now_ms: u64) {
        self.0.tick(now_ms);
    }
}

/// A group as a plan has it.
pub(crate) struct Upstream {
    group: Arc<Group>,
    pool: LaneSlot<LanePool>,
    /// The key of `hash`.
    key: Option<Template>,
    sticky: Option<Sticky>,
    /// Whether it is an `upstream` block, and not an address alone.
    is_named: bool,
}

impl Upstream {
    pub(super) fn new(group: Arc<Group>, pool: LaneSlot<LanePool>) -> Upstream {
        Upstream {
            group,
            pool,
            key: None,
            sticky: None,
            is_named: false,
        }
    }

    /// The same as an `upstream` block, choosing by these.
    pub(super) fn choosing(mut self, key: Option<Template>, sticky: Option<Sticky>) -> Upstream {
        self.key = key;
        self.sticky = sticky;
        self.is_named = true;
        self
    }

    /// Whether connections of HTTP/2 are kept for further requests: as in nginx, those of
    /// `upstream` blocks are.
    pub(crate) fn keeps_http2(&self) -> bool {
        self.is_named
    }

    /// The group.
    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Begins the tries of a request.
    pub(crate) fn begin(&self, exchange: &Exchange) -> Tries {
        let client = exchange.requester.peer().inet();
        let key = self.key.as_ref().map(|key| key.value(exchange));
        let sticky = self
            .sticky
            .as_ref()
            .and_then(|sticky| sticky.server(exchange));
        self.group.begin(&Selection {
            key: key.as_deref().unwrap_or_default(),
            client: client.map(|address| address.ip()),
            sticky: sticky.as_deref(),
            random: exchange.lane.random(),
        })
    }

    /// Begins the tries of a session; `bound` is the identity of the server that it is bound to.
    pub(crate) fn begin_session(&self, session: &Session, bound: Option<&[u8]>) -> Tries {
        let client = session.peer.inet();
        let key = self.key.as_ref().map(|key| key.value(session));
        self.group.begin(&Selection {
            key: key.as_deref().unwrap_or_default(),
            client: client.map(|address| address.ip()),
            sticky: bound,
            random: session.lane.random(),
        })
    }

    /// To be called when the head of a response is in the exchange and will go to the client: it
    /// gets the cookie that binds the client to the peer.
    pub(crate) fn answered(&self, exchange: &mut Exchange, picked: &mut Picked) {
        picked.header_received(exchange.lane.clock.now_ms());
        if let Some(sticky) = &self.sticky {
            sticky.answered(exchange, picked.peer());
        }
    }

    /// To be called in place of [`Picked::succeeded`] when a response was read to its end.
    pub(crate) fn ended(
        &self,
        exchange: &Exchange,
        picked: Picked,
        header_ms: u64,
        response_ms: u64,
    ) {
        if let Some(sticky) = &self.sticky {
            sticky.ended(exchange, picked.peer());
        }
        if let Some(one) = exchange.upstream.tries().last() {
            picked.count_answer(Answer {
                status: one.status,
                request_bytes: one.bytes_sent,
                response_bytes: one.bytes_received,
                took_ms: response_ms,
            });
        }
        picked.succeeded(exchange.lane.clock.now_ms(), header_ms, response_ms);
    }

    /// The lane's idle connections to the group.
    pub(crate) fn pool<'a>(&self, plan: &'a LanePlan) -> &'a Pool {
        &plan.state(&self.pool).0
    }
}

/// Groups for addresses that are made of variables.
pub(crate) struct Directory {
    named: HashMap<String, Arc<Upstream>>,
    implicit: Implicit,
    pool: LaneSlot<LanePool>,
}

/// Groups of addresses that the configuration has without variables, by host and port. They are
/// added while the plan is built, and only read afterwards.
#[derive(Clone, Default)]
pub(super) struct Implicit(Arc<RwLock<HashMap<String, Arc<Upstream>>>>);

impl Implicit {
    pub(super) fn find(&self, name: &str) -> Option<Arc<Upstream>> {
        let groups = self.0.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(name).cloned()
    }

    pub(super) fn add(&self, name: String, upstream: &Arc<Upstream>) {
        let mut groups = self.0.write().unwrap_or_else(PoisonError::into_inner);
        groups.insert(name, Arc::clone(upstream));
    }
}

/// The name of a group as it is looked up: without regard to case, as in nginx.
pub(super) fn group_key(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

impl Directory {
    pub(super) fn new(
        named: HashMap<String, Arc<Upstream>>,
        implicit: Implicit,
        pool: LaneSlot<LanePool>,
    ) -> Directory {
        Directory {
            named,
            implicit,
            pool,
        }
    }

    /// The group that the configuration has for an address: an `upstream` block of that name, or
    /// what is written elsewhere without variables.
    pub(crate) fn find(&self, url: &Url, default_port: u16) -> Option<Arc<Upstream>> {
        match (self.named.get(&*group_key(&url.host)), url.port) {
            (Some(named), None) => Some(Arc::clone(named)),
            _ => self.implicit.find(&url.identity(default_port)),
        }
    }

    /// A group of these addresses, for one request: nothing is remembered of its peers.
    pub(crate) fn passing(&self, name: &str, addresses: Vec<Address>) -> Upstream {
        let settings = PeerSettings::default();
        let peer = |address: Address| {
            let state = PeerState::new(settings.weight);
            Arc::new(Peer::new(name, address, settings.clone(), state))
        };
        let peers = addresses.into_iter().map(peer).collect();
        let states = Arc::new(GroupStates::default());
        let group = Group::new(name, GroupSettings::default(), vec![peers], states);
        Upstream::new(group, self.pool)
    }
}
