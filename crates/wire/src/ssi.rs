//! Templates of server-side includes (SSI) in nginx's syntax: text with commands such as
//! `<!--#include virtual="/part" -->`.
//!
//! [`Parser`] takes a template in pieces of any size, gives its text and its commands, and stores
//! at most one command. It does not interpret commands.

use std::fmt;

#[cfg(test)]
mod tests;

/// The start of a command.
const BEGIN: &[u8] = b"<!--#";

/// The longest name of a command in bytes; nginx's limit.
const COMMAND_BYTES_MAX: usize = 32;

/// The longest name of a parameter in bytes; nginx's limit.
const NAME_BYTES_MAX: usize = 32;

/// The most parameters of a command; nginx's limit.
const PARAMETERS_MAX: usize = 16;

/// A command of a template, in memory that serves the next one too: [`Parser::reuse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name, then the name and the value of each parameter.
    text: Vec<u8>,
    name_bytes: usize,
    parameters: Vec<Parameter>,
}

/// Where a parameter stands in its command's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parameter {
    start: usize,
    value: usize,
    end: usize,
    /// The quote around the value.
    quote: u8,
}

/// A part of a command that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Name,
    ParameterName,
    Value,
}

/// Why the start of a command is not a valid one. The rest of it, up to `-->`, is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// The name of the command is too long.
    LongCommand(Command),
    /// There are too many parameters.
    ManyParameters(Command),
    /// The name of the last parameter is too long.
    LongName(Command),
    /// The value of the last parameter is too long.
    LongValue(Command),
    /// A byte that is not allowed after the name of the last parameter.
    AfterName(Command, u8),
    /// A byte that is not allowed before the value of the last parameter.
    BeforeValue(Command, u8),
    /// A byte that is not allowed after the last parameter's value.
    AfterValue(Command, u8),
    /// A byte that is not allowed at the end of the command.
    End(Command, u8),
}

/// An event of a parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The whole input was read.
    NeedsMore,
    /// A command is complete.
    Command(Command),
    /// A command is malformed.
    Error(SyntaxError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In text, after this many bytes of [`BEGIN`].
    Text(usize),
    /// Before the name of the command.
    Begun,
    Command,
    /// Before the name of a parameter.
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    /// In a value, after a backslash.
    Escaped,
    AfterValue,
    /// After the first hyphen of the end.
    Hyphen,
    /// After both hyphens.
    Hyphens,
    /// After an error, and after this many hyphens.
    Passing(usize),
}

/// Reads one template.
#[derive(Clone, Debug)]
pub struct Parser {
    state: State,
    command: Command,
    value_bytes_max: usize,
}

impl Parser {
    /// A parser of a template whose values have at most `value_bytes_max` bytes.
    #[must_use]
    pub fn new(value_bytes_max: usize) -> Self {
        Self {
            state: State::Text(0),
            command: Command::default(),
            value_bytes_max,
        }
    }

