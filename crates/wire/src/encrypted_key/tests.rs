//! Tests of a key that OpenSSL encrypted, and of changed copies.

use super::{EncryptedKey, Prf};

/// Made by `openssl pkcs8 -topk8 -v2 aes-128-cbc -v2prf hmacWithSHA256 -iter 2048`.
const KEY: &[u8] = include_bytes!("../../../../fuzz/corpus/certificate/encrypted_key.seed");

/// The offset of the last byte of an object identifier.
fn end_of(object: &[u8]) -> usize {
    let at = KEY.windows(object.len()).position(|it| it == object);
    at.expect("the object") + object.len() - 1
}

#[test]
fn decryption_parameters_are_read() {
    let read = EncryptedKey::read(KEY).expect("a key");
    assert_eq!(
        (read.iterations, read.prf, read.key_bytes),
        (2048, Prf::Sha256, 16)
    );
    assert_eq!((read.salt.len(), read.iv.len()), (8, 16));
    assert_eq!(read.data.len() % 16, 0);
    assert!(KEY.ends_with(read.data));
    for cut in 0..KEY.len() {
        assert_eq!(EncryptedKey::read(&KEY[..cut]), None, "{cut}");
    }
    let aes = end_of(&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2]);
    let hmac = end_of(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 9]);
    let scheme = end_of(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13]);
    let cases = [
        (aes, 22, Some((Prf::Sha256, 24))),
        (aes, 42, Some((Prf::Sha256, 32))),
        (aes, 6, None),
        (hmac, 7, Some((Prf::Sha1, 16))),
        (hmac, 11, Some((Prf::Sha512, 16))),
        (hmac, 8, None),
        (scheme, 10, None),
    ];
    for (at, byte, expected) in cases {
        let mut changed = KEY.to_vec();
        changed[at] = byte;
        let read = EncryptedKey::read(&changed).map(|it| (it.prf, it.key_bytes));
        assert_eq!(read, expected, "{at} {byte}");
    }
}
