#![allow(clippy::unwrap_used)]

mod oracle;

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    Answer, AnswerError, Extension, NameError, Question, Service, parse_answer, write_question,
};

/// `example.net` in wire format.
const NAME: &[u8] = b"\x07example\x03net\x00";

/// A message: flags, counts of questions and records, then the parts.
fn message(flags: u16, questions: u16, records: u16, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![0, 7];
    for number in [flags, questions, records, 0, 0] {
        message.extend_from_slice(&number.to_be_bytes());
    }
    parts
        .iter()
        .for_each(|part| message.extend_from_slice(part));
    message
}

fn question(kind: u16) -> Vec<u8> {
    [NAME, &kind.to_be_bytes(), &[0, 1]].concat()
}

fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    let ttl = ttl.to_be_bytes();
    [owner, &kind.to_be_bytes(), &[0, 1], &ttl, &length, data].concat()
}

/// A pointer to the question's name.
const ASKED: &[u8] = &[0xc0, 12];

#[test]
fn a_question_is_written() {
    let write = |name: &str, extension| {
        let mut out = Vec::new();
        write_question(7, name, Question::Aaaa, extension, &mut out).map(|()| out)
    };
    let plain = [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], NAME, &[0, 28, 0, 1]].concat();
    assert_eq!(write("example.net.", Extension::None), Ok(plain));
    let extended = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1],
        NAME,
        &[0, 28, 0, 1],
        // The root, OPT, 1232 bytes, no code, version, flags or options.
        &[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(
        write("example.net", Extension::Edns0),
        Ok(extended.concat())
    );
    let long = "a".repeat(64);
    let many = "a.".repeat(127);
    for name in ["", ".", "a..b", ".a", &long, &format!("{many}a")] {
        assert_eq!(write(name, Extension::Edns0), Err(NameError), "{name}");
    }
    assert!(write(&many, Extension::Edns0).is_ok());
}

#[test]
fn addresses_are_read() {
    let four = record(ASKED, 1, 60, &[127, 0, 0, 1]);
    let other = record(ASKED, 1, 30, &[127, 0, 0, 2]);
    let strange = record(b"\x01x\x00", 1, 1, &[127, 0, 0, 3]);
    let text = record(ASKED, 16, 1, b"\x01x");
    let parts: [&[u8]; 5] = [&question(1), &four, &text, &strange, &other];
    let answer = parse_answer(
        &message(0x8180, 1, 4, &parts),
        7,
        "Example.NET.",
        Question::A,
    );
    let expected = Answer {
        addresses: vec![
            Ipv4Addr::new(127, 0, 0, 1).into(),
            Ipv4Addr::new(127, 0, 0, 2).into(),
        ],
        ttl_seconds: 30,
        ..Answer::default()
    };
    assert_eq!(answer, Ok(expected));
    let six = record(ASKED, 28, u32::MAX, &Ipv6Addr::LOCALHOST.octets());
    let answer = message(0x8180, 1, 1, &[&question(28), &six]);
    let answer = parse_answer(&answer, 7, "example.net", Question::Aaaa).unwrap();
    assert_eq!(answer.addresses, [Ipv6Addr::LOCALHOST]);
    assert_eq!(answer.ttl_seconds, 0);
}

#[test]
fn aliases_are_followed() {
    let alias = record(ASKED, 5, 9, b"\x05alias\xc0\x0c");
    let target = record(b"\x05alias\xc0\x0c", 1, 60, &[127, 0, 0, 3]);
    let parts: [&[u8]; 3] = [&question(1), &target, &alias];
    let answer = message(0x8180, 1, 2, &parts);
    let answer = parse_answer(&answer, 7, "example.net", Question::A).unwrap();
    assert_eq!(answer.addresses, [Ipv4Addr::new(127, 0, 0, 3)]);
    assert_eq!((answer.alias, answer.ttl_seconds), (None, 9));
    let answer = message(0x8180, 1, 1, &[&question(1), &alias]);
    let answer = parse_answer(&answer, 7, "example.net", Question::A).unwrap();
    assert_eq!(answer.alias.as_deref(), Some("alias.example.net"));
    // An alias of itself ends the walk too.
    let circle = record(ASKED, 5, 9, ASKED);
    let answer = message(0x8180, 1, 1, &[&question(1), &circle]);
    let answer = parse_answer(&answer, 7, "example.net", Question::A).unwrap();
    assert_eq!(answer.alias.as_deref(), Some("example.net"));
}

#[test]
fn services_are_read() {
    let service = record(ASKED, 33, 60, b"\0\x01\0\x05\x1f\x90\x01h\xc0\x0c");
    let answer = message(0x8180, 1, 1, &[&question(33), &service]);
    let answer = parse_answer(&answer, 7, "example.net", Question::Srv).unwrap();
    let expected = Service {
        priority: 1,
        weight: 5,
        port: 8080,
        host: "h.example.net".to_owned(),
    };
    assert_eq!(answer.services, [expected]);
}

#[test]
fn malformed_answers_differ_from_unrelated_ones() {
    let good = record(ASKED, 1, 60, &[127, 0, 0, 1]);
    let read = |message: &[u8]| parse_answer(message, 7, "example.net", Question::A);
    let answer =
        |flags, records, record: &[u8]| message(flags, 1, records, &[&question(1), record]);
    let unrelated = Err(AnswerError::Unrelated);
    let malformed = Err(AnswerError::Malformed);
    assert_eq!(read(b""), unrelated);
    assert_eq!(read(&answer(0x0180, 1, &good)), unrelated);
    let mut other = answer(0x8180, 1, &good);
    other[1] = 8;
    assert_eq!(read(&other), unrelated);
    let aaaa = message(0x8180, 1, 1, &[&question(28), &good]);
    assert_eq!(read(&aaaa), unrelated);
    assert_eq!(read(&message(0x8180, 0, 0, &[])), malformed);
    assert_eq!(
        read(&message(0x8181, 0, 0, &[])).map(|answer| answer.code),
        Ok(1)
    );
    assert_eq!(
        read(&answer(0x8183, 0, b"")).map(|answer| answer.code),
        Ok(3)
    );
    let cut = read(&answer(0x8380, 1, b"")).unwrap();
    assert!(cut.truncated && cut.addresses.is_empty());
    let bad = [
        record(ASKED, 1, 60, &[127, 0, 0]),
        record(ASKED, 5, 60, b"\x01a\x00\x00"),
        record(ASKED, 5, 60, b"\xc0\xff"),
        record(&[0x80], 1, 60, &[127, 0, 0, 1]),
        record(b"\x3fshort", 1, 60, &[127, 0, 0, 1]),
        record(ASKED, 33, 60, b"\0\x01\0\x05"),
        good[..good.len() - 1].to_vec(),
        Vec::new(),
    ];
    for record in &bad {
        assert_eq!(read(&answer(0x8180, 1, record)), malformed, "{record:?}");
    }
    let whole = answer(0x8180, 1, &good);
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err(), "{cut}");
    }
}
