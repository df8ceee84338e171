//! What a value of an annotation or of the ConfigMap may be, and what becomes of its name.
//!
//! Every value that is written into a configuration has passed its kind: the sets of characters are
//! as narrow as those that ingress-nginx documents, and no kind but a snippet takes a line's end.

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Number,
    /// A size in nginx's units (`8k`, `1m`).
    Size,
    /// A time in nginx's units (`60`, `10s`, `1h`).
    Time,
    /// Letters, digits and `-._~/:`.
    Name,
    /// As a name, with spaces and commas.
    Names,
    /// Any text of one line; `$` names variables.
    Template,
    /// A path of a rewrite: as a name, with `$` for captures.
    Capture,
    /// An URL.
    Url,
    /// An URL with variables.
    UrlTemplate,
    /// A list of origins, with `*` for any, or for a part of a host.
    Origins,
    /// TLS ciphers or protocols in OpenSSL's language.
    Ciphers,
    /// A text of the administrator's on one line.
    Line,
    /// A list of header names.
    Headers,
    /// A list of addresses and networks.
    Networks,
    /// A list of status codes.
    Codes,
    /// A regular expression.
    Pattern,
    /// A list of names of servers, each of which may be a regular expression.
    ServerNames,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Directives.
    Snippet,
}

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Works as documented.
    Works,
    /// Works, with this difference.
    Differs(&'static str),
    /// Changes nothing here, and why.
    WithoutEffect(&'static str),
    /// An object with it is refused, and what to do instead.
    Refused(&'static str),
}

/// The longest value that is read, except of snippets and lists.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// The longest snippet or list: the longest object that Kubernetes stores has 1.5 MB.
const LONG_VALUE_BYTES_MAX: usize = 1 << 20;

impl Kind {
    /// Checks a value.
    ///
    /// # Errors
    /// What the value should be.
    pub fn check(self, value: &str) -> Result<(), String> {
        let is_long = matches!(self, Kind::Snippet | Kind::Networks | Kind::ServerNames);
        let bytes_max = if is_long {
            LONG_VALUE_BYTES_MAX
        } else {
            VALUE_BYTES_MAX
        };
        if value.len() > bytes_max {
            return Err(format!("is longer than {bytes_max} bytes"));
        }
        if has_control(value, self == Kind::Snippet) {
            return Err("has control characters".to_owned());
        }
        if self.fits(value.trim()) {
            Ok(())
        } else {
            Err(format!("is not {}", self.expected()))
        }
    }

    fn fits(self, value: &str) -> bool {
        match self {
            Kind::Flag => flag(value).is_some(),
            Kind::Number => value.parse::<u32>().is_ok(),
            Kind::Size => ends_with_unit(value, "bkmgBKMG"),
            Kind::Time => ends_with_unit(value, "smhdwM") || value.ends_with("ms"),
            Kind::Name => only(value, "-._~/:"),
            Kind::Names => only(value, "-._~/:, "),
            Kind::Template | Kind::Snippet | Kind::Line => true,
            Kind::Capture => only(value, "-._~/:$"),
            Kind::Url => only(value, "-._~/:,?&=%#+@"),
            Kind::UrlTemplate => only(value, "-._~/:,?&=%#+@$ {}"),
            Kind::Origins => only(value, "-._~/:,?&=%*[] "),
            Kind::Ciphers => only(value, "-_.:!+@=, "),
            Kind::Headers => only(value, "-_, "),
            Kind::Networks => split(value).all(is_network),
            Kind::Codes => split(value).all(|code| is_code(code, 300..=599)),
            Kind::Pattern => only(value, "-._~/:^$[](){}*+?|&=\\,<>!%# "),
            Kind::ServerNames => split(value).all(|name| only(name, "-._~/:^$[](){}*+?|\\<>")),
            Kind::Choice(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value)),
        }
    }

    /// What a value should be, after "is not".
    pub fn expected(self) -> String {
        let text = match self {
            Kind::Flag => "\"true\" or \"false\"",
            Kind::Number => "a whole number",
            Kind::Size => "a size such as 8k or 1m",
            Kind::Time => "a time such as 60 or 10s",
            Kind::Name | Kind::Names => "a name: letters, digits and -._~/:",
            Kind::Template | Kind::Line => "a text",
            Kind::Origins => "a list of origins such as https://*.example.com",
            Kind::Ciphers => "a list in OpenSSL's language",
            Kind::Capture => "a path with captures such as /$1",
            Kind::Url => "an URL",
            Kind::UrlTemplate => "an URL, which may have variables",
            Kind::Headers => "a list of header names",
            Kind::Networks => "a list of addresses and networks such as 10.0.0.0/8",
            Kind::Codes => "a list of status codes from 300 to 599",
            Kind::Pattern => "a regular expression of the allowed characters",
            Kind::ServerNames => "a list of host names",
            Kind::Choice(words) => return format!("one of {}", words.join(", ")),
            Kind::Snippet => "directives",
        };
        text.to_owned()
    }
}

/// The value of a flag, as Kubernetes' tools write it.
pub(crate) fn flag(value: &str) -> Option<bool> {
    match value.trim() {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Some(true),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Some(false),
        _ => None,
    }
}

/// The parts of a list with commas, trimmed; empty ones are left out.
pub(crate) fn split(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Whether a text is a status code in a range.
pub(crate) fn is_code(text: &str, range: std::ops::RangeInclusive<u16>) -> bool {
    text.parse().is_ok_and(|code| range.contains(&code))
}

/// Whether a text is an address or a network.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<std::net::IpAddr>() else {
        return false;
    };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max))
}

/// Whether a text has letters, digits, and these characters only.
pub(crate) fn only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|character| character.is_ascii_alphanumeric() || others.contains(character))
}

/// Whether a text has characters that no configuration should have. Lines and tabs are good in a
/// snippet.
fn has_control(value: &str, is_snippet: bool) -> bool {
    value.chars().any(|character| {
        let is_good = is_snippet && matches!(character, '\n' | '\t' | '\r');
        character.is_control() && !is_good
    })
}

fn ends_with_unit(value: &str, units: &str) -> bool {
    let digits = value.trim_end_matches(|character| units.contains(character));
    let is_one_unit = value.len() - digits.len() <= 1;
    is_one_unit && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
