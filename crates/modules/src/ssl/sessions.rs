//! Sessions that can be resumed: by a ticket that the client keeps, or from a cache.
//!
//! Keys of tickets and caches are shared by all servers and lanes, and live on over reloads; the
//! keys and the sessions of shared caches live on over a change of the binary, too. What a session
//! was made for goes with it, so that none is resumed where another certificate is shown, and none
//! after its time.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context as Digest, SHA256, SHA256_OUTPUT_LEN};
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache, StoresServerSessions,
};
use rustls::ticketer::TicketRotator;
use turnpike_conf::{Complaint, ConfError, View, value};
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::builder::Builder;

use super::shared_sessions::SharedSessions;
use super::shared_ticket_keys::SharedKeys;
use super::ticket_keys;

/// Bytes of a cache that one session is counted with: nginx's rule of 4000 sessions in a megabyte.
const SESSION_BYTES: u64 = 256;

/// Sessions of a cache without a size; OpenSSL's number for its own.
const BUILTIN_SESSIONS: u64 = 20_480;

/// The name of the caches that are not shared.
const BUILTIN: &str = "ssl sessions";

/// Bytes of a time.
const TIME_BYTES: usize = 8;

/// What sessions are made for: a digest of what a client was shown.
type Purpose = [u8; SHA256_OUTPUT_LEN];

/// The keys that tickets are sealed with.
struct TicketKeys(Arc<dyn ProducesTickets>);

/// What seals sessions for one server: marks each with its purpose and time.
#[derive(Clone, Copy)]
struct Seal {
    purpose: Purpose,
    timeout_s: u64,
}

/// Tickets for one server.
struct Tickets {
    keys: Arc<TicketKeys>,
    seal: Seal,
}

/// A cache as one server uses it.
struct Cache {
    sessions: Arc<ServerSessionMemoryCache>,
    /// The same sessions, for the next processes; `None`: they are not for them.
    shared: Option<SharedSessions>,
    seal: Seal,
}

/// How the sessions of a server are resumed.
pub(super) struct Resumption {
    seal: Seal,
}

impl Resumption {
    /// Of a server whose clients are shown these certificates.
    pub(super) fn new<'a>(view: View<'_>, shown: impl Iterator<Item = &'a [u8]>) -> Resumption {
        let mut digest = Digest::new(&SHA256);
        for bytes in shown {
            digest.update(&(bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        }
        let mut purpose = Purpose::default();
        purpose.copy_from_slice(digest.finish().as_ref());
        let timeout_s = view.seconds("ssl_session_timeout");
        Resumption {
            seal: Seal { purpose, timeout_s },
        }
    }

    /// What makes tickets; `None`: there are none. `wanted` takes the place of
    /// `ssl_session_tickets`.
    ///
    /// # Errors
    /// A file with a key cannot be used, or the machine has no random numbers for keys.
    pub(super) fn tickets<S>(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_, S>,
        wanted: Option<bool>,
    ) -> Result<Option<Arc<dyn ProducesTickets>>, ConfError> {
        let of_files = ticket_keys::of_files(view, builder)?;
        if !wanted.unwrap_or_else(|| view.flag("ssl_session_tickets")) {
            return Ok(None);
        }
        let keys = match of_files {
            Some(keys) => Arc::new(TicketKeys(Arc::new(keys))),
            None => {
                let failed = |why: Complaint| view.error(view.end(), why);
                self.shared_keys(builder).map_err(failed)?
            }
        };
        Ok(Some(Arc::new(Tickets {
            keys,
            seal: self.seal,
        })))
    }

    /// Keys that are made here, and change so that none opens a ticket that is too old. They are
    /// shared with the next processes where there is memory for that.
    fn shared_keys<S>(&self, builder: &mut Builder<'_, S>) -> Result<Arc<TicketKeys>, Complaint> {
        let timeout_s = u32::try_from(self.seal.timeout_s).unwrap_or(u32::MAX);
        let words = builder.environment.kept_words();
        let fresh: Arc<dyn ProducesTickets> =
            match words.and_then(|words| SharedKeys::new(words, timeout_s)) {
                Some(keys) => Arc::new(keys),
                None => {
                    let rotator = TicketRotator::new(timeout_s.max(1), ticket_keys::fresh);
                    let failed = |error| format!("no keys for tickets: {error}");
                    Arc::new(rotator.map_err(failed)?)
                }
            };
        let make = || Arc::new(TicketKeys(Arc::clone(&fresh))) as Arc<_>;
        let name = format!("ssl ticket keys {timeout_s}");
        let zone = builder.environment.zone(&name, &make);
        zone.downcast()
            .map_err(|_| "another zone has the tickets' name".into())
    }

    /// The cache in force; `None`: there is none.
    pub(super) fn cache<S>(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_, S>,
    ) -> Option<Arc<dyn StoresServerSessions>> {
        let (key, count) = named(view)?;
        let words = match key.as_str() {
            BUILTIN => None,
            _ => builder.environment.kept_words(),
        };
        let shared = words.and_then(|words| SharedSessions::new(words, &key));
        self.cache_named(builder, &key, count, shared)
    }

    /// The cache in force, or where there is none one that all such servers share.
    pub(super) fn own_cache<S>(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_, S>,
    ) -> Arc<dyn StoresServerSessions> {
        let (key, count) = named(view).unwrap_or_else(|| (BUILTIN.to_owned(), BUILTIN_SESSIONS));
        // Two processes could take the same session once each, so the next one gets none.
        let cache = self.cache_named(builder, &key, count, None);
        cache.unwrap_or_else(|| Arc::new(NoServerSessionStorage {}))
    }

    fn cache_named<S>(
        &self,
        builder: &mut Builder<'_, S>,
        name: &str,
        count: u64,
        shared: Option<SharedSessions>,
    ) -> Option<Arc<dyn StoresServerSessions>> {
        let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        // A cache of another size is another one.
        let key = format!("{name} {count}");
        let make = || ServerSessionMemoryCache::new(count) as Arc<_>;
        let sessions = builder.environment.zone(&key, &make).downcast().ok()?;
        Some(Arc::new(Cache {
            sessions,
            shared,
            seal: self.seal,
        }))
    }
}

/// The name of the cache that a server has, and how many sessions it holds.
fn named(view: View<'_>) -> Option<(String, u64)> {
    let entries = view.nearest_all("ssl_session_cache");
    let words = entries.iter().flat_map(|entry| entry.arguments.iter());
    let mut cache = None;
    for word in words {
        match word.text.split(':').collect::<Vec<_>>().as_slice() {
            // Behind it, a shared one counts.
            ["builtin"] if cache.is_none() => {
                cache = Some((BUILTIN.to_owned(), BUILTIN_SESSIONS));
            }
            ["builtin", number] if cache.is_none() => {
                let number = value::number(number).and_then(|it| u64::try_from(it).ok());
                cache = Some((BUILTIN.to_owned(), number.unwrap_or(1)));
            }
            ["shared", name, size] => {
                let bytes = value::size(size).unwrap_or_default();
                cache = Some((format!("ssl sessions {name}"), bytes / SESSION_BYTES));
            }
            _ => {}
        }
    }
    cache
}

impl Seal {
    /// Puts purpose and time before what is kept.
    fn close(&self, now_s: u64, plain: &[u8]) -> Vec<u8> {
        [&self.purpose, now_s.to_be_bytes().as_slice(), plain].concat()
    }

