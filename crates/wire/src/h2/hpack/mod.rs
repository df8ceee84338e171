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

/// Bytes of a dynamic table where no setting says otherwise.
pub const TABLE_BYTES_DEFAULT: u32 = 4096;

/// Bytes that an entry of a table counts beyond its text (RFC 7541 section 4.1).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;

/// Why a header block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends where a field should go on.
    Truncated,
    /// The block ends within an integer.
    TruncatedInteger,
    /// An integer is larger than any length or index may be.
    IntegerTooLarge,
    /// An index that neither table has.
    InvalidIndex,
    /// A text is not what Huffman's code allows.
    InvalidHuffman,
    /// The size of the table is changed to more than was allowed, or behind a field.
    InvalidTableSize,
}
