//! One log line, built on the stack.

use std::fmt::{self, Write as _};
use std::ops::Range;

use super::clock;
use super::level::Level;

/// The greatest length of a line with its line feed; nginx cuts at the same length.
pub const LINE_BYTES_MAX: usize = 2048;

/// A line under construction.
pub(super) struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    length: usize,
    message_start: usize,
    /// The message after the connection's number.
    bare_message: Range<usize>,
}

impl Line {
    /// Starts a line with time, level, process and thread, and connection.
    pub(super) fn start(level: Level, connection: Option<u64>) -> Line {
        let mut line = Line {
            bytes: [0; LINE_BYTES_MAX],
            length: 0,
            message_start: 0,
            bare_message: 0..0,
        };
        line.push(&clock::local_stamp());
        let process = std::process::id();
        let thread = nix::unistd::gettid();
        // A write to a Line cannot fail.
        let _ = write!(line, " [{}] {process}#{thread}: ", level.name());
        line.message_start = line.length;
        if let Some(number) = connection {
            let _ = write!(line, "*{number} ");
        }
        line
    }

    /// Adds as many bytes as fit.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - 1 - self.length;
        let count = bytes.len().min(room);
        self.bytes[self.length..self.length + count].copy_from_slice(&bytes[..count]);
        self.length += count;
    }

    /// Adds the message, which comes first.
    pub(super) fn push_message(&mut self, message: fmt::Arguments<'_>) {
        let start = self.length;
        self.push_arguments(message);
        self.bare_message = start..self.length;
    }

    /// Adds as much of the formatted text as fits.
    pub(super) fn push_arguments(&mut self, message: fmt::Arguments<'_>) {
        // A write to a Line cannot fail; a failing Display leaves its part of the text.
        let _ = self.write_fmt(message);
    }

    /// Ends the line; nothing may be added afterwards.
    pub(super) fn finish(&mut self) {
        self.bytes[self.length] = b'\n';
    }

    /// The complete line with its line feed.
    pub(super) fn whole(&self) -> &[u8] {
        &self.bytes[..self.length + 1]
    }

    /// The line without its line feed.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The message without the text about its subject.
    pub(super) fn bare_message(&self) -> &[u8] {
        &self.bytes[self.bare_message.clone()]
    }

    /// The message and the text about its subject.
    pub(super) fn described(&self) -> &[u8] {
        &self.bytes[self.bare_message.start..self.length]
    }

    /// The text after the head of a complete line, with the line feed.
    pub(super) fn message(&self) -> &[u8] {
        &self.bytes[self.message_start..self.length + 1]
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
