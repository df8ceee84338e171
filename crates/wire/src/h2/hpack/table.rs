//! The dynamic table (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

use super::{CodingError, ENTRY_OVERHEAD_BYTES, static_table};

/// A field in the table.
struct Entry {
    /// Name and value.
    text: Box<[u8]>,
    name_bytes: usize,
    /// The hash of name and value; it makes most comparisons short.
    hash: u32,
}

impl Entry {
    fn size_bytes(&self) -> usize {
        self.text.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// The fields that were sent before, the last one first.
pub(super) struct Table {
    entries: VecDeque<Entry>,
    size_bytes: usize,
    bytes_max: usize,
}

impl Table {
    pub(super) fn new(bytes_max: usize) -> Table {
        Table {
            entries: VecDeque::new(),
            size_bytes: 0,
            bytes_max,
        }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Changes the size; evicts entries that no longer fit.
    pub(super) fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.make_room(0);
    }

    /// Adds a field. One that is larger than the table empties it (RFC 7541 section 4.4).
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let size_bytes = entry_bytes(name, value);
        self.make_room(size_bytes);
        if size_bytes > self.bytes_max {
            return;
        }
        self.size_bytes += size_bytes;
        self.entries.push_front(Entry {
            text: [name, value].concat().into(),
            name_bytes: name.len(),
            hash: hash(name, value),
        });
    }

    fn make_room(&mut self, bytes: usize) {
        while self.size_bytes + bytes > self.bytes_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.size_bytes -= entry.size_bytes();
        }
    }

    /// The field at an index of both tables.
    pub(super) fn field(&self, index: usize) -> Result<(&[u8], &[u8]), CodingError> {
        let from_zero = index.checked_sub(1).ok_or(CodingError::InvalidIndex)?;
        match static_table::TABLE.entry(from_zero) {
            Some(field) => Ok(field),
            None => {
                let entry = self.entries.get(from_zero - static_table::COUNT);
                let entry = entry.ok_or(CodingError::InvalidIndex)?;
                Ok(entry.text.split_at(entry.name_bytes))
            }
        }
    }

    /// Index of a field, in the numbers of both tables.
    pub(super) fn find(&self, name: &[u8], value: &[u8], hash: u32) -> Option<usize> {
        let at = self.entries.iter().position(|entry| {
            entry.hash == hash && entry.text.split_at(entry.name_bytes) == (name, value)
        });
        at.map(|at| at + static_table::COUNT + 1)
    }

    /// Index of a name, in the numbers of both tables.
    pub(super) fn find_name(&self, name: &[u8]) -> Option<usize> {
        let at = self
            .entries
            .iter()
            .position(|entry| entry.text.split_at(entry.name_bytes).0 == name);
        at.map(|at| at + static_table::COUNT + 1)
    }
}

/// The bytes that a field takes in the table.
pub(super) fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}

/// A hash of a field (FNV-1a). It only preselects entries, so an attacker gains nothing by a
/// collision.
pub(super) fn hash(name: &[u8], value: &[u8]) -> u32 {
    let bytes = name.iter().chain(b":").chain(value);
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
