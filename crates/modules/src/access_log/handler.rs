//! Writes lines.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::lane::LaneSlot;
use turnpike_http::phase::Logger;
use turnpike_http::variables::Template;
use turnpike_lane::log::{LogFile, Syslog};

use super::files::{self, CacheRules, Lost};
use super::format::Format;
use super::lane::{AccessLogLane, BufferSpec};

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

impl Logger for AccessLogger {
    fn log(&self, exchange: &Exchange) {
        let lane = exchange.plan.state(&self.slot);
        let mut line = lane.line.take();
        let mut spare = lane.spare.take();
        for log in &self.logs {
            if !applies(log, exchange, &mut spare) {
                continue;
            }
            line.clear();
            log.format.write(exchange, &mut line, &mut spare);
            self.write(log, exchange, lane, &mut line, &mut spare);
        }
        lane.line.set(line);
        lane.spare.set(spare);
    }
}

impl AccessLogger {
    fn write(
        &self,
        log: &Log,
        exchange: &Exchange,
        lane: &AccessLogLane,
        line: &mut Vec<u8>,
        spare: &mut Vec<u8>,
    ) {
        match &log.output {
            Output::Syslog(syslog) => syslog.send_default(line),
            Output::File { file, buffer } => {
                line.push(b'\n');
                match buffer {
                    Some(spec) => lane.buffer(*spec, file, exchange, line),
                    None => {
                        if let Err(error) = file.try_write(line) {
                            lane.lost(exchange, file.path(), &error);
                        }
                    }
                }
            }
            Output::Path(path) => {
                line.push(b'\n');
                spare.clear();
                path.evaluate(exchange, spare);
                let mut cache = lane.files.borrow_mut();
                match files::append(exchange, &mut cache, self.files.as_ref(), spare, line) {
                    Ok(()) => {}
                    Err(Lost::Told) => exchange.lane.counters.log_lines_lost.add(),
                    Err(Lost::Write(error)) => {
                        let path = Path::new(OsStr::from_bytes(spare));
                        lane.lost(exchange, path, &error);
                    }
                }
            }
        }
    }
}

fn applies(log: &Log, exchange: &Exchange, spare: &mut Vec<u8>) -> bool {
    let Some(condition) = &log.condition else {
        return true;
    };
    spare.clear();
    let failures = exchange.match_failures();
    condition.evaluate(exchange, spare);
    if exchange.match_failures() != failures {
        // Nobody said that the line is to be left out.
        return true;
    }
    !spare.is_empty() && spare.as_slice() != b"0"
}
