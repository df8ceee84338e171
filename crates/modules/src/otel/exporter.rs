//! The queue of spans, and the service that sends them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

use tokio::sync::Notify;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_plan::background::{self, Lifetime, Running, Service};
use turnpike_plan::product::TURNPIKE_VERSION;

use super::message;
use super::sender::{Endpoint, send};

/// The most time that is spent on what waits: a collector that does not answer costs a thread so
/// long.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two looks at whether what is being sent has arrived.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Where spans go, and how many at once.
#[derive(Clone, PartialEq)]
pub(super) struct ExporterSettings {
    pub(super) endpoint: Endpoint,
    /// Names and values of fields that the collector gets.
    pub(super) headers: Vec<(String, String)>,
    /// The attributes of the resource.
    pub(super) resource: Vec<(String, String)>,
    pub(super) interval_ms: u64,
    /// The most spans in a batch.
    pub(super) batch_size: usize,
    /// The most batches that wait.
    pub(super) batch_count: usize,
}

/// Collects spans and sends them.
pub(super) struct Exporter {
    outlet: Arc<Outlet>,
    queue: Mutex<Queue>,
    /// A batch is full.
    is_full: Notify,
}

/// The way out of spans, which outlives their exporter if some are left.
struct Outlet {
    settings: ExporterSettings,
    log: ErrorLog,
    /// Held while spans are sent.
    sending: Mutex<()>,
}

#[derive(Default)]
struct Queue {
    spans: Vec<Vec<u8>>,
    /// The spans that were dropped since the last batch.
    dropped: u64,
}

/// The exporters of this process, for the next configuration.
static EXPORTERS: Mutex<Vec<Weak<Exporter>>> = Mutex::new(Vec::new());

impl Exporter {
    /// The exporter with these settings: the one of the last configuration if they are the same, so
    /// that a reload loses no span.
    pub(super) fn shared(settings: ExporterSettings, log: ErrorLog) -> Arc<Exporter> {
        let mut known = EXPORTERS.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|exporter| exporter.strong_count() > 0);
        let mut living = known.iter().filter_map(Weak::upgrade);
        if let Some(same) = living.find(|exporter| exporter.outlet.settings == settings) {
            return same;
        }
        let outlet = Outlet {
            settings,
            log,
            sending: Mutex::default(),
        };
        let exporter = Arc::new(Exporter {
            outlet: Arc::new(outlet),
            queue: Mutex::default(),
            is_full: Notify::new(),
        });
        known.push(Arc::downgrade(&exporter));
        exporter
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a span; a full queue drops it.
    pub(super) fn add(&self, span: Vec<u8>) {
        let settings = &self.outlet.settings;
        let mut queue = self.lock();
        if queue.spans.len() >= settings.batch_size * settings.batch_count {
            queue.dropped += 1;
            return;
        }
        queue.spans.push(span);
        if queue.spans.len().is_multiple_of(settings.batch_size) {
            self.is_full.notify_one();
        }
    }

    /// Sends what waits when nothing else is being sent. It blocks.
    fn flush(&self, until: Instant) {
        let turn = self.outlet.turn(until);
        let queue = mem::take(&mut *self.lock());
        match turn {
            Some(_turn) => self.outlet.send(queue, until),
            None => self.outlet.lost(&"the time is over", queue.spans.len()),
        }
    }
}

impl Outlet {
    /// Waits for what is being sent; `None`: the time is over.
    fn turn(&self, until: Instant) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.sending.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK_INTERVAL),
            }
        }
    }

    /// Sends spans, a batch after the other. It blocks.
    fn send(&self, queue: Queue, until: Instant) {
        if queue.dropped > 0 {
            let dropped = queue.dropped;
            self.log.event(
                Level::Notice,
                format_args!("OTel dropped records: {dropped}"),
            );
        }
        let settings = &self.settings;
        for spans in queue.spans.chunks(settings.batch_size) {
            let body = message::batch(&settings.resource, TURNPIKE_VERSION, spans);
            if let Err(error) = send(&settings.endpoint, &settings.headers, &body, until) {
                self.lost(&error, spans.len());
            }
        }
    }

    fn lost(&self, error: &dyn fmt::Display, spans: usize) {
        let endpoint = &self.settings.endpoint;
        if spans > 0 {
            self.log.event(
                Level::Error,
                format_args!(
                    "OTel export failure: {error}, endpoint: \"{endpoint}\", {spans} spans are lost"
                ),
            );
        }
    }
}

impl Service for Exporter {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            let interval = Duration::from_millis(self.outlet.settings.interval_ms);
            loop {
                // A batch that is full, or the time: either is a reason.
                let _ = tokio::time::timeout(interval, self.is_full.notified()).await;
                if self.lock().spans.is_empty() {
                    continue;
                }
                let own = Arc::clone(&self);
                // With too much other work the spans wait, and the queue has a limit.
                let sent =
                    background::run_blocking(move || own.flush(Instant::now() + SEND_TIMEOUT));
                if let Ok(sent) = sent {
                    sent.await;
                }
            }
        })
    }

    fn finish(&self, until: Instant) {
        self.flush(until);
    }

    /// Requests that end under an older plan leave spans too.
    fn lifetime(&self) -> Lifetime {
        Lifetime::InUse
    }
}

impl Drop for Exporter {
    /// The last configuration with this exporter is gone: what is left is sent elsewhere, since any
    /// thread may be here.
    fn drop(&mut self) {
        let queue = mem::take(&mut *self.lock());
        let spans = queue.spans.len();
        if spans == 0 {
            return;
        }
        let outlet = Arc::clone(&self.outlet);
        let sent = background::run_last(move || outlet.send(queue, Instant::now() + SEND_TIMEOUT));
        if let Err(refusal) = sent {
            self.outlet.lost(&refusal, spans);
        }
    }
}
