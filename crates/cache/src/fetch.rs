//! One fetch per key for all lanes and clients (`proxy_cache_lock`).
//!
//! The table knows the keys that are being fetched, and not the responses. The holder of a [`Turn`]
//! fetches; the others wait until it is dropped.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The number of tables, each with its own lock, so that lanes rarely contend.
const TABLES: usize = 16;

/// The fetches in progress.
#[derive(Default)]
pub struct Fetches {
    tables: [Mutex<Table>; TABLES],
    hasher: RandomState,
}

type Table = HashMap<Arc<[u8]>, Arc<Fetch>>;

/// One fetch.
#[derive(Default)]
pub struct Fetch {
    started_ms: AtomicU64,
    ended: AtomicU8,
    outcome_known: Notify,
}

/// The outcome of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The response was stored: look it up again.
    Stored,
    /// The response may not be stored: each request fetches for itself.
    NotStored,
    /// The fetch failed or was given up: another request tries.
    Failed,
}

/// The right to fetch a key. Dropping it wakes the waiting requests.
pub struct Turn {
    fetches: Arc<Fetches>,
    key: Arc<[u8]>,
    fetch: Arc<Fetch>,
    outcome: FetchOutcome,
}

/// The answer to a request for a turn.
pub enum TurnAnswer {
    /// The caller has the turn.
    Ours(Turn),
    /// Another request has the turn.
    Theirs(Arc<Fetch>),
}

impl Fetches {
    /// Requests the right to fetch `key`. A holder older than `age_ms` is no longer waited for.
    /// `now_ms` is a clock that all lanes share.
    pub fn ask(self: &Arc<Self>, key: &[u8], now_ms: u64, age_ms: u64) -> TurnAnswer {
        let mut table = self
            .table(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(fetch) = table.get(key)
            && now_ms.saturating_sub(fetch.started_ms.load(Ordering::Relaxed)) < age_ms
        {
            return TurnAnswer::Theirs(fetch.clone());
        }
        let fetch = Arc::new(Fetch::default());
        fetch.started_ms.store(now_ms, Ordering::Relaxed);
        let key: Arc<[u8]> = key.into();
        table.insert(key.clone(), fetch.clone());
        TurnAnswer::Ours(Turn {
            fetches: self.clone(),
            key,
            fetch,
            outcome: FetchOutcome::Failed,
        })
    }

    /// Whether `key` is being fetched.
    pub fn is_under_way(&self, key: &[u8]) -> bool {
        let table = self
            .table(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        table.contains_key(key)
    }

    fn table(&self, key: &[u8]) -> &Mutex<Table> {
        &self.tables[self.hasher.hash_one(key) as usize % TABLES]
    }
}

impl Fetch {
    /// Waits for the end of the fetch.
    pub async fn ended(&self) -> FetchOutcome {
        loop {
            let mut notified = std::pin::pin!(self.outcome_known.notified());
            // It registers before it checks, so that no end is missed in between.
            notified.as_mut().enable();
            if let Some(outcome) = FetchOutcome::from(self.ended.load(Ordering::Acquire)) {
                return outcome;
            }
            notified.await;
        }
    }
}

impl FetchOutcome {
    const fn number(self) -> u8 {
        match self {
            Self::Stored => 1,
            Self::NotStored => 2,
            Self::Failed => 3,
        }
    }

    const fn from(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Stored),
            2 => Some(Self::NotStored),
            3 => Some(Self::Failed),
            _ => None,
        }
    }
}

impl Turn {
    /// Ends the fetch with this outcome, and wakes the waiting requests.
    pub fn end_fetch(mut self, outcome: FetchOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let table = self.fetches.table(&self.key);
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        // Another turn may have overtaken this one by age and own the entry.
        if table
            .get(&self.key)
            .is_some_and(|fetch| Arc::ptr_eq(fetch, &self.fetch))
        {
            table.remove(&self.key);
        }
        drop(table);
        self.fetch
            .ended
            .store(self.outcome.number(), Ordering::Release);
        self.fetch.outcome_known.notify_waiters();
    }
}
