//! The encoder of field sections (RFC 9204 section 4.5).

use super::Indexing;
use super::static_table::TABLE;
use crate::field_section::static_table::Found;
use crate::field_section::{integer, text, write_lower_case};

/// The prefix of a section that needs no insertion into a dynamic table.
const PREFIX: [u8; 2] = [0, 0];

/// Encodes field sections. Nothing is kept from one to the next but memory.
#[derive(Default)]
pub struct Encoder {
    /// The name in lower case.
    name: Vec<u8>,
}

impl Encoder {
    /// Begins a section.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PREFIX);
    }

    /// Appends a field; its name is written in lower case (RFC 9114 section 4.2).
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let mut lower = std::mem::take(&mut self.name);
        write_lower_case(name, &mut lower);
        let is_secret = indexing == Indexing::Never;
        match TABLE.find(&lower, value) {
            Some(Found::Field(index)) => integer::write(out, 0xc0, 6, index),
            Some(Found::Name(index)) => {
                let first = if is_secret { 0x70 } else { 0x50 };
                integer::write(out, first, 4, index);
                text::write(out, 0, 7, value);
            }
            None => {
                let first = if is_secret { 0x30 } else { 0x20 };
                text::write(out, first, 3, &lower);
                text::write(out, 0, 7, value);
            }
        }
        self.name = lower;
    }
}
