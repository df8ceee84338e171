//! The queue of spans, and the service that sends them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_plan::background::{self, Lifetime, Running, Service};
use turnpike_plan::product::TURNPIKE_VERSION;

use super::message;
use super::sender::{Endpoint, send};

/// The most time that is spent on what waits: a collector that does not answer costs a thread so
/// long.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The most time that is spent while the process ends, and as much for what is being sent then.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause between two looks at whether what is being sent then has arrived.
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
    settings: ExporterSettings,
    log: ErrorLog,
    queue: Mutex<Queue>,
    /// A batch is full.
    is_full: Notify,
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
        if let Some(same) = living.find(|exporter| exporter.settings == settings) {
            return same;
        }
        let exporter = Arc::new(Exporter {
            settings,
            log,
            queue: Mutex::default(),
            is_full: Notify::new(),
            sending: Mutex::default(),
        });
        known.push(Arc::downgrade(&exporter));
        exporter
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a span; a full queue drops it.
    pub(super) fn add(&self, span: Vec<u8>) {
        let mut queue = self.lock();
        let spans_max = self.settings.batch_size * self.settings.batch_count;
        if queue.spans.len() >= spans_max {
            queue.dropped += 1;
            return;
        }
        queue.spans.push(span);
        if queue.spans.len().is_multiple_of(self.settings.batch_size) {
            self.is_full.notify_one();
        }
    }

    /// Sends what waits, a batch after the other. It blocks.
    fn flush(&self, timeout: Duration) {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + timeout;
        let Queue { spans, dropped } = mem::take(&mut *self.lock());
        if dropped > 0 {
            self.log.event(
                Level::Notice,
                format_args!("OTel dropped records: {dropped}"),
            );
        }
        for spans in spans.chunks(self.settings.batch_size) {
            let settings = &self.settings;
            let body = message::batch(&settings.resource, TURNPIKE_VERSION, spans);
            if let Err(error) = send(&settings.endpoint, &settings.headers, &body, deadline) {
                self.log.event(
                    Level::Error,
                    format_args!(
                        "OTel export failure: {error}, endpoint: \"{}\", {} spans are lost",
                        settings.endpoint,
                        spans.len(),
                    ),
                );
            }
        }
    }
}

impl Service for Exporter {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            let interval = Duration::from_millis(self.settings.interval_ms);
            loop {
                // A batch that is full, or the time: either is a reason.
                let _ = tokio::time::timeout(interval, self.is_full.notified()).await;
                if self.lock().spans.is_empty() {
                    continue;
                }
                let own = Arc::clone(&self);
                // With too much other work the spans wait, and the queue has a limit.
                if let Ok(sent) = background::run_blocking(move || own.flush(SEND_TIMEOUT)) {
                    sent.await;
                }
            }
        })
    }

    fn finish(&self) {
        let until = Instant::now() + LAST_TIMEOUT;
        while matches!(self.sending.try_lock(), Err(TryLockError::WouldBlock)) {
            if Instant::now() >= until {
                return;
            }
            thread::sleep(LOOK_INTERVAL);
        }
        self.flush(LAST_TIMEOUT);
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
        if queue.spans.is_empty() {
            return;
        }
        let rest = Exporter {
            settings: self.settings.clone(),
            log: self.log.clone(),
            queue: Mutex::new(queue),
            is_full: Notify::new(),
            sending: Mutex::default(),
        };
        // Without a thread they are lost. `flush` leaves the queue empty, so this ends.
        let _ = background::run_blocking(move || rest.flush(SEND_TIMEOUT)).map(drop);
    }
}
