//! Bytes from the network, as shown in a log.

use std::fmt;

/// Bytes from the network for a log line: unprintable ones are escaped, so that no client can forge
/// a line or send codes to a terminal.
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() {
                    write!(formatter, "\\x{:02X}", character as u32)?;
                } else {
                    fmt::Write::write_char(formatter, character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(formatter, "\\x{byte:02X}")?;
            }
        }
        Ok(())
    }
}
