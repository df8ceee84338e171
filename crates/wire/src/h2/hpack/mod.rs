//! HPACK, the compression of header fields (RFC 7541).

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, FieldSink};
pub use encoder::{Encoder, Indexing};
pub use huffman::{decode as decode_huffman, encode as encode_huffman};

/// The size of a dynamic table without a setting, in bytes.
pub const TABLE_BYTES_DEFAULT: u32 = 4096;

/// The bytes that an entry of a table counts in addition to its text (RFC 7541 section 4.1).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;

/// Why a header block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends in the middle of a field.
    Truncated,
    /// The block ends in the middle of an integer.
    TruncatedInteger,
    /// An integer is larger than any length or index may be.
    IntegerTooLarge,
    /// An index that neither table has.
    InvalidIndex,
    /// A text is not valid in the Huffman code.
    InvalidHuffman,
    /// The size of the table is changed to more than was allowed, or after a field.
    InvalidTableSize,
}
