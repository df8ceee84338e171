//! Counts of responses that other servers gave, such as upstream servers: by class of status, with
//! bytes and times. All lanes add to them.

use super::{BOUNDS_NS, Counter, Distribution, PerThread};

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
pub struct AnswerCounts(PerThread<Cells>);

/// The counts of one thread.
#[derive(Default)]
struct Cells {
    classes: [Counter; AnswerCounts::CLASSES.len()],
    request_bytes: Counter,
    response_bytes: Counter,
    buckets: [Counter; BOUNDS_NS.len() + 1],
    sum_ms: Counter,
}

impl Cells {
    fn add(&self, answer: Answer) {
        let class = usize::from(answer.status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.classes.get(class)) {
            count.add();
        }
        self.request_bytes.add_many(answer.request_bytes);
        self.response_bytes.add_many(answer.response_bytes);
        // A time in whole milliseconds may be up to one longer.
        let took_ns = answer.took_ms.max(1).saturating_mul(1_000_000);
        let bucket = BOUNDS_NS.iter().position(|bound| took_ns <= *bound);
        self.buckets[bucket.unwrap_or(BOUNDS_NS.len())].add();
        self.sum_ms.add_many(answer.took_ms);
    }
}

impl AnswerCounts {
    /// The classes of statuses, by their first digit.
    pub const CLASSES: [&'static str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

    /// Counts an answer. A status outside of all classes is not counted by class.
    pub fn add(&self, answer: Answer) {
        self.0.write(|cells| cells.add(answer));
    }

    /// The number of answers in each class, in the order of [`AnswerCounts::CLASSES`].
    pub fn by_class(&self) -> [u64; AnswerCounts::CLASSES.len()] {
        std::array::from_fn(|class| self.0.sum(|cells| cells.classes[class].value()))
    }

    /// The bytes of all requests.
    pub fn request_bytes(&self) -> u64 {
        self.0.sum(|cells| cells.request_bytes.value())
    }

    /// The bytes of all answers.
    pub fn response_bytes(&self) -> u64 {
        self.0.sum(|cells| cells.response_bytes.value())
    }

    /// The times of the answers, in whole milliseconds rounded up.
    pub fn times(&self) -> Distribution {
        let count = |bucket: usize| self.0.sum(|cells| cells.buckets[bucket].value());
        let sum_ms = self.0.sum(|cells| cells.sum_ms.value());
        Distribution {
            buckets: (0..=BOUNDS_NS.len()).map(count).collect(),
            sum_ns: sum_ms.saturating_mul(1_000_000),
        }
    }
}
