//! A comparison with hickory-proto, which shares no code with this crate: it reads our questions,
//! and we read its answers, with compressed names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SRV, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use super::super::{
    Answer, DATAGRAM_BYTES_MAX, Extension, Question, Service, parse_answer, write_question,
};

const ID: u16 = 0x1234;

const QUESTIONS: [(Question, RecordType); 3] = [
    (Question::A, RecordType::A),
    (Question::Aaaa, RecordType::AAAA),
    (Question::Srv, RecordType::SRV),
];

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).unwrap()
}

#[test]
fn hickory_reads_our_questions() {
    for (question, kind) in QUESTIONS {
        for extension in [Extension::None, Extension::Edns0] {
            let mut bytes = Vec::new();
            write_question(ID, "www.example.net", question, extension, &mut bytes).unwrap();
            let read = Message::from_vec(&bytes).unwrap();
            assert_eq!(read.metadata.id, ID);
            assert_eq!(read.metadata.message_type, MessageType::Query);
            assert!(read.metadata.recursion_desired);
            let mut query = Query::query(name("www.example.net"), kind);
            query.set_query_class(DNSClass::IN);
            assert_eq!(read.queries, [query]);
            let size = read.edns.map(|edns| (edns.max_payload(), edns.version()));
            let expected = (extension == Extension::Edns0).then_some((DATAGRAM_BYTES_MAX, 0));
            assert_eq!(size, expected);
            assert!(read.answers.is_empty() && read.additionals.is_empty());
        }
    }
}

/// An answer with these records, written by hickory-proto, which adds its own OPT record.
fn written(
    asked: &str,
    kind: RecordType,
    code: ResponseCode,
    records: &[(&str, RData)],
) -> Vec<u8> {
    let mut message = Message::new(ID, MessageType::Response, OpCode::Query);
    message.metadata.response_code = code;
    message.add_query(Query::query(name(asked), kind));
    for (index, (owner, data)) in records.iter().enumerate() {
        let ttl = 60 + index as u32;
        message.add_answer(Record::from_rdata(name(owner), ttl, data.clone()));
    }
    let mut edns = hickory_proto::op::Edns::new();
    edns.set_max_payload(4096);
    message.set_edns(edns);
    message.to_vec().unwrap()
}

fn four(last: u8) -> (RData, IpAddr) {
    let address = Ipv4Addr::new(192, 0, 2, last);
    (RData::A(A(address)), address.into())
}

/// A question, the records of its answer, and the answer as it is read.
type Case<'a> = (Question, &'a [(&'a str, RData)], Answer);

#[test]
fn addresses_from_hickory_are_read() {
    let six = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
    let text = RData::TXT(TXT::new(vec!["v=1".to_owned()]));
    let alias = |to: &str| RData::CNAME(CNAME(name(to)));
    let none = ResponseCode::NoError;
    let plain = [
        ("www.example.net", four(1).0),
        ("www.example.net", four(2).0),
    ];
    let aliased = [
        ("www.example.net", alias("a.cdn.example.net")),
        ("www.example.net", text),
        ("a.cdn.example.net", alias("b.cdn.example.net")),
        ("b.cdn.example.net", RData::AAAA(AAAA(six))),
    ];
    let open = [("www.example.net", alias("elsewhere.example.org"))];
    let cases: [Case<'_>; 4] = [
        (
            Question::A,
            &plain,
            Answer {
                addresses: vec![four(1).1, four(2).1],
                ttl_seconds: 60,
                ..Answer::default()
            },
        ),
        (
            Question::Aaaa,
            &aliased,
            Answer {
                addresses: vec![six.into()],
                ttl_seconds: 60,
                ..Answer::default()
            },
        ),
        (
            Question::A,
            &open,
            Answer {
                alias: Some("elsewhere.example.org".to_owned()),
                ttl_seconds: 60,
                ..Answer::default()
            },
        ),
        (Question::A, &[], Answer::default()),
    ];
    for (question, records, expected) in cases {
        let (_, kind) = QUESTIONS[question as usize];
        let bytes = written("www.example.net", kind, none, records);
        let read = parse_answer(&bytes, ID, "www.example.net", question);
        assert_eq!(read, Ok(expected), "{records:?}");
    }
    let missing = written(
        "www.example.net",
        RecordType::A,
        ResponseCode::NXDomain,
        &[],
    );
    let read = parse_answer(&missing, ID, "www.example.net", Question::A).unwrap();
    assert_eq!(read.code, 3);
}

#[test]
fn services_from_hickory_are_read() {
    let service = |port, host: &str| RData::SRV(SRV::new(1, 5, port, name(host)));
    let asked = "_http._tcp.example.net";
    let records = [
        (asked, service(80, "one.example.net")),
        (asked, service(81, "two.example.net")),
    ];
    let bytes = written(asked, RecordType::SRV, ResponseCode::NoError, &records);
    let read = parse_answer(&bytes, ID, asked, Question::Srv).unwrap();
    let expected = |port, host: &str| Service {
        priority: 1,
        weight: 5,
        port,
        host: host.to_owned(),
    };
    let services = [
        expected(80, "one.example.net"),
        expected(81, "two.example.net"),
    ];
    assert_eq!(read.services, services);
}

/// The records are many, so that names are far apart and pointers are large.
#[test]
fn a_large_answer_is_read_completely() {
    let records: Vec<(&str, RData)> = (0..=u8::MAX)
        .map(|last| ("www.example.net", four(last).0))
        .collect();
    let none = ResponseCode::NoError;
    let bytes = written("www.example.net", RecordType::A, none, &records);
    let read = parse_answer(&bytes, ID, "www.example.net", Question::A).unwrap();
    let expected: Vec<IpAddr> = (0..=u8::MAX).map(|last| four(last).1).collect();
    assert_eq!(read.addresses, expected);
}
