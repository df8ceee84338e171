//! Cache-Control (RFC 9111 section 5.2, RFC 5861) and its targeted form, CDN-Cache-Control (RFC
//! 9213): the parser of the fields. It does not decide anything.

use crate::structured::{self, Value};

/// The value for "infinite": a delta-seconds that does not fit means "a long time" (RFC 9111
/// section 1.2.2).
pub const SECONDS_MAX: u64 = 1 << 31;

/// A directive that may be limited to some fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is not there.
    #[default]
    None,
    /// The directive names these fields, lower-case (`no-cache="set-cookie"`).
    Fields(Vec<Vec<u8>>),
    /// The directive applies to the whole response.
    Whole,
}

/// The directives of all Cache-Control fields of a message. The first of two equal directives
/// counts (RFC 9111 section 4.2.1); unknown ones are ignored (section 5.2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `max-age` in seconds; a malformed one is 0, which means stale.
    pub max_age: Option<u64>,
    /// `s-maxage` in seconds, for shared caches.
    pub s_maxage: Option<u64>,
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, whole or for some fields.
    pub no_cache: Scope,
    /// `private`, whole or for some fields.
    pub private: Scope,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `no-transform`.
    pub no_transform: bool,
    /// `stale-while-revalidate` in seconds (RFC 5861 section 3).
    pub stale_while_revalidate: Option<u64>,
    /// `stale-if-error` in seconds (RFC 5861 section 4).
    pub stale_if_error: Option<u64>,
    /// `only-if-cached`, in requests.
    pub only_if_cached: bool,
    /// `max-stale`, in requests; `SECONDS_MAX` without an argument.
    pub max_stale: Option<u64>,
    /// `min-fresh`, in requests.
    pub min_fresh: Option<u64>,
    /// Whether a time is malformed: nginx then stores nothing.
    pub malformed: bool,
}

impl CacheControl {
    /// Reads all Cache-Control fields of a message.
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut control = Self::default();
        for value in values {
            let mut rest = value;
            while let Some((name, argument)) = directive(&mut rest) {
                control.set(&name, argument.as_deref());
            }
        }
        control
    }

    /// Reads all targeted fields with one name (RFC 9213 section 2.1). `None` if they are empty,
    /// are not a dictionary, or hold a time that is not an integer.
    pub fn parse_targeted<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut text = values.next()?.to_vec();
        for value in values {
            text.extend_from_slice(b", ");
            text.extend_from_slice(value);
        }
        let members = structured::dictionary(&text)?;
        if members.is_empty() {
            return None;
        }
        let mut control = Self::default();
        for (name, value) in members {
            match value {
                Value::Boolean(false) => {}
                Value::Boolean(true) | Value::Other => control.set(&name, None),
                Value::Integer(number) => control.set(&name, Some(number.to_string().as_bytes())),
                Value::Text(_) if is_time(&name) => return None,
                Value::Text(text) => control.set(&name, Some(&text)),
            }
        }
        (!control.malformed).then_some(control)
    }

    fn set(&mut self, name: &[u8], argument: Option<&[u8]>) {
        match name {
            b"no-store" => self.no_store = true,
            b"no-cache" => scope(&mut self.no_cache, argument),
            b"private" => scope(&mut self.private, argument),
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            b"no-transform" => self.no_transform = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => seconds(&mut self.max_age, argument, &mut self.malformed),
            b"s-maxage" => seconds(&mut self.s_maxage, argument, &mut self.malformed),
            b"min-fresh" => seconds(&mut self.min_fresh, argument, &mut self.malformed),
            b"max-stale" if argument.is_none() => {
                self.max_stale.get_or_insert(SECONDS_MAX);
            }
            b"max-stale" => seconds(&mut self.max_stale, argument, &mut self.malformed),
            b"stale-while-revalidate" => {
                seconds(
                    &mut self.stale_while_revalidate,
                    argument,
                    &mut self.malformed,
                );
            }
            b"stale-if-error" => {
                seconds(&mut self.stale_if_error, argument, &mut self.malformed);
            }
            _ => {}
        }
    }
}

/// Whether a directive's argument is a count of seconds.
fn is_time(name: &[u8]) -> bool {
    matches!(
        name,
        b"max-age" | b"s-maxage" | b"stale-while-revalidate" | b"stale-if-error"
    )
}

/// Takes the next directive: its name in lower case, its argument without quotes. A quoted argument
/// that does not end is none, and what is behind its first comma is read as directives: a damaged
/// list must not hide a `no-store`.
fn directive(rest: &mut &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let start = rest.iter().position(|byte| !b" \t,".contains(byte))?;
    *rest = &rest[start..];
    let end = rest.iter().position(|byte| b"=, \t".contains(byte));
    let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
    let name = name.to_ascii_lowercase();
    *rest = after.trim_ascii_start();
    let Some(argument) = rest.strip_prefix(b"=") else {
        return Some((name, None));
    };
    let argument = argument.trim_ascii_start();
    let (argument, after) = match argument.strip_prefix(b"\"") {
        Some(quoted) => {
            let (argument, after) = quoted_string(quoted);
            *rest = match argument {
                Some(_) => after,
                None => after_comma(quoted),
            };
            return Some((name, argument));
        }
        None => {
            let end = argument.iter().position(|byte| *byte == b',');
            let (token, after) = argument.split_at(end.unwrap_or(argument.len()));
            (token.trim_ascii_end().to_vec(), after)
        }
    };
    *rest = after;
    Some((name, Some(argument)))
}

/// What follows the first comma.
fn after_comma(text: &[u8]) -> &[u8] {
    let comma = text.iter().position(|byte| *byte == b',');
    comma.map_or(&[], |comma| &text[comma + 1..])
}

/// The rest of a quoted string, and what follows it; `None` if it does not end.
fn quoted_string(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => return (Some(value), &text[at..]),
            b'\\' => {
                value.extend(text.get(at));
                at += 1;
            }
            byte => value.push(byte),
        }
    }
    (None, &[])
}

/// Adds the fields that a directive names. One that names none concerns the whole response: an
/// empty or damaged list must not let a response be stored.
fn scope(scope: &mut Scope, argument: Option<&[u8]>) {
    let fields = argument.unwrap_or_default().split(|byte| *byte == b',');
    let fields = fields.map(|name| name.trim_ascii().to_ascii_lowercase());
    let fields: Vec<_> = fields.filter(|name| !name.is_empty()).collect();
    match scope {
        Scope::Whole => {}
        _ if fields.is_empty() => *scope = Scope::Whole,
        Scope::Fields(known) => known.extend(fields),
        Scope::None => *scope = Scope::Fields(fields),
    }
}

fn seconds(slot: &mut Option<u64>, argument: Option<&[u8]>, malformed: &mut bool) {
    if slot.is_some() {
        return;
    }
    let read = argument.and_then(delta_seconds);
    *malformed |= read.is_none();
    *slot = Some(read.unwrap_or(0));
}

/// Reads a count of seconds (RFC 9111 section 1.2.2); `None` if it is malformed.
pub fn delta_seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = text.iter().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(seconds.min(SECONDS_MAX))
}
