//! A regular language that contains every text that a pattern matches.
//!
//! The language may contain more: constructs beyond automata (assertions, back references, atomic
//! groups) are left out or match anything, since PCRE2 checks every text in the language. It must
//! never contain less, so an unknown construct makes the whole pattern `None`.
//!
//! `$` is the end of the text here, but PCRE2 also allows it before a final line feed: texts that
//! end like a line must not be checked against this language.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look, Repetition};

/// The deepest nesting of groups: a limit on recursion. Usual patterns have a few levels.
const DEPTH_MAX: usize = 32;

/// The longest pattern, in bytes; it limits the time of a reload.
const PATTERN_BYTES_MAX: usize = 8 * 1024;

/// The largest count of a repetition: each is a copy in the automaton. More becomes "any number".
const REPETITIONS_MAX: u32 = 16;

/// The language of a pattern; `None` if it is unknown.
pub(super) fn of(pattern: &[u8], caseless: bool) -> Option<Hir> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let mut parser = Parser {
        pattern,
        at: 0,
        caseless,
        depth: 0,
    };
    let language = parser.alternatives()?;
    parser.rest().is_empty().then(|| without_tail(language))
}

/// Removes parts at the end that match any text, so that a match ends as early as possible.
fn without_tail(language: Hir) -> Hir {
    let HirKind::Concat(parts) = language.kind() else {
        return language;
    };
    let mut parts = parts.clone();
    let is_any = |part: &Hir| *part == any_number_of(any_byte(), 0);
    let end = Hir::look(Look::End);
    if let [.., any, last] = parts.as_slice()
        && *last == end
        && is_any(any)
    {
        parts.pop();
    }
    while parts.last().is_some_and(is_any) {
        parts.pop();
    }
    Hir::concat(parts)
}

struct Parser<'a> {
    pattern: &'a [u8],
    at: usize,
    caseless: bool,
    depth: usize,
}

