//! The list of requests that wait, and the closing of one of them by an operator.

use turnpike_lane::event_loop::EventLoop;

use super::connections::Connections;
use super::slot::{DrivenWork, Slot};
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::h1::watch::Why;
use crate::running::{REQUESTS_MAX, RequestId, RequestList, Running};

impl Connections {
    /// The requests that wait, the oldest first.
    pub(super) fn request_list(&self, now_ms: u64) -> RequestList {
        let mut requests = Vec::new();
        let mut add = |running: &Running| {
            if running.is_listed() {
                requests.push(running.seen(now_ms));
            }
        };
        for (_, slot) in self.slots.iter() {
            match slot {
                Slot::Awaiting(awaited) => add(&awaited.exchange.running()),
                Slot::Driven(driven) => match &driven.work {
                    DrivenWork::Request(running) => add(running),
                    DrivenWork::Streams(shared) => shared.each_running(&mut add),
                    DrivenWork::None => {}
                },
                Slot::InTurn | Slot::Parked(_) | Slot::ParkedHttp2(_) => {}
            }
        }
        for shared in self.http3_streams() {
            shared.each_running(|running| {
                if running.is_listed() {
                    requests.push(running.seen(now_ms));
                }
            });
        }
        let total = requests.len();
        requests.sort_by_key(|request| std::cmp::Reverse(request.age_ms));
        requests.truncate(REQUESTS_MAX);
        RequestList { requests, total }
    }

    /// Closes a request of the list, and its connection if that is of HTTP/1. Returns whether it
    /// was there.
    pub(super) fn close_request(&mut self, event_loop: &mut EventLoop, id: RequestId) -> bool {
        let is_meant = |(token, slot): (u32, &Slot)| {
            let found = match slot {
                Slot::Awaiting(awaited) => awaited.exchange.id() == id,
                Slot::Driven(driven) => match &driven.work {
                    DrivenWork::Request(running) if running.id() == id && running.is_listed() => {
                        driven.watch.close(Why::Commanded);
                        true
                    }
                    DrivenWork::Streams(shared) => shared.close(id),
                    DrivenWork::Request(_) | DrivenWork::None => false,
                },
                Slot::InTurn | Slot::Parked(_) | Slot::ParkedHttp2(_) => false,
            };
            found.then_some(token)
        };
        let Some(token) = self.slots.iter().find_map(is_meant) else {
            return self.http3_streams().any(|shared| shared.close(id));
        };
        let note = Exchange::closed_by_command;
        self.end_awaited(event_loop, token, CloseReason::Commanded, note);
        true
    }
}
