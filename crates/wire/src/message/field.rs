//! Fields of a head or a trailer section, and the bytes of their spans.

use super::known::Known;
use super::strictness::trim;
use super::value::holds_control;
use crate::Span;

#[cfg(test)]
mod tests;

/// A field as spans of the bytes that hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as written.
    pub name: Span,
    /// The value without the white space around it.
    pub value: Span,
    /// The known name, or `Other`.
    pub known: Known,
    /// Whether the name holds only letters, digits and hyphens (and underscores where allowed).
    pub valid: bool,
    /// Whether the name holds an underscore.
    pub underscore: bool,
}

/// A field as texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The known name, or `Other`.
    pub known: Known,
    pub name: &'a [u8],
    pub value: &'a [u8],
}

/// Fields in order. They are reused from message to message and keep their memory.
///
/// Names are compared in any case (RFC 9110 section 5.1).
#[derive(Clone, Debug, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    list: Vec<Field>,
    /// The bits of the known names in the list.
    seen: u64,
}

impl Fields {
    /// Adds a field; existing fields with that name stay.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let name = self.append(name);
        let value = self.append(value);
        let text = name.of(&self.bytes);
        let known = Known::of(text);
        let field = Field {
            name,
            value,
            known,
            valid: true,
            underscore: memchr::memchr(b'_', text).is_some(),
        };
        self.list.push(field);
        self.seen |= known.bit();
    }

    /// Adds a field whose name may be not `valid`.
    pub(crate) fn add_as(&mut self, name: &[u8], value: &[u8], valid: bool) {
        self.add(name, value);
        if let Some(field) = self.list.last_mut() {
            field.valid = valid;
        }
    }

    /// Sets a field: removes others with that name.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.add(name, value);
    }

    /// Replaces the value of a field in place, and removes others with that name; adds the field if
    /// there is none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        let is_same = |bytes: &[u8], field: &Field| field.name.of(bytes).eq_ignore_ascii_case(name);
        let Some(at) = self
            .list
            .iter()
            .position(|field| is_same(&self.bytes, field))
        else {
            return self.add(name, value);
        };
        let (name, value) = (self.append(name), self.append(value));
        if let Some(field) = self.list.get_mut(at) {
            (field.name, field.value) = (name, value);
        }
        let bytes = &self.bytes;
        let mut index = 0;
        self.list.retain(|field| {
            index += 1;
            index - 1 <= at || !is_same(bytes, field)
        });
    }

    /// Gives the fields of a known name a value that stands in the bytes. `false` if there is none.
    pub(crate) fn set_value(&mut self, known: Known, value: Span) -> bool {
        let fields = self.list.iter_mut().filter(|field| field.known == known);
        fields.map(|field| field.value = value).count() > 0
    }

    /// Removes every field of that name.
    pub fn remove(&mut self, name: &[u8]) {
        let known = Known::of(name);
        let bytes = &self.bytes;
        match known {
            Known::Other => self
                .list
                .retain(|field| !field.name.of(bytes).eq_ignore_ascii_case(name)),
            _ if self.seen & known.bit() == 0 => {}
            _ => self.list.retain(|field| field.known != known),
        }
        self.seen &= !known.bit();
    }

    /// Removes the fields for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(Entry<'_>) -> bool) {
        let bytes = &self.bytes;
        self.list.retain(|field| keep(entry(bytes, field)));
        self.seen = bits(&self.list);
    }

    /// Makes these fields a copy of `other`; keeps the memory.
    pub fn copy(&mut self, other: &Fields) {
        self.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.list.extend_from_slice(&other.list);
        self.seen = other.seen;
    }

    /// Value of the first field of a known name.
    #[must_use]
    pub fn known(&self, known: Known) -> Option<&[u8]> {
        if self.seen & known.bit() == 0 {
            return None;
        }
        let field = self.list.iter().find(|field| field.known == known)?;
        Some(field.value.of(&self.bytes))
    }

    /// Value of the first field of that name.
    #[must_use]
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        match Known::of(name) {
            Known::Other => self
                .iter()
                .find(|(own, _)| own.eq_ignore_ascii_case(name))
                .map(|(_, value)| value),
            known => self.known(known),
        }
    }

    /// Values of the fields of that name.
    pub fn values<'a>(&'a self, name: &'a [u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Whether a `Connection` among them names this field (RFC 9110 section 7.6.1).
    #[must_use]
    pub fn is_connection_option(&self, name: &[u8]) -> bool {
        self.entries()
            .filter(|entry| entry.known == Known::Connection)
            .flat_map(|entry| entry.value.split(|byte| *byte == b','))
            .any(|option| trim(option).eq_ignore_ascii_case(name))
    }

    /// The names and values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.entries().map(|entry| (entry.name, entry.value))
    }

    /// The fields in order: name, known name, and value.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        let bytes = self.bytes.as_slice();
        self.list.iter().map(move |field| entry(bytes, field))
    }

    /// The fields as spans of [`Fields::bytes`], in order.
    #[must_use]
    pub fn spans(&self) -> &[Field] {
        &self.list
    }

    /// The bytes that hold the fields. The bytes between them have no meaning here.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a name or a value holds a control byte other than a tab.
    #[must_use]
    pub fn hold_control(&self) -> bool {
        self.iter()
            .any(|(name, value)| holds_control(name) || holds_control(value))
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The approximate memory that they take, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        (self.bytes.len() + self.list.len() * size_of::<Field>()) as u64
    }

    /// Removes all fields; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
        self.seen = 0;
    }

    /// The buffer of the bytes, for a caller that limits its size.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a text that is not a field; returns its span.
    pub(crate) fn append(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Span::new(start, self.bytes.len())
    }

    /// Empties the fields and lends their memory to `list` if that has none.
    pub(crate) fn lend_room(&mut self, list: &mut Vec<Field>) {
        self.clear();
        if list.capacity() == 0 {
            std::mem::swap(&mut self.list, list);
        }
    }

    /// Replaces the content with fields that were parsed from `text`, and a copy of `text`. The
    /// memory of the list changes hands.
    pub(crate) fn copy_from(&mut self, list: &mut Vec<Field>, seen: u64, text: &[u8]) {
        self.clear();
        std::mem::swap(&mut self.list, list);
        self.bytes.extend_from_slice(text);
        self.seen = seen;
    }

    /// Takes fields that were parsed again from the same bytes.
    pub(crate) fn read_again(&mut self, list: &mut Vec<Field>, seen: u64) {
        std::mem::swap(&mut self.list, list);
        self.seen = seen;
    }

    /// Replaces the content with fields that were parsed from `buffer`, and its first `len` bytes.
    /// Nothing is copied if the buffer holds no more than that; the rest stays in the buffer. The
    /// memory of both sides changes hands.
    pub(crate) fn take(
        &mut self,
        list: &mut Vec<Field>,
        seen: u64,
        buffer: &mut Vec<u8>,
        len: usize,
    ) {
        self.clear();
        std::mem::swap(&mut self.list, list);
        std::mem::swap(&mut self.bytes, buffer);
        self.seen = seen;
        if self.bytes.len() > len {
            buffer.extend_from_slice(self.bytes.get(len..).unwrap_or_default());
            self.bytes.truncate(len);
        }
    }
}

fn entry<'a>(bytes: &'a [u8], field: &Field) -> Entry<'a> {
    Entry {
        known: field.known,
        name: field.name.of(bytes),
        value: field.value.of(bytes),
    }
}

fn bits(list: &[Field]) -> u64 {
    list.iter().fold(0, |set, field| set | field.known.bit())
}

impl PartialEq for Fields {
    /// Whether names, values and their order are equal.
    fn eq(&self, other: &Fields) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}
