//! A body whose bytes nobody has to see: they go from the server's socket to the client's inside
//! the kernel.

use std::io;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::response::{BodyFailed, Source};
use turnpike_lane::log::Level;
use turnpike_lane::timeout::within;

use super::{BodyProgress, CLIENT_GONE, Relay, State, gone};

/// Least rest of a body for which a pipe is worth its calls: copying fewer bytes costs less.
const BULK_BYTES_MIN: u64 = 16 * 1024;

impl Relay {
    /// See [`turnpike_http::response::BodyStream::source`].
    pub(super) fn raw_source(&self, exchange: &Exchange) -> Option<Source<'_>> {
        let bytes = self.reader.left_bytes()?;
        let server = self.server.as_ref()?;
        let is_raw = bytes >= BULK_BYTES_MIN
            && self.state == State::Reading
            && !self.holds()
            && self.expander.is_none()
            && self.records.is_none()
            && self.recorder.is_none()
            && self.limit.is_none()
            && self.upload.is_done(exchange)
            && server.connection.is_plain();
        is_raw.then(|| Source {
            socket: server.connection.relay_end(),
            bytes,
        })
    }

    /// See [`turnpike_http::response::BodyStream::source_ready`].
    pub(super) async fn raw_ready(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
    ) -> Result<(), BodyFailed> {
        exchange.account.set_action(Action::ReadingUpstream);
        let Some(server) = &self.server else {
            return Err(BodyFailed);
        };
        let watched = (!self.passing.ignores_client_abort).then_some(client);
        let readable = server.connection.relay_end().readable();
        let event = tokio::select! {
            biased;
            ready = within(self.passing.timeouts.read_ms, readable) => Some(ready),
            () = gone(watched) => None,
        };
        match event {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => self.received(exchange, Err(error), 0),
            None => self.broken(exchange, Level::Info, CLIENT_GONE),
        }
        Err(BodyFailed)
    }

    /// See [`turnpike_http::response::BodyStream::moved`].
    pub(super) fn raw_moved(
        &mut self,
        exchange: &mut Exchange,
        moved: io::Result<usize>,
    ) -> Result<bool, BodyFailed> {
        exchange.account.set_action(Action::ReadingUpstream);
        match moved {
            Ok(bytes @ 1..) => self.passed(exchange, bytes),
            end => self.received(exchange, end, 0),
        }
        match self.state {
            State::Broken => Err(BodyFailed),
            State::Reading | State::Whole => Ok(self.more()),
        }
    }

    fn passed(&mut self, exchange: &mut Exchange, bytes: usize) {
        let Some(server) = &self.server else { return };
        server.connection.passed(bytes);
        if let Some(one) = exchange.upstream.last_try() {
            one.response_bytes += bytes as u64;
        }
        if self.reader.skip(bytes as u64) {
            self.body = BodyProgress::Whole;
            let surplus = server.connection.has_input();
            self.note_surplus(exchange, surplus);
            self.end(exchange);
        }
    }
}
