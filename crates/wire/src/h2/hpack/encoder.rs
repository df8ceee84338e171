//! The encoder of header blocks.
//!
//! A field goes into the table when it is sent for the second time: most fields that are sent once
//! do not come again, and would evict those that do. Large fields stay out for the same reason.

use super::static_table::{self, Found};
use super::table::{self, Table};
use super::{TABLE_BYTES_DEFAULT, huffman, integer};

/// Hashes of fields that were sent once; enough for about ten responses.
const SEEN_MAX: usize = 64;

/// The part of the table that one field may fill: a larger field evicts most of the others, and a
/// field larger than the table empties it without being stored (RFC 7541 section 4.4).
const ENTRY_PART: usize = 2;

/// Whether a field may go into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// When it is sent again.
    WhenRepeated,
    /// Never, since it rarely repeats: a length, a date.
    No,
    /// Never, and by no intermediary either: it is a secret that an attacker could guess from its
    /// compressed size (RFC 7541 section 7.1.3).
    Never,
}

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
        lower.clear();
        lower.extend(name.iter().map(u8::to_ascii_lowercase));
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
        let known = static_table::find(name, value);
        if let Some(Found::Field(index)) = known {
            return integer::write(out, 0x80, 7, index);
        }
        let name_index = match known {
            Some(Found::Name(index)) => Some(index),
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
                match std::mem::replace(seen, hash) == hash {
                    true => (0x40, 6),
                    false => (0, 4),
                }
            }
        };
        let name_index = name_index.or_else(|| self.table.find_name(name));
        integer::write(out, first, prefix_bits, name_index.unwrap_or(0));
        if name_index.is_none() {
            text(name, out);
        }
        text(value, out);
        if prefix_bits == 6 {
            self.table.add(name, value);
        }
    }

    /// Whether a field is small enough for the table.
    fn has_place(&self, name: &[u8], value: &[u8]) -> bool {
        table::entry_bytes(name, value) <= self.table.bytes_max() / ENTRY_PART
    }
}

/// Appends a text, Huffman-encoded if that is shorter.
fn text(text: &[u8], out: &mut Vec<u8>) {
    let encoded_bytes = huffman::encoded_bytes(text);
    if encoded_bytes < text.len() {
        integer::write(out, 0x80, 7, encoded_bytes);
        huffman::encode(text, out);
    } else {
        integer::write(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}
