//! `early_hints`: `103 Early Hints` (RFC 8297) of upstream servers on their way to the client.

use std::os::fd::AsFd;

use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket_option;
use turnpike_wire::h1::{self, Known, ResponseHead, Version};

use super::settings::Passing;
use crate::predicates::any_holds;

/// The status of early hints.
pub(crate) const EARLY_HINTS: u16 = 103;

/// Hints that wait to be sent, and how many there were.
#[derive(Default)]
pub(crate) struct Hints {
    /// Whole interim responses.
    text: Vec<u8>,
    /// Bytes of all hints of this try; no more than the first part of a response may have.
    seen_bytes: usize,
}

impl Hints {
    /// Whether there is something to be sent.
    pub(crate) fn wait(&self) -> bool {
        !self.text.is_empty()
    }

    /// Takes the hints of an interim head, where the client is to see them.
    pub(crate) fn take(
        &mut self,
        exchange: &Exchange,
        passing: &Passing,
        head: &ResponseHead,
        input: &[u8],
    ) {
        if head.status != EARLY_HINTS || exchange.background || !are_wanted(exchange, passing) {
            return;
        }
        self.seen_bytes += head.head_len;
        if self.seen_bytes > passing.buffers.first_bytes {
            exchange.log(
                Level::Info,
                format_args!("upstream sent too big early hints"),
            );
            return;
        }
        let start = self.text.len();
        self.text.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        let fields_start = self.text.len();
        for field in &head.fields {
            let name = field.name.of(input);
            let value = field.value.of(input);
            if passing.hidden.has(field.known, name)
                || is_of_connection(field.known)
                || head.is_connection_option(input, name)
                || !exchange.may_send_value(value)
            {
                continue;
            }
            for part in [name, b": ", value, b"\r\n"] {
                self.text.extend_from_slice(part);
            }
        }
        match self.text.len() > fields_start {
            true => h1::end(&mut self.text),
            // Nothing is hinted at.
            false => self.text.truncate(start),
        }
    }

    /// Sends what waits. A client that takes none is found out by the answer.
    pub(crate) async fn send(&mut self, exchange: &mut Exchange, client: &Stream) {
        let settings = &exchange.location().settings;
        let timeout_ms = settings.send_timeout_ms;
        if settings.tcp_nodelay && exchange.client.peer.inet().is_some() {
            // Else the answer, which follows soon, would wait for these to be acknowledged. A
            // socket that cannot do this is only slower.
            let _ = socket_option::set_no_delay(client.as_fd(), true);
        }
        let text = std::mem::take(&mut self.text);
        if client.send_all(&text, timeout_ms).await.is_ok() {
            exchange.bytes_sent += text.len() as u64;
        }
    }
}

/// Whether the client is to see hints: where the configuration does not say, if it knows them.
fn are_wanted(exchange: &Exchange, passing: &Passing) -> bool {
    let version = exchange.head.version;
    if passing.early_hints.is_empty() {
        let bytes = exchange.head_bytes();
        let mut fields = exchange.head.fields.iter();
        let mode = fields.find(|field| {
            let name = field.name.of(bytes);
            name.eq_ignore_ascii_case(b"Sec-Fetch-Mode")
        });
        let mode = mode.map(|field| field.value.of(bytes));
        return knows_hints(is_multiplexed(version), mode);
    }
    let understands = !matches!(version, Version::Http09 | Version::Http10);
    understands && any_holds(exchange, &passing.early_hints)
}

/// Whether a client is one that is known to make use of hints: a browser that opens a page, and
/// talks HTTP/2 or later. Browsers ignore hints in HTTP/1.1, and between them and us there may be
/// proxies that pass on their fields and take a 103 for the answer.
pub(crate) fn knows_hints(multiplexed: bool, fetch_mode: Option<&[u8]>) -> bool {
    multiplexed && fetch_mode.is_some_and(|mode| mode.eq_ignore_ascii_case(b"navigate"))
}

/// Whether it is HTTP/2 or later.
fn is_multiplexed(version: Version) -> bool {
    !matches!(version, Version::Http09 | Version::Http10 | Version::Http11)
}

/// Fields that say nothing of the response itself.
fn is_of_connection(known: Known) -> bool {
    matches!(
        known,
        Known::ContentLength
            | Known::Connection
            | Known::KeepAlive
            | Known::TransferEncoding
            | Known::Upgrade
            | Known::Trailer
    )
}
