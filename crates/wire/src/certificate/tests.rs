//! Tests of certificates that are built byte by byte.

use super::time::time;
use super::{Certificate, Extensions, Name, Purpose, RevocationList};
use crate::der::any;

#[test]
fn times_are_read() {
    let cases: [(&[u8], Option<u64>); 12] = [
        (b"\x17\x0d700101000000Z", Some(0)),
        (b"\x17\x0d000229120000Z", Some(951_825_600)),
        (b"\x17\x0d491231235959Z", Some(2_524_607_999)),
        (b"\x18\x0f21260101000001Z", Some(4_922_899_201)),
        (b"\x17\x0d690720201740Z", Some(0)),
        (b"\x17\x0d701301000000Z", None),
        (b"\x17\x0d010229000000Z", None),
        (b"\x17\x0d010431000000Z", None),
        (b"\x17\x0d010430240000Z", None),
        (b"\x17\x0b7001010000Z", None),
        (b"\x17\x0d70010100000\xffZ", None),
        (b"\x17\x7f700101000000Z", None),
    ];
    for (bytes, expected) in cases {
        let read = time(bytes).map(|(seconds, _)| seconds);
        assert_eq!(read, expected, "{}", bytes.escape_ascii());
    }
}

/// An element with its header.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = match length {
        0..=0x7f => vec![tag, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [&header[..], content].concat()
}

fn name(text: &[u8]) -> Vec<u8> {
    let attribute = [&b"\x06\x03\x55\x04\x03"[..], &element(0x0c, text)].concat();
    element(0x30, &element(0x31, &element(0x30, &attribute)))
}

const ALGORITHM: &[u8] = b"\x30\x03\x06\x01\x2a";
const DATES: &[u8] = b"\x30\x1e\x17\x0d700101000000Z\x17\x0d700101000100Z";
const NUMBER: &[u8] = b"\x02\x01\x07";

/// A certificate with these inner and outer algorithms and these extensions.
fn certificate(inner: &[u8], outer: &[u8], extensions: &[u8]) -> Vec<u8> {
    let key = element(0x30, &[ALGORITHM, b"\x03\x02\x00\x05"].concat());
    let mut own = [NUMBER, inner, &name(b"ca"), DATES, &name(b"me"), &key].concat();
    if !extensions.is_empty() {
        let version = b"\xa0\x03\x02\x01\x02";
        own = [version, &own[..], &element(0xa3, extensions)].concat();
    }
    let own = element(0x30, &own);
    element(0x30, &[&own[..], outer, b"\x03\x03\x00\x01\x02"].concat())
}

#[test]
fn certificates_with_and_without_extensions_are_read() {
    let old = certificate(ALGORITHM, ALGORITHM, &[]);
    let read = Certificate::read(&old).expect("a certificate");
    assert_eq!((read.version, read.serial), (1, &[7][..]));
    assert_eq!((read.not_before_s, read.not_after_s), (0, 60));
    assert_eq!(
        (read.key.algorithm, read.key.bits),
        (&b"\x06\x01\x2a"[..], &[5][..])
    );
    assert_eq!(read.signature.bits, [1, 2]);
    assert_eq!(read.subject.common_name(), Some(&b"me"[..]));
    assert!(!read.is_self_issued());
    assert_eq!(read.extensions, Extensions::default());
    let new = certificate(ALGORITHM, ALGORITHM, &element(0x30, &[]));
    assert_eq!(Certificate::read(&new).map(|read| read.version), Some(3));
    // The signed part names another algorithm than the signature.
    let mixed = certificate(b"\x30\x03\x06\x01\x2b", ALGORITHM, &[]);
    assert_eq!(Certificate::read(&mixed), None);
    for cut in 0..new.len() {
        assert_eq!(Certificate::read(&new[..cut]), None, "{cut}");
    }
}

/// An extension of `2.5.29.number`.
fn extension(number: u8, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if is_critical { b"\x01\x01\xff" } else { b"" };
    let object = [6, 3, 0x55, 0x1d, number];
    element(0x30, &[&object[..], critical, &element(4, value)].concat())
}

#[test]
fn extensions_limit_the_purpose_of_a_certificate() {
    let server = b"\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01";
    let names = b"\x30\x0d\x82\x05a.com\x87\x04\x7f\x00\x00\x01";
    let list = [
        extension(19, true, b"\x30\x06\x01\x01\xff\x02\x01\x03"),
        extension(15, true, b"\x03\x02\x01\x06"),
        extension(37, false, server),
        extension(17, false, names),
    ];
    let whole = list.concat();
    let read = Extensions::read(&whole).expect("extensions");
    assert_eq!((read.is_ca, read.path_length), (Some(true), Some(3)));
    assert!(read.may_sign_certificates() && read.may_sign_lists());
    assert!(read.may_lead_to(Purpose::Server) && !read.may_lead_to(Purpose::Client));
    // Its key may sign certificates, and nothing else.
    assert!(!read.is_for(Purpose::Server));
    assert_eq!(read.dns_names().collect::<Vec<_>>(), [b"a.com"]);
    assert_eq!(read.addresses().collect::<Vec<_>>(), [[127, 0, 0, 1]]);
    assert!(!read.has_unknown_critical && !read.has_name_constraints);
    let unknown = extension(54, true, b"");
    let unknown = Extensions::read(&unknown).expect("extensions");
    assert!(unknown.has_unknown_critical && unknown.is_for(Purpose::Client));
    let limited = extension(30, true, b"");
    let limited = Extensions::read(&limited).expect("extensions");
    assert!(limited.has_name_constraints && !limited.has_unknown_critical);
    let twice = [&list[0][..], &list[0]].concat();
    assert_eq!(Extensions::read(&twice), None);
}

