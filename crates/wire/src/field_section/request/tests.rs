use super::*;

/// Names and values.
type Fields = &'static [(&'static str, &'static str)];

const START: Fields = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/a%20b?q"),
    (":authority", "Example.com:81"),
];

fn read(
    rules: &HeadRules,
    ends: bool,
    fields: &[(&str, &str)],
) -> (RequestReader, Option<HeadFault>) {
    let mut reader = RequestReader::default();
    reader.begin(Version::Http20, rules);
    for (name, value) in fields {
        reader.field(name.as_bytes(), value.as_bytes());
    }
    let fault = reader.finish(ends).err();
    (reader, fault)
}

#[test]
fn a_head_equals_that_of_the_same_http_1_request() {
    let fields = [
        START,
        &[
            ("cookie", "a=b"),
            ("x_odd", "left out"),
            ("accept", "*/*"),
            ("cookie", "c=d"),
            ("content-length", "5"),
            ("priority", "u=1"),
        ],
    ]
    .concat();
    let (reader, fault) = read(&HeadRules::default(), false, &fields);
    assert_eq!(fault, None);
    let head = &reader.head;
    assert_eq!(head.line(), b"GET /a%20b?q HTTP/2.0");
    assert_eq!(head.protocol(), b"HTTP/2.0");
    assert_eq!(head.method, Method::Get);
    assert_eq!(
        (head.path(), head.query()),
        (b"/a%20b".as_slice(), b"q".as_slice())
    );
    assert_eq!(
        (head.host(), head.host_port),
        (Some(b"Example.com".as_slice()), 81)
    );
    assert_eq!(head.body, BodyLength::Bytes(5));
    assert_eq!(head.version, Version::Http20);
    let fields: Vec<_> = head.fields.iter().collect();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"accept", b"*/*"),
        (b"content-length", b"5"),
        (b"priority", b"u=1"),
        (b"cookie", b"a=b; c=d"),
        (b"Host", b"Example.com:81"),
    ];
    assert_eq!(fields, expected);
    assert_eq!(head.ignored().collect::<Vec<_>>(), [b"x_odd: left out"]);
    assert_eq!(reader.priority.map(|priority| priority.urgency), Some(1));
}

const CONNECT: Fields = &[
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/chat"),
    (":authority", "a"),
];

#[test]
fn an_extended_connect_equals_the_http_1_request_for_an_upgrade() {
    let (reader, fault) = read(&HeadRules::default(), false, CONNECT);
    assert_eq!(fault, None);
    let head = &reader.head;
    assert_eq!(head.line(), b"GET /chat HTTP/2.0");
    assert_eq!(head.method_text(), b"GET");
    assert_eq!((head.method, head.body), (Method::Get, BodyLength::None));
    assert!(head.is_extended_connect);
    assert_eq!(head.known(Known::Upgrade), Some(b"websocket".as_slice()));
    assert_eq!(head.known(Known::Connection), Some(b"upgrade".as_slice()));
    let cases: &[(Fields, HeadFault)] = &[
        (&[("content-length", "1")], HeadFault::InvalidContentLength),
        (
            &[(":protocol", "other")],
            HeadFault::PseudoHeaderBehindField,
        ),
    ];
    for (fields, expected) in cases {
        let fields = [CONNECT, &[("a", "b")], fields].concat();
        let (_, fault) = read(&HeadRules::default(), false, &fields);
        assert_eq!(fault, Some(*expected), "{fields:?}");
    }
    for (protocol, expected) in [
        ("WebSocket", None),
        ("h2c", Some(HeadFault::ProtocolRefused)),
        ("websocket/13", Some(HeadFault::ProtocolRefused)),
        ("connect-udp", Some(HeadFault::ProtocolRefused)),
        ("", Some(HeadFault::InvalidProtocol)),
        ("a b", Some(HeadFault::InvalidProtocol)),
        ("a/", Some(HeadFault::InvalidProtocol)),
    ] {
        let mut fields = CONNECT.to_vec();
        fields[1].1 = protocol;
        let (_, fault) = read(&HeadRules::default(), false, &fields);
        assert_eq!(fault, expected, "{protocol}");
    }
    let fields = [START, &[(":protocol", "websocket")]].concat();
    let (_, fault) = read(&HeadRules::default(), true, &fields);
    assert_eq!(fault, Some(HeadFault::InvalidProtocol));
}

