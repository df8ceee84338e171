//! How often names were looked up, what was sent to name servers, and what came of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_wire::dns::Question;

/// Counts of a resolver, each with the word by which Angie shows it.
#[derive(Debug, Default)]
pub struct LookupCounts {
    queries: [AtomicU64; QUERIES.len()],
    sent: [AtomicU64; SENT.len()],
    responses: [AtomicU64; RESPONSES.len()],
}

const QUERIES: [&str; 2] = ["name", "srv"];
const SENT: [&str; 3] = ["a", "aaaa", "srv"];

/// By the code of the answer; the last two are of other codes, and of lookups without an answer.
const RESPONSES: [&str; 8] = [
    "success",
    "format_error",
    "server_failure",
    "not_found",
    "unimplemented",
    "refused",
    "other",
    "timedout",
];
const OTHER: usize = 6;
const TIMED_OUT: usize = 7;

impl LookupCounts {
    /// Lookups of names and of services, also those that the cache answered.
    pub fn queries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        shown(&QUERIES, &self.queries)
    }

    /// Questions to name servers, by the type of the records.
    pub fn sent(&self) -> impl Iterator<Item = (&'static str, u64)> {
        shown(&SENT, &self.sent)
    }

    /// Answers of name servers by their code, and lookups that got none in time.
    pub fn responses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        shown(&RESPONSES, &self.responses)
    }

    pub(super) fn add_name_query(&self) {
        self.queries[0].fetch_add(1, Relaxed);
    }

    pub(super) fn add_service_query(&self) {
        self.queries[1].fetch_add(1, Relaxed);
    }

    pub(super) fn add_sent(&self, question: Question) {
        let index = match question {
            Question::A => 0,
            Question::Aaaa => 1,
            Question::Srv => 2,
        };
        self.sent[index].fetch_add(1, Relaxed);
    }

    pub(super) fn add_response(&self, code: u8) {
        self.responses[usize::from(code).min(OTHER)].fetch_add(1, Relaxed);
    }

    pub(super) fn add_timed_out(&self) {
        self.responses[TIMED_OUT].fetch_add(1, Relaxed);
    }
}

fn shown(
    words: &[&'static str],
    counts: &[AtomicU64],
) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = counts.iter().map(|count| count.load(Relaxed));
    words.iter().copied().zip(counts)
}
