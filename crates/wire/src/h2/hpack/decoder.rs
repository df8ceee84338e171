//! The decoder of header blocks.

use super::table::Table;
use super::{CodingError, FieldSink};
use crate::field_section::text::{self, TextPadding};
use crate::field_section::{Literal, integer};

/// The bits of a text's first byte that belong to its length.
pub(super) const TEXT_PREFIX_BITS: u32 = 7;

/// Decodes the header blocks of one direction of a connection.
pub struct Decoder {
    table: Table,
    /// The table size that the sender may use.
    table_bytes_max: usize,
    padding: TextPadding,
    literal: Literal,
}

impl Decoder {
    /// A decoder that allows a table of this size.
    #[must_use]
    pub fn new(table_bytes_max: u32) -> Decoder {
        let table_bytes_max = table_bytes_max as usize;
        Decoder {
            table: Table::new(table_bytes_max),
            table_bytes_max,
            padding: TextPadding::Short,
            literal: Literal::default(),
        }
    }

    /// The same, but it also accepts texts padded with a whole byte. The RFC forbids them, but some
    /// servers send them, and nginx accepts them.
    #[must_use]
    pub fn taking_long_padding(self) -> Decoder {
        Decoder {
            padding: TextPadding::WholeByte,
            ..self
        }
    }

    /// Decodes a complete header block.
    ///
    /// # Errors
    /// A connection error: the table no longer matches the sender's (RFC 9113 section 4.3).
    pub fn decode(&mut self, block: &[u8], sink: &mut impl FieldSink) -> Result<(), CodingError> {
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
                    self.read_literal(&mut input, 6)?;
                    let Literal { name, value } = &self.literal;
                    self.table.add(name, value);
                    sink.field(name, value);
                }
                0x20..0x40 => {
                    let bytes = integer::read(&mut input, 5)?;
                    if fields > 0 || bytes > self.table_bytes_max {
                        return Err(CodingError::InvalidTableSize);
                    }
                    self.table.resize(bytes);
                    continue;
                }
                ..0x20 => {
                    self.read_literal(&mut input, 4)?;
                    sink.field(&self.literal.name, &self.literal.value);
                }
            }
            fields += 1;
        }
        self.literal.rest();
        Ok(())
    }

    /// Reads a literal field into the buffers.
    fn read_literal(&mut self, input: &mut &[u8], prefix_bits: u32) -> Result<(), CodingError> {
        let Literal { name, value } = &mut self.literal;
        name.clear();
        match integer::read(input, prefix_bits)? {
            0 => text::read(input, TEXT_PREFIX_BITS, self.padding, name)?,
            index => name.extend_from_slice(self.table.field(index)?.0),
        }
        value.clear();
        text::read(input, TEXT_PREFIX_BITS, self.padding, value)
    }
}
