//! When a request may be passed to another server.

use turnpike_upstream::FailReason;
use turnpike_wire::message::Method;

use super::view::PassView;

/// Why a try did not bring a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection, or it broke.
    Error,
    /// A server took too long.
    Timeout,
    /// What it sent is no response.
    InvalidHeader,
    /// The server has not processed the request, and said so (RFC 9113 section 8.7).
    Unprocessed,
    /// The server answered with a status that `..._next_upstream` names.
    Status(u16),
    /// No server could be asked.
    NoLive,
    /// The group has no servers: none has failed.
    NoServers,
    /// `worker_connections` are used up: a failure of ours.
    NoConnection,
}

impl Failure {
    /// The status that the client gets.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Error | Self::InvalidHeader | Self::Unprocessed | Self::NoLive => 502,
            Self::NoConnection => 500,
            Self::NoServers => 503,
            Self::Timeout => 504,
            Self::Status(status) => status,
        }
    }

    /// What is held against the server; `None` where nothing is.
    pub(crate) fn blame(self) -> Option<FailReason> {
        match self {
            Self::Error | Self::Unprocessed => Some(FailReason::Error),
            Self::Timeout => Some(FailReason::Timeout),
            Self::InvalidHeader => Some(FailReason::InvalidHeader),
            // These are answers about what was asked for, not about the server.
            Self::Status(403 | 404) | Self::NoLive | Self::NoServers | Self::NoConnection => None,
            Self::Status(status) => Some(FailReason::Status(status)),
        }
    }

    fn bit(self) -> u32 {
        match self {
            Self::Error | Self::Unprocessed | Self::NoConnection => ERROR,
            Self::Timeout => TIMEOUT,
            Self::InvalidHeader => INVALID_HEADER,
            Self::NoLive | Self::NoServers => NO_LIVE,
            Self::Status(status) => match STATUSES.iter().position(|own| *own == status) {
                Some(index) => STATUS << index,
                None => 0,
            },
        }
    }
}

const ERROR: u32 = 1;
const TIMEOUT: u32 = 2;
const INVALID_HEADER: u32 = 4;
const NON_IDEMPOTENT: u32 = 8;
const NO_LIVE: u32 = 16;
/// The first status; the others follow.
const STATUS: u32 = 32;

/// Statuses that may be named.
const STATUSES: &[u16] = &[500, 502, 503, 504, 403, 404, 429];

/// `..._next_upstream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextConditions(u32);

impl NextConditions {
    /// Reads the directives in force.
    pub(crate) fn read(pass: PassView<'_>) -> Self {
        let entries = pass.nearest_all("next_upstream");
        if entries.is_empty() {
            return Self(ERROR | TIMEOUT);
        }
        let words = entries.iter().flat_map(|entry| entry.arguments.iter());
        Self::of(words.map(|word| word.text.as_str()))
    }

    /// The conditions that these words name.
    pub(crate) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut bits = 0;
        for word in words {
            bits |= match word.to_ascii_lowercase().as_str() {
                "error" => ERROR,
                "timeout" => TIMEOUT,
                "invalid_header" | "invalid_response" => INVALID_HEADER,
                "not_found" => Failure::Status(404).bit(),
                "non_idempotent" => NON_IDEMPOTENT,
                "off" => return Self(0),
                word => match word.strip_prefix("http_").map(str::parse) {
                    Some(Ok(status)) => Failure::Status(status).bit(),
                    _ => 0,
                },
            };
        }
        Self(bits)
    }

    /// Whether a request may go on to another server. `sent`: something of it was sent to the one
    /// that failed.
    pub(crate) fn allow(self, failure: Failure, method: Method, sent: bool) -> bool {
        let once = {
            // A method that we do not know may not be repeated.
            matches!(
                method,
                Method::Post | Method::Lock | Method::Patch | Method::Other
            )
        };
        let mut needed = failure.bit();
        if sent && once && failure != Failure::Unprocessed {
            needed |= NON_IDEMPOTENT;
        }
        failure.bit() != 0 && self.0 & needed == needed
    }
}
