//! The encoder of header blocks.
//!
//! A field goes into the table when it is sent for the second time: most fields that are sent once
//! do not come again, and would evict those that do. Large fields stay out for the same reason.

use super::decoder::TEXT_PREFIX_BITS;
use super::table::{self, Table};
use super::{Indexing, TABLE_BYTES_DEFAULT, static_table};
use crate::field_section::static_table::Found;
use crate::field_section::{integer, text, write_lower_case};

/// Hashes of fields that were sent once; enough for about ten responses.
const SEEN_MAX: usize = 64;

/// The part of the table that one field may fill: a larger field evicts most of the others, and a
/// field larger than the table empties it without being stored (RFC 7541 section 4.4).
const ENTRY_PART: usize = 2;

/// Encodes the header blocks of one direction of a connection.
pub struct Encoder {
    table: Table,
    /// The smallest size of the table since the last block, and the current one: both are sent to
    /// the receiver (RFC 7541 section 4.2).
    resized: Option<(usize, usize)>,
    seen: [u32; SEEN_MAX],
    /// The name in lower case.
    name: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            table: Table::new(TABLE_BYTES_DEFAULT as usize),
            resized: None,
            seen: [0; SEEN_MAX],
            name: Vec::new(),
        }
    }
}

impl Encoder {
    /// Sets the table size that the receiver allows. At most the default size is used.
    pub fn allow_table(&mut self, bytes: u32) {
        let bytes = bytes.min(TABLE_BYTES_DEFAULT) as usize;
        let smallest = match self.resized {
            Some((smallest, _)) => smallest.min(bytes),
            None if bytes == self.table.bytes_max() => return,
            None => bytes,
        };
        self.resized = Some((smallest, bytes));
    }

    /// Begins a header block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, last)) = self.resized.take() else {
            return;
        };
        for bytes in [smallest, last] {
            if bytes != self.table.bytes_max() {
                self.table.resize(bytes);
                integer::write(out, 0x20, 5, bytes);
            }
        }
    }

    /// Appends a field; its name is written in lower case (RFC 9113 section 8.2).
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let mut lower = std::mem::take(&mut self.name);
        write_lower_case(name, &mut lower);
        self.lower_case_field(&lower, value, indexing, out);
        self.name = lower;
    }

    fn lower_case_field(
        &mut self,
        name: &[u8],
        value: &[u8],
        indexing: Indexing,
        out: &mut Vec<u8>,
    ) {
        let known = static_table::TABLE.find(name, value);
        if let Some(Found::Field(index)) = known {
            return integer::write(out, 0x80, 7, index + 1);
        }
        let name_index = match known {
            Some(Found::Name(index)) => Some(index + 1),
            _ => None,
        };
        let indexing = match indexing {
            Indexing::WhenRepeated if !self.has_place(name, value) => Indexing::No,
            indexing => indexing,
        };
        let (first, prefix_bits) = match indexing {
            Indexing::Never => (0x10, 4),
            Indexing::No => (0, 4),
            Indexing::WhenRepeated => {
                let hash = table::hash(name, value);
                if let Some(index) = self.table.find(name, value, hash) {
                    return integer::write(out, 0x80, 7, index);
                }
                let seen = &mut self.seen[hash as usize % SEEN_MAX];
                if std::mem::replace(seen, hash) == hash {
                    (0x40, 6)
                } else {
                    (0, 4)
                }
            }
        };
        let name_index = name_index.or_else(|| self.table.find_name(name));
        integer::write(out, first, prefix_bits, name_index.unwrap_or(0));
        if name_index.is_none() {
            text::write(out, 0, TEXT_PREFIX_BITS, name);
        }
        text::write(out, 0, TEXT_PREFIX_BITS, value);
        if prefix_bits == 6 {
            self.table.add(name, value);
        }
    }

    /// Whether a field is small enough for the table.
    fn has_place(&self, name: &[u8], value: &[u8]) -> bool {
        table::entry_bytes(name, value) <= self.table.bytes_max() / ENTRY_PART
    }
}
