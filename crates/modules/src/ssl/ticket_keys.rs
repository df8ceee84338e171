//! Keys of tickets: from the files of `ssl_session_ticket_key`, or made here.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use aws_lc_rs::rand;
use rustls::crypto::GetRandomFailed;
use rustls::server::ProducesTickets;
use turnpike_conf::{ConfError, View};
use turnpike_plan::builder::Builder;

use super::files;

/// Bytes of a key's name, which a ticket begins with.
const NAME_BYTES: usize = 16;

/// Bytes of files: nginx's, for AES-128 and AES-256.
const FILE_BYTES: [usize; 2] = [48, 80];

/// Bytes of a key that is made here, its name included.
pub(super) const FRESH_BYTES: usize = 48;

/// What the key of a file is derived under: the file's own bytes serve other programs too.
const LABEL: &[u8] = b"turnpike session ticket";

/// A key with its name.
struct Key {
    name: [u8; NAME_BYTES],
    key: RandomizedNonceKey,
}

/// Keys of a server: the first seals tickets, and all open them.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<Key>);

impl Keys {
    /// Keys of these bytes, each with its name first.
    pub(super) fn of(all: impl Iterator<Item = Vec<u8>>) -> Option<Keys> {
        all.map(|bytes| Key::new(&bytes))
            .collect::<Option<_>>()
            .map(Keys)
    }
}

/// The keys of the files in force; `None`: none is named.
///
/// # Errors
/// A file cannot be read, or is of another size.
pub(super) fn of_files<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Option<Keys>, ConfError> {
    let mut keys = Vec::new();
    for entry in view.nearest_all("ssl_session_ticket_key") {
        let (name, bytes) = files::read(builder, entry);
        let bytes = bytes
            .map_err(|why| view.error(entry.span, format!("open() \"{name}\" failed {why}")))?;
        let key = FILE_BYTES.contains(&bytes.len()).then(|| Key::new(&bytes));
        let message = || format!("\"{name}\" must be 48 or 80 bytes");
        let key = key.flatten();
        keys.push(key.ok_or_else(|| view.error(entry.span, message()))?);
    }
    Ok((!keys.is_empty()).then_some(Keys(keys)))
}

/// A new key of random bytes.
///
/// # Errors
/// The machine has none.
pub(super) fn fresh() -> Result<Box<dyn ProducesTickets>, GetRandomFailed> {
    let mut bytes = [0; FRESH_BYTES];
    rand::fill(&mut bytes).map_err(|_| GetRandomFailed)?;
    let key = Key::new(&bytes).ok_or(GetRandomFailed)?;
    Ok(Box::new(Keys(vec![key])))
}

impl Key {
    /// The name stands first, the secret behind it.
    fn new(bytes: &[u8]) -> Option<Key> {
        let (name, secret) = bytes.split_first_chunk()?;
        let mut digest = Digest::new(&SHA256);
        digest.update(LABEL);
        digest.update(secret);
        let key = RandomizedNonceKey::new(&AES_256_GCM, digest.finish().as_ref());
        Some(Key {
            name: *name,
            key: key.ok()?,
        })
    }
}

impl ProducesTickets for Keys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::MAX
    }

    /// A ticket is the key's name, a nonce, and what is sealed.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let first = self.0.first()?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(first.name);
        let nonce = first.key.seal_in_place_append_tag(aad, &mut sealed).ok()?;
        Some([&first.name[..], nonce.as_ref(), &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.0.iter().find(|key| key.name == *name)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.key.open_in_place(nonce, Aad::from(*name), &mut sealed);
        Some(opened.ok()?.to_vec())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    //! What one set of keys opens of another's.

    use rustls::server::ProducesTickets as _;

    use super::{Key, Keys, fresh};

    #[test]
    fn the_first_key_seals_and_all_open() {
        let key = |byte: u8, length: usize| Key::new(&vec![byte; length]).expect("a key");
        let old = Keys(vec![key(1, 48)]);
        let rotated = Keys(vec![key(2, 80), key(1, 48)]);
        let plain = b"session".to_vec();
        let by_old = old.encrypt(&plain).expect("a ticket");
        let by_new = rotated.encrypt(&plain).expect("a ticket");
        assert_eq!((&by_old[..16], &by_new[..16]), (&[1; 16][..], &[2; 16][..]));
        assert_eq!(rotated.decrypt(&by_old), Some(plain.clone()));
        assert_eq!(rotated.decrypt(&by_new), Some(plain.clone()));
        assert_eq!(old.decrypt(&by_new), None);
        assert_ne!(old.encrypt(&plain), Some(by_old.clone()));
        for at in 0..by_old.len() {
            let mut forged = by_old.clone();
            forged[at] ^= 1;
            assert_eq!(old.decrypt(&forged), None, "{at}");
            assert_eq!(old.decrypt(&by_old[..at]), None, "{at}");
        }
        let one = fresh().expect("random bytes");
        let other = fresh().expect("random bytes");
        let ticket = one.encrypt(&plain).expect("a ticket");
        assert_eq!(one.decrypt(&ticket), Some(plain));
        assert_eq!(other.decrypt(&ticket), None);
    }
}
