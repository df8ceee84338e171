//! Tests of ClientHellos, complete and cut at every byte.

use super::*;

/// A ClientHello of TLS 1.2 with these extensions, in records of at most `record_bytes`.
fn records(extensions: &[u8], record_bytes: usize) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([0xeb; RANDOM_BYTES]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut message = vec![MESSAGE_CLIENT_HELLO, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let pieces = message.chunks(record_bytes);
    pieces
        .flat_map(|piece| {
            let mut record = vec![RECORD_HANDSHAKE, 3, 1];
            record.extend((piece.len() as u16).to_be_bytes());
            record.extend(piece);
            record
        })
        .collect()
}

const NAME: &[u8] = b"\0\0\0\x08\0\x06\0\0\x03foo";
const PROTOCOLS: &[u8] = b"\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1";
const VERSIONS: &[u8] = b"\0\x2b\0\x07\x06\x6a\x6a\x03\x04\x03\x03";

#[test]
fn a_hello_is_read_in_pieces_of_any_size() {
    let extensions = [b"\0\x17\0\0".as_slice(), NAME, PROTOCOLS, VERSIONS].concat();
    let expected = ClientHello {
        version: TLS_1_3,
        server_name: b"foo".to_vec(),
        protocols: b"h2,http/1.1".to_vec(),
    };
    for record_bytes in [1, 2, 7, 50, 1000] {
        let bytes = records(&extensions, record_bytes);
        assert_eq!(read(&bytes), Ok(Some(expected.clone())));
        let behind = [&bytes, b"GET".as_slice()].concat();
        assert_eq!(read(&behind), Ok(Some(expected.clone())));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Ok(None), "{record_bytes} {end}");
        }
    }
}

/// The first bytes of a connection, and the version that is read from them.
type Beginning = (&'static [u8], Result<Option<u16>, NotHello>);

/// Extensions, and the version, name and protocols that are read from them.
type Extensions = (&'static [u8], Option<(u16, &'static str, &'static str)>);

const CASES: &[Beginning] = &[
    (b"", Ok(None)),
    (b"G", Err(NotHello)),
    (b"\x16\x02", Err(NotHello)),
    (b"\x17\x03\x03", Err(NotHello)),
    (b"\x16\x03\x01\0\0", Err(NotHello)),
    (b"\x16\x03\x01\0\x05\x02", Err(NotHello)),
    (b"\x16\x03\x01\0\x04\x01\0\0\0", Err(NotHello)),
    (b"\x80\x1c\x01\0", Ok(None)),
    (b"\x80\x1c\x01\0\x02", Ok(Some(2))),
    (b"\x80\x1c\x01\x03\x01", Ok(Some(0x0301))),
    (b"\x80\x1c\x02\x03\x01", Err(NotHello)),
];

#[test]
fn other_protocols_are_recognised_at_once() {
    for (bytes, expected) in CASES {
        let found = read(bytes).map(|hello| hello.map(|hello| hello.version));
        assert_eq!(found, *expected, "{bytes:?}");
    }
}

#[test]
fn cut_extensions_are_refused() {
    let cases: &[Extensions] = &[
        (b"", Some((0x0303, "", ""))),
        (NAME, Some((0x0303, "foo", ""))),
        // Another kind of name, an empty list, a list cut within a name.
        (b"\0\0\0\x08\0\x06\x01\0\x03foo", Some((0x0303, "", ""))),
        (b"\0\0\0\x02\0\0", Some((0x0303, "", ""))),
        (b"\0\0\0\x08\0\x06\0\0\x03fo", None),
        (b"\0\x10\0\x05\0\x03\x04h2", None),
        // Draft 28 of TLS 1.3, in an extension whose length exceeds the bytes.
        (b"\0\x2b\0\x07\x02\x7f\x1c", Some((TLS_1_3, "", ""))),
        (b"\0\x2b\0\x03\x02\x5a\x5a", Some((0x0303, "", ""))),
        (b"\0", Some((0x0303, "", ""))),
        (b"\0\0\0", None),
    ];
    for (extensions, expected) in cases {
        let found = read(&records(extensions, 1000)).ok().flatten();
        let found = found.map(|hello| {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            (
                hello.version,
                text(hello.server_name),
                text(hello.protocols),
            )
        });
        let expected = expected
            .map(|(version, name, protocols)| (version, name.to_owned(), protocols.to_owned()));
        assert_eq!(found, expected, "{extensions:?}");
    }
}
