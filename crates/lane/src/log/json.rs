//! A line as a JSON object, for programs that collect logs.
//!
//! An object has at most [`LINE_BYTES_MAX`] bytes with its line feed, as every line of the log:
//! values that are too long are cut, and the object is still whole.

use std::fmt::{self, Write as _};

use jiff::Zoned;

use super::level::Level;
use super::line::LINE_BYTES_MAX;
use super::subject::Subject;

/// The most bytes of the message, so that the members after it have room too.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The bytes that a member needs beside its name and value: two quotes each, colon and comma.
const MEMBER_BYTES: usize = 6;

/// The object's end and the line feed.
const END_BYTES: usize = 2;

/// One line with its line feed. Its members are `time` (RFC 3339), `level`, `pid`, `thread`,
/// `connection`, `message`, and those of the subject.
pub(super) fn line(
    level: Level,
    connection: Option<u64>,
    message: fmt::Arguments<'_>,
    subject: Option<&dyn Subject>,
) -> String {
    let mut object = Object(String::with_capacity(LINE_BYTES_MAX));
    let time = Zoned::now();
    let time = time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z");
    // A write to a String cannot fail.
    let _ = write!(
        object.0,
        "{{\"time\":\"{time}\",\"level\":\"{}\",\"pid\":{},\"thread\":{}",
        level.name(),
        std::process::id(),
        nix::unistd::gettid(),
    );
    if let Some(number) = connection {
        let _ = write!(object.0, ",\"connection\":{number}");
    }
    object.member("message", MESSAGE_BYTES_MAX, message);
    if let Some(subject) = subject {
        subject.members(&mut |member, value| object.member(member.name(), LINE_BYTES_MAX, value));
    }
    object.0.push_str("}\n");
    object.0
}

/// An object under construction.
struct Object(String);

impl Object {
    /// Adds a member with at most `bytes_max` bytes of value, if there is room for its name.
    fn member(&mut self, name: &str, bytes_max: usize, value: fmt::Arguments<'_>) {
        let taken = self.0.len() + name.len() + MEMBER_BYTES + END_BYTES;
        let Some(room) = LINE_BYTES_MAX.checked_sub(taken) else {
            return;
        };
        // Writes to a String cannot fail; a failing Display leaves its part of the text.
        let _ = write!(self.0, ",\"{name}\":\"");
        let end = self.0.len() + room.min(bytes_max);
        let text = &mut self.0;
        let _ = Escaped { text, end }.write_fmt(value);
        self.0.push('"');
    }
}

/// A string in JSON (RFC 8259, 7) that ends where the text has `end` bytes.
struct Escaped<'a> {
    text: &'a mut String,
    end: usize,
}

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            let before = self.text.len();
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                control if control < ' ' => write!(self.text, "\\u{:04x}", control as u32)?,
                other => self.text.push(other),
            }
            if self.text.len() > self.end {
                self.text.truncate(before);
                // What comes later is not to stand after the cut.
                self.end = before;
                break;
            }
        }
        Ok(())
    }
}
