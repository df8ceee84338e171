//! Publishes answers once they have been sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_express::{ANSWER_BYTES_MAX, Answer, Key, Published, Publisher};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Logger;
use turnpike_lane::sys::process::{monotonic_ns, unix_ms};
use turnpike_wire::date;
use turnpike_wire::message::{Method, TargetForm, Version};

use super::eligible::{Ineligible, Reasons};
use super::samples::Note;
use super::syn::SynChoice;
use super::watch::{FileWatch, Watched};
use crate::common::published_copies::{Mixed, Original};

/// How many targets of a location are counted for `express auto`: two that share a count become hot
/// together.
const COUNTS: usize = 1024;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// The logger of a location with the express lane.
pub(super) struct Publishes {
    pub(super) publisher: Arc<Publisher>,
    /// `None`: whatever can be published is.
    pub(super) recent: Option<Recent>,
    pub(super) closes_kept: bool,
    /// One of so many requests is sampled; 0: none.
    pub(super) sampled_one_in: u32,
    pub(super) reasons: Arc<Reasons>,
    pub(super) files: Arc<FileWatch>,
    /// `None`: SYN segments are always answered.
    pub(super) syn: Option<Arc<SynChoice>>,
}

impl Logger for Publishes {
    fn log(&self, exchange: &Exchange) {
        if let Err(reason) = self.publish(exchange) {
            self.reasons.count(reason);
        }
        if let Some(syn) = &self.syn {
            syn.judge(&self.publisher, unix_ms() / 1000);
        }
    }
}

impl Publishes {
    /// Publishes the answer that was sent, where it can be.
    fn publish(&self, exchange: &Exchange) -> Result<(), Ineligible> {
        check_request(exchange)?;
        let gate = check_response(exchange)?;
        let bytes = exchange.sending.pending();
        let unix_ms = unix_ms();
        // The Date of a stored response is that of its making, and stays.
        let is_dated_now = exchange.response.made_unix_s().is_none();
        if is_dated_now && !has_date(bytes, unix_ms) {
            return Err(Ineligible::Date);
        }
        let head = exchange.request().head();
        let key = Key {
            gate,
            host: exchange.field(b"host").ok_or(Ineligible::Protocol)?,
            target: head.origin(),
            is_head: head.method == Method::Head,
        };
        if let Some(recent) = &self.recent {
            recent.count(key.target, unix_ms)?;
        }
        let original = Original::noted(exchange);
        if let Some(path) = original.and_then(Original::path)
            && self.files.watch(path, unix_ms / 1000) == Watched::FromNowOn
        {
            return Err(Ineligible::Unwatched);
        }
        let note = Note::noted(exchange, bytes).number();
        let answer = Answer {
            bytes,
            expires_ns: monotonic_ns() + lifetime_ms(original, is_dated_now, unix_ms)? * MS_NS,
            generation: 0,
            closes_kept: self.closes_kept,
            is_uncoded: false,
            derivation: match original {
                Some(original) => original.derivation().map_err(|Mixed| Ineligible::Mixed)?,
                None => None,
            },
            sampled_one_in: note.map_or(0, |_| self.sampled_one_in),
            note: note.unwrap_or_default(),
        };
        match self.publisher.publish(key, answer) {
            Published::Yes | Published::Already => Ok(()),
            Published::TooLong => Err(Ineligible::Key),
            Published::Busy => Err(Ineligible::Busy),
            Published::Withdrawn => Err(Ineligible::Withdrawn),
        }
    }
}

/// The longest time for which an answer is sent, in milliseconds: a hanging lane leaves no older
/// one behind.
const LIFETIME_MS_MAX: u64 = 1000;

