//! Counts of responses that other servers gave, such as upstream servers: by class of status, with
//! bytes and times. All lanes add to the same counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{BOUNDS_NS, Distribution};

/// One answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Bytes of the request.
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// The time from the start of the request to the end of the answer.
    pub took_ms: u64,
}

/// Counts of answers.
#[derive(Default)]
pub struct AnswerCounts {
    classes: [AtomicU64; AnswerCounts::CLASSES.len()],
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ms: AtomicU64,
}

impl AnswerCounts {
    /// The classes of statuses, by their first digit.
    pub const CLASSES: [&'static str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

    /// Counts an answer. A status outside of all classes is not counted by class.
    pub fn add(&self, answer: Answer) {
        let class = usize::from(answer.status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.classes.get(class)) {
            count.fetch_add(1, Relaxed);
        }
        self.request_bytes.fetch_add(answer.request_bytes, Relaxed);
        self.response_bytes
            .fetch_add(answer.response_bytes, Relaxed);
        // A time in whole milliseconds may be up to one longer.
        let took_ns = answer.took_ms.max(1).saturating_mul(1_000_000);
        let bucket = BOUNDS_NS.iter().position(|bound| took_ns <= *bound);
        self.buckets[bucket.unwrap_or(BOUNDS_NS.len())].fetch_add(1, Relaxed);
        self.sum_ms.fetch_add(answer.took_ms, Relaxed);
    }

    /// The number of answers in each class, in the order of [`AnswerCounts::CLASSES`].
    pub fn by_class(&self) -> [u64; AnswerCounts::CLASSES.len()] {
        self.classes.each_ref().map(|count| count.load(Relaxed))
    }

    /// The bytes of all requests.
    pub fn request_bytes(&self) -> u64 {
        self.request_bytes.load(Relaxed)
    }

    /// The bytes of all answers.
    pub fn response_bytes(&self) -> u64 {
        self.response_bytes.load(Relaxed)
    }

    /// The times of the answers, in whole milliseconds rounded up.
    pub fn times(&self) -> Distribution {
        let buckets = self.buckets.iter().map(|count| count.load(Relaxed));
        Distribution {
            buckets: buckets.collect(),
            sum_ns: self.sum_ms.load(Relaxed).saturating_mul(1_000_000),
        }
    }
}
