//! Why answers are not published, and how often each reason was met.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_http::difference::Difference;

/// Why an answer is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ineligible {
    /// The answer may be another for the next client.
    Differs(Difference),
    /// The request did not come over plain HTTP/1 with a host and a path.
    Protocol,
    /// Neither GET nor HEAD.
    Method,
    /// The status is of this request only.
    Status,
    /// A field of the response is for this client, or says on what the response depends.
    Field,
    /// The answer was not sent whole, or is larger than a segment.
    Size,
    /// The connection is kept.
    Kept,
    /// The second of its Date is over.
    Date,
    /// The target is not asked for often enough.
    Cold,
    /// The answer was made from several items, of which each may change.
    Mixed,
    /// What the answer was made from may have changed since, or ends now.
    Withdrawn,
    /// The file is watched from now on: it may have changed since it was opened.
    Unwatched,
    /// Other lanes publish at this moment, or one has the place.
    Busy,
    /// The key is too long: the host or the target.
    Key,
}

/// The reasons that are no differences.
const OTHERS: &[Ineligible] = &[
    Ineligible::Protocol,
    Ineligible::Method,
    Ineligible::Status,
    Ineligible::Field,
    Ineligible::Size,
    Ineligible::Kept,
    Ineligible::Date,
    Ineligible::Cold,
    Ineligible::Mixed,
    Ineligible::Withdrawn,
    Ineligible::Unwatched,
    Ineligible::Busy,
    Ineligible::Key,
];

impl Ineligible {
    /// Every reason.
    fn all() -> impl Iterator<Item = Ineligible> {
        let differences = Difference::ALL.iter().copied().map(Ineligible::Differs);
        differences.chain(OTHERS.iter().copied())
    }

    /// The name in metrics.
    fn name(self) -> &'static str {
        match self {
            Ineligible::Differs(difference) => difference.name(),
            Ineligible::Protocol => "protocol",
            Ineligible::Method => "method",
            Ineligible::Status => "status",
            Ineligible::Field => "field",
            Ineligible::Size => "size",
            Ineligible::Kept => "kept",
            Ineligible::Date => "date",
            Ineligible::Cold => "cold",
            Ineligible::Mixed => "mixed",
            Ineligible::Withdrawn => "withdrawn",
            Ineligible::Unwatched => "unwatched",
            Ineligible::Busy => "busy",
            Ineligible::Key => "key",
        }
    }
}

/// How often each reason was met.
#[derive(Debug)]
pub(super) struct Reasons(Vec<AtomicU64>);

impl Default for Reasons {
    fn default() -> Reasons {
        Reasons(Ineligible::all().map(|_| AtomicU64::new(0)).collect())
    }
}

impl Reasons {
    /// Counts an answer that is not published.
    pub(super) fn count(&self, reason: Ineligible) {
        let place = Ineligible::all().position(|known| known == reason);
        if let Some(count) = place.and_then(|place| self.0.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Each reason's name and count.
    pub(super) fn read(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = Ineligible::all().map(Ineligible::name);
        names.zip(self.0.iter().map(|count| count.load(Relaxed)))
    }
}
