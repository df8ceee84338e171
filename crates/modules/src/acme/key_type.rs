//! The kinds of keys that certificates are ordered for.

use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512,
    PKCS_RSA_SHA256, RsaKeySize,
};

/// A kind of key, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    P256,
    P384,
    P521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

impl KeyType {
    /// Reads `alg[:size]`.
    pub(super) fn parse(text: &str) -> Option<KeyType> {
        match text {
            "ecdsa" | "ecdsa:256" => Some(KeyType::P256),
            "ecdsa:384" => Some(KeyType::P384),
            "ecdsa:521" => Some(KeyType::P521),
            "rsa" | "rsa:2048" => Some(KeyType::Rsa2048),
            "rsa:3072" => Some(KeyType::Rsa3072),
            "rsa:4096" => Some(KeyType::Rsa4096),
            _ => None,
        }
    }

    /// A new key. Those of RSA take seconds.
    ///
    /// # Errors
    /// The library's.
    pub(super) fn generate(self) -> Result<KeyPair, rcgen::Error> {
        let rsa = |size| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size);
        match self {
            KeyType::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyType::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            KeyType::P521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
            KeyType::Rsa2048 => rsa(RsaKeySize::_2048),
            KeyType::Rsa3072 => rsa(RsaKeySize::_3072),
            KeyType::Rsa4096 => rsa(RsaKeySize::_4096),
        }
    }
}
