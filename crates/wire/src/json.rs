//! JSON texts (RFC 8259): the value at a path, in one pass without a tree.
//!
//! The whole text is checked, so that nothing is taken from one that is cut off or wrong. Strings
//! may have bytes that are no UTF-8, as nginx lets them.

use std::ops::Range;

/// The place of a value: keys of objects and indices of arrays, from the outermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Vec<u8>),
    Index(u64),
}

/// Why a path cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonPathError {
    Empty,
    Invalid,
}

impl JsonPath {
    /// Reads a path as nginx's `json_set` has it: `a.b[0]`, and `["a.b"]` for other keys, with the
    /// escapes of JSON.
    ///
    /// # Errors
    /// It is empty or malformed.
    pub fn parse(text: &[u8]) -> Result<JsonPath, JsonPathError> {
        if text.is_empty() {
            return Err(JsonPathError::Empty);
        }
        let (mut steps, mut rest) = (Vec::new(), text);
        // A key without brackets stands at the begin or behind a dot.
        let mut takes_key = true;
        while !rest.is_empty() || steps.is_empty() {
            let step = match rest.first() {
                Some(b'[') if steps.is_empty() || !takes_key => bracketed(&mut rest),
                Some(b'.') if !takes_key => {
                    rest = &rest[1..];
                    plain_key(&mut rest)
                }
                _ if takes_key => plain_key(&mut rest),
                _ => None,
            };
            steps.push(step.ok_or(JsonPathError::Invalid)?);
            takes_key = false;
        }
        Ok(JsonPath(steps))
    }
}

/// A key up to the next dot or bracket.
fn plain_key(rest: &mut &[u8]) -> Option<Step> {
    let end = rest.iter().position(|byte| matches!(byte, b'.' | b'['));
    let (key, after) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = after;
    let is_key = !key.is_empty() && key[0] != b'$';
    is_key.then(|| Step::Key(key.to_vec()))
}

/// An index or a quoted key in brackets.
fn bracketed(rest: &mut &[u8]) -> Option<Step> {
    let inner = &rest[1..];
    if inner.first() != Some(&b'"') {
        let end = inner.iter().position(|byte| *byte == b']')?;
        let digits = std::str::from_utf8(&inner[..end]).ok()?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        *rest = &inner[end + 1..];
        let index: i64 = digits.parse().ok().filter(|_| is_number)?;
        return Some(Step::Index(index.unsigned_abs()));
    }
    let mut scanner = Scanner { text: inner, at: 1 };
    let string = scanner.string(Controls::Allowed)?;
    let after = inner[scanner.at..].strip_prefix(b"]")?;
    *rest = after;
    let mut key = Vec::new();
    unescape(&inner[string], &mut key);
    Some(Step::Key(key))
}

/// Appends the value at a path: the text of a string, or what stands there. If a key stands twice,
/// the last one counts. `false` if there is none: the text is no JSON, is nested deeper than
/// `depth_max`, or lacks the path; nothing is appended then.
pub fn append_at(text: &[u8], path: &JsonPath, depth_max: usize, out: &mut Vec<u8>) -> bool {
    let scanner = Scanner { text, at: 0 };
    let walk = Walk {
        scanner,
        path: &path.0,
        are_arrays: Vec::new(),
        indices: Vec::new(),
        depth_max,
        begun: None,
        found: None,
    };
    match walk.run() {
        Some(Found::String(range)) => unescape(&text[range], out),
        Some(Found::Text(range)) => out.extend_from_slice(&text[range]),
        None => return false,
    }
    true
}

/// A value at the path.
enum Found {
    /// Between the quotes.
    String(Range<usize>),
    Text(Range<usize>),
}

/// What comes next.
enum Next {
    Value,
    /// A value, or the end of an array.
    FirstValue,
    Key,
    /// A key, or the end of an object.
    FirstKey,
    /// A comma or the end of what is open.
    Rest,
}

/// A pass over a text. The open containers that lie on the path are the first ones, and each has
/// an index in `indices`: the number of its values so far.
struct Walk<'a> {
    scanner: Scanner<'a>,
    path: &'a [Step],
    /// The open containers: whether each is an array.
    are_arrays: Vec<bool>,
    indices: Vec<u64>,
    depth_max: usize,
    /// Where the container at the path began, while it is open, and its depth.
    begun: Option<(usize, usize)>,
    found: Option<Found>,
}

