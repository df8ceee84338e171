//! The lexer: bytes to words, one byte at a time, by the rules of nginx's reader.
//!
//! States, limits and line numbers are nginx's, so that a text that nginx refuses is refused here
//! with the same message. Unlike nginx, it continues after an error: it adds the error to
//! [`Lexer::problems`] and marks the directive as broken. It does not interpret names.
//!
//! ```text
//!          '#' ┌─────────┐ LF
//!       ┌─────►│ Comment │────────┐
//!       │      └─────────┘        ▼
//!   ┌───────┐   any other    ┌───────┐  space ; {
//!   │ Space │───────────────►│ Plain │────────────► word
//!   └───────┘                └───────┘
//!       │ quote ┌───────┐ same quote ┌────────────┐ space ; { )
//!       └──────►│ Quote │───────────►│ AfterQuote │────────────► Space
//!               └───────┘    word    └────────────┘
//! ```

use std::ops::Range;

use crate::text::text_of;
use crate::tree::{FileId, Span, Word};

/// The longest word in bytes, its terminator included; nginx's limit.
pub const TOKEN_BYTES_MAX: usize = 4096;

/// The bytes of a too long word that are shown, as in nginx.
const SHOWN_BYTES: usize = 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The next token.
pub(crate) enum Token {
    /// Words up to `;` or `{`.
    Directive(Draft),
    /// A `}`; `clean` unless it ends an incomplete directive, which was reported.
    BlockEnd { clean: bool },
    /// The end of the text; `clean` unless it has an error, which was reported.
    End { clean: bool },
}

/// The words of one directive.
pub(crate) struct Draft {
    /// The words; empty only if `broken`.
    pub(crate) words: Vec<Word>,
    /// Whether it has a reported error, and must be skipped.
    pub(crate) broken: bool,
    /// Whether `{` ended it, not `;`.
    pub(crate) opens_block: bool,
    /// The first word's start, with its quote, and the end behind the `;` or `{`. Files are smaller
    /// than a `u32` counts.
    pub(crate) bytes: Range<u32>,
}

/// A reader over one text.
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    file: FileId,
    position: usize,
    line: u32,
    given_up: bool,
    /// The errors since they were last taken.
    pub(crate) problems: Vec<Problem>,
}

/// An error in a text.
pub(crate) struct Problem {
    pub(crate) line: u32,
    pub(crate) message: String,
    /// See [`crate::ConfError::hint`].
    pub(crate) hint: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Space,
    Comment,
    Plain,
    Quote(u8),
    AfterQuote,
}

/// The state of the directive that is being read.
struct Run {
    state: State,
    /// The byte before was a backslash.
    escaped: bool,
    /// The byte before was `$`, or `{` after one: a brace now belongs to a variable's name.
    variable: bool,
    start: usize,
    start_line: u32,
    /// Where the first word starts, with its quote.
    first: usize,
    words: Vec<Word>,
    broken: bool,
}

/// Bytes that may end a word, or mean something to what comes after them.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let bytes = b" \t\r\n;{\\$\"'";
    let mut index = 0;
    while index < bytes.len() {
        special[bytes[index] as usize] = true;
        index += 1;
    }
    special
};

