//! Certificates cut from bytes by hand.

use super::{SelfSigned, self_signed, time};

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

#[test]
fn only_whole_certificates_that_are_self_signed_are() {
    let name = b"\x30\x03\x31\x01\x61";
    let other = b"\x30\x03\x31\x01\x62";
    let certificate = |subject: &[u8]| {
        let own = [
            b"\xa0\x03\x02\x01\x02\x02\x01\x07\x30\x00".as_slice(),
            name,
            b"\x30\x1e\x17\x0d700101000000Z\x17\x0d700101000100Z",
            subject,
        ]
        .concat();
        let inner = [&[0x30, 0x81, own.len() as u8], own.as_slice()].concat();
        [&[0x30, inner.len() as u8], inner.as_slice()].concat()
    };
    let good = certificate(name);
    let expected = SelfSigned {
        not_before_s: 0,
        not_after_s: 60,
    };
    assert_eq!(self_signed(&good), Some(expected));
    assert_eq!(self_signed(&certificate(other)), None);
    for cut in 0..good.len() {
        assert_eq!(self_signed(&good[..cut]), None, "{cut}");
    }
}