impl Walk<'_> {
    fn run(mut self) -> Option<Found> {
        let mut next = Next::Value;
        // Whether the next value is that of a key on the path; of an array, its index says so.
        let mut is_key_on_path = false;
        loop {
            self.scanner.skip_spaces();
            if self.are_arrays.is_empty() && matches!(next, Next::Rest) {
                let is_whole = self.scanner.at == self.scanner.text.len();
                return self.found.filter(|_| is_whole);
            }
            let byte = self.scanner.peek()?;
            next = match (next, byte) {
                (Next::FirstKey, b'}') | (Next::FirstValue, b']') => self.close(),
                (Next::Rest, b'}') if self.are_arrays.last() == Some(&false) => self.close(),
                (Next::Rest, b']') if self.are_arrays.last() == Some(&true) => self.close(),
                (Next::Rest, b',') => {
                    self.scanner.at += 1;
                    match self.are_arrays.last() {
                        Some(true) => Next::Value,
                        _ => Next::Key,
                    }
                }
                (Next::Rest, _) => return None,
                (Next::Key | Next::FirstKey, _) => {
                    is_key_on_path = self.key()?;
                    Next::Value
                }
                (Next::Value | Next::FirstValue, _) => {
                    let is_on_path = self.is_on_path(is_key_on_path);
                    is_key_on_path = false;
                    self.value(byte, is_on_path)?
                }
            };
        }
    }

    /// Whether all open containers lie on the path, and it goes on.
    fn is_all_on_path(&self) -> bool {
        let depth = self.are_arrays.len();
        self.indices.len() == depth && depth <= self.path.len()
    }

    /// Reads a key and its colon; returns whether it is the one on the path.
    fn key(&mut self) -> Option<bool> {
        (self.scanner.take()? == b'"').then_some(())?;
        let key = self.scanner.string(Controls::Refused)?;
        self.scanner.skip_spaces();
        (self.scanner.take()? == b':').then_some(())?;
        let step = self.path.get(self.are_arrays.len().checked_sub(1)?);
        let Some(Step::Key(wanted)) = step.filter(|_| self.is_all_on_path()) else {
            return Some(false);
        };
        let key = &self.scanner.text[key];
        if !key.contains(&b'\\') {
            return Some(key == wanted);
        }
        let mut plain = Vec::with_capacity(key.len());
        unescape(key, &mut plain);
        Some(plain == *wanted)
    }

    /// Whether the value that begins is on the path; counts it.
    fn is_on_path(&mut self, is_key_on_path: bool) -> bool {
        if !self.is_all_on_path() {
            return false;
        }
        let (Some(true), Some(index)) = (self.are_arrays.last(), self.indices.last_mut()) else {
            // The outermost value is on each path.
            return self.are_arrays.is_empty() || is_key_on_path;
        };
        let own = *index;
        *index += 1;
        let step = self.path.get(self.are_arrays.len() - 1);
        matches!(step, Some(Step::Index(wanted)) if *wanted == own)
    }

    fn value(&mut self, byte: u8, is_on_path: bool) -> Option<Next> {
        let begin = self.scanner.at;
        let is_wanted = is_on_path && self.are_arrays.len() == self.path.len();
        if let b'{' | b'[' = byte {
            self.scanner.at += 1;
            (self.are_arrays.len() < self.depth_max).then_some(())?;
            self.are_arrays.push(byte == b'[');
            if is_wanted {
                self.begun = Some((begin, self.are_arrays.len()));
            } else if is_on_path {
                self.indices.push(0);
            }
            return Some(match byte {
                b'[' => Next::FirstValue,
                _ => Next::FirstKey,
            });
        }
        let found = match byte {
            b'"' => {
                self.scanner.at += 1;
                Found::String(self.scanner.string(Controls::Refused)?)
            }
            b't' => Found::Text(self.scanner.literal(b"true")?),
            b'f' => Found::Text(self.scanner.literal(b"false")?),
            b'n' => Found::Text(self.scanner.literal(b"null")?),
            _ => Found::Text(self.scanner.number()?),
        };
        if is_wanted {
            self.found = Some(found);
        }
        Some(Next::Rest)
    }

    fn close(&mut self) -> Next {
        self.scanner.at += 1;
        let depth = self.are_arrays.len();
        if let Some((begin, _)) = self.begun.take_if(|(_, own)| *own == depth) {
            self.found = Some(Found::Text(begin..self.scanner.at));
        }
        self.indices.truncate(depth - 1);
        self.are_arrays.pop();
        Next::Rest
    }
}

/// Whether a string may have control characters: a path may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Controls {
    Allowed,
    Refused,
}

/// A place in a text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &[u8]) -> Option<Range<usize>> {
        let begin = self.at;
        self.text[begin..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(begin..self.at)
    }

    /// What is between the quotes; the first one is taken already. Escapes are checked.
    fn string(&mut self, controls: Controls) -> Option<Range<usize>> {
        let begin = self.at;
        loop {
            match self.take()? {
                b'"' => return Some(begin..self.at - 1),
                b'\\' => match self.take()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => self.unicode()?,
                    _ => return None,
                },
                0..b' ' if controls == Controls::Refused => return None,
                _ => {}
            }
        }
    }

    /// Four digits, and another four where they are the first half of a pair.
    fn unicode(&mut self) -> Option<()> {
        match self.hexadecimal()? {
            0xdc00..=0xdfff => None,
            0xd800..=0xdbff => {
                let is_begun = self.take()? == b'\\' && self.take()? == b'u';
                let second = self.hexadecimal().filter(|_| is_begun)?;
                (0xdc00..=0xdfff).contains(&second).then_some(())
            }
            _ => Some(()),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        number_of(digits)
    }

    fn number(&mut self) -> Option<Range<usize>> {
        let begin = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.take()? {
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits().then_some(())?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits().then_some(())?;
        }
        Some(begin..self.at)
    }

    /// Skips digits; returns whether there are some.
    fn digits(&mut self) -> bool {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > begin
    }
}

/// Four hexadecimal digits as a number.
fn number_of(digits: &[u8]) -> Option<u32> {
    let mut digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |number, digit| Some(number * 16 + digit?))
}

/// Appends the text of a string whose escapes were checked.
fn unescape(string: &[u8], out: &mut Vec<u8>) {
    let mut rest = string;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let (escape, after) = rest[at + 1..].split_first().unwrap_or((&b'\\', &[]));
        rest = after;
        out.push(match escape {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = number_of(&rest[..rest.len().min(4)]).unwrap_or_default();
                rest = rest.get(4..).unwrap_or_default();
                let mut number = first;
                if (0xd800..=0xdbff).contains(&first) {
                    let second = rest.get(2..6).and_then(number_of).unwrap_or(0xdc00);
                    number = 0x10000 + ((first - 0xd800) << 10) + (second & 0x3ff);
                    rest = rest.get(6..).unwrap_or_default();
                }
                let letter = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => *other,
        });
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
