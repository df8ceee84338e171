//! The head of an answer, as far as all protocols have it in common: how much of it has come, and
//! what reading brought.

use std::io;

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::h1::origin::HeadReader;
use turnpike_http::received::Received;
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::{Errno, Level};
use turnpike_upstream::Connection;
use turnpike_wire::message::{Delivery, Head, HeadRules, StatusLine, Strictness};

use super::conditions::Failure;
use super::early_hints::Hints;
use super::origin::{Origin, RecordLayer};
use super::server::Stop;
use super::settings::Passing;
use super::{http2_connection, upgrade, websocket};

/// Fields of a response's head.
const FIELDS_MAX: usize = 1000;

/// Interim responses before the final one: none needs more than a few.
const INTERIM_MAX: usize = 16;

/// Limits of a response's head.
pub(crate) fn head_rules(first_bytes: usize, strictness: Strictness) -> HeadRules {
    HeadRules {
        line_bytes_max: first_bytes,
        head_bytes_max: first_bytes,
        fields_max: FIELDS_MAX,
        strictness,
        ..HeadRules::default()
    }
}

/// Takes what has come of the head of a CGI response.
///
/// # Errors
/// Why it cannot be one.
pub(crate) fn read_cgi_head(
    exchange: &Exchange,
    passing: &Passing,
    line: StatusLine,
    input: &mut Received,
    head: &mut Head,
    progress: &mut Progress,
) -> Result<ReceivedHead, Stop> {
    let rules = head_rules(passing.buffers.first_bytes, exchange.strictness());
    let method = exchange.method();
    let read = progress.lines.read_cgi(input, &rules, line, method, head);
    if read.map_err(|reason| invalid(exchange, reason))? {
        progress.end_lines(exchange, head)
    } else {
        Ok(ReceivedHead::Incomplete)
    }
}

/// How far a response's head is.
#[derive(Default)]
pub(crate) struct Progress {
    /// Interim responses before it.
    pub(crate) interim: usize,
    /// What reads it, where it is one of lines.
    pub(crate) lines: HeadReader,
    /// Bytes of the head, once it is whole.
    pub(crate) head_bytes: usize,
    /// What the head says of the body and the connection, once it is whole.
    pub(crate) delivery: Delivery,
    /// What is to be sent before the response.
    pub(crate) hints: Hints,
    /// What takes off the records around the answer, where it comes in records.
    pub(crate) records: Option<Box<dyn RecordLayer>>,
}

/// What has come of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceivedHead {
    /// More is needed.
    Incomplete,
    /// Hints, which are to be sent before what has come behind them is looked at.
    Hints,
    /// All of it.
    Whole,
}

impl Progress {
    /// An answer of which nothing has come.
    pub(crate) fn of(origin: &dyn Origin, rooms: &mut Rooms) -> Self {
        Self {
            records: origin.record_layer(rooms),
            ..Self::default()
        }
    }

    /// Takes the records off what was read of `connection` behind the first `from` bytes of
    /// `input`.
    pub(crate) fn take_off(
        &mut self,
        exchange: &Exchange,
        connection: &Connection,
        input: &mut Received,
        from: usize,
    ) -> Result<(), Stop> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        let taken = take_off(&mut **records, exchange, connection, input, from);
        taken.map_err(|reason| {
            if records.is_unprocessed() {
                failed(exchange, &reason, Failure::Unprocessed)
            } else {
                invalid(exchange, &reason)
            }
        })
    }

    /// Takes a head of lines that is whole.
    ///
    /// # Errors
    /// Where it switches to a protocol that nobody has asked for, or does not show that it has
    /// understood the handshake.
    pub(crate) fn end_lines(
        &mut self,
        exchange: &Exchange,
        head: &Head,
    ) -> Result<ReceivedHead, Stop> {
        if head.status == 101 && !upgrade::is_wanted(exchange, head) {
            return Err(invalid(exchange, "upstream sent unexpected status 101"));
        }
        if head.status == 101 && !websocket::is_accepted(exchange, head) {
            let reason = "upstream sent invalid \"Sec-WebSocket-Accept\" header";
            return Err(invalid(exchange, reason));
        }
        self.head_bytes = self.lines.head_bytes();
        self.delivery = self.lines.delivery();
        Ok(ReceivedHead::Whole)
    }

    /// Takes an interim response. `true`: it holds hints, which are to be sent now.
    pub(crate) fn is_hint(
        &mut self,
        exchange: &Exchange,
        passing: &Passing,
        head: &Head,
    ) -> Result<bool, Stop> {
        self.interim += 1;
        self.hints.take(exchange, passing, head);
        if self.interim > INTERIM_MAX {
            let reason = "upstream sent too many interim responses";
            return Err(invalid(exchange, reason));
        }
        Ok(self.hints.wait())
    }

    /// Takes what has come of the head.
    pub(crate) fn read_head(
        &mut self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Received,
        head: &mut Head,
    ) -> Result<ReceivedHead, Stop> {
        let origin = &passing.origin;
        let received = origin.read_head(exchange, passing, input, head, self)?;
        let Some(records) = &self.records else {
            return Ok(received);
        };
        let head_bytes = match received {
            ReceivedHead::Whole => self.head_bytes,
            ReceivedHead::Incomplete | ReceivedHead::Hints => usize::MAX,
        };
        if records.refused_at().is_some_and(|at| at < head_bytes) {
            return Err(Stop::Failed(Failure::InvalidHeader));
        }
        if received == ReceivedHead::Incomplete && records.is_complete() {
            return Err(invalid(exchange, records.early_end()));
        }
        Ok(received)
    }
}

/// Takes the records off what was read of `connection` behind the first `from` bytes of `bytes`,
/// and sends what they are answered with, as far as that goes at once.
///
/// # Errors
/// What is wrong with the records, for the log.
pub(crate) fn take_off(
    records: &mut dyn RecordLayer,
    exchange: &Exchange,
    connection: &Connection,
    bytes: &mut Received,
    from: usize,
) -> Result<(), String> {
    let taken = bytes.change_behind(from, |bytes, from| records.take_off(exchange, bytes, from));
    // What is not sent now is sent with the request. If it cannot be sent, the next read fails.
    if let Some(http2) = http2_connection::of(connection) {
        let _ = http2_connection::try_write(&http2, connection);
    }
    taken
}

/// What reading brought, or why nothing.
pub(crate) fn received(exchange: &Exchange, read: io::Result<usize>) -> Result<(), Stop> {
    exchange.account.set_action(Action::ReadingUpstreamHead);
    match read {
        Ok(0) => {
            exchange.log(
                Level::Error,
                format_args!("upstream prematurely closed connection"),
            );
            Err(Stop::Failed(Failure::Error))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Stop::Failed(Failure::Timeout))
        }
        Err(error) => {
            let errno = Errno(&error);
            exchange.log(Level::Error, format_args!("recv() failed {errno}"));
            Err(Stop::Failed(Failure::Error))
        }
    }
}

/// What the server has sent is no answer; the log says why.
pub(crate) fn invalid(exchange: &Exchange, reason: &str) -> Stop {
    failed(exchange, reason, Failure::InvalidHeader)
}

fn failed(exchange: &Exchange, reason: &str, failure: Failure) -> Stop {
    exchange.log(Level::Error, format_args!("{reason}"));
    Stop::Failed(failure)
}
