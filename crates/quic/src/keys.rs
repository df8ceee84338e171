//! The keys that outlive a connection: those of connection IDs, of stateless resets and of the
//! tokens that prove an address. All come from one secret, `quic_host_key`.

use aws_lc_rs::{hkdf, hmac, rand};

/// Bytes of a secret that the server makes for itself.
const SECRET_BYTES: usize = 32;

/// What a host's QUIC is keyed by.
#[derive(Clone)]
pub struct HostKey {
    secret: Box<[u8]>,
}

impl HostKey {
    /// The key of this secret, of whatever length.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self {
            secret: secret.into(),
        }
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
    pub(crate) fn resets(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.derived(b"stateless resets"))
    }

    /// The key of the tokens that prove an address.
    pub(crate) fn tokens(&self) -> hkdf::Prk {
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"address tokens").extract(&self.secret)
    }

    fn derived(&self, purpose: &[u8]) -> [u8; 32] {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let mut key = [0; 32];
        key.copy_from_slice(hmac::sign(&secret, purpose).as_ref());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::HostKey;

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
