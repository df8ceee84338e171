//! Vary (RFC 9111 section 4.1): the match of a request and a stored response.

use std::cell::Cell;

use turnpike_wire::message::Head;

use crate::why::WhyNotStored;

/// Longest list of names; nginx's limit. A response that varies by more is practically uncacheable.
const VARY_BYTES_MAX: usize = 128;

/// Appends a request's field with that name, its lines joined by commas; `false` if there is none.
pub type RequestField<'a> = &'a dyn Fn(&[u8], &mut Vec<u8>) -> bool;

/// The fields that selected a response, and their values in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    fields: Vec<Selecting>,
}

/// A field's name in lower case, and its value if the request had it.
type Selecting = (Box<[u8]>, Option<Box<[u8]>>);

impl Selection {
    /// The selecting fields of a request.
    ///
    /// # Errors
    /// No request could be known to select the response: `*`, or too many names.
    pub fn of(head: &Head, field: RequestField<'_>) -> Result<Self, WhyNotStored> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut bytes = 0;
        for value in head.values(b"vary") {
            for name in value.split(|byte| *byte == b',') {
                let name = name.trim_ascii().to_ascii_lowercase();
                if name == b"*" {
                    return Err(WhyNotStored::VaryAny);
                }
                if name.is_empty() || names.contains(&name) {
                    continue;
                }
                bytes += name.len() + 2;
                names.push(name);
            }
        }
        if bytes > VARY_BYTES_MAX {
            return Err(WhyNotStored::VaryTooLong);
        }
        names.sort();
        let fields = names
            .into_iter()
            .map(|name| {
                let value = with_value(&name, field, |value| value.map(Into::into));
                (name.into_boxed_slice(), value)
            })
            .collect();
        Ok(Self { fields })
    }

    /// Whether a request selects the same.
    pub fn matches(&self, field: RequestField<'_>) -> bool {
        self.fields
            .iter()
            .all(|(name, own)| with_value(name, field, |value| value == own.as_deref()))
    }

    /// Whether every request selects it.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names and values, for the name of a file.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (&**name, value.as_deref()))
    }

    /// Adds a field from a file.
    pub(crate) fn push(&mut self, name: &[u8], value: Option<&[u8]>) {
        self.fields.push((name.into(), value.map(Into::into)));
    }
}

thread_local! {
    /// Buffers for a request's value and its comparable form, so that a hit does not allocate.
    static ROOM: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Calls `use_value` with the comparable form of a field's value; `None` if the request has no such
/// field.
fn with_value<T>(
    name: &[u8],
    field: RequestField<'_>,
    use_value: impl FnOnce(Option<&[u8]>) -> T,
) -> T {
    let (mut raw, mut comparable) = ROOM.take();
    raw.clear();
    comparable.clear();
    let used = if field(name, &mut raw) {
        write_comparable(name, &raw, &mut comparable);
        use_value(Some(&comparable))
    } else {
        use_value(None)
    };
    ROOM.set((raw, comparable));
    used
}

/// Makes a field's value comparable as far as its definition makes different texts equivalent (RFC
/// 9111 section 4.1). Lists lose the spaces around commas. The order and case of codings do not
/// count, nor does the case of languages; the order of languages counts only between equal weights.
fn write_comparable(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let preferences = match name {
        b"accept-encoding" => Some(Preferences::Codings),
        b"accept-language" => Some(Preferences::Languages),
        _ => None,
    };
    let is_written = preferences.is_some_and(|one| one.write(value, out).is_some());
    if is_written {
        return;
    }
    // A malformed value is compared unchanged.
    for (index, part) in parts(value).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(part);
    }
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|part| !part.is_empty())
}

/// A field of weighted preferences (RFC 9110 section 12.4.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preferences {
    /// Accept-Encoding.
    Codings,
    /// Accept-Language.
    Languages,
}

/// A preference: its name, its weight in thousandths, and its position.
type Preferred<'a> = (&'a [u8], u16, usize);

/// Most preferences that are sorted; clients send about five.
const PREFERENCES_MAX: usize = 16;

/// The default weight, in thousandths.
const WEIGHT_FULL: u16 = 1000;

impl Preferences {
    /// Writes the preferences, the heaviest first, in lower case and with weights in their shortest
    /// form. `None`: it is malformed, and nothing is written.
    fn write(self, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut room: [Preferred<'_>; PREFERENCES_MAX] = [(&[], 0, 0); PREFERENCES_MAX];
        let mut count = 0;
        for part in parts(value) {
            let (name, weight) = weighted(part)?;
            let name = self.usual_name(name);
            // For a repeated name the field's meaning is undefined, so only the same text is equal.
            let is_known = |(own, _, _): &Preferred<'_>| own.eq_ignore_ascii_case(name);
            if room.get(..count)?.iter().any(is_known) {
                return None;
            }
            *room.get_mut(count)? = (name, weight, count);
            count += 1;
        }
        let list = room.get_mut(..count)?;
        list.sort_unstable_by(|one, other| {
            let by_weight = other.1.cmp(&one.1);
            by_weight.then_with(|| match self {
                Self::Codings => lower(one.0).cmp(lower(other.0)),
                // Some servers take the first of equal ones, so their order is kept.
                Self::Languages => one.2.cmp(&other.2),
            })
        });
        let has_any = list.iter().any(|(name, _, _)| *name == b"*");
        for (name, weight, _) in list {
            // A coding that is not named is refused anyway, unless any coding is accepted, or this
            // is "identity".
            let says_nothing = self == Self::Codings
                && *weight == 0
                && !has_any
                && !name.eq_ignore_ascii_case(b"identity");
            if says_nothing {
                continue;
            }
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend(lower(name));
            write_weight(*weight, out);
        }
        Some(())
    }

    /// Other names of the same coding (RFC 9110 section 8.4.1).
    fn usual_name(self, name: &[u8]) -> &[u8] {
        match self {
            Self::Codings if name.eq_ignore_ascii_case(b"x-gzip") => b"gzip",
            Self::Codings if name.eq_ignore_ascii_case(b"x-compress") => b"compress",
            _ => name,
        }
    }
}

fn lower(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(u8::to_ascii_lowercase)
}

fn write_weight(weight: u16, out: &mut Vec<u8>) {
    if weight >= WEIGHT_FULL {
        return;
    }
    out.extend_from_slice(b";q=0");
    let digits = [weight / 100, weight / 10 % 10, weight % 10];
    let used = digits.iter().rposition(|digit| *digit > 0);
    if let Some(last) = used {
        out.push(b'.');
        out.extend(
            digits
                .iter()
                .take(last + 1)
                .map(|digit| b'0' + *digit as u8),
        );
    }
}

/// A name and its weight in thousandths. `None`: it has other parameters, or is malformed.
fn weighted(part: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = part.iter().position(|byte| *byte == b';') else {
        return Some((part, WEIGHT_FULL));
    };
    let (name, parameter) = (part[..at].trim_ascii_end(), part[at + 1..].trim_ascii());
    let weight = match parameter {
        [b'q' | b'Q', b'=', weight @ ..] => weight,
        _ => return None,
    };
    let (whole, fraction) = match weight {
        [whole] | [whole, b'.'] => (whole, &b""[..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    if name.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| fraction.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
    match (whole, thousandths) {
        (b'0', thousandths) => Some((name, thousandths)),
        (b'1', 0) => Some((name, WEIGHT_FULL)),
        _ => None,
    }
}
