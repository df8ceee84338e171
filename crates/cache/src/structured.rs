//! Structured fields (RFC 9651), as far as a cache must read them: dictionaries, whose values are
//! distinguished only by their use in directives.

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Integer(i64),
    /// A boolean; a member without a value is true.
    Boolean(bool),
    /// A string or a token, without quotes.
    Text(Vec<u8>),
    /// Any other type: a decimal, bytes, a date, a list.
    Other,
}

/// Most digits of an integer (RFC 9651 section 3.3.1).
const DIGITS_MAX: usize = 15;

/// Reads a dictionary (RFC 9651 section 4.2.2). The last value of a repeated key counts. `None`: it
/// is malformed, and the whole field must be ignored.
pub fn dictionary(text: &[u8]) -> Option<Vec<(Vec<u8>, Value)>> {
    let mut members: Vec<(Vec<u8>, Value)> = Vec::new();
    let mut rest = Reader(trim(text, b" "));
    while !rest.0.is_empty() {
        let key = rest.key()?;
        let value = if rest.take(b'=') {
            rest.member()?
        } else {
            Value::Boolean(true)
        };
        rest.parameters()?;
        match members.iter_mut().find(|(own, _)| *own == key) {
            Some((_, own)) => *own = value,
            None => members.push((key, value)),
        }
        rest.skip(b" \t");
        if rest.0.is_empty() {
            break;
        }
        if !rest.take(b',') {
            return None;
        }
        rest.skip(b" \t");
        if rest.0.is_empty() {
            return None;
        }
    }
    Some(members)
}

fn trim<'a>(text: &'a [u8], bytes: &[u8]) -> &'a [u8] {
    let is_kept = |byte: &u8| !bytes.contains(byte);
    let start = text.iter().position(is_kept).unwrap_or(text.len());
    let end = text.iter().rposition(is_kept).map_or(start, |at| at + 1);
    &text[start..end]
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.run(|byte| bytes.contains(&byte));
    }

    /// Takes the leading bytes for which `is_so` holds.
    fn run(&mut self, is_so: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !is_so(*byte));
        let (run, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        run
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        let first = *self.0.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        let is_key = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Some(self.run(is_key).to_vec())
    }

    /// An item or an inner list.
    fn member(&mut self) -> Option<Value> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(Value::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.0.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn bare_item(&mut self) -> Option<Value> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string().map(Value::Text),
            b'?' => self.boolean(),
            b':' => {
                self.take(b':');
                self.run(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').then_some(Value::Other)
            }
            b'@' => {
                self.take(b'@');
                matches!(self.number()?, Value::Integer(_)).then_some(Value::Other)
            }
            b'%' => {
                self.take(b'%');
                self.string().map(|_| Value::Other)
            }
            first if first.is_ascii_alphabetic() || first == b'*' => {
                let is_token =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                Some(Value::Text(self.run(is_token).to_vec()))
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Value> {
        let is_negative = self.take(b'-');
        let digits = self.run(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > DIGITS_MAX {
            return None;
        }
        if self.take(b'.') {
            let fraction = self.run(|byte| byte.is_ascii_digit());
            let fits = (1..=3).contains(&fraction.len()) && digits.len() <= DIGITS_MAX - 3;
            return fits.then_some(Value::Other);
        }
        let amount = digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        Some(Value::Integer(if is_negative { -amount } else { amount }))
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        if !self.take(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return Some(text),
                b'\\' => {
                    let (&escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    if !matches!(escaped, b'"' | b'\\') {
                        return None;
                    }
                    text.push(escaped);
                }
                b' '..=b'~' => text.push(byte),
                _ => return None,
            }
        }
    }

    fn boolean(&mut self) -> Option<Value> {
        self.take(b'?');
        if self.take(b'1') {
            return Some(Value::Boolean(true));
        }
        self.take(b'0').then_some(Value::Boolean(false))
    }
}
