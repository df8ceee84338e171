//! What a lane does when its places run out: which connections it closes, and what the error log
//! says about it. Attacks make many such events, so each kind has one line a minute.

use turnpike_lane::event_loop::{EventLoop, waiting_connections_max};
use turnpike_lane::log::Level;

use super::connections::Connections;
use crate::streams::places::{Lack, Need, places_max};

/// Connections closed at a time to make room; nginx's number. One at a time would repeat the
/// search for every new connection of a burst.
const ROOM_CONNECTIONS_MAX: usize = 32;

/// Milliseconds between two lines of one kind.
const PAUSE_MS: u64 = 60_000;

/// What there is to report.
#[derive(Default)]
pub(super) struct Shortages {
    idle: Report,
    late_heads: Report,
    pub(super) stalled: Report,
    places: Report,
    upstream: Report,
}

/// One kind of line.
#[derive(Default)]
pub(super) struct Report {
    /// What has happened since the last line.
    pub(super) lack: Lack,
    /// When that was written, in the lane's monotonic milliseconds.
    written_ms: Option<u64>,
}

impl Report {
    fn add(&mut self, lack: Lack) {
        self.lack.closed_stalled += lack.closed_stalled;
        self.lack.closed_slow += lack.closed_slow;
        self.lack.refused += lack.refused;
    }

    /// Takes what a line is due for.
    fn take(&mut self, now_ms: u64) -> Option<Lack> {
        let is_due = self.written_ms.is_none_or(|at| now_ms >= at + PAUSE_MS);
        if self.lack == Lack::default() || !is_due {
            return None;
        }
        self.written_ms = Some(now_ms);
        Some(std::mem::take(&mut self.lack))
    }
}

impl Connections {
    /// Closes connections for new ones: those that have no request under way, or else those whose
    /// clients do not move it. Returns whether there were any.
    pub(super) fn close_to_make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        let idle = match self.close_idle(event_loop, ROOM_CONNECTIONS_MAX) {
            0 => self.close_idle_http3(event_loop),
            idle => idle,
        };
        let late = match idle {
            0 => self.close_late_heads(event_loop, ROOM_CONNECTIONS_MAX),
            _ => 0,
        };
        let now_ms = event_loop.clock.now_ms();
        let stalled = match idle + late {
            0 => self.close_stalled(now_ms, ROOM_CONNECTIONS_MAX),
            _ => 0,
        };
        let closed = (idle + late + stalled) as u64;
        self.lane.counters.made_room.add_many((idle + late) as u64);
        self.shortages.idle.lack.closed_stalled += idle as u64;
        self.shortages.late_heads.lack.closed_stalled += late as u64;
        self.report_shortages(now_ms);
        closed > 0
    }

    /// Closes stalled connections before those that wait for something leave no other any more.
    pub(super) fn spare_connections(&mut self, now_ms: u64) {
        let working = self.lane.http1_working() + self.lane.stream_places().busy_connections();
        let waiting_max = waiting_connections_max(self.plan.events.connections_max);
        if working + self.lane.common.sessions() >= waiting_max {
            self.close_stalled(now_ms, ROOM_CONNECTIONS_MAX);
        }
    }

    /// Writes the lines that are due.
    pub(super) fn report_shortages(&mut self, now_ms: u64) {
        self.take_lacks();
        let most = self.plan.events.connections_max;
        if let Some(lack) = self.shortages.idle.take(now_ms) {
            let closed = lack.closed_stalled;
            self.report(format_args!(
                "{most} worker_connections are not enough; connections closed to make room: \
                 {closed} (idle)"
            ));
        }
        if let Some(lack) = self.shortages.late_heads.take(now_ms) {
            let closed = lack.closed_stalled;
            self.alert(format_args!(
                "{most} worker_connections are not enough; connections closed to make room: \
                 {closed} (slow to send a request)"
            ));
        }
        if let Some(lack) = self.shortages.stalled.take(now_ms) {
            let closed = lack.closed_stalled;
            self.alert(format_args!(
                "{most} worker_connections are not enough; connections closed to make room: \
                 {closed} (stalled)"
            ));
        }
        if let Some(lack) = self.shortages.places.take(now_ms) {
            let places = places_max(most);
            self.alert(format_args!(
                "{most} worker_connections allow {places} waiting HTTP/2 requests, which are not \
                 enough; {lack}"
            ));
        }
        if let Some(lack) = self.shortages.upstream.take(now_ms) {
            self.alert(format_args!(
                "{most} worker_connections are not enough for HTTP/2 requests to upstream \
                 servers; {lack}"
            ));
        }
    }

    /// Takes what requests of HTTP/2 have lacked.
    fn take_lacks(&mut self) {
        let places = self.lane.stream_places();
        for (need, report) in [
            (Need::Place, &mut self.shortages.places),
            (Need::Upstream, &mut self.shortages.upstream),
        ] {
            let lack = places.take_lack(need);
            let counters = &self.lane.counters;
            let closed = lack.closed_stalled + lack.closed_slow;
            counters.streams_made_room.add_many(closed);
            counters.streams_refused.add_many(lack.refused);
            report.add(lack);
        }
    }

    fn alert(&self, message: std::fmt::Arguments<'_>) {
        self.report_as(Level::Alert, message);
    }
}
