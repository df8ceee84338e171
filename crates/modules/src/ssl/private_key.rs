//! Private keys in PEM, also those that a password protects: PKCS#8 with PBES2 (RFC 8018), and
//! OpenSSL's older way with its header `DEK-Info`. AES is the only cipher.

use std::num::NonZeroU32;
use std::sync::Arc;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use md5::{Digest as _, Md5};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use turnpike_wire::encrypted_key::{EncryptedKey, Prf};
use turnpike_wire::hex;
use turnpike_wire::pem::Block;

use crate::common::pem_key;

/// Bytes of the salt and of the block of AES.
const SALT_BYTES: usize = 8;
const BLOCK_BYTES: usize = 16;

/// Reads the key of a PEM text, and tries each password where it wants one.
///
/// # Errors
/// The text holds no key, one of a kind that is not supported, or none of the passwords opens it.
pub(super) fn read(pem: &[u8], passwords: &[Vec<u8>]) -> Result<Arc<dyn SigningKey>, String> {
    let block = pem_key::block(pem)?;
    if block.label == b"ENCRYPTED PRIVATE KEY" {
        return open(passwords, |password| by_pkcs8(&block.data, password));
    }
    if let Some(cipher) = sealed_by(&block) {
        let wrap = match block.label {
            b"RSA PRIVATE KEY" => as_pkcs1 as fn(Vec<u8>) -> PrivateKeyDer<'static>,
            b"EC PRIVATE KEY" => as_sec1,
            _ => return Err(pem_key::UNSUPPORTED.to_owned()),
        };
        return open(passwords, |password| {
            by_header(cipher, &block.data, password).map(wrap)
        });
    }
    let key = pem_key::plain(block)?;
    any_supported_type(&key).map_err(|error| error.to_string())
}

/// Whether a password protects the key of a PEM text.
pub(super) fn is_encrypted(pem: &[u8]) -> bool {
    pem_key::block(pem)
        .is_ok_and(|block| block.label == b"ENCRYPTED PRIVATE KEY" || sealed_by(&block).is_some())
}

/// The cipher that a block's header names, with its initial vector.
fn sealed_by<'a>(block: &'a Block<'_>) -> Option<&'a str> {
    let header = str::from_utf8(&block.header).ok()?;
    let mut lines = header.lines();
    lines.find_map(|line| Some(line.strip_prefix("DEK-Info:")?.trim()))
}

/// The passwords of a file, one a line.
pub(super) fn passwords(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(<[u8]>::to_vec).collect()
}

fn open(
    passwords: &[Vec<u8>],
    decrypt: impl Fn(&[u8]) -> Result<PrivateKeyDer<'static>, String>,
) -> Result<Arc<dyn SigningKey>, String> {
    let mut why = "bad password read".to_owned();
    for password in passwords {
        let opened = decrypt(password).and_then(|key| {
            // Bytes of a wrong password are no key.
            any_supported_type(&key).map_err(|_| "bad decrypt".to_owned())
        });
        match opened {
            Ok(key) => return Ok(key),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn as_pkcs1(der: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivatePkcs1KeyDer::from(der).into()
}

fn as_sec1(der: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivateSec1KeyDer::from(der).into()
}

fn by_pkcs8(der: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let sealed = EncryptedKey::read(der);
    let sealed = sealed.ok_or("unsupported encryption, use PBES2 with PBKDF2 and AES-CBC")?;
    let cipher = cipher(sealed.key_bytes).ok_or("unsupported cipher")?;
    let prf = match sealed.prf {
        Prf::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        Prf::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Prf::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
        Prf::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
    };
    let rounds = NonZeroU32::new(sealed.iterations).ok_or("no iterations")?;
    let mut key = vec![0; sealed.key_bytes];
    pbkdf2::derive(prf, rounds, sealed.salt, password, &mut key);
    let opened = decrypt(cipher, &key, sealed.iv, sealed.data)?;
    Ok(PrivatePkcs8KeyDer::from(opened).into())
}

/// `cipher` is a name of OpenSSL's with the initial vector behind a comma.
fn by_header(cipher_and_iv: &str, data: &[u8], password: &[u8]) -> Result<Vec<u8>, String> {
    let (name, iv) = cipher_and_iv.split_once(',').ok_or("bad DEK-Info")?;
    let key_bytes = match name {
        "AES-128-CBC" => 16,
        "AES-192-CBC" => 24,
        "AES-256-CBC" => 32,
        _ => return Err(format!("unsupported cipher {name}")),
    };
    let cipher = cipher(key_bytes).ok_or("unsupported cipher")?;
    let iv = hex::bytes(iv.trim().as_bytes()).ok_or("bad DEK-Info")?;
    let salt = iv.get(..SALT_BYTES).ok_or("bad DEK-Info")?;
    let (mut key, mut sum) = (Vec::new(), Vec::new());
    while key.len() < key_bytes {
        let mut digest = Md5::new();
        digest.update(&sum);
        digest.update(password);
        digest.update(salt);
        sum = digest.finalize().to_vec();
        key.extend_from_slice(&sum);
    }
    decrypt(cipher, &key[..key_bytes], &iv, data)
}

fn cipher(key_bytes: usize) -> Option<&'static Algorithm> {
    match key_bytes {
        16 => Some(&AES_128),
        24 => Some(&AES_192),
        32 => Some(&AES_256),
        _ => None,
    }
}

fn decrypt(
    cipher: &'static Algorithm,
    key: &[u8],
    iv: &[u8],
    data: &[u8],
) -> Result<Vec<u8>, String> {
    let iv: [u8; BLOCK_BYTES] = iv.try_into().map_err(|_| "bad initial vector")?;
    let bad = |_| "bad decrypt".to_owned();
    let key = UnboundCipherKey::new(cipher, key).map_err(bad)?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(bad)?;
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let mut data = data.to_vec();
    let opened = key.decrypt(&mut data, context).map_err(bad)?;
    Ok(opened.to_vec())
}
