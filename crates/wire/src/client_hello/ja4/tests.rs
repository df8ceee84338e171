//! Fingerprints of real clients, and of hellos at the edges of the definition.

use aws_lc_rs::digest::{SHA256, digest};

use super::*;

fn sha256(bytes: &[u8]) -> [u8; SHA256_BYTES] {
    let mut sum = [0; SHA256_BYTES];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
}

fn fingerprint(bytes: &[u8]) -> String {
    let offers = Offers::read(bytes).expect("a whole hello");
    String::from_utf8_lossy(&offers.fingerprint(sha256)).into_owned()
}

/// A recorded ClientHello and its fingerprint.
type Recorded = (&'static [u8], &'static str);

/// Recorded from the clients; the fingerprints are computed by another program.
const CLIENTS: &[Recorded] = &[
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/chromium.seed"),
        "t13d1517h2_8daaf6152771_cb7bf5808d99",
    ),
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/curl.seed"),
        "t13d3112h2_e8f1e7e78f70_b26ce05bbdd6",
    ),
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/go.seed"),
        "t13d1312h2_f57a46bbacb6_ab7e3b40a677",
    ),
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/openssl.seed"),
        "t13i310900_e8f1e7e78f70_1f22a2ca17c4",
    ),
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/openssl_tls12.seed"),
        "t12d280700_d943125447b4_e7e480e5a997",
    ),
    (
        include_bytes!("../../../../../fuzz/corpus/ja4/python.seed"),
        "t13d181100_85036bcba153_d41ae481755e",
    ),
];

#[test]
fn real_clients_have_their_known_fingerprints() {
    for (hello, expected) in CLIENTS {
        assert_eq!(fingerprint(hello), *expected);
        for end in 0..hello.len() {
            assert_eq!(Offers::read(&hello[..end]), None, "{expected} {end}");
        }
    }
}

