#![allow(clippy::unwrap_used)]

use super::*;
use crate::h1::{BodyDecoder, Framing};
use crate::message::BodyEnd;

const LINE: ChunkError = ChunkError::InvalidLineEnd;
const SIZE: ChunkError = ChunkError::InvalidSize;

/// Input, and the data with the number of bytes after the body, or the error. Without that number
/// the body has not ended.
type Case = (
    &'static [u8],
    Result<(&'static [u8], Option<usize>), ChunkError>,
);

const TABLE: &[Case] = &[
    (b"0\r\n\r\n", Ok((b"", Some(0)))),
    (b"0\r\n\r\nGET /", Ok((b"", Some(5)))),
    (
        b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n",
        Ok((b"Wikipedia", Some(0))),
    ),
    (
        b"a\r\n0123456789\r\n0\r\n\r\n",
        Ok((b"0123456789", Some(0))),
    ),
    (
        b"00A\r\n0123456789\r\n000\r\n\r\n",
        Ok((b"0123456789", Some(0))),
    ),
    (b"1;name=value\r\nx\r\n0;last\r\n\r\n", Ok((b"x", Some(0)))),
    (b"1 \t\r\nx\r\n0 \r\n\r\n", Ok((b"x", Some(0)))),
    (
        b"1\r\nx\r\n0\r\nTrailer: value\r\nOther: v\r\n\r\n",
        Ok((b"x", Some(0))),
    ),
    (b"4\r\nWi", Ok((b"Wi", None))),
    (b"", Ok((b"", None))),
    (b"0\r\n", Ok((b"", None))),
    (b"4\r\nSEE-THIS\r\n0\r\n\r\n", Err(LINE)),
    (b"\r\n", Err(SIZE)),
    (b" 1\r\nx\r\n", Err(SIZE)),
    (b"g\r\n", Err(SIZE)),
    (b"-1\r\n", Err(SIZE)),
    (b"0x1\r\n", Err(SIZE)),
    (b"1\nx\r\n", Err(SIZE)),
    (b"1;a\nx\r\n", Err(LINE)),
    (b"1\r\rx", Err(LINE)),
    (b"1\r\nx\n", Err(LINE)),
    (b"1\r\nx\r\r", Err(LINE)),
    (b"0\r\n\n", Err(LINE)),
    (b"0\r\nTrailer: value\n", Err(LINE)),
    (b"0\r\nTrailer\rx", Err(LINE)),
    (b"7fffffffffffffff\r\n", Err(ChunkError::SizeOverflow)),
    (
        b"ffffffffffffffffffffffff\r\n",
        Err(ChunkError::SizeOverflow),
    ),
    (b"10000000000000000\r\n", Err(ChunkError::SizeOverflow)),
    (b"7ffffffffffffff6\r\nx", Ok((b"x", None))),
];

/// Input that only one strictness accepts: the input, whether nginx accepts it, and the RFC's
/// error; `None` if both accept it.
const READ_APART: &[(&str, bool, Option<ChunkError>)] = &[
    ("5 \r\n", true, Some(EXTENSION)),
    ("5\t\r\n", true, Some(EXTENSION)),
    ("5 x\r\n", true, Some(EXTENSION)),
    ("5;\r\n", true, Some(EXTENSION)),
    ("5; \r\n", true, Some(EXTENSION)),
    ("5;;a\r\n", true, Some(EXTENSION)),
    ("5;=b\r\n", true, Some(EXTENSION)),
    ("5;a=\r\n", true, Some(EXTENSION)),
    ("5;a=b=c\r\n", true, Some(EXTENSION)),
    ("5;a b\r\n", true, Some(EXTENSION)),
    ("5;a \r\n", true, Some(EXTENSION)),
    ("5;a=\"b\r\n", true, Some(EXTENSION)),
    ("5;a=\"b\"c\r\n", true, Some(EXTENSION)),
    ("5;a=\"\\\r\n", true, Some(EXTENSION)),
    ("5;a\u{1}\r\n", true, Some(EXTENSION)),
    ("5;a=\u{e9}\r\n", true, Some(EXTENSION)),
    ("5;a/b\r\n", true, Some(EXTENSION)),
    ("5;a\r\n", true, None),
    ("5;a=b\r\n", true, None),
    ("5 ; a = b ;c\r\n", true, None),
    ("5\t;\ta\t=\t\"b;\t\\\"c\u{e9}\" ;d\r\n", true, None),
    ("0\r\na: b\r\n\r\n", true, None),
    ("0\r\na:\tb\t\r\nc:\r\n\r\n", true, None),
    ("0\r\na\r\n\r\n", true, Some(TRAILER)),
    ("0\r\na b: c\r\n\r\n", true, Some(TRAILER)),
    ("0\r\n: c\r\n\r\n", true, Some(TRAILER)),
    ("0\r\na: b\r\n c\r\n\r\n", true, Some(TRAILER)),
    ("0\r\na: b\u{1}\r\n\r\n", true, Some(TRAILER)),
    ("0\r\na: b\0\r\n\r\n", true, Some(TRAILER)),
];

const EXTENSION: ChunkError = ChunkError::InvalidExtension;
const TRAILER: ChunkError = ChunkError::InvalidTrailer;

#[test]
fn chunk_lines_follow_the_grammar_unless_nginx_is_asked_for() {
    for (input, nginx, error) in READ_APART {
        for piece in 1..=input.len() {
            let by_rfc = decode_under(Strictness::Rfc, input.as_bytes(), piece);
            assert_eq!(by_rfc.err(), *error, "{input:?}");
            let by_nginx = decode_under(Strictness::Nginx, input.as_bytes(), piece);
            assert_eq!(by_nginx.is_ok(), *nginx, "{input:?}");
        }
    }
}

/// httparse as the reference: it accepts every chunk line that is accepted here, with the same
/// size.
#[test]
fn chunk_lines_are_read_as_another_parser_reads_them() {
    let bytes = b"05aF ;=\"\\\tx\r\n";
    let mut taken = 0;
    for number in 0..200_000_u64 {
        let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 7);
        let mut line = vec![b'5'];
        for _ in 0..mixed % 8 {
            mixed = mixed.rotate_left(11).wrapping_mul(0x94d0_49bb_1331_11eb);
            line.push(bytes[(mixed >> 33) as usize % bytes.len()]);
        }
        line.extend_from_slice(b"\r\n");
        let mut decoder = ChunkedDecoder::new();
        let whole = line.iter().try_for_each(|byte| decoder.step(*byte));
        if whole.is_err() || decoder.state != State::Data {
            continue;
        }
        taken += 1;
        let theirs = httparse::parse_chunk_size(&line);
        let shown = String::from_utf8_lossy(&line);
        let expected = Ok(httparse::Status::Complete((line.len(), decoder.size)));
        assert_eq!(theirs, expected, "{shown:?}");
    }
    assert!(taken > 5_000, "{taken}");
}

