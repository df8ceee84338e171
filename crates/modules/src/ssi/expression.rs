//! Values of parameters, which may name variables, and the expressions of `if`.

use smallvec::SmallVec;
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Pattern;
use turnpike_http::regex::Regex;
use turnpike_plan::time;

use super::page::{Page, STORED_BYTES_MAX};

/// The name of a variable; usual ones need no allocation.
pub(super) type Name = SmallVec<[u8; 32]>;

/// The name of a variable as it is looked up: without regard to case, as in nginx.
pub(super) fn lookup_name(name: &[u8]) -> Name {
    name.iter().map(u8::to_ascii_lowercase).collect()
}

/// How an expression compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison<'a> {
    /// Whether the value is not empty.
    IsSet,
    /// With a text; `negated`: whether they differ.
    Text { right: &'a [u8], negated: bool },
    /// With a regular expression; `negated`: whether it does not match.
    Regex { right: &'a [u8], negated: bool },
}

/// Parts an expression into its left side, as written, and how that is compared. `None`: it is
/// none.
pub(super) fn parse(text: &[u8]) -> Option<(&[u8], Comparison<'_>)> {
    let is_left = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'{' | b'}' | b'"' | b' ')
    };
    let end = text.iter().position(|byte| !is_left(byte));
    let (left, rest) = text.split_at(end.unwrap_or(text.len()));
    let left = left.trim_ascii_end();
    if rest.is_empty() {
        return Some((left, Comparison::IsSet));
    }
    let (negated, right) = match (rest.strip_prefix(b"="), rest.strip_prefix(b"!=")) {
        (Some(right), _) => (false, right),
        (None, Some(right)) => (true, right),
        (None, None) => return None,
    };
    let right = right.trim_ascii_start();
    let comparison = match right.strip_prefix(b"/") {
        Some(rest) if !rest.is_empty() => Comparison::Regex {
            right: rest.strip_suffix(b"/")?,
            negated,
        },
        _ => Comparison::Text { right, negated },
    };
    Some((left, comparison))
}

/// What variables are evaluated in.
pub(super) struct Scope<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) page: &'a Page,
    /// `timefmt`, where a command has set it.
    pub(super) time_format: Option<&'a str>,
}

impl Scope<'_> {
    /// Appends the value of a variable; `false`: there is no such variable.
    pub(super) fn variable(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let name = &lookup_name(name)[..];
        if let Some(value) = self.page.variable(name) {
            out.extend_from_slice(value);
            return true;
        }
        if let [digit @ b'0'..=b'9'] = name {
            let group = self.page.group(usize::from(digit - b'0'));
            out.extend_from_slice(group.unwrap_or_default());
            return group.is_some();
        }
        let second = self.exchange.lane.clock.unix_seconds();
        match (name, self.time_format) {
            (b"date_gmt", Some(format)) => time::append_gmt_as(second, format, out),
            (b"date_local", Some(format)) => time::append_local_as(second, format, out),
            _ => {
                let name = String::from_utf8_lossy(name);
                turnpike_plan::variables::append_named(self.exchange, &name, out)
            }
        }
    }

    /// Appends the value of a text with variables. A backslash before a backslash, a quote or a
    /// dollar sign takes its meaning away.
    ///
    /// # Errors
    /// nginx's words for a name that is none; a value that is larger than a page may store.
    pub(super) fn value(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let plain_bytes = memchr::memchr2(b'\\', b'$', text).unwrap_or(text.len());
        let (plain, mut rest) = text.split_at(plain_bytes);
        out.extend_from_slice(plain);
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match (byte, behind.first()) {
                (b'\\', Some(next @ (b'\\' | b'\'' | b'"' | b'$'))) => {
                    out.push(*next);
                    rest = &behind[1..];
                }
                (b'$', _) => {
                    let (name, behind) = variable_name(behind)?;
                    self.variable(name, out);
                    if out.len() > STORED_BYTES_MAX {
                        return Err("the value of a parameter is too large".to_owned());
                    }
                    rest = behind;
                }
                (byte, _) => out.push(byte),
            }
        }
        Ok(())
    }
}

/// The name of a variable behind its dollar sign, and what follows it.
fn variable_name(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (braced, text) = match text.strip_prefix(b"{") {
        Some(text) => (true, text),
        None => (false, text),
    };
    let end = text.iter().position(|byte| !is_name(byte));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    if name.is_empty() {
        return Err("invalid variable name".to_owned());
    }
    match (braced, rest.strip_prefix(b"}")) {
        (false, _) => Ok((name, rest)),
        (true, Some(rest)) => Ok((name, rest)),
        (true, None) => {
            let name = String::from_utf8_lossy(name);
            Err(format!(
                "the closing bracket in \"{name}\" variable is missing"
            ))
        }
    }
}

/// Compiles the regular expression of a comparison, which ignores case.
///
/// # Errors
/// What is wrong with it.
pub(super) fn compile(text: &[u8], place: &str) -> Result<Pattern, String> {
    let regex = Regex::case_insensitive(&turnpike_conf::text_of(text), place);
    let regex = regex.map_err(|error| error.to_string())?;
    Ok(Pattern {
        regex,
        names: Vec::new(),
    })
}