/// For how many milliseconds an answer stays as it is: until the second of its Date is over, where
/// that is the time at which it was sent, or what it was made from ends.
fn lifetime_ms(
    original: Option<&Original>,
    is_dated_now: bool,
    unix_ms: u64,
) -> Result<u64, Ineligible> {
    let of_date_ms = if is_dated_now {
        1000 - unix_ms % 1000
    } else {
        LIFETIME_MS_MAX
    };
    match original.and_then(Original::until_ms) {
        None => Ok(of_date_ms),
        Some(until_ms) if until_ms <= unix_ms => Err(Ineligible::Withdrawn),
        Some(until_ms) => Ok(of_date_ms.min(until_ms - unix_ms)),
    }
}

fn check_request(exchange: &Exchange) -> Result<(), Ineligible> {
    let head = exchange.request().head();
    if let Some(difference) = exchange.walk.difference() {
        return Err(Ineligible::Differs(difference));
    }
    let is_plain = matches!(head.version, Version::Http10 | Version::Http11)
        && matches!(head.form, TargetForm::Origin)
        && exchange.requester.tls().is_none()
        && exchange.requester.proxy_header().is_none();
    match head.method {
        _ if !is_plain => Err(Ineligible::Protocol),
        Method::Get | Method::Head => Ok(()),
        _ => Err(Ineligible::Method),
    }
}

fn check_response(exchange: &Exchange) -> Result<SocketAddr, Ineligible> {
    let response = &exchange.response;
    if !matches!(
        response.status(),
        200 | 204 | 301 | 302 | 303 | 307 | 308 | 404 | 410
    ) {
        return Err(Ineligible::Status);
    }
    let of_client: [&[u8]; 3] = [b"Set-Cookie", b"Vary", b"WWW-Authenticate"];
    let is_there = |name: &[u8]| response.fields().values(name).next().is_some();
    if response.varies_by_coding() || of_client.into_iter().any(is_there) {
        return Err(Ineligible::Field);
    }
    let bytes = exchange.sending.pending().len();
    if bytes == 0 || bytes > ANSWER_BYTES_MAX || exchange.account.sent_bytes() != bytes as u64 {
        return Err(Ineligible::Size);
    }
    if exchange.sending.keeps_connection() {
        return Err(Ineligible::Kept);
    }
    exchange.local_address().ok_or(Ineligible::Protocol)
}

/// Whether an answer's Date is the present second.
fn has_date(bytes: &[u8], unix_ms: u64) -> bool {
    let now = date::format((unix_ms / 1000) as i64);
    let name = b"\r\nDate: ";
    let found = memchr::memmem::find(bytes, name);
    found.is_some_and(|at| bytes[at + name.len()..].starts_with(&now))
}

/// How often targets were asked for in this second, as far as lanes have seen it.
pub(super) struct Recent {
    /// Requests in a second from which on a target is hot.
    hot: u64,
    /// The second in the upper half, the count in the lower one.
    counts: Box<[AtomicU64]>,
}

impl Recent {
    /// `rate`: thousandths of a request per second.
    pub(super) fn new(rate: i64) -> Recent {
        Recent {
            hot: (rate / 1000).max(1) as u64,
            counts: (0..COUNTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a request for a target.
    fn count(&self, target: &[u8], unix_ms: u64) -> Result<(), Ineligible> {
        let second = (unix_ms / 1000) & 0xffff_ffff;
        let hash = target.iter().fold(0_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(*byte))
        });
        let Some(cell) = self.counts.get(hash as usize % COUNTS) else {
            return Err(Ineligible::Cold);
        };
        let known = cell.load(Relaxed);
        let (before, count) = (known >> 32, known & 0xffff_ffff);
        // A target stays hot for the second after one in which it was.
        let was_hot = before + 1 == second && count >= self.hot;
        let count = match before == second {
            true => count + 1,
            false if was_hot => self.hot,
            false => 1,
        };
        cell.store(second << 32 | count.min(0xffff_ffff), Relaxed);
        if count >= self.hot {
            Ok(())
        } else {
            Err(Ineligible::Cold)
        }
    }
}
