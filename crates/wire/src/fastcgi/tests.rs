#![allow(clippy::unwrap_used)]

use super::*;

/// A record as an application sends it.
fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let mut bytes = header(kind, content.len(), usize::from(padding)).to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + usize::from(padding), 0);
    bytes
}

fn end() -> Vec<u8> {
    record(END_REQUEST, &[0; 8], 0)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<Vec<u8>>,
    stdout_ended: bool,
    ended: bool,
    left: usize,
}

/// Reads records in pieces of `piece` bytes.
fn read(bytes: &[u8], piece: usize) -> Result<Answer, RecordError> {
    let (mut reader, mut answer, mut at) = (RecordReader::new(), Answer::default(), 0);
    let mut line = Vec::new();
    while at < bytes.len() && !reader.has_ended() {
        let window = &bytes[at..bytes.len().min(at + piece)];
        let (part, taken) = reader.step(window)?;
        match part {
            Part::None => {}
            Part::Stdout(text) => answer.stdout.extend_from_slice(text.of(window)),
            Part::StdoutEnd => answer.stdout_ended = true,
            Part::Stderr { text, last } => {
                line.extend_from_slice(text.of(window));
                if last {
                    answer.stderr.push(std::mem::take(&mut line));
                }
            }
            Part::End => answer.ended = true,
        }
        at += taken;
    }
    answer.left = bytes.len() - at;
    Ok(answer)
}

/// Reads the bytes at once and in pieces, and checks that the results are equal.
fn read_all_ways(bytes: &[u8]) -> Result<Answer, RecordError> {
    let whole = read(bytes, bytes.len().max(1));
    for piece in 1..20 {
        assert_eq!(read(bytes, piece), whole, "pieces of {piece}");
    }
    whole
}

fn write_param(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    begin_param(name, out);
    let start = out.len();
    out.extend_from_slice(value);
    end_param(name, start, out);
}

#[test]
fn a_request_is_written_record_by_record() {
    let mut out = Vec::new();
    write_begin(true, &mut out);
    let start = begin_params(&mut out);
    write_param(b"A", b"bc", &mut out);
    end_params(start, &mut out);
    write_stdin(b"", &mut out);
    write_stdin(b"12345678", &mut out);
    write_stdin_end(&mut out);
    let expected: &[&[u8]] = &[
        b"\x01\x01\0\x01\0\x08\0\0",
        b"\0\x01\x01\0\0\0\0\0",
        b"\x01\x04\0\x01\0\x05\x03\0",
        b"\x01\x02Abc\0\0\0",
        b"\x01\x04\0\x01\0\0\0\0",
        b"\x01\x05\0\x01\0\x08\0\0",
        b"12345678",
        b"\x01\x05\0\x01\0\0\0\0",
    ];
    assert_eq!(out, expected.concat());
    out.clear();
    write_begin(false, &mut out);
    assert_eq!(out[8..], *b"\0\x01\0\0\0\0\0\0");
}

#[test]
fn lengths_of_parameters_take_one_byte_or_four() {
    const CASES: &[(usize, usize, &[u8])] = &[
        (1, 0, b"\x01\x00"),
        (1, 127, b"\x01\x7f"),
        (1, 128, b"\x01\x80\0\0\x80"),
        (1, 65536, b"\x01\x80\x01\0\0"),
        (127, 127, b"\x7f\x7f"),
        (128, 127, b"\x80\0\0\x80\x7f"),
        (300, 128, b"\x80\0\x01\x2c\x80\0\0\x80"),
    ];
    for (name_bytes, value_bytes, lengths) in CASES {
        let (name, value) = (vec![b'n'; *name_bytes], vec![b'v'; *value_bytes]);
        let mut out = b"before".to_vec();
        write_param(&name, &value, &mut out);
        assert_eq!(out, [b"before".as_slice(), lengths, &name, &value].concat());
    }
}

