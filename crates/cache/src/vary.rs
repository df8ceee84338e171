//! Vary (RFC 9111 section 4.1): which stored response fits a request.

use crate::head::Head;
use crate::why::WhyNotStored;

/// Longest list of names; nginx's. What varies by more is as good as uncacheable.
const VARY_BYTES_MAX: usize = 128;

/// Gives a request's field of that name, its lines joined by commas; `false` where it has none.
pub type RequestField<'a> = &'a dyn Fn(&[u8], &mut Vec<u8>) -> bool;

/// The fields that selected a response, and what the request had there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    fields: Vec<Selecting>,
}

/// A field's name in lower case, and its value where the request had it.
type Selecting = (Box<[u8]>, Option<Box<[u8]>>);

impl Selection {
    /// What of a request selected this response.
    ///
    /// # Errors
    /// Where no request could be known to select it: `*`, or too much.
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
                let value = value_of(&name, field);
                (name.into_boxed_slice(), value.map(Vec::into_boxed_slice))
            })
            .collect();
        Ok(Self { fields })
    }

    /// Whether a request selects the same.
    pub fn matches(&self, field: RequestField<'_>) -> bool {
        self.fields
            .iter()
            .all(|(name, value)| value_of(name, field).as_deref() == value.as_deref())
    }

    /// Whether every request selects it.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Names and values that were there, for the name of a file.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (&**name, value.as_deref()))
    }

    /// Adds a field that was read from a file.
    pub(crate) fn push(&mut self, name: &[u8], value: Option<&[u8]>) {
        self.fields.push((name.into(), value.map(Into::into)));
    }
}

/// A field's value, made comparable: without spaces around commas, which mean nothing in lists.
fn value_of(name: &[u8], field: RequestField<'_>) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    if !field(name, &mut value) {
        return None;
    }
    let parts: Vec<&[u8]> = value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|part| !part.is_empty())
        .collect();
    Some(parts.join(&b","[..]))
}
