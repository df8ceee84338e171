#![allow(clippy::unwrap_used)]

use super::*;

type Ends = (&'static str, &'static str);

fn ends(pair: Ends) -> (SocketAddr, SocketAddr) {
    (pair.0.parse().unwrap(), pair.1.parse().unwrap())
}

fn found(header: &Header) -> Option<(SocketAddr, SocketAddr)> {
    header
        .addresses
        .map(|addresses| (addresses.source, addresses.destination))
}

/// Checks that every proper beginning of a valid header asks for more bytes.
fn check_beginnings(header: &[u8]) {
    for end in 0..header.len() {
        assert_eq!(parse(&header[..end]), Ok(None), "{end} of {header:?}");
    }
}

#[test]
fn lines_of_version_1() {
    let v4 = ("192.0.2.1:123", "192.0.2.2:5678");
    let v6 = ("[2001:db8::1]:123", "[2001:db8::2]:5678");
    let table: &[(&str, Result<Option<Ends>, ()>)] = &[
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n", Ok(Some(v4))),
        (
            "PROXY TCP6 2001:Db8::1 2001:Db8::2 123 5678\r\n",
            Ok(Some(v6)),
        ),
        ("PROXY UNKNOWN\r\n", Ok(None)),
        ("PROXY UNKNOWN 1 2 3 4 5 6\r\n", Ok(None)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678 9\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 65536\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 +12 5678\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1 192.0.2.2  5678\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1  123 5678\r\n", Err(())),
        ("PROXY TCP4 192.0.2.999 192.0.2.2 123 5678\r\n", Err(())),
        ("PROXY TCP5 192.0.2.1 192.0.2.2 123 5678\r\n", Err(())),
        ("PROXY \r\n", Err(())),
        ("PROXY TCP4\r\n", Err(())),
        ("GET / HTTP/1.1\r\n", Err(())),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r", Ok(None)),
    ];
    for (line, expected) in table {
        if !line.ends_with('\n') {
            assert_eq!(parse(line.as_bytes()), Ok(None));
            continue;
        }
        let text = format!("{line}GET / HTTP/1.0\r\n\r\n");
        let result = parse(text.as_bytes());
        match expected {
            Ok(expected) => {
                let header = result.unwrap().unwrap();
                assert_eq!(header.len, line.len());
                assert_eq!(found(&header), expected.map(ends), "{line}");
                check_beginnings(line.as_bytes());
            }
            Err(()) => assert_eq!(result, Err(ProxyProtocolError::Broken), "{line}"),
        }
    }
    for begun in [
        "PROXY INVALID",
        "PROXY U ",
        "PROXY TCP4x",
        "PROXY TCP5",
        "PROXY  ",
    ] {
        let refused = Err(ProxyProtocolError::Broken);
        assert_eq!(parse(begun.as_bytes()), refused, "{begun}");
    }
    let long = format!("PROXY UNKNOWN {}", "x".repeat(V1_BYTES_MAX));
    assert_eq!(parse(&long.as_bytes()[..V1_BYTES_MAX - 1]), Ok(None));
    assert_eq!(parse(long.as_bytes()), Err(ProxyProtocolError::Broken));
    let text = b"PROXY TCP6 2001:Db8::1 ::2 123 5678\r\n";
    let addresses = parse(text).unwrap().unwrap().addresses.unwrap();
    assert_eq!(addresses.source_text.of(text), b"2001:Db8::1");
    assert_eq!(addresses.destination_text.of(text), b"::2");
}

#[test]
fn headers_that_are_written_can_be_read() {
    let table: &[(Ends, Ends, &str)] = &[
        (
            ("192.0.2.1:123", "192.0.2.2:5678"),
            ("192.0.2.1:123", "192.0.2.2:5678"),
            "PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n",
        ),
        (
            ("[::1]:1", "[2001:db8::2]:65535"),
            ("[::1]:1", "[2001:db8::2]:65535"),
            "PROXY TCP6 ::1 2001:db8::2 1 65535\r\n",
        ),
        (
            ("192.0.2.1:1", "[::1]:2"),
            ("[::ffff:192.0.2.1]:1", "[::1]:2"),
            "PROXY TCP4 192.0.2.1 ::1 1 2\r\n",
        ),
        (
            ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:2"),
            ("192.0.2.1:1", "192.0.2.2:2"),
            "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 1 2\r\n",
        ),
    ];
    for (sent, read, line) in table {
        let mut out = Vec::new();
        write_v1(&mut out, Some(ends(*sent)));
        assert_eq!(std::str::from_utf8(&out).unwrap(), *line);
        out.clear();
        write_v2(&mut out, Some(ends(*sent)), Transport::Stream, &[], None).unwrap();
        let header = parse(&out).unwrap().unwrap();
        assert_eq!(header.len, out.len());
        assert_eq!(found(&header), Some(ends(*read)));
        check_beginnings(&out);
    }
    let mut out = Vec::new();
    write_v1(&mut out, None);
    assert_eq!(out, b"PROXY UNKNOWN\r\n");
    out.clear();
    write_v2(&mut out, None, Transport::Stream, &[], None).unwrap();
    assert_eq!(found(&parse(&out).unwrap().unwrap()), None);
    out.clear();
    let pair = Some(ends(("192.0.2.1:1", "192.0.2.2:2")));
    write_v2(&mut out, pair, Transport::Datagram, &[], None).unwrap();
    assert_eq!(found(&parse(&out).unwrap().unwrap()), None);
}

const NAMED: &[(&str, Option<&str>)] = &[
    ("alpn", Some("ALPN1")),
    ("0x01", Some("ALPN1")),
    ("authority", Some("localhost")),
    ("unique_id", Some("UNIQQ")),
    ("netns", Some("NETNS")),
    ("0x000ae", Some("12345")),
    ("0x0f", None),
    ("0x", None),
    ("0x1000", None),
    ("other", None),
    ("ssl_version", Some("TLSv1.2")),
    ("ssl_cn", Some("example.com")),
    ("ssl_cipher", Some("AES256-SHA")),
    ("ssl_sig_alg", Some("SHA1")),
    ("ssl_key_alg", Some("RSA512")),
    ("ssl_0x25", Some("RSA512")),
    ("ssl_0x26", None),
];

#[test]
fn additions_are_found_by_name() {
    let tlvs = [
        Tlv {
            kind: 0x01,
            value: b"ALPN1",
        },
        Tlv {
            kind: 0x02,
            value: b"localhost",
        },
        Tlv {
            kind: 0x05,
            value: b"UNIQQ",
        },
        Tlv {
            kind: 0x30,
            value: b"NETNS",
        },
        Tlv {
            kind: 0xae,
            value: b"12345",
        },
    ];
    let inner = [
        Tlv {
            kind: 0x21,
            value: b"TLSv1.2",
        },
        Tlv {
            kind: 0x22,
            value: b"example.com",
        },
        Tlv {
            kind: 0x23,
            value: b"AES256-SHA",
        },
        Tlv {
            kind: 0x24,
            value: b"SHA1",
        },
        Tlv {
            kind: 0x25,
            value: b"RSA512",
        },
    ];
    let ssl = Ssl {
        client: 5,
        verify: 255,
        tlvs: &inner,
    };
    let pair = Some(ends(("192.0.2.1:1", "192.0.2.2:2")));
    let mut out = Vec::new();
    write_v2(&mut out, pair, Transport::Stream, &tlvs, Some(ssl)).unwrap();
    let header = parse(&out).unwrap().unwrap();
    let tlvs = header.tlvs.of(&out);
    for (name, expected) in NAMED {
        let value = find_named_tlv(tlvs, name).unwrap();
        assert_eq!(value, expected.map(str::as_bytes), "{name}");
    }
    let summary = find_ssl(tlvs).unwrap().unwrap();
    assert_eq!((summary.client, summary.verify), (5, 255));
    assert_eq!(find_tlv(tlvs, 0x03).unwrap().unwrap().len(), 4);
    assert_eq!(find_tlv(&tlvs[..tlvs.len() - 1], 0xff), Err(TlvError));
    assert_eq!(find_ssl(&[0x20, 0, 1, 0]), Err(TlvError));
    assert_eq!(find_named_tlv(&[], "ssl_cn"), Ok(None));
}

#[test]
fn headers_of_version_2_are_refused() {
    let mut good = Vec::new();
    let pair = Some(ends(("192.0.2.1:1", "192.0.2.2:2")));
    write_v2(&mut good, pair, Transport::Stream, &[], None).unwrap();
    // Offset, byte and result.
    let table = [
        (12, 0x11, Err(ProxyProtocolError::UnknownVersion)),
        (12, 0x31, Err(ProxyProtocolError::UnknownVersion)),
        (14, 0x10, Err(ProxyProtocolError::TooLarge)),
        (14, 0x0f, Ok(None)),
        (15, 11, Err(ProxyProtocolError::Broken)),
        (13, 0x21, Err(ProxyProtocolError::Broken)),
        (0, b'x', Err(ProxyProtocolError::Broken)),
    ];
    for (at, byte, expected) in table {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert_eq!(parse(&bytes), expected, "{at}");
    }
    // A local connection or an unknown family is accepted, without addresses.
    for (at, byte) in [(12, 0x20), (13, 0x31), (13, 0x01), (13, 0x12)] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        let header = parse(&bytes).unwrap().unwrap();
        assert_eq!((header.len, header.addresses), (good.len(), None));
    }
    let long = vec![0; 65_530];
    let tlvs = [Tlv {
        kind: 0xe0,
        value: &long,
    }];
    assert_eq!(
        write_v2(&mut good, pair, Transport::Stream, &tlvs, None),
        Err(TooLong)
    );
}

#[test]
fn types_to_send_are_known_by_name_or_are_for_own_use() {
    let table = [
        ("unique_id", Some(0x05)),
        ("authority", Some(0x02)),
        ("alpn", Some(0x01)),
        ("netns", Some(0x30)),
        ("0xe0", Some(0xe0)),
        ("0xFF", Some(0xff)),
        ("0xdf", None),
        ("0x20", None),
        ("0x100", None),
        ("ssl", None),
        ("crc32c", None),
        ("", None),
    ];
    for (name, expected) in table {
        let kind = Kind::to_send(name).map(|kind| kind.with(b"v"));
        let value = b"v".as_slice();
        let expected = expected.map(|kind| Tlv { kind, value });
        assert_eq!(kind, expected, "{name}");
    }
}