    /// Reads `input` up to the end of a command, and appends the text before it to `text`. Returns
    /// the number of bytes read, and the event.
    pub fn feed(&mut self, input: &[u8], text: &mut Vec<u8>) -> (usize, Event) {
        let mut at = 0;
        while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
            if self.state == State::Text(0) {
                let length = memchr::memchr(b'<', rest).unwrap_or(rest.len());
                text.extend_from_slice(&rest[..length]);
                at += length;
                if length == rest.len() {
                    break;
                }
            }
            let run = self.take_run(&input[at..]);
            if run > 0 {
                at += run;
                continue;
            }
            let event = self.take(input[at], text);
            at += 1;
            if let Some(event) = event {
                return (at, event);
            }
        }
        (at, Event::NeedsMore)
    }

    /// Takes a command back that is carried out, for the next one's memory.
    pub fn reuse(&mut self, command: Command) {
        if let State::Text(_) = self.state {
            self.command = command;
            self.command.clear();
        }
    }

    /// The memory of the command that was read last.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Ends the template: a command that ended before its name is text.
    pub fn finish(&mut self, text: &mut Vec<u8>) {
        if let State::Text(held) = self.state {
            text.extend_from_slice(&BEGIN[..held]);
        }
        self.state = State::Text(0);
        self.command.clear();
    }

    /// Takes the bytes of a value before the next one that may mean something; returns their
    /// number. What makes the value too long is left.
    fn take_run(&mut self, input: &[u8]) -> usize {
        let State::Value = self.state else {
            return 0;
        };
        let quote = self.quote().unwrap_or(b'\\');
        let length = memchr::memchr2(quote, b'\\', input).unwrap_or(input.len());
        let room = self.value_bytes_max.saturating_sub(self.last_value_bytes());
        let run = length.min(room);
        self.command.push(Part::Value, &input[..run]);
        run
    }

    fn take(&mut self, byte: u8, text: &mut Vec<u8>) -> Option<Event> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Text(held) => self.take_text(byte, held, text),
            State::Begun if space => {}
            State::Begun if byte == b'-' => self.state = State::Hyphen,
            State::Begun => {
                self.command.push(Part::Name, &[byte]);
                self.state = State::Command;
            }
            State::Command if space => self.state = State::BeforeName,
            State::Command if byte == b'-' => self.state = State::Hyphen,
            State::Command if self.command.name_bytes >= COMMAND_BYTES_MAX => {
                return Some(self.refused(byte, SyntaxError::LongCommand));
            }
            State::Command => self.command.push(Part::Name, &[byte]),
            State::BeforeName | State::AfterValue if byte == b'-' => self.state = State::Hyphen,
            State::AfterValue if !space => {
                return Some(self.refused(byte, |command| SyntaxError::AfterValue(command, byte)));
            }
            State::AfterValue => self.state = State::BeforeName,
            State::BeforeName if space => {}
            State::BeforeName if self.command.parameters.len() >= PARAMETERS_MAX => {
                return Some(self.refused(byte, SyntaxError::ManyParameters));
            }
            State::BeforeName => {
                self.command.begin_parameter();
                self.state = State::Name;
                return self.take(byte, text);
            }
            State::Name | State::AfterName if byte == b'=' => self.state = State::BeforeValue,
            State::Name if space => self.state = State::AfterName,
            State::AfterName | State::BeforeValue if space => {}
            State::Name if byte != b'-' => return self.take_name(byte),
            State::Name | State::AfterName => {
                return Some(self.refused(byte, |command| SyntaxError::AfterName(command, byte)));
            }
            State::BeforeValue if matches!(byte, b'"' | b'\'') => {
                self.command.set_quote(byte);
                self.state = State::Value;
            }
            State::BeforeValue => {
                return Some(self.refused(byte, |command| SyntaxError::BeforeValue(command, byte)));
            }
            State::Value if self.quote() == Some(byte) => self.state = State::AfterValue,
            State::Value | State::Escaped => return self.take_value(byte),
            State::Hyphen if byte == b'-' => self.state = State::Hyphens,
            State::Hyphens if byte == b'>' => {
                self.state = State::Text(0);
                return Some(Event::Command(std::mem::take(&mut self.command)));
            }
            State::Hyphen | State::Hyphens => {
                return Some(self.refused(byte, |command| SyntaxError::End(command, byte)));
            }
            State::Passing(hyphens) => self.pass_over(byte, hyphens),
        }
        None
    }

    fn take_text(&mut self, byte: u8, held: usize, text: &mut Vec<u8>) {
        if BEGIN.get(held) == Some(&byte) {
            self.state = if held + 1 == BEGIN.len() {
                State::Begun
            } else {
                State::Text(held + 1)
            };
            return;
        }
        text.extend_from_slice(&BEGIN[..held]);
        // Only the first byte of `BEGIN` is an angle bracket, so no other match can start inside
        // it.
        self.state = State::Text(usize::from(byte == BEGIN[0]));
        if byte != BEGIN[0] {
            text.push(byte);
        }
    }

    fn take_name(&mut self, byte: u8) -> Option<Event> {
        if self.command.last_name().len() >= NAME_BYTES_MAX {
            return Some(self.refused(byte, SyntaxError::LongName));
        }
        self.command.push(Part::ParameterName, &[byte]);
        None
    }

    fn take_value(&mut self, byte: u8) -> Option<Event> {
        if self.last_value_bytes() >= self.value_bytes_max {
            return Some(self.refused(byte, SyntaxError::LongValue));
        }
        self.command.push(Part::Value, &[byte]);
        self.state = if byte == b'\\' && self.state == State::Value {
            State::Escaped
        } else {
            State::Value
        };
        None
    }

    /// Skips the bytes after an error.
    fn pass_over(&mut self, byte: u8, hyphens: usize) {
        self.state = match byte {
            b'>' if hyphens >= 2 => State::Text(0),
            b'-' => State::Passing(hyphens.saturating_add(1)),
            _ => State::Passing(0),
        };
    }

    fn refused(&mut self, byte: u8, error: impl FnOnce(Command) -> SyntaxError) -> Event {
        self.pass_over(byte, 0);
        Event::Error(error(std::mem::take(&mut self.command)))
    }

    /// What the value that is being read stands between.
    fn quote(&self) -> Option<u8> {
        self.command.parameters.last().map(|last| last.quote)
    }

    /// The length of the value that is being read.
    fn last_value_bytes(&self) -> usize {
        let last = self.command.parameters.last();
        last.map_or(0, |last| last.end - last.value)
    }
}

