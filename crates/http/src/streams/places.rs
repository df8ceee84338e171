//! The places of a lane for HTTP/2 requests that wait, and which of them give way when these run
//! out.
//!
//! `worker_connections` limits connections, and so the first waiting request of each. Those beside
//! it need places of their own: else a few clients with many streams would keep all others out.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use slab::Slab;

use super::shared::Shared;
use crate::account::UpstreamPlace;
use crate::traffic::Pace;

/// Places for each of `worker_connections`. Browsers seldom have more requests waiting at a time,
/// and most connections have none; a few clients may have as many as their connections allow. A
/// waiting request takes some kilobytes.
const PLACES_FOR_EACH_CONNECTION: usize = 16;

/// Requests that give way at a time. One at a time would repeat the search for every request of a
/// burst.
const GIVING_WAY_MAX: usize = 32;

/// Milliseconds before another search, after one that has found nothing: it looks at every request.
const VAIN_SEARCH_PAUSE_MS: u64 = 100;

/// The most requests that wait beside others of their connections, on a lane with that many
/// `worker_connections`.
pub(crate) fn places_max(connections_max: usize) -> usize {
    connections_max.saturating_mul(PLACES_FOR_EACH_CONNECTION)
}

/// What a request needs that others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A place on the lane.
    Place,
    /// A place among those that upstream servers are asked for.
    Upstream,
}

/// The waiting requests of a lane's HTTP/2 connections.
#[derive(Default)]
pub(crate) struct StreamPlaces {
    connections: RefCell<Slab<Weak<Shared>>>,
    /// Requests beside the first of their connections.
    taken: Cell<usize>,
    /// Connections with a request.
    busy_connections: Cell<usize>,
    /// Requests that upstream servers are asked for.
    at_upstream: Rc<Cell<usize>>,
    /// When nothing was found for each need.
    in_vain_ms: [Cell<Option<u64>>; 2],
    /// What requests have lacked since the last report, of each need.
    lacks: [Cell<Lack>; 2],
}

/// What has become of requests for lack of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lack {
    /// Requests that were closed since their clients moved no byte.
    pub(crate) closed_stalled: u64,
    /// Requests that were closed since their clients moved few bytes.
    pub(crate) closed_slow: u64,
    /// Requests that were refused before they were looked at.
    pub(crate) refused: u64,
}

impl fmt::Display for Lack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            closed_stalled,
            closed_slow,
            refused,
        } = self;
        write!(
            formatter,
            "requests closed to make room: {closed_stalled} (stalled), {closed_slow} (slow); \
             refused: {refused}"
        )
    }
}

impl StreamPlaces {
    /// Takes a connection up; returns its number here.
    pub(super) fn add(&self, connection: Weak<Shared>) -> usize {
        self.connections.borrow_mut().insert(connection)
    }

    /// A connection has ended, with so many requests that were not answered.
    pub(super) fn remove(&self, number: usize, requests: usize) {
        self.connections.borrow_mut().try_remove(number);
        for after in 0..requests {
            self.ended(after);
        }
    }

    /// A connection has another request, beside so many.
    pub(super) fn began(&self, before: usize) {
        let count = match before {
            0 => &self.busy_connections,
            _ => &self.taken,
        };
        count.set(count.get() + 1);
    }

    /// A connection has one request less, and has so many now.
    pub(super) fn ended(&self, after: usize) {
        let count = match after {
            0 => &self.busy_connections,
            _ => &self.taken,
        };
        count.set(count.get().saturating_sub(1));
    }

    /// Connections with a request that waits.
    pub(crate) fn busy_connections(&self) -> usize {
        self.busy_connections.get()
    }

    /// Requests that upstream servers are asked for.
    pub(crate) fn at_upstream(&self) -> usize {
        self.at_upstream.get()
    }

    /// A request asks an upstream server; it does for as long as this is kept.
    pub(crate) fn upstream_place(&self) -> UpstreamPlace {
        UpstreamPlace::new(&self.at_upstream)
    }

    /// Whether a connection with so many requests may have another one. Requests of others that
    /// get nowhere give way to it.
    pub(super) fn has_place(&self, requests: usize, connections_max: usize, now_ms: u64) -> bool {
        let is_full = requests > 0 && self.taken.get() >= places_max(connections_max);
        if !is_full || self.make_room(Need::Place, now_ms) {
            return true;
        }
        self.note(Need::Place, |lack| lack.refused += 1);
        false
    }

    /// Closes requests whose clients do not move them: some of the connection that has most of
    /// them. A client that moves a byte now and then gives way only where no other does. Returns
    /// whether there are any.
    pub(crate) fn make_room(&self, need: Need, now_ms: u64) -> bool {
        let in_vain_ms = &self.in_vain_ms[need as usize];
        if in_vain_ms
            .get()
            .is_some_and(|vain_ms| now_ms < vain_ms + VAIN_SEARCH_PAUSE_MS)
        {
            return false;
        }
        let stalled = self.close(Pace::Stalled, need, now_ms);
        let slow = match stalled {
            0 => self.close(Pace::Slow, need, now_ms),
            _ => 0,
        };
        in_vain_ms.set((stalled + slow == 0).then_some(now_ms));
        self.note(need, |lack| {
            lack.closed_stalled += stalled;
            lack.closed_slow += slow;
        });
        stalled + slow > 0
    }

    fn close(&self, pace: Pace, need: Need, now_ms: u64) -> u64 {
        let most = {
            let connections = self.connections.borrow();
            let counted = connections.iter().filter_map(|(_, connection)| {
                let connection = connection.upgrade()?;
                let count = connection.giving_way(pace, need, now_ms);
                (count > 0).then_some((count, connection))
            });
            counted.max_by_key(|(count, _)| *count)
        };
        let Some((_, connection)) = most else {
            return 0;
        };
        connection.give_way(pace, need, now_ms, GIVING_WAY_MAX)
    }

    fn note(&self, need: Need, change: impl FnOnce(&mut Lack)) {
        let noted = &self.lacks[need as usize];
        let mut lack = noted.get();
        change(&mut lack);
        noted.set(lack);
    }

    /// Takes what requests have lacked since the last call.
    pub(crate) fn take_lack(&self, need: Need) -> Lack {
        self.lacks[need as usize].take()
    }
}

#[cfg(test)]
mod tests;
