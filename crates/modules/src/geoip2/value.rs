//! A value of a record as the text of a variable.

use std::fmt;

use maxminddb::{LookupResult, PathElement};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The value at a path of a record, as the module writes it: numbers with a fraction have five
/// digits of it, truth is 1 or 0, and numbers of 128 bits are hexadecimal. Nothing is there for a
/// record that has no such value, or for one that holds others.
pub(super) fn at(record: &LookupResult<'_, Vec<u8>>, path: &[Box<str>]) -> Option<Vec<u8>> {
    let by_index: Vec<PathElement<'_>> = path
        .iter()
        .map(|word| match word.parse::<isize>() {
            Ok(index) => PathElement::from(index),
            Err(_) => PathElement::Key(word),
        })
        .collect();
    // A path leads through a map's keys and an array's places, and a word that is a number may be
    // either. A step of the wrong kind is an error of the library.
    if let Ok(Some(text)) = record.decode_path::<Text>(&by_index) {
        return text.0;
    }
    let by_key: Vec<PathElement<'_>> = path.iter().map(|word| PathElement::Key(word)).collect();
    record.decode_path::<Text>(&by_key).ok()??.0
}

struct Text(Option<Vec<u8>>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl TextVisitor {
    fn text<E>(value: impl fmt::Display) -> Result<Text, E> {
        Ok(Text(Some(value.to_string().into_bytes())))
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of a MaxMind DB file")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
        Self::text(u8::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Text, E> {
        Self::text(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Text, E> {
        Self::text(value)
    }

    fn visit_u128<E>(self, value: u128) -> Result<Text, E> {
        Self::text(format_args!("{value:#034x}"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Text, E> {
        Self::text(format_args!("{value:.5}"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Text, E> {
        Self::text(value)
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Text, E> {
        Ok(Text(Some(value.to_vec())))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Text, A::Error> {
        Ok(Text(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Text, A::Error> {
        Ok(Text(None))
    }
}