/// An item of a bracketed class.
enum ClassItem {
    Byte(u8),
    Set(Set),
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a [u8] {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Skips `text` if it is next.
    fn eat(&mut self, text: &[u8]) -> bool {
        let eaten = self.rest().starts_with(text);
        if eaten {
            self.at += text.len();
        }
        eaten
    }

    fn alternatives(&mut self) -> Option<Hir> {
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.sequence()?);
            if !self.eat(b"|") {
                return Some(Hir::alternation(alternatives));
            }
        }
    }

    fn sequence(&mut self) -> Option<Hir> {
        let mut parts = Vec::new();
        while let Some(byte) = self.peek()
            && !matches!(byte, b'|' | b')')
        {
            self.at += 1;
            let part = self.part(byte)?;
            parts.push(self.repeated(part)?);
        }
        Some(Hir::concat(parts))
    }

    /// The part that begins with `byte`, which was read.
    fn part(&mut self, byte: u8) -> Option<Hir> {
        match byte {
            b'(' => self.group(),
            b'[' => self.class(),
            b'.' => Some(any_byte()),
            b'^' => Some(Hir::look(Look::Start)),
            b'$' => Some(Hir::look(Look::End)),
            b'\\' => self.escape(),
            b'*' | b'+' | b'?' => None,
            // Newer versions accept more after a brace as a count than older ones do.
            b'{' if self.peek().is_none_or(is_count) => None,
            byte => Some(self.literal(byte)),
        }
    }

    fn literal(&self, byte: u8) -> Hir {
        let mut set = Set::of(byte);
        if self.caseless {
            set.fold();
        }
        set.language()
    }

    /// The part with its quantifiers.
    fn repeated(&mut self, mut part: Hir) -> Option<Hir> {
        loop {
            let (least, most) = match self.peek() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') if self.rest().get(1).copied().is_some_and(is_count) => {
                    self.at += 1;
                    let counts = self.counts()?;
                    self.at -= 1;
                    counts
                }
                _ => return Some(part),
            };
            self.at += 1;
            // A lazy or possessive quantifier: the texts are the same, or fewer.
            let _ = self.eat(b"?") || self.eat(b"+");
            let is_position = part.properties().maximum_len() == Some(0);
            part = match (is_position, most) {
                (true, _) => Hir::empty(),
                (false, Some(most)) if most <= REPETITIONS_MAX => {
                    repetition(part, least, Some(most))
                }
                (false, _) => any_number_of(part, least.min(1)),
            };
        }
    }

    /// The numbers of `{2,3}`, from after the brace to the closing one.
    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        let least = self.number()?;
        let most = match self.eat(b",") {
            false => Some(least),
            true if self.peek() == Some(b'}') => None,
            true => Some(self.number()?),
        };
        (self.next()? == b'}').then_some((least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit());
        let count = digits.count();
        let text = std::str::from_utf8(self.rest().get(..count)?).ok()?;
        self.at += count;
        text.parse().ok()
    }

    /// The content of parentheses, the first of which was read.
    fn group(&mut self) -> Option<Hir> {
        if self.peek() == Some(b'*') {
            return None;
        }
        let caseless = self.caseless;
        let mut is_assertion = false;
        if self.eat(b"?") {
            let ahead = [b"=".as_slice(), b"!", b"<=", b"<!"];
            if ahead.iter().any(|start| self.eat(start)) {
                is_assertion = true;
            } else if self.eat(b"i)") {
                // The option holds for the rest of the surrounding group, including its other
                // alternatives.
                self.caseless = true;
                return Some(Hir::empty());
            } else if self.eat(b"i:") {
                self.caseless = true;
            } else if !(self.eat(b":") || self.eat(b">")) {
                self.group_name()?;
            }
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let language = self.alternatives()?;
        self.depth -= 1;
        self.caseless = caseless;
        if self.next()? != b')' {
            return None;
        }
        Some(if is_assertion { Hir::empty() } else { language })
    }

    fn group_name(&mut self) -> Option<()> {
        let end = if self.eat(b"P<") || self.eat(b"<") {
            b'>'
        } else if self.eat(b"'") {
            b'\''
        } else {
            return None;
        };
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = self.rest().iter().take_while(|byte| is_word(byte)).count();
        self.at += length;
        (length > 0 && self.next()? == end).then_some(())
    }

    /// The escape after a backslash, which was read, outside of classes.
    fn escape(&mut self) -> Option<Hir> {
        if let Some(set) = self.peek().and_then(named_set) {
            self.at += 1;
            return Some(set.language());
        }
        match self.peek()? {
            b'A' => self.position(Hir::look(Look::Start)),
            b'z' | b'Z' => self.position(Hir::look(Look::End)),
            b'b' | b'B' | b'G' | b'K' => self.position(Hir::empty()),
            b'1'..=b'9' => {
                self.at += 1;
                // Two digits may be an octal number.
                let is_number = self.peek().is_some_and(|byte| byte.is_ascii_digit());
                (!is_number).then(|| any_number_of(any_byte(), 0))
            }
            _ => self.escaped_byte().map(|byte| self.literal(byte)),
        }
    }

    fn position(&mut self, language: Hir) -> Option<Hir> {
        self.at += 1;
        Some(language)
    }

    /// A byte after a backslash, inside or outside of a class.
    fn escaped_byte(&mut self) -> Option<u8> {
        let byte = self.next()?;
        Some(match byte {
            b'a' => 0x07,
            b'e' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let digits = self.rest().get(..2)?;
                let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
                self.at += 2;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte if byte.is_ascii_alphanumeric() => return None,
            byte => byte,
        })
    }

    /// A class whose bracket was read.
    fn class(&mut self) -> Option<Hir> {
        let is_negated = self.eat(b"^");
        let mut set = Set::default();
        if self.eat(b"]") {
            self.class_range(b']', &mut set)?;
        }
        while !self.eat(b"]") {
            match self.class_item()? {
                ClassItem::Set(item) => set.add(&item),
                ClassItem::Byte(byte) => self.class_range(byte, &mut set)?,
            }
        }
        if self.caseless {
            set.fold();
        }
        if is_negated {
            set.negate();
        }
        Some(set.language())
    }

    /// Adds the byte, or the range that begins with it.
    fn class_range(&mut self, first: u8, set: &mut Set) -> Option<()> {
        let is_range = self.rest().first() == Some(&b'-') && self.rest().get(1) != Some(&b']');
        if !is_range {
            set.add(&Set::of(first));
            return Some(());
        }
        self.at += 1;
        match self.class_item()? {
            ClassItem::Byte(last) if first <= last => {
                set.add_range(first, last);
                Some(())
            }
            _ => None,
        }
    }

    fn class_item(&mut self) -> Option<ClassItem> {
        match self.next()? {
            b'\\' => {
                if let Some(set) = self.peek().and_then(named_set) {
                    self.at += 1;
                    return Some(ClassItem::Set(set));
                }
                if self.eat(b"b") {
                    return Some(ClassItem::Byte(0x08));
                }
                self.escaped_byte().map(ClassItem::Byte)
            }
            b'[' if matches!(self.peek(), Some(b':' | b'.' | b'=')) => {
                self.posix_class().map(ClassItem::Set)
            }
            byte => Some(ClassItem::Byte(byte)),
        }
    }

    fn posix_class(&mut self) -> Option<Set> {
        type Test = fn(&u8) -> bool;
        const CLASSES: &[(&[u8], Test)] = &[
            (b":alnum:]", u8::is_ascii_alphanumeric),
            (b":alpha:]", u8::is_ascii_alphabetic),
            (b":digit:]", u8::is_ascii_digit),
            (b":lower:]", u8::is_ascii_lowercase),
            (b":punct:]", u8::is_ascii_punctuation),
            (b":upper:]", u8::is_ascii_uppercase),
            (b":xdigit:]", u8::is_ascii_hexdigit),
        ];
        let (_, test) = CLASSES.iter().find(|(name, _)| self.eat(name))?;
        Some(Set::that(test))
    }
}

