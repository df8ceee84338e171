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
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use turnpike_http::base64;
use turnpike_wire::encrypted_key::{EncryptedKey, Prf};
use turnpike_wire::hex;

/// Bytes of the salt and of the block of AES.
const SALT_BYTES: usize = 8;
const BLOCK_BYTES: usize = 16;

/// Reads the key of a PEM text, and tries each password where it wants one.
///
/// # Errors
/// The text holds no key, one of a kind that is not supported, or none of the passwords opens it.
pub(super) fn read(pem: &[u8], passwords: &[Vec<u8>]) -> Result<Arc<dyn SigningKey>, String> {
    let text = String::from_utf8_lossy(pem);
    if let Some(body) = section(&text, "ENCRYPTED PRIVATE KEY") {
        let der = base64::decode(&packed(body)).ok_or("bad base64 decode")?;
        return open(passwords, |password| by_pkcs8(&der, password));
    }
    for (label, wrap) in [
        (
            "RSA PRIVATE KEY",
            as_pkcs1 as fn(Vec<u8>) -> PrivateKeyDer<'static>,
        ),
        ("EC PRIVATE KEY", as_sec1),
    ] {
        let Some(body) = section(&text, label) else {
            continue;
        };
        if let Some((cipher, body)) = body.split_once("DEK-Info:").and_then(|(_, rest)| {
            let (cipher, body) = rest.trim_start().split_once('\n')?;
            Some((cipher.trim(), body))
        }) {
            let data = base64::decode(&packed(body)).ok_or("bad base64 decode")?;
            return open(passwords, |password| {
                by_header(cipher, &data, password).map(wrap)
            });
        }
    }
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    any_supported_type(&key).map_err(|error| error.to_string())
}

/// Whether a password protects the key of a PEM text.
pub(super) fn is_encrypted(pem: &[u8]) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(pem, text).is_some();
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"DEK-Info:")
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

/// What stands between the first and last lines of that label.
fn section<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    Some(body)
}

fn packed(body: &str) -> Vec<u8> {
    let bytes = body.bytes();
    bytes.filter(|byte| !byte.is_ascii_whitespace()).collect()
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
