//! Field sections (RFC 9110 section 5) as HTTP/2 and HTTP/3 send them: the heads that are built
//! from their fields, and what HPACK and QPACK have in common.
//!
//! This module does not know how a field is encoded: [`crate::h2::hpack`] and [`crate::qpack`] do.

mod huffman;
pub(crate) mod integer;
mod request;
mod response;
pub(crate) mod static_table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub use huffman::{decode as decode_huffman, encode as encode_huffman};
pub use request::{HeadFault, RequestReader};
pub use response::{ResponseFault, ResponseReader};

/// A receiver of the fields of a section.
pub trait FieldSink {
    /// Takes the next field. The section is read to its end whatever the receiver does: a dynamic
    /// table must match the sender's.
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// Whether a field may go into a dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// When it is sent again.
    WhenRepeated,
    /// Never, since it rarely repeats: a length, a date.
    No,
    /// Never, and by no intermediary either: it is a secret that an attacker could guess from its
    /// compressed size (RFC 7541 section 7.1.3, RFC 9204 section 7.1.3).
    Never,
}

/// Why a section cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingError {
    /// The section ends in the middle of a field.
    Truncated,
    /// The section ends in the middle of an integer.
    TruncatedInteger,
    /// An integer is larger than any length or index may be.
    IntegerTooLarge,
    /// An index that no table has.
    InvalidIndex,
    /// A text is not valid in the Huffman code.
    InvalidHuffman,
    /// The size of the table is changed to more than was allowed, or after a field (HPACK).
    InvalidTableSize,
}

/// Buffers for the name and the value of a field that are not in a table.
#[derive(Default)]
pub(crate) struct Literal {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// The bytes that a buffer may keep between sections.
const KEPT_BYTES_MAX: usize = 1024;

impl Literal {
    /// Empties the buffers, and gives back what a large section has made of them.
    pub(crate) fn rest(&mut self) {
        for room in [&mut self.name, &mut self.value] {
            room.clear();
            room.shrink_to(KEPT_BYTES_MAX);
        }
    }
}

/// The lower-case name of a field that is written (RFC 9113 section 8.2, RFC 9114 section 4.2).
pub(crate) fn write_lower_case(name: &[u8], lower: &mut Vec<u8>) {
    lower.clear();
    lower.extend(name.iter().map(u8::to_ascii_lowercase));
}
