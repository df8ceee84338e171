mod foreign;

use super::static_table::TABLE;
use super::*;
use crate::hex;

/// Fields as text.
#[derive(Default)]
struct Collected(String);

impl FieldSink for Collected {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\n"] {
            self.0.push_str(&String::from_utf8_lossy(part));
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    hex::bytes(text.replace(' ', "").as_bytes()).expect(text)
}

fn decode(section: &[u8]) -> Result<String, CodingError> {
    let mut fields = Collected::default();
    Decoder::default().decode(section, &mut fields)?;
    Ok(fields.0)
}

/// Sections, and their fields. The first is that of RFC 9204 appendix B.1; those in the Huffman
/// code are ls-qpack's.
const SECTIONS: &[(&str, &str)] = &[
    (
        "0000 510b 2f69 6e64 6578 2e68 746d 6c",
        ":path: /index.html\n",
    ),
    ("0000", ""),
    // A base behind the first insertion is of no use, and allowed.
    ("0005 d1", ":method: GET\n"),
    (
        "0000 c0 ff15 ff23",
        ":authority: \nauthorization: \nx-frame-options: sameorigin\n",
    ),
    ("0000 5f00 0161", ":method: a\n"),
    ("0000 7001 61", ":authority: a\n"),
    ("0000 2161 0162", "a: b\n"),
    ("0000 3161 0162", "a: b\n"),
    (
        "0000 2f01 25a849e95ba97d7f 8925a849e95bb8e8b4bf",
        "custom-key: custom-value\n",
    ),
    ("0000 5f4d 86df6d95566ea5", "server: Turnpike\n"),
];

#[test]
fn sections_are_decoded() {
    for (section, fields) in SECTIONS {
        let section = bytes(section);
        assert_eq!(decode(&section).as_deref(), Ok(*fields), "{section:02x?}");
        let cut = &section[..section.len() - 1];
        assert_ne!(decode(cut).as_deref(), Ok(*fields), "{cut:02x?}");
    }
}

#[test]
fn what_is_not_valid_or_needs_a_dynamic_table_is_refused() {
    let cases = [
        ("", CodingError::Truncated),
        ("00", CodingError::Truncated),
        ("0000 51", CodingError::Truncated),
        ("0000 ff", CodingError::TruncatedInteger),
        ("0000 510b 2f69", CodingError::Truncated),
        ("0000 27ff ffff ffff 7f", CodingError::IntegerTooLarge),
        ("0000 ff24", CodingError::InvalidIndex),
        ("0000 2161 81ff", CodingError::InvalidHuffman),
        // The sections of appendix B.2 and B.4, and what can stand for a field in them.
        ("0381 1011", CodingError::InvalidIndex),
        ("0500 80c1 81", CodingError::InvalidIndex),
        ("0000 80", CodingError::InvalidIndex),
        ("0000 4001 61", CodingError::InvalidIndex),
        ("0000 10", CodingError::InvalidIndex),
        ("0000 0001 61", CodingError::InvalidIndex),
        // A base in front of the first insertion.
        ("0080 d1", CodingError::InvalidIndex),
    ];
    for (section, expected) in cases {
        assert_eq!(decode(&bytes(section)), Err(expected), "{section}");
    }
}

#[test]
fn every_entry_of_the_static_table_is_one_reference() {
    for index in 0.. {
        let Some((name, value)) = TABLE.entry(index) else {
            assert_eq!(index, 99);
            return;
        };
        let mut section = Vec::new();
        let mut encoder = Encoder::default();
        encoder.begin(&mut section);
        encoder.field(name, value, Indexing::No, &mut section);
        assert_eq!(section.len(), if index < 63 { 3 } else { 4 }, "{index}");
        let expected = [name, b": ", value, b"\n"].concat();
        let decoded = decode(&section).map(String::into_bytes);
        assert_eq!(decoded, Ok(expected), "{index}");
    }
}

#[test]
fn fields_are_written_in_few_bytes() {
    let cases = [
        (":status", "200", Indexing::WhenRepeated, "0000 d9"),
        (
            "Server",
            "Turnpike",
            Indexing::WhenRepeated,
            "0000 5f4d 86df6d95566ea5",
        ),
        ("X-A", "b", Indexing::No, "0000 23782d61 0162"),
        // Secrets are marked, so that no intermediary puts them into a table.
        ("set-cookie", "a", Indexing::Never, "0000 7e01 61"),
        ("x-a", "b", Indexing::Never, "0000 33782d61 0162"),
    ];
    for (name, value, indexing, expected) in cases {
        let mut section = Vec::new();
        let mut encoder = Encoder::default();
        encoder.begin(&mut section);
        encoder.field(name.as_bytes(), value.as_bytes(), indexing, &mut section);
        assert_eq!(section, bytes(expected), "{name}: {value}");
        let fields = format!("{}: {value}\n", name.to_ascii_lowercase());
        assert_eq!(decode(&section), Ok(fields));
    }
}

#[test]
fn an_encoder_may_only_say_that_its_table_has_no_room() {
    let cases = [
        ("", true),
        ("20", true),
        ("2020", true),
        // Appendix B.2 to B.5: a capacity of 220, insertions, a duplicate.
        ("3fbd01", false),
        ("c00f 7777", false),
        ("4a63 7573", false),
        ("02", false),
        ("21", false),
    ];
    for (instructions, expected) in cases {
        let is_allowed = check_encoder_instructions(&bytes(instructions));
        assert_eq!(is_allowed, expected, "{instructions}");
    }
}

#[test]
fn a_decoder_may_only_cancel_streams() {
    let cases = [
        ("", true),
        ("48", true),
        ("7fbd 01 40", true),
        ("7fff ffff ffff ffff ff7f", true),
        ("7fff ffff ffff ffff ffff 7f", false),
        // Appendix B.2 and B.3: a section and an insertion are acknowledged.
        ("84", false),
        ("01", false),
        ("4001", false),
    ];
    for (instructions, expected) in cases {
        let instructions = bytes(instructions);
        for cut in 0..=instructions.len() {
            let (first, second) = instructions.split_at(cut);
            let mut taken = DecoderInstructions::default();
            let is_allowed = taken.take(first) && taken.take(second);
            assert_eq!(is_allowed, expected, "{instructions:02x?} cut at {cut}");
        }
    }
}