fn decode(input: &[u8], piece: usize) -> Result<(Vec<u8>, Option<usize>), ChunkError> {
    decode_under(Strictness::Nginx, input, piece)
}

fn decode_under(
    strictness: Strictness,
    input: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, Option<usize>), ChunkError> {
    let mut decoder = BodyDecoder::new(Framing::Chunked).under(strictness);
    let mut data = Vec::new();
    let mut at = 0;
    while at < input.len() && !decoder.is_finished() {
        let window = &input[at..input.len().min(at + piece)];
        let event = decoder.feed(window)?;
        assert!(event.consumed > 0);
        data.extend_from_slice(event.data.of(window));
        at += event.consumed;
    }
    let left = decoder.is_finished().then(|| input.len() - at);
    Ok((data, left))
}

#[test]
fn bodies_decode_alike_in_pieces_of_any_size() {
    for (input, expected) in TABLE {
        let expected = expected.map(|(data, left)| (data.to_vec(), left));
        for piece in 1..=input.len().max(1) {
            assert_eq!(
                decode(input, piece),
                expected,
                "{:?}",
                String::from_utf8_lossy(input)
            );
        }
    }
}

#[test]
fn skipped_bytes_are_limited() {
    let table = [
        ("1;a", EXTENSION_BYTES_MAX, ChunkError::ExtensionTooLong),
        ("0\r\nT:", TRAILER_BYTES_MAX, ChunkError::TrailerTooLong),
    ];
    for (start, bytes_max, error) in table {
        let mut input = start.as_bytes().to_vec();
        input.resize(input.len() + bytes_max as usize + 1, b'x');
        assert_eq!(decode(&input, 1000), Err(error));
        input.truncate(bytes_max as usize);
        assert_eq!(decode(&input, 1000), Ok((Vec::new(), None)));
    }
}

#[test]
fn bodies_of_known_length_end_there() {
    let mut decoder = BodyDecoder::new(Framing::Length(5));
    let first = decoder.feed(b"abc").unwrap();
    assert_eq!((first.consumed, first.state), (3, BodyState::More));
    let last = decoder.feed(b"defgh").unwrap();
    assert_eq!((last.consumed, last.data.of(b"defgh")), (2, &b"de"[..]));
    assert_eq!(last.state, BodyState::Finished);
    assert!(decoder.is_finished());
    assert!(BodyDecoder::new(Framing::None).is_finished());
    assert!(BodyDecoder::new(Framing::Length(0)).is_finished());
    let mut endless = BodyDecoder::of_response(BodyEnd::UntilClose);
    assert_eq!(endless.feed(b"abc").unwrap().data.len(), 3);
    assert!(!endless.is_finished());
}