impl Command {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.text.get(..self.name_bytes).unwrap_or_default()
    }

    /// The names and values of the parameters, in order; a value as written between its quotes,
    /// with its backslashes.
    pub fn parameters(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let parameters = self.parameters.iter();
        parameters.map(|parameter| self.texts(parameter))
    }

    fn texts(&self, parameter: &Parameter) -> (&[u8], &[u8]) {
        let Parameter {
            start, value, end, ..
        } = *parameter;
        let text = |range| self.text.get(range).unwrap_or_default();
        (text(start..value), text(value..end))
    }

    /// The name of the last parameter.
    fn last_name(&self) -> &[u8] {
        let last = self.parameters.last();
        last.map_or(b"", |last| self.texts(last).0)
    }

    /// The bytes of memory that the next command can use.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.text.capacity() + self.parameters.capacity() * size_of::<Parameter>()
    }

    /// Clears the command; keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.name_bytes = 0;
        self.parameters.clear();
    }

    fn begin_parameter(&mut self) {
        let at = self.text.len();
        self.parameters.push(Parameter {
            start: at,
            value: at,
            end: at,
            quote: 0,
        });
    }

    /// Sets the quote around the value of the last parameter.
    fn set_quote(&mut self, quote: u8) {
        if let Some(last) = self.parameters.last_mut() {
            last.quote = quote;
        }
    }

    /// Appends to the part that is read last.
    fn push(&mut self, part: Part, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        match (part, self.parameters.last_mut()) {
            (Part::Name, _) => self.name_bytes += bytes.len(),
            (Part::ParameterName, Some(last)) => {
                last.value += bytes.len();
                last.end = last.value;
            }
            (Part::Value, Some(last)) => last.end += bytes.len(),
            (Part::ParameterName | Part::Value, None) => {}
        }
    }

    /// Appends the command in the syntax of a template.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEGIN);
        out.extend_from_slice(self.name());
        for parameter in &self.parameters {
            let (name, value) = self.texts(parameter);
            out.push(b' ');
            out.extend_from_slice(name);
            out.extend_from_slice(&[b'=', parameter.quote]);
            out.extend_from_slice(value);
            out.push(parameter.quote);
        }
        out.extend_from_slice(b" -->");
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |command: &Command| String::from_utf8_lossy(command.name()).into_owned();
        let last = |command: &Command| String::from_utf8_lossy(command.last_name()).into_owned();
        match self {
            Self::LongCommand(command) => {
                write!(f, "the \"{}...\" SSI command is too long", name(command))
            }
            Self::ManyParameters(command) => {
                write!(
                    f,
                    "too many SSI command parameters in \"{}\"",
                    name(command)
                )
            }
            Self::LongName(command) => write!(
                f,
                "too long \"{}...\" parameter in \"{}\" SSI command",
                last(command),
                name(command)
            ),
            Self::LongValue(command) => write!(
                f,
                "too long value of \"{}\" parameter in \"{}\" SSI command",
                last(command),
                name(command)
            ),
            Self::AfterName(command, byte) => write!(
                f,
                "unexpected \"{}\" symbol after \"{}\" parameter in \"{}\" SSI command",
                byte.escape_ascii(),
                last(command),
                name(command)
            ),
            Self::BeforeValue(command, byte) => write!(
                f,
                "unexpected \"{}\" symbol before value of \"{}\" parameter in \"{}\" SSI command",
                byte.escape_ascii(),
                last(command),
                name(command)
            ),
            Self::AfterValue(command, byte) => write!(
                f,
                "unexpected \"{}\" symbol after value of \"{}\" parameter in \"{}\" SSI command",
                byte.escape_ascii(),
                last(command),
                name(command)
            ),
            Self::End(command, byte) => write!(
                f,
                "unexpected \"{}\" symbol in \"{}\" SSI command",
                byte.escape_ascii(),
                name(command)
            ),
        }
    }
}

impl std::error::Error for SyntaxError {}
