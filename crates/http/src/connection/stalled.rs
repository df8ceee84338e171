//! Connections whose clients move no byte of a request: they are closed where their places are
//! needed.

use turnpike_lane::event_loop::waiting_connections_max;

use super::connections::Connections;
use super::parked::LATE_HEADS_PART;
use super::slot::{Driven, DrivenWork, Slot};
use crate::exchange::Action;
use crate::h1::watch::Why;
use crate::running::Running;
use crate::traffic::stalled_after_ms;

/// Connections that are looked at for one new one: each costs a system call.
const LOOKED_AT_MAX: usize = 1024;

impl Connections {
    /// Has those connections end whose clients have moved no byte for longest, up to `most`.
    pub(super) fn close_stalled(&mut self, now_ms: u64, most: usize) -> usize {
        let capacity = self.slots.capacity();
        let looked_at = (0..capacity.min(LOOKED_AT_MAX)).map(|step| {
            let token = ((self.stalled_cursor + step) % capacity) as u32;
            (token, self.slots.get(token))
        });
        let stalled = looked_at.filter_map(|(token, slot)| match slot? {
            Slot::Driven(driven) if !driven.is_leaving => {
                Some((stalled_since_ms(driven, now_ms)?, token))
            }
            _ => None,
        });
        let mut stalled: Vec<(u64, u32)> = stalled.collect();
        self.stalled_cursor = (self.stalled_cursor + LOOKED_AT_MAX) % capacity.max(1);
        stalled.sort_unstable();
        // Enough that one of the next requests may wait for an upstream server.
        let connections_max = self.plan.events.connections_max;
        let least = connections_max.saturating_sub(waiting_connections_max(connections_max)) + 1;
        stalled.truncate((stalled.len() / LATE_HEADS_PART).clamp(least.min(most), most));
        for (_, token) in &stalled {
            if let Some(driven) = self.slots.get_mut(*token).and_then(Slot::driven_mut) {
                driven.watch.close(Why::MakesRoom);
            }
            self.slots.begin_to_leave(*token);
        }
        self.lane.counters.made_room.add_many(stalled.len() as u64);
        self.shortages.stalled.lack.closed_stalled += stalled.len() as u64;
        stalled.len()
    }
}

/// Since when the client of a driven connection has moved no byte, if it is the client that is
/// waited for; in the lane's monotonic milliseconds.
fn stalled_since_ms(driven: &Driven, now_ms: u64) -> Option<u64> {
    match &driven.work {
        DrivenWork::Request(running) => stalled_request_since_ms(driven, running, now_ms),
        DrivenWork::Streams(shared) => shared.stalled_since_ms(now_ms),
        DrivenWork::None => None,
    }
}

/// The same for a request of HTTP/1. The kernel knows when bytes were last sent and received.
fn stalled_request_since_ms(driven: &Driven, running: &Running, now_ms: u64) -> Option<u64> {
    let silent_ms = match (driven.watch.full_since_ms(), running.activity.action()) {
        (Some(full_since_ms), _) => now_ms.saturating_sub(full_since_ms),
        (None, Action::ReadingBody) => u64::from(running.socket.tcp_info().ok()?.last_received_ms),
        (None, Action::Tunnelling | Action::ClosingLingering) => {
            let info = running.socket.tcp_info().ok()?;
            u64::from(info.last_sent_ms.min(info.last_received_ms))
        }
        _ => return None,
    };
    let is_stalled = silent_ms >= stalled_after_ms(running.send_timeout_ms);
    is_stalled.then(|| now_ms.saturating_sub(silent_ms))
}
