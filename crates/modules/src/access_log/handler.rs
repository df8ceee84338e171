//! Writes lines.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::{LogFile, Syslog};
use turnpike_plan::lane::LaneSlot;
use turnpike_plan::template::Template;
use turnpike_stream::session::Session;

use super::files::{self, CacheRules, Lost};
use super::format::Format;
use super::lane::{AccessLogLane, BufferSpec};
use super::logged::Logged;

/// One log.
pub(super) struct Log {
    /// Where its lines go.
    pub(super) output: Output,
    /// What they say.
    pub(super) format: Arc<Format>,
    /// Must be neither empty nor "0" for a line to be written.
    pub(super) condition: Option<Template>,
}

/// Where lines go.
pub(super) enum Output {
    /// A file that is open while the plan lives.
    File {
        file: Arc<LogFile>,
        /// The buffer, where one was asked for.
        buffer: Option<BufferSpec>,
    },
    /// A file whose path is only known with the request.
    Path(Template),
    /// A syslog server.
    Syslog(Arc<Syslog>),
}

/// The logs of a location.
pub(super) struct AccessLogger {
    pub(super) slot: LaneSlot<AccessLogLane>,
    pub(super) logs: Vec<Arc<Log>>,
    pub(super) files: Option<CacheRules>,
}

impl turnpike_http::phase::Logger for AccessLogger {
    fn log(&self, exchange: &Exchange) {
        self.write_all(exchange);
    }

    fn log_sampled(&self, exchange: &Exchange) {
        self.write_all(exchange);
    }
}

impl turnpike_stream::phase::Logger for AccessLogger {
    fn log(&self, session: &Session) {
        self.write_all(session);
    }
}

impl AccessLogger {
    fn write_all<S: Logged>(&self, subject: &S) {
        let lane = subject.lane(&self.slot);
        let mut line = lane.line.take();
        let mut spare = lane.spare.take();
        for log in &self.logs {
            if !applies(log, subject, &mut spare) {
                continue;
            }
            line.clear();
            log.format.write(subject, &mut line, &mut spare);
            self.write(log, subject, lane, &mut line, &mut spare);
        }
        lane.line.set(line);
        lane.spare.set(spare);
    }

    fn write<S: Logged>(
        &self,
        log: &Log,
        subject: &S,
        lane: &AccessLogLane,
        line: &mut Vec<u8>,
        spare: &mut Vec<u8>,
    ) {
        match &log.output {
            Output::Syslog(syslog) => syslog.send_default(line),
            Output::File { file, buffer } => {
                line.push(b'\n');
                match buffer {
                    Some(spec) => lane.buffer(*spec, file, subject, line),
                    None => {
                        if let Err(error) = file.try_write(line) {
                            lane.lost(subject, file.path(), &error);
                        }
                    }
                }
            }
            Output::Path(path) => {
                line.push(b'\n');
                spare.clear();
                path.evaluate(subject, spare);
                let mut cache = lane.files.borrow_mut();
                match files::append(subject, &mut cache, self.files.as_ref(), spare, line) {
                    Ok(()) => {}
                    Err(Lost::Told) => {
                        if let Some(counters) = subject.counters() {
                            counters.log_lines_lost.add();
                        }
                    }
                    Err(Lost::Write(error)) => {
                        let path = Path::new(OsStr::from_bytes(spare));
                        lane.lost(subject, path, &error);
                    }
                }
            }
        }
    }
}

fn applies<S: Logged>(log: &Log, subject: &S, spare: &mut Vec<u8>) -> bool {
    let Some(condition) = &log.condition else {
        return true;
    };
    spare.clear();
    let failures = subject.match_failures();
    condition.evaluate(subject, spare);
    if subject.match_failures() != failures {
        // Nobody said that the line is to be left out.
        return true;
    }
    !spare.is_empty() && spare.as_slice() != b"0"
}
