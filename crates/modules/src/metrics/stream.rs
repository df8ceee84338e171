//! Counts of each server of `stream`. A server is counted where its sessions end; it is known by
//! the address that it listens at first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnpike_conf::{ConfError, View};
use turnpike_lane::counters::{Answer, AnswerCounts, Kind, Row};
use turnpike_plan::metrics::{Reader, Samples};
use turnpike_stream::phase::{Handler, HandlerPlace, Logger, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;

use super::METRICS as METRICS_OF_ALL;
use crate::common::zone;

/// A gauge of sessions; the other rows take the rest from it.
const PLAIN: Row = Row {
    name: "stream_active",
    kind: Kind::Gauge,
    unit: "sessions",
    labels: &["listen"],
    help: "Active sessions of a stream server.",
};

/// The metrics.
pub(super) const METRICS: [Row; 5] = [
    PLAIN,
    Row {
        name: "stream_sessions",
        kind: Kind::Counter,
        labels: &["listen", "class"],
        help: "Finished sessions of a stream server, by class of their status.",
        ..PLAIN
    },
    Row {
        name: "stream_received_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes that a stream server received from clients.",
        ..PLAIN
    },
    Row {
        name: "stream_sent_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes that a stream server sent to clients.",
        ..PLAIN
    },
    Row {
        name: "stream_session_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        help: "Duration of sessions with a stream server, in whole milliseconds.",
        ..PLAIN
    },
];

/// The counts of all servers. A reload keeps those that it does not take away.
#[derive(Default)]
pub(super) struct AllSessions(Mutex<BTreeMap<String, Arc<Counts>>>);

/// The counts of a server.
#[derive(Default)]
struct Counts {
    active: AtomicU64,
    ended: AnswerCounts,
}

/// Counts the sessions of one server.
struct Counting(Arc<Counts>);

/// A session that is under way.
struct Active(Arc<Counts>);

impl AllSessions {
    /// The counts of all stream servers, of this configuration and of those before.
    pub(super) fn open<S>(
        builder: &mut turnpike_plan::builder::Builder<'_, S>,
    ) -> Arc<AllSessions> {
        zone::unnamed(builder, "metrics of sessions", AllSessions::default)
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Counts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream metrics",
    stream,
    server,
    ..Family::NONE
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let names: Vec<String> = view.children("server").filter_map(listen_of).collect();
    let all = AllSessions::open(builder);
    all.servers().retain(|name, _| names.contains(name));
    Ok(())
}

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let Some(name) = listen_of(view) else {
        return Ok(());
    };
    let all = AllSessions::open(builder);
    let counting = Arc::new(Counting(Arc::clone(all.servers().entry(name).or_default())));
    // Before limits, which may end a session.
    draft.add_handler(HandlerPlace::ClientAddress, counting.clone());
    draft.add_logger(counting);
    Ok(())
}

/// The first address that a server listens at, as it is written, and whether it is of UDP.
fn listen_of(server: View<'_>) -> Option<String> {
    let entry = server.own_all("listen").next()?;
    let is_udp = entry.arguments.iter().any(|word| word.text == "udp");
    let protocol = if is_udp { " udp" } else { "" };
    Some(format!("{}{protocol}", entry.argument(0)))
}

impl Handler for Counting {
    fn handle(&self, session: &mut Session) -> Verdict {
        self.0.active.fetch_add(1, Relaxed);
        session.rooms.hold(Active(Arc::clone(&self.0)));
        Verdict::Declined
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Relaxed);
    }
}

impl Logger for Counting {
    fn log(&self, session: &Session) {
        let now_ms = session.lane.clock.now_ms();
        self.0.ended.add(Answer {
            status: session.status.map_or(0, |status| status.number()),
            request_bytes: session.bytes_received.get(),
            response_bytes: session.bytes_sent.get(),
            took_ms: now_ms.saturating_sub(session.started_ms),
        });
    }
}

impl Reader for AllSessions {
    fn read(&self, samples: &mut Samples) {
        let [.., active, sessions, received, sent, times] = METRICS_OF_ALL else {
            return;
        };
        for (name, counts) in self.servers().iter() {
            let (labels, ended) = ([name.as_str()], &counts.ended);
            samples.number(active, &labels, counts.active.load(Relaxed));
            for (class, count) in AnswerCounts::CLASSES.iter().zip(ended.by_class()) {
                samples.number(sessions, &[name, class], count);
            }
            samples.number(received, &labels, ended.request_bytes());
            samples.number(sent, &labels, ended.response_bytes());
            samples.distribution(times, &labels, ended.times());
        }
    }
}