/// A ClientHello of this version with these cipher suites and extensions.
fn hello(version: u16, ciphers: &[u16], extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; RANDOM_BYTES]);
    body.push(0);
    body.extend(((ciphers.len() * 2) as u16).to_be_bytes());
    body.extend(ciphers.iter().flat_map(|cipher| cipher.to_be_bytes()));
    body.extend([1, 0]);
    let mut encoded = Vec::new();
    for (kind, value) in extensions {
        encoded.extend(kind.to_be_bytes());
        encoded.extend((value.len() as u16).to_be_bytes());
        encoded.extend(*value);
    }
    body.extend((encoded.len() as u16).to_be_bytes());
    body.extend(encoded);
    let mut record = vec![22, 3, 1];
    record.extend((body.len() as u16 + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend((body.len() as u16).to_be_bytes());
    record.extend(body);
    record
}

/// FoxIO's own example of a browser, in the order in which the browser sends it.
#[test]
fn a_published_fingerprint_is_computed_from_its_published_lists() {
    let ciphers = [
        0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
        0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
    ];
    let algorithms =
        b"\0\x12\x7a\x7a\x04\x03\x08\x04\x04\x01\x05\x03\x08\x05\x05\x01\x08\x06\x06\x01";
    let empty = [
        0x001b, 0x0033, 0x4469, 0x0017, 0x002d, 0x0005, 0x0023, 0x0012, 0x000b, 0x000a, 0xff01,
        0x0015,
    ];
    let mut extensions: Vec<(u16, &[u8])> = vec![
        (0x3a3a, b""),
        (EXTENSION_SERVER_NAME, b""),
        (EXTENSION_PROTOCOLS, b"\0\x0c\x02h2\x08http/1.1"),
        (EXTENSION_SIGNATURE_ALGORITHMS, algorithms),
        (EXTENSION_VERSIONS, b"\x06\xfa\xfa\x03\x04\x03\x03"),
    ];
    extensions.extend(empty.map(|kind| (kind, b"".as_slice())));
    let published = "t13d1516h2_8daaf6152771_e5627efa2ab1";
    assert_eq!(
        fingerprint(&hello(0x0303, &ciphers, &extensions)),
        published
    );
    // A client that shuffles its extensions is the same client.
    extensions.reverse();
    assert_eq!(
        fingerprint(&hello(0x0303, &ciphers, &extensions)),
        published
    );
    let offers = Offers::read(&hello(0x0303, &ciphers, &extensions)).expect("a whole hello");
    assert_eq!(
        String::from_utf8_lossy(&offers.raw()),
        "t13d1516h2_002f,0035,009c,009d,1301,1302,1303,c013,c014,c02b,c02c,c02f,c030,cca8,cca9_\
         0005,000a,000b,000d,0012,0015,0017,001b,0023,002b,002d,0033,4469,ff01_\
         0403,0804,0401,0503,0805,0501,0806,0601"
    );
}

#[test]
fn versions_have_two_characters() {
    let cases: &[(u16, &[u8], &str)] = &[
        (0x0303, b"", "12"),
        (0x0302, b"", "11"),
        (0x0301, b"", "10"),
        (0x0300, b"", "s3"),
        (0x0002, b"", "s2"),
        (0x7f1c, b"", "00"),
        (0x0303, b"\x02\x03\x04", "13"),
        (0x0303, b"\x04\x03\x02\x03\x01", "11"),
        (0x0303, b"\x02\x1a\x1a", "12"),
    ];
    for (version, offered, expected) in cases {
        let extensions = [(EXTENSION_VERSIONS, *offered)];
        let extensions = if offered.is_empty() {
            &[][..]
        } else {
            &extensions
        };
        let found = fingerprint(&hello(*version, &[0x1301], extensions));
        assert_eq!(found[1..3], **expected, "{version:#x} {offered:?}");
    }
}

#[test]
fn protocols_are_named_by_their_first_and_last_character() {
    let cases: &[(&[u8], &str)] = &[
        (b"h2", "h2"),
        (b"http/1.1", "h1"),
        (b"x", "xx"),
        (b"", "00"),
        (b"\xab", "ab"),
        (b"\xab\xcd", "ad"),
        (b"0\xab", "3b"),
        (b"01\xab\xcd", "3d"),
        (b"0\xab\xcd1", "01"),
        (b"-1", "21"),
    ];
    for (name, expected) in cases {
        let list = [&[0, name.len() as u8 + 1, name.len() as u8], *name].concat();
        let found = fingerprint(&hello(0x0303, &[0x1301], &[(EXTENSION_PROTOCOLS, &list)]));
        assert_eq!(found[8..10], **expected, "{name:?}");
    }
    let none = fingerprint(&hello(0x0303, &[0x1301], &[(EXTENSION_PROTOCOLS, b"\0\0")]));
    assert_eq!(none[8..10], *"00");
}

#[test]
fn empty_lists_and_large_ones_keep_the_length() {
    let bare = fingerprint(&hello(0x0303, &[], &[]));
    assert_eq!(bare, "t12i000000_000000000000_000000000000");
    // Only the name: nothing is left to digest, and nothing is digested.
    let named = fingerprint(&hello(0x0303, &[0x0a0a], &[(EXTENSION_SERVER_NAME, b"")]));
    assert_eq!(named, "t12d000100_000000000000_000000000000");
    let many: Vec<u16> = (1..=150).collect();
    let kinds: Vec<(u16, &[u8])> = (100..=250).map(|kind| (kind, b"".as_slice())).collect();
    assert_eq!(
        fingerprint(&hello(0x0303, &many, &kinds))[..10],
        *"t12i999900"
    );
}

#[test]
fn cut_lists_have_no_fingerprint() {
    let cases: &[(u16, &[u8])] = &[
        (EXTENSION_PROTOCOLS, b"\0\x05\x02h2"),
        (EXTENSION_PROTOCOLS, b"\0\x03\x05h2"),
        (EXTENSION_SIGNATURE_ALGORITHMS, b"\0\x04\x04\x03"),
        (EXTENSION_VERSIONS, b"\x04\x03\x04"),
        (EXTENSION_VERSIONS, b""),
    ];
    for extension in cases {
        let bytes = hello(0x0303, &[0x1301], &[*extension]);
        assert_eq!(Offers::read(&bytes), None, "{extension:?}");
    }
}
