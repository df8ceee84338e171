//! Static tables, and how fields are found in them.

/// The longest name in a table, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// A name and a value.
pub(crate) type Entry = (&'static [u8], &'static [u8]);

/// A table of `COUNT` entries, at most 256. Indexes begin at 0.
pub(crate) struct StaticTable<const COUNT: usize> {
    entries: [Entry; COUNT],
    /// Indexes of the entries, sorted by the lengths of their names.
    by_length: [u8; COUNT],
    /// The place in `by_length` of the first entry whose name has so many bytes or more.
    starts: [u8; NAME_BYTES_MAX + 2],
}

/// The place of a field in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Field(usize),
    Name(usize),
}

impl<const COUNT: usize> StaticTable<COUNT> {
    /// The table of these entries.
    pub(crate) const fn new(entries: [Entry; COUNT]) -> Self {
        let mut table = StaticTable {
            entries,
            by_length: [0; COUNT],
            starts: [0; NAME_BYTES_MAX + 2],
        };
        let mut at = 0;
        let mut length = 0;
        while length <= NAME_BYTES_MAX {
            table.starts[length] = at as u8;
            let mut entry = 0;
            while entry < COUNT {
                if entries[entry].0.len() == length {
                    table.by_length[at] = entry as u8;
                    at += 1;
                }
                entry += 1;
            }
            length += 1;
        }
        table.starts[length] = at as u8;
        assert!(at == COUNT, "a name is longer than NAME_BYTES_MAX");
        table
    }

    /// The entry with that index.
    pub(crate) fn entry(&self, index: usize) -> Option<Entry> {
        self.entries.get(index).copied()
    }

    /// The first entry with that field, or else with that name.
    pub(crate) fn find(&self, name: &[u8], value: &[u8]) -> Option<Found> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let range = usize::from(self.starts[name.len()])..usize::from(self.starts[name.len() + 1]);
        let mut found = None;
        for entry in &self.by_length[range] {
            let index = usize::from(*entry);
            let (own_name, own_value) = self.entries[index];
            if own_name != name {
                continue;
            }
            if own_value == value {
                return Some(Found::Field(index));
            }
            found = found.or(Some(Found::Name(index)));
        }
        found
    }
}
