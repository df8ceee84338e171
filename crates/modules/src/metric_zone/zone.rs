//! A zone as a configuration names it, and the one way to update its metrics.

use std::sync::Arc;

use super::memory::{KEY_BYTES_MAX, Memory, NoRoom, States, WhenFull};
use super::mode::leading_number;

/// A zone with what this configuration says of it.
pub(super) struct Zone {
    pub(super) name: String,
    /// The place among the zones of its protocol.
    pub(super) index: usize,
    /// The names of the metrics; `None`: there is one, without a name of its own.
    pub(super) names: Option<Vec<String>>,
    pub(super) memory: Arc<Memory>,
    pub(super) when_full: WhenFull,
}

/// What came of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Updated {
    /// The metrics of the key have the value.
    Done,
    /// The key is empty, or the one of what was discarded.
    NotCounted,
    /// The zone is full.
    NoRoom,
}

impl Zone {
    /// Gives a value, as its text begins, to the metrics of a key.
    pub(super) fn update(&self, key: &[u8], value: &[u8], now_ms: u64) -> Updated {
        let is_reserved = self.when_full.discard_key.as_deref() == Some(key);
        if key.is_empty() || is_reserved {
            return Updated::NotCounted;
        }
        let (key, value) = (cut(key), leading_number(value));
        match self.memory.update(key, value, now_ms, &self.when_full) {
            Ok(()) => Updated::Done,
            Err(NoRoom) => Updated::NoRoom,
        }
    }

    /// The names of the metrics with the places of their states.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &str> {
        let modes = self.memory.modes().iter().enumerate();
        modes.map(|(index, mode)| match &self.names {
            Some(names) => names.get(index).map_or("", String::as_str),
            None => mode.name(),
        })
    }

    /// Appends the values of a key, with commas between them, or the one of that place; `false`
    /// if there are none.
    pub(super) fn append(
        &self,
        key: &[u8],
        only: Option<usize>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> bool {
        let modes = self.memory.modes();
        let append = |states: &[super::mode::State]| {
            let all = modes.iter().zip(states).enumerate();
            let wanted = all.filter(|(index, _)| only.is_none_or(|only| *index == only));
            for (nth, (_, (mode, state))) in wanted.enumerate() {
                if nth > 0 {
                    out.extend_from_slice(b", ");
                }
                mode.append(state, now_ms, out);
            }
        };
        self.memory.with(key, &self.when_full, append).is_some()
    }

    /// Copies of all keys' states, by the text that shows the key.
    pub(super) fn read(&self) -> std::collections::BTreeMap<String, States> {
        self.memory.read(&self.when_full)
    }
}

/// A key without what is too long.
pub(super) fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// A key and a value as they are written together: the last equals sign parts them.
pub(super) fn key_and_value(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().rposition(|byte| *byte == b'=') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}
