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

fn decode(decoder: &mut Decoder, block: &str) -> Result<String, CodingError> {
    let block = hex::bytes(block.replace([' ', '\n'], "").as_bytes());
    let mut fields = Collected::default();
    decoder.decode(&block.expect("a block"), &mut fields)?;
    Ok(fields.0)
}

/// Appendix C.3 to C.6 of RFC 7541: the size of the table, then blocks and their fields.
type Session = (u32, &'static [(&'static str, &'static str)]);

const FIRST: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";
const SECOND: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n\
    cache-control: no-cache\n";
const THIRD: &str = ":method: GET\n:scheme: https\n:path: /index.html\n\
    :authority: www.example.com\ncustom-key: custom-value\n";
const RESPONSE: &str = ":status: 302\ncache-control: private\n\
    date: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com\n";
const RESPONSE_307: &str = ":status: 307\ncache-control: private\n\
    date: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com\n";

const SESSIONS: &[Session] = &[
    (
        4096,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST),
            ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                THIRD,
            ),
        ],
    ),
    (
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST),
            ("8286 84be 5886 a8eb 1064 9cbf", SECOND),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                THIRD,
            ),
        ],
    ),
    (
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                RESPONSE,
            ),
            ("4883 640e ffc1 c0bf", RESPONSE_307),
        ],
    ),
];

#[test]
fn blocks_of_the_rfc_are_decoded() {
    for (table_bytes, blocks) in SESSIONS {
        let mut decoder = Decoder::new(*table_bytes);
        for (block, expected) in *blocks {
            assert_eq!(
                decode(&mut decoder, block).as_deref(),
                Ok(*expected),
                "{block}"
            );
        }
    }
}

#[test]
fn errors_name_their_cause() {
    let table = [
        ("80", CodingError::InvalidIndex),
        ("be", CodingError::InvalidIndex),
        ("7f", CodingError::TruncatedInteger),
        ("ff", CodingError::TruncatedInteger),
        ("ff ffff ffff ff7f", CodingError::IntegerTooLarge),
        ("40", CodingError::Truncated),
        ("40 0161 0562", CodingError::Truncated),
        ("3f e2 1f", CodingError::InvalidTableSize),
        ("82 20", CodingError::InvalidTableSize),
        ("40 0161 84ff ffff ff", CodingError::InvalidHuffman),
        ("40 0161 811c", CodingError::InvalidHuffman),
        ("40 0161 821f ff", CodingError::InvalidHuffman),
    ];
    for (block, expected) in table {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decode(&mut decoder, block), Err(expected), "{block}");
    }
}

#[test]
fn a_whole_byte_of_padding_is_taken_where_it_is_allowed() {
    let mut decoder = Decoder::new(4096).taking_long_padding();
    let padded = decode(&mut decoder, "40 0161 8618 c631 8c63 ff");
    assert_eq!(padded.as_deref(), Ok("a: aaaaaaaa\n"));
    let twice = decode(&mut decoder, "40 0161 8718 c631 8c63 ffff");
    assert_eq!(twice, Err(CodingError::InvalidHuffman));
}

#[test]
fn a_shrinking_table_evicts_the_oldest_entries() {
    let mut decoder = Decoder::new(4096);
    let first = decode(&mut decoder, "40 0161 0162 40 0163 0164");
    assert_eq!(first.as_deref(), Ok("a: b\nc: d\n"));
    // Room for one entry of 34 bytes.
    assert_eq!(decode(&mut decoder, "3f03 be").as_deref(), Ok("c: d\n"));
    assert_eq!(decode(&mut decoder, "bf"), Err(CodingError::InvalidIndex));
}

/// Encodes fields; returns the block's bytes and the decoded fields.
fn roundtrip(
    encoder: &mut Encoder,
    decoder: &mut Decoder,
    fields: &[(&str, &str, Indexing)],
) -> (Vec<u8>, String) {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value, indexing) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), *indexing, &mut block);
    }
    let mut collected = Collected::default();
    assert_eq!(decoder.decode(&block, &mut collected), Ok(()));
    (block, collected.0)
}

#[test]
fn a_repeated_field_becomes_one_byte() {
    let fields = [
        (":status", "200", Indexing::WhenRepeated),
        ("Server", "Turnpike", Indexing::WhenRepeated),
        ("x-own", "some value", Indexing::WhenRepeated),
        ("date", "now", Indexing::No),
        ("set-cookie", "a=b", Indexing::Never),
    ];
    let expected =
        ":status: 200\nserver: Turnpike\nx-own: some value\ndate: now\nset-cookie: a=b\n";
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
    let mut lengths = Vec::new();
    for _ in 0..3 {
        let (block, decoded) = roundtrip(&mut encoder, &mut decoder, &fields);
        assert_eq!(decoded, expected);
        lengths.push(block.len());
    }
    let (block, _) = roundtrip(&mut encoder, &mut decoder, &fields[..3]);
    assert_eq!(block, [0x88, 0x80 | 63, 0x80 | 62]);
    assert!(lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
}

#[test]
fn a_smaller_table_is_announced_before_its_use() {
    let fields = [("x-own", "some value", Indexing::WhenRepeated)];
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
    for _ in 0..2 {
        roundtrip(&mut encoder, &mut decoder, &fields);
    }
    encoder.allow_table(0);
    encoder.allow_table(64);
    let (block, decoded) = roundtrip(&mut encoder, &mut decoder, &fields);
    assert!(block.starts_with(&[0x20, 0x3f, 64 - 31]), "{block:x?}");
    assert_eq!(decoded, "x-own: some value\n");
}

#[test]
fn a_field_of_more_than_half_the_table_stays_out_of_it() {
    let name_bytes = "x-long".len();
    let half_bytes = TABLE_BYTES_DEFAULT as usize / 2 - ENTRY_OVERHEAD_BYTES - name_bytes;
    for (value_bytes, is_kept) in [
        (half_bytes, true),
        (half_bytes + 1, false),
        (2 * TABLE_BYTES_DEFAULT as usize, false),
    ] {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(TABLE_BYTES_DEFAULT));
        let value = "x".repeat(value_bytes);
        let own = [("x-own", "some value", Indexing::WhenRepeated)];
        let long = [("x-long", value.as_str(), Indexing::WhenRepeated)];
        let mut block = Vec::new();
        for fields in [&own, &own, &long, &long, &long] {
            let (written, decoded) = roundtrip(&mut encoder, &mut decoder, fields);
            assert_eq!(decoded, format!("{}: {}\n", fields[0].0, fields[0].1));
            block = written;
        }
        assert_eq!(block == [0x80 | 62], is_kept, "{value_bytes}");
        let (block, _) = roundtrip(&mut encoder, &mut decoder, &own);
        let index = if is_kept { 63 } else { 62 };
        assert_eq!(block, [0x80 | index], "{value_bytes}");
    }
}
