//! The keys that outlive a connection: those of connection IDs, of stateless resets and of the
//! tokens that prove an address. All come from one secret, `quic_host_key`, and while that is
//! changed from the one before it too: what was given by that is still known.

use std::sync::Arc;

use aws_lc_rs::{hkdf, hmac, rand};
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use turnpike_lane::flows::connection_id::{ConnectionIds, Place};

/// Bytes of a secret that the server makes for itself.
const SECRET_BYTES: usize = 32;

/// The gates and serials of lanes that an ID is likely to name. One that is read by another key
/// names any of 256 each.
const LIKELY_GATES: u8 = 64;
const LIKELY_SERIALS: u8 = 4;

/// What a host's QUIC is keyed by.
#[derive(Clone)]
pub struct HostKey {
    secret: Box<[u8]>,
    /// The key before it.
    old: Option<Box<HostKey>>,
}

impl HostKey {
    /// The key of this secret, of whatever length.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self {
            secret: secret.into(),
            old: None,
        }
    }

    /// The same, which still knows what was given by the key of this secret.
    #[must_use]
    pub fn with_old(self, secret: &[u8]) -> Self {
        Self {
            old: Some(Box::new(Self::of(secret))),
            ..self
        }
    }

    /// The key before this one.
    #[must_use]
    pub fn old(&self) -> Option<&HostKey> {
        self.old.as_deref()
    }

    /// A key that nobody else has; `None`: the system has no random numbers.
    #[must_use]
    pub fn random() -> Option<Self> {
        let mut secret = [0; SECRET_BYTES];
        rand::fill(&mut secret).ok()?;
        Some(Self::of(&secret))
    }

    /// Random words to make a secret of; `None`: the system has none.
    #[must_use]
    pub fn random_words<const WORDS: usize>() -> Option<[u64; WORDS]> {
        let mut words = [0; WORDS];
        for word in &mut words {
            let mut bytes = [0; 8];
            rand::fill(&mut bytes).ok()?;
            *word = u64::from_ne_bytes(bytes);
        }
        Some(words)
    }

    /// The key that masks the places in connection IDs.
    #[must_use]
    pub fn connection_ids(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&self.derived(b"connection ids")[..16]);
        key
    }

    /// The key of the tokens of stateless resets.
    pub(crate) fn resets(&self) -> Arc<dyn HmacKey> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derived(b"stateless resets"));
        match &self.old {
            None => Arc::new(key),
            Some(old) => Arc::new(ResetKeys {
                key,
                ids: ConnectionIds::new(self.connection_ids()),
                old: old.resets(),
                old_ids: ConnectionIds::new(old.connection_ids()),
            }),
        }
    }

    /// The key of the tokens that prove an address.
    pub(crate) fn tokens(&self) -> Arc<dyn HandshakeTokenKey> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"address tokens");
        let key = salt.extract(&self.secret);
        match &self.old {
            None => Arc::new(key),
            Some(old) => Arc::new(TokenKeys {
                key,
                old: old.tokens(),
            }),
        }
    }

    fn derived(&self, purpose: &[u8]) -> [u8; 32] {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let mut key = [0; 32];
        key.copy_from_slice(hmac::sign(&secret, purpose).as_ref());
        key
    }
}

/// The keys of resets while the secret is changed: which one an ID was given by is seen from the
/// place that it names. Both say the same of an ID at any time.
struct ResetKeys {
    key: hmac::Key,
    ids: ConnectionIds,
    old: Arc<dyn HmacKey>,
    old_ids: ConnectionIds,
}

impl ResetKeys {
    fn of(&self, id: &[u8]) -> &dyn HmacKey {
        let is_likely = |place: Place| place.gate < LIKELY_GATES && place.serial < LIKELY_SERIALS;
        if !self.ids.read(id).is_some_and(is_likely) && self.old_ids.read(id).is_some_and(is_likely)
        {
            &*self.old
        } else {
            &self.key
        }
    }
}

impl HmacKey for ResetKeys {
    fn sign(&self, id: &[u8], signature: &mut [u8]) {
        self.of(id).sign(id, signature);
    }

    fn signature_len(&self) -> usize {
        HmacKey::signature_len(&self.key)
    }

    fn verify(&self, id: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        self.of(id).verify(id, signature)
    }
}

/// The keys of tokens while the secret is changed.
struct TokenKeys {
    key: hkdf::Prk,
    old: Arc<dyn HandshakeTokenKey>,
}

impl HandshakeTokenKey for TokenKeys {
    fn aead_from_hkdf(&self, random: &[u8]) -> Box<dyn AeadKey> {
        Box::new(TokenAead {
            key: self.key.aead_from_hkdf(random),
            old: self.old.aead_from_hkdf(random),
        })
    }
}

/// Seals a token by the key, and opens it by the key before too.
struct TokenAead {
    key: Box<dyn AeadKey>,
    old: Box<dyn AeadKey>,
}

impl AeadKey for TokenAead {
    fn seal(&self, token: &mut Vec<u8>, additional: &[u8]) -> Result<(), CryptoError> {
        self.key.seal(token, additional)
    }

    fn open<'a>(
        &self,
        token: &'a mut [u8],
        additional: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        // What cannot be opened is destroyed.
        let is_old = self.key.open(&mut token.to_vec(), additional).is_err();
        let key = if is_old { &self.old } else { &self.key };
        key.open(token, additional)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use turnpike_lane::flows::connection_id::{ConnectionIds, Place};

    use super::HostKey;

    #[test]
    fn what_was_given_by_the_key_before_is_known() {
        let (old, fresh) = (HostKey::of(b"before"), HostKey::of(b"after"));
        let both = HostKey::of(b"after").with_old(b"before");
        assert_eq!(both.connection_ids(), fresh.connection_ids());
        let token_of = |key: &HostKey, id: &[u8]| {
            let mut token = [0; 32];
            key.resets().sign(id, &mut token);
            token
        };
        let mut alike = 0;
        for number in 0..200_u64 {
            let place = Place {
                gate: number as u8 % 4,
                serial: 0,
                process: number as u16,
            };
            for key in [&old, &fresh] {
                let ids = ConnectionIds::new(key.connection_ids());
                let id = ids.write(number.to_le_bytes(), place);
                alike += usize::from(token_of(&both, &id) == token_of(key, &id));
            }
        }
        // An old ID looks as a new one once in 256 times.
        assert!(alike > 390, "{alike}");
        for key in [&old, &fresh] {
            let sealed = |by: &HostKey| {
                let mut token = b"token".to_vec();
                let aead = by.tokens().aead_from_hkdf(b"random");
                aead.seal(&mut token, b"more").unwrap();
                token
            };
            let mut token = sealed(key);
            let aead = both.tokens().aead_from_hkdf(b"random");
            assert_eq!(aead.open(&mut token, b"more").unwrap(), b"token");
            assert_eq!(sealed(&both), sealed(&fresh));
        }
        let other = HostKey::of(b"other").tokens().aead_from_hkdf(b"random");
        let mut token = b"token".to_vec();
        other.seal(&mut token, b"more").unwrap();
        let aead = both.tokens().aead_from_hkdf(b"random");
        assert!(aead.open(&mut token, b"more").is_err());
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let key = HostKey::of(b"a secret");
        assert_eq!(
            key.connection_ids(),
            HostKey::of(b"a secret").connection_ids()
        );
        assert_ne!(
            key.connection_ids(),
            HostKey::of(b"another").connection_ids()
        );
        assert_ne!(key.derived(b"a")[..16], key.connection_ids());
    }
}