/// Types and tags of attributes with their values, and the name in both formats.
#[test]
fn names_are_written_as_openssl_writes_them() {
    type Case = (
        &'static [(&'static [u8], u8, &'static [u8])],
        &'static str,
        &'static str,
    );
    let (cn, country, mail): (&[u8], &[u8], &[u8]) = (
        b"\x55\x04\x03",
        b"\x55\x04\x06",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01",
    );
    let cases: [Case; 6] = [
        (&[], "", ""),
        (
            &[
                (b"\x55\x04\x06", 0x13, b"DE"),
                (b"\x55\x04\x03", 0x0c, b"a b"),
            ],
            "CN=a b,C=DE",
            "/C=DE/CN=a b",
        ),
        (
            &[(b"\x55\x04\x03", 0x0c, b" #a,b+c\"d\\e<f>g;h\x01 ")],
            "CN=\\ #a\\,b\\+c\\\"d\\\\e\\<f\\>g\\;h\\01\\ ",
            "/CN= #a,b+c\"d\\e<f>g;h\\x01 ",
        ),
        (
            &[(b"\x55\x04\x03", 0x0c, b"\xc3\xbc")],
            "CN=ü",
            "/CN=\\xC3\\xBC",
        ),
        (
            &[(b"\x55\x04\x03", 0x1e, b"\0a\0\xfc")],
            "CN=aü",
            "/CN=\\x00a\\x00\\xFC",
        ),
        (
            &[(b"\x2a\x03\x87\x67", 0x0c, b"x")],
            "1.2.3.999=#0C0178",
            "/1.2.3.999=x",
        ),
    ];
    for (attributes, rfc2253, oneline) in cases {
        let sets = attributes.iter().map(|(object, tag, value)| {
            let attribute = [element(6, object), element(*tag, value)].concat();
            element(0x31, &element(0x30, &attribute))
        });
        let content = sets.collect::<Vec<_>>().concat();
        let (mut new, mut old) = (Vec::new(), Vec::new());
        Name(&content).write_rfc2253(&mut new);
        Name(&content).write_oneline(&mut old);
        assert_eq!(String::from_utf8_lossy(&new), rfc2253);
        assert_eq!(String::from_utf8_lossy(&old), oneline);
    }
    let one = |object: &[u8], value: &[u8]| {
        element(0x30, &[element(6, object), element(0x0c, value)].concat())
    };
    let both = element(0x31, &[one(cn, b"a"), one(mail, b"b")].concat());
    let content = [element(0x31, &one(country, b"DE")), both].concat();
    let mut text = Vec::new();
    Name(&content).write_rfc2253(&mut text);
    assert_eq!(text, b"emailAddress=b+CN=a,C=DE");
}

#[test]
fn lists_show_revoked_certificates() {
    let when = b"\x17\x0d700101000000Z";
    let later = b"\x17\x0d700101000100Z";
    let entry = element(0x30, &[NUMBER, when].concat());
    let critical = [
        &b"\x02\x01\x08"[..],
        when,
        &element(0x30, &extension(29, true, b"")),
    ];
    let list = |entries: &[u8], extensions: &[u8]| {
        let version = b"\x02\x01\x01";
        let parts = [
            version,
            ALGORITHM,
            &name(b"ca"),
            when,
            later,
            &element(0x30, entries),
            extensions,
        ];
        let own = element(0x30, &parts.concat());
        element(0x30, &[&own[..], ALGORITHM, b"\x03\x02\x00\x05"].concat())
    };
    let plain = list(&entry, &[]);
    let read = RevocationList::read(&plain).expect("a list");
    assert_eq!((read.this_update_s, read.next_update_s), (0, Some(60)));
    assert_eq!(
        (read.revokes(&[7]), read.revokes(&[9])),
        (Some(true), Some(false))
    );
    assert!(!read.has_unknown_critical);
    // This entry is about another CA's certificate, and so are those after it.
    let indirect = list(&[element(0x30, &critical.concat()), entry].concat(), &[]);
    let read = RevocationList::read(&indirect).expect("a list");
    assert_eq!((read.revokes(&[8]), read.revokes(&[7])), (Some(true), None));
    for (number, expected) in [(20, false), (28, true)] {
        let extensions = element(0xa0, &element(0x30, &extension(number, true, b"")));
        let with = list(&[], &extensions);
        let read = RevocationList::read(&with).expect("a list");
        assert_eq!(read.has_unknown_critical, expected, "{number}");
    }
    for cut in 0..plain.len() {
        assert_eq!(RevocationList::read(&plain[..cut]), None, "{cut}");
    }
}

#[test]
fn lengths_have_at_most_four_bytes() {
    let long = [&[4, 0x82, 1, 0][..], &[9; 256]].concat();
    assert_eq!(any(&long), Some((4, &[9; 256][..], &[][..])));
    assert_eq!(any(&[4, 0x80]), None);
    assert_eq!(any(&[4, 0x85, 0, 0, 0, 0, 0]), None);
    assert_eq!(any(&[4, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}
