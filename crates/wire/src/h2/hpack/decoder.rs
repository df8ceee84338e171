//! The decoder of header blocks.

use super::huffman::{self, Padding};
use super::table::Table;
use super::{HpackError, integer};

/// A receiver of the fields of a header block.
pub trait FieldSink {
    /// Takes the next field. The block is read to its end whatever the receiver does, since the
    /// table must match the sender's.
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// Decodes the header blocks of one direction of a connection.
pub struct Decoder {
    table: Table,
    /// The table size that the sender may use.
    table_bytes_max: usize,
    padding: Padding,
    /// Buffers for texts that are not in the table.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The bytes that a buffer for texts may keep between blocks.
const KEPT_BYTES_MAX: usize = 1024;

impl Decoder {
    /// A decoder that allows a table of this size.
    #[must_use]
    pub fn new(table_bytes_max: u32) -> Decoder {
        let table_bytes_max = table_bytes_max as usize;
        Decoder {
            table: Table::new(table_bytes_max),
            table_bytes_max,
            padding: Padding::Short,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The same, but it also accepts texts padded with a whole byte. The RFC forbids them, but some
    /// servers send them, and nginx accepts them.
    #[must_use]
    pub fn taking_long_padding(self) -> Decoder {
        Decoder {
            padding: Padding::WholeByte,
            ..self
        }
    }

    /// Decodes a complete header block.
    ///
    /// # Errors
    /// A connection error: the table no longer matches the sender's (RFC 9113 section 4.3).
    pub fn decode(&mut self, block: &[u8], sink: &mut impl FieldSink) -> Result<(), HpackError> {
        let mut input = block;
        let mut fields = 0u32;
        while let Some(first) = input.first() {
            match first {
                0x80.. => {
                    let index = integer::read(&mut input, 7)?;
                    let (name, value) = self.table.field(index)?;
                    sink.field(name, value);
                }
                0x40..0x80 => {
                    self.literal(&mut input, 6)?;
                    self.table.add(&self.name, &self.value);
                    sink.field(&self.name, &self.value);
                }
                0x20..0x40 => {
                    let bytes = integer::read(&mut input, 5)?;
                    if fields > 0 || bytes > self.table_bytes_max {
                        return Err(HpackError::InvalidTableSize);
                    }
                    self.table.resize(bytes);
                    continue;
                }
                ..0x20 => {
                    self.literal(&mut input, 4)?;
                    sink.field(&self.name, &self.value);
                }
            }
            fields += 1;
        }
        for room in [&mut self.name, &mut self.value] {
            room.clear();
            room.shrink_to(KEPT_BYTES_MAX);
        }
        Ok(())
    }

    /// Reads a literal field into the buffers.
    fn literal(&mut self, input: &mut &[u8], prefix_bits: u32) -> Result<(), HpackError> {
        self.name.clear();
        match integer::read(input, prefix_bits)? {
            0 => text(input, self.padding, &mut self.name)?,
            index => {
                let (name, _) = self.table.field(index)?;
                self.name.extend_from_slice(name);
            }
        }
        self.value.clear();
        text(input, self.padding, &mut self.value)
    }
}

/// Reads a text (RFC 7541 section 5.2).
fn text(input: &mut &[u8], padding: Padding, out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = input.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = integer::read(input, 7)?;
    let (text, rest) = input
        .split_at_checked(length)
        .ok_or(HpackError::Truncated)?;
    *input = rest;
    match is_huffman {
        true => huffman::decode_padded(text, padding, out),
        false => {
            out.extend_from_slice(text);
            Ok(())
        }
    }
}