/// The exact sets of `\d` and similar escapes: they may be negated.
fn named_set(letter: u8) -> Option<Set> {
    let mut set = match letter.to_ascii_lowercase() {
        b'd' => Set::that(&u8::is_ascii_digit),
        b's' => Set::that(&|byte: &u8| matches!(byte, 9..=13 | b' ')),
        b'w' => Set::that(&|byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_'),
        _ => return None,
    };
    if letter.is_ascii_uppercase() {
        set.negate();
    }
    Some(set)
}

/// Whether a byte may follow a brace in a count.
fn is_count(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b',' | b' ' | b'\t')
}

fn any_byte() -> Hir {
    let mut all = Set::default();
    all.negate();
    all.language()
}

fn any_number_of(part: Hir, least: u32) -> Hir {
    repetition(part, least, None)
}

fn repetition(part: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(part),
    })
}

/// A set of bytes.
struct Set(Box<[bool; 256]>);

impl Default for Set {
    fn default() -> Self {
        Set(Box::new([false; 256]))
    }
}

impl Set {
    fn of(byte: u8) -> Set {
        Set::that(&|other: &u8| *other == byte)
    }

    fn that(test: &dyn Fn(&u8) -> bool) -> Set {
        let mut set = Set::default();
        for byte in 0..=u8::MAX {
            set.0[usize::from(byte)] = test(&byte);
        }
        set
    }

    fn add(&mut self, other: &Set) {
        for (own, other) in self.0.iter_mut().zip(other.0.iter()) {
            *own |= other;
        }
    }

    fn add_range(&mut self, first: u8, last: u8) {
        self.add(&Set::that(&|byte: &u8| (first..=last).contains(byte)));
    }

    fn negate(&mut self) {
        for own in self.0.iter_mut() {
            *own = !*own;
        }
    }

    /// Adds the other case of every letter.
    fn fold(&mut self) {
        for byte in (0..=u8::MAX).filter(u8::is_ascii_lowercase) {
            let (lower, upper) = (usize::from(byte), usize::from(byte.to_ascii_uppercase()));
            let either = self.0[lower] || self.0[upper];
            (self.0[lower], self.0[upper]) = (either, either);
        }
    }

    fn language(&self) -> Hir {
        let bytes = (0..=u8::MAX).filter(|byte| self.0[usize::from(*byte)]);
        let ranges = bytes.map(|byte| ClassBytesRange::new(byte, byte));
        Hir::class(Class::Bytes(ClassBytes::new(ranges)))
    }
}
