//! A scanner for Rust that knows just enough to not be fooled: comments, strings and characters
//! are set aside, so that a brace or a word inside them counts for nothing.

/// A token that a rule may look at; literals and comments leave none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or keyword.
    Word(String),
    /// One character of punctuation.
    Mark(char),
}

/// A token and the line on which it starts, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) line: usize,
}

/// A file as rules see it.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) tokens: Vec<Placed>,
    /// String literals that follow `path =`, for `#[path = "..."]`.
    pub(super) strings: Vec<(usize, String)>,
}

/// A function's name, first line and number of lines, signature included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

impl Source {
    /// Splits a file into tokens.
    pub(super) fn scan(text: &str) -> Source {
        let mut scan = Scan {
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            source: Source::default(),
        };
        while scan.at < scan.bytes.len() {
            scan.step();
        }
        scan.source
    }

    /// Every function that has a body, nested ones and methods too.
    pub(super) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (index, placed) in self.tokens.iter().enumerate() {
            let Some(name) = self.word(index + 1) else {
                continue;
            };
            if placed.token != Token::Word("fn".to_owned()) {
                continue;
            }
            if let Some(last) = self.body_end(index + 2) {
                let lines = last - placed.line + 1;
                functions.push(Function {
                    name: name.to_owned(),
                    line: placed.line,
                    lines,
                });
            }
        }
        functions
    }

    /// The word at `index`, if there is one.
    pub(super) fn word(&self, index: usize) -> Option<&str> {
        match &self.tokens.get(index)?.token {
            Token::Word(word) => Some(word),
            Token::Mark(_) => None,
        }
    }

    /// Whether the token at `index` is this punctuation.
    pub(super) fn is_mark(&self, index: usize, mark: char) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|placed| placed.token == Token::Mark(mark))
    }

    /// The line of the brace that closes the first block after `index`; none before a `;`.
    fn body_end(&self, index: usize) -> Option<usize> {
        let mut round = 0usize;
        let mut braces = 0usize;
        for placed in self.tokens.get(index..)? {
            match placed.token {
                Token::Mark('(' | '[') => round += 1,
                Token::Mark(')' | ']') => round = round.saturating_sub(1),
                Token::Mark(';') if round == 0 && braces == 0 => return None,
                Token::Mark('{') => braces += 1,
                Token::Mark('}') => {
                    braces = braces.saturating_sub(1);
                    if braces == 0 && round == 0 {
                        return Some(placed.line);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    source: Source,
}

impl Scan<'_> {
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        match rest[0] {
            b'\n' => self.skip(1),
            b'/' if rest.starts_with(b"//") => self.line_comment(),
            b'/' if rest.starts_with(b"/*") => self.block_comment(),
            b'"' => self.string(),
            b'\'' => self.character_or_lifetime(),
            byte if byte == b'_' || byte.is_ascii_alphabetic() => self.word(),
            byte if byte.is_ascii_digit() => self.number(),
            byte if byte.is_ascii_whitespace() || byte >= 0x80 => self.skip(1),
            byte => {
                self.push(Token::Mark(char::from(byte)));
                self.skip(1);
            }
        }
    }

    fn push(&mut self, token: Token) {
        self.source.tokens.push(Placed {
            token,
            line: self.line,
        });
    }

    /// Moves on and counts the lines.
    fn skip(&mut self, count: usize) {
        let end = (self.at + count).min(self.bytes.len());
        self.line += self.bytes[self.at..end]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        self.at = end;
    }

    fn line_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        self.skip(length);
    }

    fn block_comment(&mut self) {
        let mut depth = 0usize;
        loop {
            let rest = &self.bytes[self.at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                self.skip(2);
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.skip(2);
            } else {
                self.skip(1);
            }
            if depth == 0 || self.at >= self.bytes.len() {
                return;
            }
        }
    }

    fn string(&mut self) {
        let (first_line, start) = (self.line, self.at + 1);
        let mut end = start;
        while end < self.bytes.len() && self.bytes[end] != b'"' {
            end += if self.bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(self.bytes.len());
        let value = String::from_utf8_lossy(&self.bytes[start..end]).into_owned();
        if matches!(self.source.tokens.last(), Some(placed) if placed.token == Token::Mark('=')) {
            self.source.strings.push((first_line, value));
        }
        self.skip(end + 1 - self.at);
    }

    /// A string that starts with `hashes` `#` characters: it ends at a quote with as many.
    fn raw_string(&mut self, hashes: usize) {
        let closing = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        self.skip(hashes + 1);
        let rest = &self.bytes[self.at..];
        let length = rest
            .windows(closing.len())
            .position(|window| window == closing)
            .map_or(rest.len(), |position| position + closing.len());
        self.skip(length);
    }

    fn character_or_lifetime(&mut self) {
        let rest = &self.bytes[self.at..];
        let escaped = rest.get(1) == Some(&b'\\');
        let from = if escaped { 3 } else { 2 };
        let quote = rest
            .iter()
            .skip(from)
            .position(|byte| *byte == b'\'')
            .map(|at| at + from);
        let word = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        match quote {
            Some(end) if escaped || end == 2 || !rest.get(1).is_some_and(word) => {
                self.skip(end + 1);
            }
            _ => self.skip(1), // a lifetime: its name follows as a word, which no rule minds
        }
    }

    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        let word = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        let length = rest
            .iter()
            .position(|byte| !word(byte))
            .unwrap_or(rest.len());
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        let after = &rest[length..];
        let hashes = after.iter().take_while(|byte| **byte == b'#').count();
        let raw = matches!(text.as_str(), "r" | "br" | "cr") && after.get(hashes) == Some(&b'"');
        let prefix = matches!(text.as_str(), "b" | "c") && after.first() == Some(&b'"');
        let byte = text == "b" && after.first() == Some(&b'\'');
        if !raw && !prefix && !byte {
            self.push(Token::Word(text));
        }
        self.skip(length);
        if raw {
            self.raw_string(hashes);
        }
    }

    fn number(&mut self) {
        let rest = &self.bytes[self.at..];
        let digit = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        let length = rest
            .iter()
            .position(|byte| !digit(byte))
            .unwrap_or(rest.len());
        self.skip(length);
    }
}

#[cfg(test)]
mod tests;
