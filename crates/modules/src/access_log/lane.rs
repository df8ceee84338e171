//! What a lane keeps for its access logs: room for a line, buffers of lines, open files.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use turnpike_http::counters::HttpCounters;
use turnpike_lane::log::{Errno, ErrorLog, Level, LogFile};
use turnpike_plan::lane::LaneState;

use super::files::FileCache;
use super::logged::Logged;

/// Least time between two complaints about a log that cannot be written, in milliseconds: a full
/// disk would else fill the error log too. nginx's time.
const COMPLAINT_PAUSE_MS: u64 = 60_000;

/// A log's buffer, as its directive asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferSpec {
    /// The place among the buffers of the plan.
    pub(super) index: usize,
    /// Bytes it holds.
    pub(super) bytes_max: usize,
    /// Longest time that a line stays in it.
    pub(super) flush_ms: Option<u64>,
    /// How hard it is compressed before it is written, from 1 to 9.
    pub(super) gzip_level: Option<u32>,
}

impl BufferSpec {
    /// Writes lines to the file, as one member of a gzip file where they are compressed.
    fn write(&self, file: &LogFile, lines: &[u8]) -> io::Result<()> {
        let Some(level) = self.gzip_level else {
            return file.try_write(lines);
        };
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(lines)?;
        file.try_write(&encoder.finish()?)
    }
}

/// A lane's state.
#[derive(Default)]
pub(super) struct AccessLogLane {
    /// The line that is being made.
    pub(super) line: Cell<Vec<u8>>,
    /// Scratch room for escaping and for paths.
    pub(super) spare: Cell<Vec<u8>>,
    /// Files of logs whose paths hold variables.
    pub(super) files: RefCell<FileCache>,
    buffers: RefCell<Vec<Option<Buffer>>>,
    complained_ms: Cell<Option<u64>>,
}

struct Buffer {
    file: Arc<LogFile>,
    counters: Option<Arc<HttpCounters>>,
    error_log: ErrorLog,
    bytes: Vec<u8>,
    lines: u64,
    spec: BufferSpec,
    /// When its first line came, in the lane's monotonic milliseconds.
    since_ms: u64,
}

impl AccessLogLane {
    /// Puts a line into a buffer, which is written out first when it has no room left.
    pub(super) fn buffer<S: Logged>(
        &self,
        spec: BufferSpec,
        file: &Arc<LogFile>,
        subject: &S,
        line: &[u8],
    ) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() <= spec.index {
            buffers.resize_with(spec.index + 1, || None);
        }
        let buffer = buffers[spec.index].get_or_insert_with(|| Buffer {
            file: Arc::clone(file),
            counters: subject.counters().cloned(),
            error_log: subject.error_log().clone(),
            bytes: Vec::with_capacity(spec.bytes_max),
            lines: 0,
            spec,
            since_ms: 0,
        });
        let now_ms = subject.now_ms();
        if buffer.bytes.len() + line.len() > spec.bytes_max {
            buffer.flush(&self.complained_ms, now_ms);
        }
        if line.len() > spec.bytes_max {
            if let Err(error) = spec.write(file, line) {
                self.lost(subject, file.path(), &error);
            }
            return;
        }
        if buffer.bytes.is_empty() {
            buffer.since_ms = now_ms;
        }
        buffer.bytes.extend_from_slice(line);
        buffer.lines += 1;
    }

    /// Counts a line that could not be written, and complains now and then.
    pub(super) fn lost<S: Logged>(&self, subject: &S, path: &Path, error: &io::Error) {
        if let Some(counters) = subject.counters() {
            counters.log_lines_lost.add();
        }
        let now_ms = subject.now_ms();
        if may_complain(&self.complained_ms, now_ms) {
            complain(subject.error_log(), path, error);
        }
    }
}

impl LaneState for AccessLogLane {
    fn tick(&self, now_ms: u64) {
        for buffer in self.buffers.borrow_mut().iter_mut().flatten() {
            let due = |flush_ms| now_ms.saturating_sub(buffer.since_ms) >= flush_ms;
            if buffer.spec.flush_ms.is_some_and(due) {
                buffer.flush(&self.complained_ms, now_ms);
            }
        }
        self.files.borrow_mut().expire(now_ms);
    }

    fn flush(&self) {
        for buffer in self.buffers.borrow_mut().iter_mut().flatten() {
            let now_ms = buffer.since_ms;
            buffer.flush(&self.complained_ms, now_ms);
        }
    }
}

impl Buffer {
    fn flush(&mut self, complained_ms: &Cell<Option<u64>>, now_ms: u64) {
        if self.bytes.is_empty() {
            return;
        }
        if let Err(error) = self.spec.write(&self.file, &self.bytes) {
            if let Some(counters) = &self.counters {
                let lost = &counters.log_lines_lost;
                lost.set(lost.value().wrapping_add(self.lines));
            }
            if may_complain(complained_ms, now_ms) {
                complain(&self.error_log, self.file.path(), &error);
            }
        }
        self.bytes.clear();
        self.lines = 0;
    }
}

fn may_complain(complained_ms: &Cell<Option<u64>>, now_ms: u64) -> bool {
    let due = complained_ms
        .get()
        .is_none_or(|then_ms| now_ms.saturating_sub(then_ms) >= COMPLAINT_PAUSE_MS);
    if due {
        complained_ms.set(Some(now_ms));
    }
    due
}

fn complain(log: &ErrorLog, path: &Path, error: &io::Error) {
    let path = path.display();
    log.event(
        Level::Alert,
        format_args!("write() to \"{path}\" failed {}", Errno(error)),
    );
}
