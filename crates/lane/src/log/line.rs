//! One log line, built on the stack.

use std::fmt::{self, Write as _};

use super::{Level, clock};

/// A line's greatest length with its line feed; nginx cuts at the same length.
pub const LINE_BYTES_MAX: usize = 2048;

/// A line under construction.
pub(super) struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    length: usize,
    message_start: usize,
}

impl Line {
    /// Time, level, process and thread, connection.
    pub(super) fn start(level: Level, connection: Option<u64>) -> Line {
        let mut line = Line {
            bytes: [0; LINE_BYTES_MAX],
            length: 0,
            message_start: 0,
        };
        line.push(&clock::local_stamp());
        let process = std::process::id();
        let thread = nix::unistd::gettid();
        // Writing to a Line cannot fail.
        let _ = write!(line, " [{}] {process}#{thread}: ", level.name());
        line.message_start = line.length;
        if let Some(number) = connection {
            let _ = write!(line, "*{number} ");
        }
        line
    }

    /// Adds bytes as far as there is room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - 1 - self.length;
        let count = bytes.len().min(room);
        self.bytes[self.length..self.length + count].copy_from_slice(&bytes[..count]);
        self.length += count;
    }

    /// Adds formatted text as far as there is room.
    pub(super) fn push_arguments(&mut self, message: fmt::Arguments<'_>) {
        // Writing to a Line cannot fail; a failing Display leaves what it wrote.
        let _ = self.write_fmt(message);
    }

    /// Ends the line; nothing can be added afterwards.
    pub(super) fn finish(&mut self) {
        self.bytes[self.length] = b'\n';
    }

    /// A finished line with its line feed.
    pub(super) fn whole(&self) -> &[u8] {
        &self.bytes[..self.length + 1]
    }

    /// The line without its line feed.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// What follows the head of a finished line, with the line feed.
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
