//! HPACK, the compression of header fields (RFC 7541).

mod decoder;
mod encoder;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use crate::field_section::{CodingError, FieldSink, Indexing, decode_huffman, encode_huffman};
pub use decoder::Decoder;
pub use encoder::Encoder;

/// The size of a dynamic table without a setting, in bytes.
pub const TABLE_BYTES_DEFAULT: u32 = 4096;

/// The bytes that an entry of a table counts in addition to its text (RFC 7541 section 4.1).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;
