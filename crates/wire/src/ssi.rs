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

/// A parameter of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameter {
    /// The name.
    pub name: Vec<u8>,
    /// The value as written between its quotes, with its backslashes.
    pub value: Vec<u8>,
    /// The quote around the value.
    quote: u8,
}

/// A command of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name.
    pub name: Vec<u8>,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
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

    /// Ends the template: a command that ended before its name is text.
    pub fn finish(&mut self, text: &mut Vec<u8>) {
        if let State::Text(held) = self.state {
            text.extend_from_slice(&BEGIN[..held]);
        }
        self.state = State::Text(0);
        self.command = Command::default();
    }

    /// Takes the bytes of a value before the next one that may mean something; returns their
    /// number. What makes the value too long is left.
    fn take_run(&mut self, input: &[u8]) -> usize {
        let State::Value = self.state else {
            return 0;
        };
        let value_bytes_max = self.value_bytes_max;
        let Parameter { value, quote, .. } = self.last();
        let length = memchr::memchr2(*quote, b'\\', input).unwrap_or(input.len());
        let run = length.min(value_bytes_max.saturating_sub(value.len()));
        value.extend_from_slice(&input[..run]);
        run
    }

    fn take(&mut self, byte: u8, text: &mut Vec<u8>) -> Option<Event> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Text(held) => self.take_text(byte, held, text),
            State::Begun if space => {}
            State::Begun if byte == b'-' => self.state = State::Hyphen,
            State::Begun => {
                self.command.name.push(byte);
                self.state = State::Command;
            }
            State::Command if space => self.state = State::BeforeName,
            State::Command if byte == b'-' => self.state = State::Hyphen,
            State::Command if self.command.name.len() >= COMMAND_BYTES_MAX => {
                return Some(self.refused(byte, SyntaxError::LongCommand));
            }
            State::Command => self.command.name.push(byte),
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
                self.command.parameters.push(Parameter::default());
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
                self.last().quote = byte;
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
            self.state = match held + 1 == BEGIN.len() {
                true => State::Begun,
                false => State::Text(held + 1),
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
        if self.last().name.len() >= NAME_BYTES_MAX {
            return Some(self.refused(byte, SyntaxError::LongName));
        }
        self.last().name.push(byte);
        None
    }

    fn take_value(&mut self, byte: u8) -> Option<Event> {
        if self.last().value.len() >= self.value_bytes_max {
            return Some(self.refused(byte, SyntaxError::LongValue));
        }
        self.last().value.push(byte);
        self.state = match byte == b'\\' && self.state == State::Value {
            true => State::Escaped,
            false => State::Value,
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

    /// The parameter that is being read.
    fn last(&mut self) -> &mut Parameter {
        if self.command.parameters.is_empty() {
            self.command.parameters.push(Parameter::default());
        }
        let last = self.command.parameters.len() - 1;
        &mut self.command.parameters[last]
    }
}

impl Command {
    /// Appends the command in the syntax of a template.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEGIN);
        out.extend_from_slice(&self.name);
        for Parameter { name, value, quote } in &self.parameters {
            out.push(b' ');
            out.extend_from_slice(name);
            out.extend_from_slice(&[b'=', *quote]);
            out.extend_from_slice(value);
            out.push(*quote);
        }
        out.extend_from_slice(b" -->");
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |command: &Command| String::from_utf8_lossy(&command.name).into_owned();
        let last = |command: &Command| {
            let last = command.parameters.last().map(|last| last.name.as_slice());
            String::from_utf8_lossy(last.unwrap_or_default()).into_owned()
        };
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