#[test]
fn each_fault_is_reported() {
    use HeadFault::*;
    let own: &[(Fields, Option<HeadFault>)] = &[
        (
            &[(":method", "GET"), (":scheme", "http"), (":path", "/")],
            Some(MissingHost),
        ),
        (&[(":scheme", "http"), (":path", "/")], Some(MissingMethod)),
        (
            &[(":method", "GET"), (":path", "/"), ("host", "a")],
            Some(MissingScheme),
        ),
        (
            &[(":method", "GET"), (":scheme", "http")],
            Some(MissingPath),
        ),
        (&[(":method", "G T")], Some(InvalidMethod)),
        (&[(":scheme", "")], Some(InvalidScheme)),
        (&[(":path", "")], Some(InvalidPath)),
        (&[(":path", "a")], Some(InvalidPath)),
        (&[(":path", "/a b")], Some(InvalidPath)),
        (&[(":method", "GET"), (":path", "*")], Some(InvalidPath)),
        (&[(":authority", "")], Some(InvalidAuthority)),
        (&[(":unknown", "x")], Some(UnknownPseudoHeader)),
        (&[(":status", "200")], Some(UnknownPseudoHeader)),
        (
            &[("a", "b"), (":method", "GET")],
            Some(PseudoHeaderBehindField),
        ),
        (
            &[(":method", "CONNECT"), (":authority", "a:1")],
            Some(ConnectRefused),
        ),
    ];
    for (fields, expected) in own {
        let (_, fault) = read(&HeadRules::default(), true, fields);
        assert_eq!(fault, *expected, "{fields:?}");
    }
    let added: &[(Fields, Option<HeadFault>)] = &[
        (&[], None),
        (&[("host", "example.COM:81")], None),
        (&[("host", "other")], Some(DifferentHosts)),
        (&[("x", "a\r\nb: c")], Some(InvalidValue)),
        (&[("X", "a")], Some(InvalidName)),
        (&[("", "a")], Some(InvalidName)),
        (&[("a b", "a")], Some(InvalidName)),
        (&[("connection", "close")], Some(ConnectionField)),
        (&[("transfer-encoding", "chunked")], Some(ConnectionField)),
        (&[("te", "gzip")], Some(ConnectionField)),
        (&[("te", "trailers")], None),
        (&[("range", "a"), ("range", "b")], None),
        (
            &[("authorization", "a"), ("authorization", "b")],
            Some(DuplicateField),
        ),
        (&[("content-length", "x")], Some(InvalidContentLength)),
        (&[("content-length", "1")], Some(InvalidContentLength)),
        (&[("content-length", "0")], None),
        (&[(":method", "POST")], Some(DuplicatePseudoHeader)),
    ];
    for (fields, expected) in added {
        let (_, fault) = read(&HeadRules::default(), true, &[START, fields].concat());
        assert_eq!(fault, *expected, "{fields:?}");
    }
}

#[test]
fn values_have_no_white_space_around_them() {
    for (name, value, is_valid) in [
        ("x", " a", false),
        ("x", "a\t", false),
        ("x", " ", false),
        ("x_odd", "a ", false),
        ("cookie", "a ", false),
        ("x", "a b", true),
        ("x", "", true),
    ] {
        let fields = [START, &[(name, value)]].concat();
        let (_, fault) = read(&HeadRules::default(), true, &fields);
        let expected = (!is_valid).then_some(HeadFault::InvalidValue);
        assert_eq!(fault, expected, "{name}: {value:?}");
    }
}

#[test]
fn a_connect_has_an_authority_with_a_port_and_nothing_else() {
    use HeadFault::{ConnectRefused, MalformedConnect};
    let cases: &[(Fields, HeadFault)] = &[
        (&[(":authority", "a:1")], ConnectRefused),
        (&[(":authority", "[::1]:1")], ConnectRefused),
        (&[], MalformedConnect),
        (&[("host", "a:1")], MalformedConnect),
        (&[(":authority", "a")], MalformedConnect),
        (&[(":authority", "a:")], MalformedConnect),
        (&[(":authority", "[::1]")], MalformedConnect),
        (&[(":authority", "a:1"), (":path", "/")], MalformedConnect),
        (
            &[(":authority", "a:1"), (":scheme", "http")],
            MalformedConnect,
        ),
    ];
    for (fields, expected) in cases {
        let fields = [&[(":method", "CONNECT")], *fields].concat();
        let (_, fault) = read(&HeadRules::default(), true, &fields);
        assert_eq!(fault, Some(*expected), "{fields:?}");
    }
}

#[test]
fn methods_that_nobody_knows_are_no_malformed_requests() {
    for (method, expected) in [
        ("GET", None),
        ("UNKNOWN", None),
        ("get", Some(HeadFault::InvalidMethod)),
        (
            "A-METHOD-THAT-IS-LONGER-THAN-ANY-OTHER",
            Some(HeadFault::UnknownMethod),
        ),
    ] {
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            ("host", "a"),
        ];
        let (_, fault) = read(&HeadRules::default(), true, &fields);
        assert_eq!(fault, expected, "{method}");
    }
    assert_eq!(HeadFault::UnknownMethod.status(), 501);
    assert!(!HeadFault::UnknownMethod.is_malformed());
}

#[test]
fn rules_limit_and_allow() {
    let rules = HeadRules {
        line_bytes_max: 20,
        head_bytes_max: 99,
        fields_max: 2,
        underscores: true,
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let table: &[(Fields, Option<HeadFault>, bool)] = &[
        (&[("a_b", " c\t"), ("connection", "close")], None, false),
        (
            &[("a", "1"), ("b", "2"), ("c", "3")],
            Some(HeadFault::TooManyFields),
            false,
        ),
        (&[("a", "123456789012345678901")], None, true),
        (
            &[("a", "12345678901234567890"), ("b", "12345678901234567890")],
            None,
            true,
        ),
    ];
    for (fields, fault, is_too_large) in table {
        let (reader, found) = read(&rules, true, &[START, fields].concat());
        assert_eq!(
            (found, reader.is_too_large()),
            (*fault, *is_too_large),
            "{fields:?}"
        );
    }
}
