//! The decoder of field sections (RFC 9204 section 4.5).

use super::static_table::TABLE;
use super::{CodingError, FieldSink};
use crate::field_section::static_table::Entry;
use crate::field_section::text::{self, TextPadding};
use crate::field_section::{Literal, integer};

/// Decodes field sections. Nothing is kept from one to the next but memory.
#[derive(Default)]
pub struct Decoder {
    literal: Literal,
}

impl Decoder {
    /// Decodes a complete field section.
    ///
    /// # Errors
    /// A connection error (RFC 9204 section 2.2): the section is not valid, or refers to a dynamic
    /// table.
    pub fn decode(&mut self, section: &[u8], sink: &mut impl FieldSink) -> Result<(), CodingError> {
        let mut input = section;
        read_prefix(&mut input)?;
        while let Some(first) = input.first().copied() {
            match first {
                0xc0.. => {
                    let (name, value) = static_entry(&mut input, 6)?;
                    sink.field(name, value);
                }
                0x50..0x60 | 0x70..0x80 => {
                    self.literal.name.clear();
                    let (name, _) = static_entry(&mut input, 4)?;
                    self.literal.name.extend_from_slice(name);
                    self.read_value(&mut input, sink)?;
                }
                0x20..0x40 => {
                    self.literal.name.clear();
                    text::read(&mut input, 3, TextPadding::Short, &mut self.literal.name)?;
                    self.read_value(&mut input, sink)?;
                }
                // References to the dynamic table, in front of the base and behind it.
                0x80..0xc0 | 0x40..0x50 | 0x60..0x70 | ..0x20 => {
                    return Err(CodingError::InvalidIndex);
                }
            }
        }
        self.literal.rest();
        Ok(())
    }

    fn read_value(
        &mut self,
        input: &mut &[u8],
        sink: &mut impl FieldSink,
    ) -> Result<(), CodingError> {
        let Literal { name, value } = &mut self.literal;
        value.clear();
        text::read(input, 7, TextPadding::Short, value)?;
        sink.field(name, value);
        Ok(())
    }
}

/// Reads the prefix of a section (RFC 9204 section 4.5.1): it must need no insertion, and its base
/// may not stand in front of the first one.
fn read_prefix(input: &mut &[u8]) -> Result<(), CodingError> {
    if integer::read(input, 8)? != 0 {
        return Err(CodingError::InvalidIndex);
    }
    let is_negative = input.first().is_some_and(|byte| byte & 0x80 != 0);
    integer::read(input, 7)?;
    if is_negative {
        Err(CodingError::InvalidIndex)
    } else {
        Ok(())
    }
}

fn static_entry(input: &mut &[u8], prefix_bits: u32) -> Result<Entry, CodingError> {
    let index = integer::read(input, prefix_bits)?;
    TABLE.entry(index).ok_or(CodingError::InvalidIndex)
}
