//! Compressing a body: on the lane, or at slow levels in threads beside the lanes.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnpike_http::body_filter::{BodyFilter, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{BodyFailed, LocalFuture};
use turnpike_http::rooms::Room;
use turnpike_lane::log::Level;
use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};
use turnpike_lane::sys::process;

use super::encoder::{Coding, Encoder, Next};
use super::kept::Recording;
use super::plan::{Compressing, State};

/// Threads for slow levels: as many as may take CPUs from lanes. A body that finds no place in the
/// queue waits, so that none fails for being one of many.
const LIMITS: PoolLimits = PoolLimits {
    name: "compress",
    threads_max: 2,
    queued_max: 64,
};

static POOL: WorkerPool = WorkerPool::new(LIMITS).preparing_threads(prepare_thread);

/// Lower than the lanes', which have requests to serve.
const PRIORITY: i32 = 10;

/// How long a body waits before it asks again for a place in the queue.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Bytes that are gathered for a thread: a job takes half a second at the slowest level.
const BATCH_BYTES: usize = 256 * 1024;

fn prepare_thread() {
    // Without it compressing goes on all the same, only less considerately.
    let _ = process::set_priority(PRIORITY);
}

/// Compresses a body as it comes. What has come is flushed when no more is at hand, so that a
/// client sees what a slow server has said. What comes of a source that may be asked for again is
/// recorded.
pub(super) struct Compressor {
    compression: Arc<Compressing>,
    state: State,
    encoder: Option<Encoder>,
    recording: Option<Recording>,
    sum: Compressed,
    /// What is gathered for a thread.
    gathered: Vec<u8>,
    /// What a thread is to do, or does.
    job: Option<Job>,
}

/// Bytes that a thread is to compress.
struct Job {
    encoder: Encoder,
    bytes: Vec<u8>,
    next: Next,
}

/// What came of a job.
struct Outcome {
    encoder: Encoder,
    bytes: Vec<u8>,
    result: io::Result<()>,
}

impl Job {
    fn run(mut self) -> Outcome {
        let mut bytes = Vec::new();
        let result = self.encoder.encode(&self.bytes, self.next, &mut bytes);
        Outcome {
            encoder: self.encoder,
            bytes,
            result,
        }
    }

    /// Has a thread do it, as soon as one may.
    async fn run_off_lane(self) -> io::Result<Outcome> {
        let place = Arc::new(Mutex::new(Some(self)));
        loop {
            let taken = Arc::clone(&place);
            let take = move || {
                let job = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
                job.map(Job::run)
            };
            match POOL.submit(take) {
                Ok(outcome) => {
                    let lost = || io::Error::other("the thread is gone");
                    return outcome.await.flatten().ok_or_else(lost);
                }
                Err(PoolRefusal::Full) => tokio::time::sleep(FULL_PAUSE).await,
                Err(PoolRefusal::NoThread(error)) => return Err(error),
            }
        }
    }
}

impl Compressor {
    pub(super) fn new(
        compression: Arc<Compressing>,
        state: State,
        recording: Option<Recording>,
    ) -> Self {
        let coding = compression.strength.coding;
        Self {
            compression,
            state,
            encoder: None,
            recording,
            sum: Compressed {
                coding: Some(coding),
                ..Compressed::default()
            },
            gathered: Vec::new(),
            job: None,
        }
    }

    /// The encoder of this body, one that was used before, or a new one.
    fn take_encoder(&mut self, exchange: &Exchange) -> Result<Encoder, BodyFailed> {
        let spare = || exchange.plan.state(&self.state.spare).take();
        if let Some(encoder) = self.encoder.take().or_else(spare) {
            return Ok(encoder);
        }
        let made = self.compression.strength.encoder();
        made.map_err(|error| self.failed(exchange, &error))
    }

    fn failed(&self, exchange: &Exchange, error: &io::Error) -> BodyFailed {
        let coding = self.compression.strength.coding.token();
        exchange.log(
            Level::Alert,
            format_args!("compressing as {coding} failed: {error}"),
        );
        BodyFailed
    }

