//! QPACK, the compression of field sections in HTTP/3 (RFC 9204), with the static table alone.
//!
//! A dynamic table saves a client some bytes, and costs the server memory for each connection and
//! sections that wait for other streams. Neither side uses one here: our settings allow none, which
//! is the default of the RFC, so that a reference to it is an error, and no section ever waits.

mod decoder;
mod encoder;
mod instructions;
mod static_table;
#[cfg(test)]
mod tests;

pub use crate::field_section::{CodingError, FieldSink, Indexing};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub(crate) use instructions::{DecoderInstructions, check_encoder_instructions};