impl<'a> Lexer<'a> {
    /// A lexer for a file's bytes; a byte order mark at the start is skipped.
    pub(crate) fn of_file(bytes: &'a [u8], file: FileId) -> Lexer<'a> {
        let position = if bytes.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        Lexer {
            bytes,
            file,
            position,
            line: 1,
            given_up: false,
            problems: Vec::new(),
        }
    }

    /// A lexer for the text of `-g`, where words may have any length.
    pub(crate) fn of_command_line(text: &'a str) -> Lexer<'a> {
        let file = FileId::COMMAND_LINE;
        let bytes = text.as_bytes();
        Lexer {
            bytes,
            file,
            position: 0,
            line: 0,
            given_up: false,
            problems: Vec::new(),
        }
    }

    /// The whole text.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The current place.
    pub(crate) fn span(&self) -> Span {
        Span {
            file: self.file,
            line: self.line,
        }
    }

    /// Skips the rest of the text; after this there is only an unclean end.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Reads up to the next `;`, `{`, `}` or the end.
    pub(crate) fn next(&mut self) -> Token {
        let mut run = Run {
            state: State::Space,
            escaped: false,
            variable: false,
            start: self.position,
            start_line: self.line,
            first: self.position,
            words: Vec::new(),
            broken: false,
        };
        loop {
            if self.given_up {
                return Token::End { clean: false };
            }
            let Some(&byte) = self.bytes.get(self.position) else {
                return self.end(&run);
            };
            if self.position - run.start == TOKEN_BYTES_MAX && self.is_file() {
                self.too_long(&mut run);
                continue;
            }
            let ordinary = self.ordinary_bytes(&run);
            if ordinary > 0 {
                self.position += ordinary;
                run.variable = false;
                continue;
            }
            self.position += 1;
            if byte == b'\n' {
                self.line += 1;
            }
            if let Some(token) = self.step(&mut run, byte) {
                return token;
            }
        }
    }

    /// How many of the next bytes change nothing: those of a word's middle. Most bytes are such.
    fn ordinary_bytes(&self, run: &Run) -> usize {
        if run.escaped || !matches!(run.state, State::Plain | State::Quote(_)) {
            return 0;
        }
        let most = run.start.saturating_add(TOKEN_BYTES_MAX);
        let end = if self.is_file() { most } else { usize::MAX };
        let word = &self.bytes[self.position..end.min(self.bytes.len())];
        let special = word.iter().position(|byte| SPECIAL[usize::from(*byte)]);
        special.unwrap_or(word.len())
    }

    fn step(&mut self, run: &mut Run, byte: u8) -> Option<Token> {
        if run.escaped {
            run.escaped = false;
            return None;
        }
        match run.state {
            State::Comment => {
                if byte == b'\n' {
                    run.state = State::Space;
                    run.start = self.position - 1;
                }
                None
            }
            State::Space => self.at_space(run, byte),
            State::AfterQuote => self.after_quote(run, byte),
            State::Plain | State::Quote(_) => self.in_word(run, byte),
        }
    }

    fn at_space(&mut self, run: &mut Run, byte: u8) -> Option<Token> {
        run.start = self.position - 1;
        run.start_line = self.line;
        run.state = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => State::Space,
            b';' if run.words.is_empty() => {
                self.unexpected();
                State::Space
            }
            b'{' if run.words.is_empty() => {
                self.unexpected();
                run.broken = true;
                return Some(self.finish(run, true));
            }
            b';' | b'{' => return Some(self.finish(run, byte == b'{')),
            b'}' => {
                let clean = run.words.is_empty();
                if let Some(last) = run.words.last() {
                    let line = last.span.line;
                    self.unexpected_with(format!(", is a \";\" missing in line {line}?"));
                }
                return Some(Token::BlockEnd { clean });
            }
            b'#' => State::Comment,
            b'"' | b'\'' => {
                run.start += 1;
                State::Quote(byte)
            }
            b'\\' => {
                run.escaped = true;
                State::Plain
            }
            b'$' => {
                run.variable = true;
                State::Plain
            }
            _ => State::Plain,
        };
        None
    }

    fn after_quote(&mut self, run: &mut Run, byte: u8) -> Option<Token> {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                run.state = State::Space;
                None
            }
            b';' | b'{' => Some(self.finish(run, byte == b'{')),
            b')' | b'}' => self.at_space(run, byte),
            _ => {
                self.unexpected();
                run.broken = true;
                self.at_space(run, byte)
            }
        }
    }

    fn in_word(&mut self, run: &mut Run, byte: u8) -> Option<Token> {
        if byte == b'{' && run.variable {
            return None;
        }
        run.variable = byte == b'$';
        if byte == b'\\' {
            run.escaped = true;
            return None;
        }
        let quote = match run.state {
            State::Quote(quote) => Some(quote),
            _ => None,
        };
        let ends = match quote {
            Some(quote) => byte == quote,
            None => matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{'),
        };
        if !ends {
            return None;
        }
        let raw = &self.bytes[run.start..self.position - 1];
        if run.words.is_empty() {
            run.first = run.start - usize::from(quote.is_some());
        }
        run.words.push(Word {
            text: if raw.contains(&b'\\') {
                text_of(&unescape(raw))
            } else {
                text_of(raw)
            },
            quoted: quote.is_some(),
            span: Span {
                file: self.file,
                line: run.start_line,
            },
        });
        run.state = if quote.is_some() {
            State::AfterQuote
        } else {
            State::Space
        };
        match byte {
            b';' | b'{' => Some(self.finish(run, byte == b'{')),
            _ => None,
        }
    }

    fn end(&mut self, run: &Run) -> Token {
        let between = matches!(run.state, State::Space | State::Comment);
        if run.words.is_empty() && between {
            return Token::End { clean: true };
        }
        let message = if self.is_file() {
            "unexpected end of file, expecting \";\" or \"}\""
        } else {
            "unexpected end of parameter, expecting \";\""
        };
        let hint = match run.state {
            State::Quote(quote) => {
                let (quote, line) = (char::from(quote), run.start_line);
                format!(", is the closing {quote} missing of the quote that opens in line {line}?")
            }
            _ => String::new(),
        };
        self.problem(self.line, message.to_owned(), hint);
        self.give_up();
        Token::End { clean: false }
    }

    fn too_long(&mut self, run: &mut Run) {
        let message = match run.state {
            State::Quote(quote) => {
                // From here on, quoted and unquoted text are swapped: further errors would mislead.
                self.give_up();
                format!(
                    "too long parameter, probably missing terminating \"{}\" character",
                    char::from(quote)
                )
            }
            _ => {
                let shown = &self.bytes[run.start..run.start + SHOWN_BYTES];
                format!("too long parameter \"{}...\" started", text_of(shown))
            }
        };
        self.problem(run.start_line, message, String::new());
        run.broken = true;
        // The rest of the word is skipped; it is reported again if that is too long too.
        run.start = self.position;
    }

    /// Reports the last character as unexpected; it is shown completely if it is UTF-8.
    fn unexpected(&mut self) {
        self.unexpected_with(String::new());
    }

    fn unexpected_with(&mut self, hint: String) {
        let start = self.position - 1;
        let rest = &self.bytes[start..self.bytes.len().min(start + 4)];
        let whole = rest
            .utf8_chunks()
            .next()
            .and_then(|chunk| chunk.valid().chars().next());
        let shown = match whole {
            Some(character) => character.to_string(),
            None => text_of(&rest[..1]),
        };
        let message = format!("unexpected \"{shown}\"");
        self.problem(self.line, message, hint);
    }

    fn problem(&mut self, line: u32, message: String, hint: String) {
        self.problems.push(Problem {
            line,
            message,
            hint,
        });
    }

    fn is_file(&self) -> bool {
        self.file != FileId::COMMAND_LINE
    }

    fn finish(&self, run: &mut Run, opens_block: bool) -> Token {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Token::Directive(Draft {
            words: std::mem::take(&mut run.words),
            broken: run.broken,
            opens_block,
            bytes: place(run.first)..place(self.position),
        })
    }
}

/// Resolves `\"`, `\'`, `\\`, `\t`, `\r` and `\n`; any other backslash stays.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut index = 0;
    while let Some(&byte) = raw.get(index) {
        let resolved = match (byte, raw.get(index + 1)) {
            (b'\\', Some(&next @ (b'"' | b'\'' | b'\\'))) => Some(next),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            _ => None,
        };
        bytes.push(resolved.unwrap_or(byte));
        index += if resolved.is_some() { 2 } else { 1 };
    }
    bytes
}
