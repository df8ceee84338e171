//! Distinguished names as text: by RFC 2253, and in OpenSSL's older format.

use std::fmt::Write as _;

use crate::der::{OBJECT, SEQUENCE, SET, any, take, take_whole, write};

/// Object identifiers of attribute types, with OpenSSL's short names.
const TYPES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 15], "businessCategory"),
    (&[0x55, 4, 16], "postalAddress"),
    (&[0x55, 4, 17], "postalCode"),
    (&[0x55, 4, 20], "telephoneNumber"),
    (&[0x55, 4, 41], "name"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 44], "generationQualifier"),
    (&[0x55, 4, 45], "x500UniqueIdentifier"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x55, 4, 65], "pseudonym"),
    (&[0x55, 4, 97], "organizationIdentifier"),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
        "emailAddress",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 2],
        "unstructuredName",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "UID",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    (
        &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 1],
        "jurisdictionL",
    ),
    (
        &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 2],
        "jurisdictionST",
    ),
    (
        &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 3],
        "jurisdictionC",
    ),
];

const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Tags of strings.
const UTF8: u8 = 0x0c;
const NUMERIC: u8 = 0x12;
const PRINTABLE: u8 = 0x13;
const LATIN: u8 = 0x14;
const ASCII: u8 = 0x16;
const VISIBLE: u8 = 0x1a;
const UNIVERSAL: u8 = 0x1c;
const BASIC_PLANE: u8 = 0x1e;

/// A name: the content of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a>(pub(super) &'a [u8]);

/// One attribute of a name.
struct Attribute<'a> {
    object: &'a [u8],
    tag: u8,
    value: &'a [u8],
    /// The value with its DER header.
    whole: &'a [u8],
    /// Whether it belongs to the same set as the attribute before it.
    goes_on: bool,
}

impl<'a> Name<'a> {
    /// The name with this content.
    pub(crate) fn of(content: &'a [u8]) -> Name<'a> {
        Name(content)
    }

    /// The whole name in DER.
    pub fn der(&self) -> Vec<u8> {
        write(SEQUENCE, self.0)
    }

    /// The content of the sequence.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The value of the last common name.
    pub fn common_name(&self) -> Option<&'a [u8]> {
        let attributes = self.attributes();
        let mut named = attributes.filter(|attribute| attribute.object == COMMON_NAME);
        let first = named.next()?;
        Some(named.last().unwrap_or(first).value)
    }

    /// Appends the name by RFC 2253; characters outside of ASCII are not escaped.
    pub fn write_rfc2253(&self, out: &mut Vec<u8>) {
        let attributes: Vec<_> = self.attributes().collect();
        for (at, attribute) in attributes.iter().enumerate().rev() {
            if let Some(behind) = attributes.get(at + 1) {
                out.push(if behind.goes_on { b'+' } else { b',' });
            }
            write_type(attribute.object, out);
            out.push(b'=');
            match (short_name(attribute.object), text(attribute)) {
                (Some(_), Some(text)) => escape(&text, out),
                _ => {
                    out.push(b'#');
                    for byte in attribute.whole {
                        push(out, format_args!("{byte:02X}"));
                    }
                }
            }
        }
    }

    /// Appends the name in OpenSSL's older format: `/C=DE/CN=name`.
    pub fn write_oneline(&self, out: &mut Vec<u8>) {
        for attribute in self.attributes() {
            out.push(b'/');
            write_type(attribute.object, out);
            out.push(b'=');
            for byte in attribute.value {
                match byte {
                    b' '..=b'~' => out.push(*byte),
                    _ => push(out, format_args!("\\x{byte:02X}")),
                }
            }
        }
    }

    fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let (mut names, mut set) = (self.0, &[][..]);
        std::iter::from_fn(move || {
            let goes_on = !set.is_empty();
            if set.is_empty() {
                (set, names) = take(names, SET)?;
            }
            let (attribute, rest) = take(set, SEQUENCE)?;
            set = rest;
            let (object, rest) = take(attribute, OBJECT)?;
            let (tag, value, _) = any(rest)?;
            let (whole, _) = take_whole(rest, tag)?;
            Some(Attribute {
                object,
                tag,
                value,
                whole,
                goes_on,
            })
        })
    }
}

fn short_name(object: &[u8]) -> Option<&'static str> {
    let found = TYPES.iter().find(|(known, _)| *known == object);
    found.map(|(_, name)| *name)
}

fn write_type(object: &[u8], out: &mut Vec<u8>) {
    match short_name(object) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write_dotted(object, out),
    }
}

/// Appends an object identifier as numbers with dots (ITU-T X.690 section 8.19).
fn write_dotted(object: &[u8], out: &mut Vec<u8>) {
    let (mut number, mut is_first) = (0_u64, true);
    for byte in object {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if std::mem::take(&mut is_first) {
            let top = (number / 40).min(2);
            push(out, format_args!("{top}.{}", number - top * 40));
        } else {
            push(out, format_args!(".{number}"));
        }
        number = 0;
    }
}

/// The text of a value; `None` if its type is not text.
fn text(attribute: &Attribute<'_>) -> Option<String> {
    let value = attribute.value;
    let wide = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
    };
    let from_wide = |bytes: usize| -> Option<String> {
        let characters = value.chunks(bytes);
        characters.map(|it| char::from_u32(wide(it))).collect()
    };
    match attribute.tag {
        UTF8 => String::from_utf8(value.to_vec()).ok(),
        NUMERIC | PRINTABLE | LATIN | ASCII | VISIBLE => {
            Some(value.iter().map(|byte| char::from(*byte)).collect())
        }
        BASIC_PLANE => from_wide(2),
        UNIVERSAL => from_wide(4),
        _ => None,
    }
}

/// Appends the text, escaped by RFC 2253 section 2.4.
fn escape(text: &str, out: &mut Vec<u8>) {
    let last = text.chars().count().saturating_sub(1);
    for (at, character) in text.chars().enumerate() {
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => push(out, format_args!("\\{character}")),
            '#' if at == 0 => out.extend_from_slice(b"\\#"),
            ' ' if at == 0 || at == last => out.extend_from_slice(b"\\ "),
            '\0'..='\x1f' | '\x7f' => push(out, format_args!("\\{:02X}", u32::from(character))),
            _ => push(out, format_args!("{character}")),
        }
    }
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let mut written = String::new();
    let _ = written.write_fmt(text);
    out.extend_from_slice(written.as_bytes());
}