    /// Takes them off again; `None`: it is another purpose's, or too old.
    fn open(&self, now_s: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        let (purpose, rest) = sealed.split_first_chunk::<SHA256_OUTPUT_LEN>()?;
        let (time, plain) = rest.split_first_chunk::<TIME_BYTES>()?;
        let age_s = now_s.checked_sub(u64::from_be_bytes(*time))?;
        (*purpose == self.purpose && age_s <= self.timeout_s).then(|| plain.to_vec())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // Not longer than the keys, either.
        let timeout_s = u32::try_from(self.seal.timeout_s).unwrap_or(u32::MAX);
        timeout_s.min(self.keys.0.lifetime())
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.0.encrypt(&self.seal.close(unix_s(), plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.seal.open(unix_s(), &self.keys.0.decrypt(cipher)?)
    }
}

impl StoresServerSessions for Cache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let now_s = unix_s();
        let sealed = self.seal.close(now_s, &value);
        if let Some(shared) = &self.shared {
            shared.put(&key, &sealed, now_s);
        }
        self.sessions.put(key, sealed)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let kept = || self.shared.as_ref()?.get(key);
        let sealed = self.sessions.get(key).or_else(kept)?;
        self.seal.open(unix_s(), &sealed)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = self.sessions.take(key);
        if let Some(shared) = &self.shared {
            sealed = sealed.or_else(|| shared.get(key));
            shared.remove(key);
        }
        self.seal.open(unix_s(), &sealed?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tickets")
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Cache")
    }
}

#[cfg(test)]
mod tests {
    //! What a seal lets through.

    use super::Seal;

    #[test]
    fn a_session_is_good_for_its_purpose_and_its_time() {
        let seal = Seal {
            purpose: [1; 32],
            timeout_s: 300,
        };
        let other = Seal {
            purpose: [2; 32],
            ..seal
        };
        let sealed = seal.close(1000, b"secret");
        let opened = Some(b"secret".to_vec());
        assert_eq!(seal.open(1000, &sealed), opened);
        assert_eq!(seal.open(1300, &sealed), opened);
        assert_eq!(seal.open(1301, &sealed), None);
        assert_eq!(seal.open(999, &sealed), None);
        assert_eq!(other.open(1000, &sealed), None);
        assert_eq!(seal.open(1000, &sealed[..39]), None);
        assert_eq!(seal.open(1000, b""), None);
    }
}
