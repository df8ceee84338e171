//! A stored response's head: its status and its fields in one flat buffer, which is also how it
//! lies in a file.
//!
//! It must hold only what may be stored: [`Head::remove_unstorable`] takes out what concerns one
//! connection.

/// Fields that concern one connection or one client's authentication with a proxy, and are never
/// stored (RFC 9111 section 3.1; RFC 9110 section 7.6.1).
const CONNECTION_FIELDS: &[&[u8]] = &[
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"transfer-encoding",
    b"upgrade",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
];

/// Most fields of a head that is read from a file; a parser of heads allows fewer.
const FIELDS_MAX: u32 = 4096;

/// Status and fields of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    bytes: Vec<u8>,
    entries: Vec<FieldSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldSpan {
    start: u32,
    name: u32,
    value: u32,
}

impl Head {
    /// A head without fields.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// A head of these fields, for tables.
    pub fn of(status: u16, fields: &[(&str, &str)]) -> Self {
        let mut head = Self::new(status);
        for (name, value) in fields {
            head.add(name.as_bytes(), value.as_bytes());
        }
        head
    }

    /// Adds a field behind the others.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push(FieldSpan {
            start,
            name: name.len() as u32,
            value: value.len() as u32,
        });
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| {
            let text = self.bytes.get(entry.start as usize..).unwrap_or_default();
            let (name, rest) = text
                .split_at_checked(entry.name as usize)
                .unwrap_or_default();
            (name, rest.get(..entry.value as usize).unwrap_or_default())
        })
    }

    /// Values of the fields of that name, in any case.
    pub fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Value of the first field of that name.
    pub fn value<'a>(&'a self, name: &'a [u8]) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// Removes the fields that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&[u8], &[u8]) -> bool) {
        let mut kept = Self::new(self.status);
        for (name, value) in self.iter() {
            if keep(name, value) {
                kept.add(name, value);
            }
        }
        *self = kept;
    }

    /// Removes what concerns one connection only: the fields of old, and those that `Connection`
    /// names (RFC 9111 section 3.1).
    pub fn remove_unstorable(&mut self) {
        let named: Vec<Vec<u8>> = self
            .values(b"connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| name.trim_ascii().to_ascii_lowercase())
            .collect();
        self.retain(|name, _| {
            let lower = name.to_ascii_lowercase();
            !CONNECTION_FIELDS.contains(&lower.as_slice()) && !named.contains(&lower)
        });
    }

    /// Bytes that it takes in memory, about.
    pub fn size_bytes(&self) -> u64 {
        (self.bytes.len() + self.entries.len() * size_of::<FieldSpan>()) as u64
    }

    /// Appends it as files have it: status, count of fields, and each with its lengths. Numbers
    /// are little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for (name, value) in self.iter() {
            put_text(out, name);
            put_text(out, value);
        }
    }

    /// Reads what [`Head::encode`] wrote. `None`: it is not that.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut head = Self::new(u16::from_le_bytes(take(input)?));
        let count = u32::from_le_bytes(take(input)?);
        if count > FIELDS_MAX {
            return None;
        }
        for _ in 0..count {
            let name = take_text(input)?;
            let value = take_text(input)?;
            head.add(name, value);
        }
        Some(head)
    }
}

/// Appends a text with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// Takes a text with its length.
pub(crate) fn take_text<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(input)?) as usize;
    let (text, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(text)
}

/// Takes so many bytes.
pub(crate) fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*bytes)
}