    /// Compresses on the lane.
    fn feed(
        &mut self,
        exchange: &Exchange,
        bytes: &[u8],
        next: Next,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let mut encoder = self.take_encoder(exchange)?;
        let from = out.len();
        let encoded = encoder.encode(bytes, next, out);
        encoded.map_err(|error| self.failed(exchange, &error))?;
        self.encoder = Some(encoder);
        self.count(bytes.len(), out.get(from..).unwrap_or_default());
        Ok(())
    }

    /// Counts what was made of so many bytes.
    fn count(&mut self, taken_bytes: usize, made: &[u8]) {
        self.sum.taken_bytes += taken_bytes as u64;
        self.sum.given_bytes += made.len() as u64;
        if let Some(recording) = self.recording.take() {
            self.recording = recording.add(made);
        }
    }

    fn end_recording(&mut self, exchange: &Exchange) {
        if let Some(recording) = self.recording.take() {
            recording.end(exchange.plan.state(&self.state.kept));
        }
    }

    /// Gathers for a thread.
    fn gather(
        &mut self,
        exchange: &Exchange,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<Passed, BodyFailed> {
        self.gathered.extend_from_slice(bytes);
        let next = match is_last {
            true => Next::End,
            false if self.gathered.len() >= BATCH_BYTES => Next::Pause,
            false => return Ok(Passed::NeedsMore),
        };
        self.begin_job(exchange, next)?;
        Ok(Passed::Working)
    }

    fn begin_job(&mut self, exchange: &Exchange, next: Next) -> Result<(), BodyFailed> {
        self.job = Some(Job {
            encoder: self.take_encoder(exchange)?,
            bytes: std::mem::take(&mut self.gathered),
            next,
        });
        Ok(())
    }
}

impl BodyFilter for Compressor {
    fn pass(
        &mut self,
        exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        if out.len() >= self.compression.piece_bytes {
            return Ok(Passed::Full);
        }
        let rest = piece.rest();
        let (rest_bytes, is_last) = (rest.len(), piece.is_last());
        if self.compression.strength.is_slow() {
            let passed = self.gather(exchange, rest, is_last);
            piece.take(rest_bytes);
            return passed;
        }
        let next = if is_last { Next::End } else { Next::More };
        self.feed(exchange, rest, next, out)?;
        piece.take(rest_bytes);
        if is_last {
            self.end_recording(exchange);
            return Ok(Passed::Ended);
        }
        Ok(if out.len() >= self.compression.piece_bytes {
            Passed::Full
        } else {
            Passed::NeedsMore
        })
    }

    fn flush(&mut self, exchange: &Exchange, out: &mut Vec<u8>) -> Result<(), BodyFailed> {
        match self.compression.strength.is_slow() {
            false => self.feed(exchange, b"", Next::Pause, out),
            true if self.gathered.is_empty() => Ok(()),
            true => self.begin_job(exchange, Next::Pause),
        }
    }

    fn is_working(&self) -> bool {
        self.job.is_some()
    }

    fn end_work<'a>(
        &'a mut self,
        exchange: &'a Exchange,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            let Some(job) = self.job.take() else {
                return Ok(false);
            };
            let (taken_bytes, is_last) = (job.bytes.len(), job.next == Next::End);
            let outcome = job.run_off_lane().await;
            let outcome = outcome.map_err(|error| self.failed(exchange, &error))?;
            let result = outcome.result;
            result.map_err(|error| self.failed(exchange, &error))?;
            self.encoder = Some(outcome.encoder);
            self.count(taken_bytes, &outcome.bytes);
            out.extend_from_slice(&outcome.bytes);
            if is_last {
                self.end_recording(exchange);
            }
            Ok(is_last)
        })
    }

    fn note(&mut self, exchange: &mut Exchange) {
        *exchange.rooms.get_mut() = self.sum;
    }

    fn ended(&mut self, exchange: &Exchange) {
        if let Some(encoder) = self.encoder.take() {
            exchange.plan.state(&self.state.spare).put(encoder);
        }
    }
}

/// Bytes that compression took of a response, and what it made of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Compressed {
    pub(super) coding: Option<Coding>,
    pub(super) taken_bytes: u64,
    pub(super) given_bytes: u64,
}

impl Room for Compressed {
    fn clear(&mut self) {
        *self = Self::default();
    }
}