#[test]
fn streams_longer_than_a_record_are_cut() {
    let long: Vec<u8> = (0..2 * CONTENT_BYTES_MAX + 3).map(|at| at as u8).collect();
    let mut params = b"before".to_vec();
    let start = begin_params(&mut params);
    params.extend_from_slice(&long);
    end_params(start, &mut params);
    let mut stdin = Vec::new();
    write_stdin(&long, &mut stdin);
    assert_eq!(params[..6], *b"before");
    assert_eq!(params[params.len() - 8..], *b"\x01\x04\0\x01\0\0\0\0");
    for (kind, written) in [(PARAMS, &params[6..params.len() - 8]), (STDIN, &stdin)] {
        let (mut at, mut content) = (0, Vec::new());
        while at < written.len() {
            let head: &[u8; 8] = written[at..].first_chunk().unwrap();
            assert_eq!(head[1], kind);
            let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
            content.extend_from_slice(&written[at + 8..at + 8 + length]);
            at += 8 + length + usize::from(head[6]);
            assert_eq!(at % 8, 0);
        }
        assert_eq!(content, long);
    }
}

#[test]
fn no_parameters_are_one_empty_record() {
    let mut out = Vec::new();
    let start = begin_params(&mut out);
    end_params(start, &mut out);
    assert_eq!(out, b"\x01\x04\0\x01\0\0\0\0");
}

#[test]
fn a_response_is_read_whole_and_in_pieces() {
    let bytes = [
        record(STDERR, b"one\n", 4),
        record(STDOUT, b"Status: 200\r\n\r\nbo", 7),
        record(STDERR, b"", 2),
        record(STDERR, b"two", 0),
        record(STDOUT, b"dy", 0),
        record(STDOUT, b"", 3),
        end(),
        b"surplus".to_vec(),
    ];
    let expected = Answer {
        stdout: b"Status: 200\r\n\r\nbody".to_vec(),
        stderr: vec![b"one\n".to_vec(), b"two".to_vec()],
        stdout_ended: true,
        ended: true,
        left: 7,
    };
    assert_eq!(read_all_ways(&bytes.concat()), Ok(expected));
}

#[test]
fn the_end_includes_its_padding() {
    let ended = |bytes: &[u8]| read_all_ways(bytes).unwrap().ended;
    let padded = record(END_REQUEST, &[0; 8], 5);
    assert!(ended(&padded) && !ended(&padded[..padded.len() - 1]));
    // The reader ignores the record's content.
    assert!(ended(&record(END_REQUEST, &[], 0)));
    assert!(ended(&record(END_REQUEST, &[0; 300], 1)));
}

#[test]
fn a_cut_response_has_not_ended() {
    let bytes = [record(STDOUT, b"body", 4), end()].concat();
    for cut in 0..bytes.len() {
        let answer = read_all_ways(&bytes[..cut]).unwrap();
        assert!(!answer.ended && answer.left == 0, "{cut}");
    }
}

#[test]
fn records_of_other_requests_are_refused() {
    let changed = |at: usize, byte: u8| {
        let mut bytes = record(STDOUT, b"body", 4);
        bytes[at] = byte;
        read_all_ways(&bytes).unwrap_err()
    };
    let cases = [
        (
            changed(0, 2),
            "upstream sent unsupported FastCGI protocol version: 2",
        ),
        (
            changed(1, STDIN),
            "upstream sent invalid FastCGI record type: 5",
        ),
        (
            changed(1, 200),
            "upstream sent invalid FastCGI record type: 200",
        ),
        (
            changed(2, 7),
            "upstream sent unexpected FastCGI request id high byte: 7",
        ),
        (
            changed(3, 0),
            "upstream sent unexpected FastCGI request id low byte: 0",
        ),
    ];
    for (error, words) in cases {
        assert_eq!(error.to_string(), words);
    }
    // The peer is an HTTP server and not an application.
    let error = read_all_ways(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert_eq!(error, RecordError::Version(b'H'));
}
