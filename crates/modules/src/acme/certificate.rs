//! A certificate of a server: what was asked for, and what was issued.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::Identifier;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use turnpike_lane::trust;
use turnpike_plan::tls::{CertificateNames, CertificateSource, Loading};
use turnpike_wire::certificate as x509;
use turnpike_wire::hex;

use super::key_type::KeyType;
use super::schedule::Schedule;
use crate::common::certificate_expiry::{Expiring, Validity};
use crate::common::pem_key;

/// Bytes of a digest that tell the files of certificates apart.
const DIGEST_BYTES: usize = 8;

/// A certificate that is ordered.
pub(super) struct Certificate {
    pub(super) issuer: String,
    pub(super) identifiers: Vec<Identifier>,
    pub(super) key_type: KeyType,
    /// The certificate in force.
    issued: ArcSwapOption<Issued>,
    schedule: Mutex<Schedule>,
}

/// What was issued.
pub(super) struct Issued {
    pub(super) chain_pem: String,
    pub(super) key_pem: String,
    pub(super) certified: Arc<CertifiedKey>,
    /// The validity, in Unix seconds.
    pub(super) not_before_s: u64,
    pub(super) not_after_s: u64,
}

impl Issued {
    /// Reads a chain and its key.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn read(chain_pem: String, key_pem: String) -> Result<Issued, String> {
        let certified = certified(chain_pem.as_bytes(), key_pem.as_bytes())?;
        let end = certified.cert.first();
        let read = end.and_then(|end| x509::Certificate::read(end));
        let read = read.ok_or("the certificate cannot be read")?;
        let (not_before_s, not_after_s) = (read.not_before_s, read.not_after_s);
        Ok(Issued {
            chain_pem,
            key_pem,
            certified: Arc::new(certified),
            not_before_s,
            not_after_s,
        })
    }
}

impl Certificate {
    pub(super) fn new(
        issuer: &str,
        identifiers: Vec<Identifier>,
        key_type: KeyType,
    ) -> Certificate {
        Certificate {
            issuer: issuer.to_owned(),
            identifiers,
            key_type,
            issued: ArcSwapOption::empty(),
            schedule: Mutex::default(),
        }
    }

    /// The certificate in force; `None`: there is none yet.
    pub(super) fn issued(&self) -> Option<Arc<Issued>> {
        self.issued.load_full()
    }

    /// Puts a certificate in force.
    pub(super) fn put_in_force(&self, issued: Issued) {
        self.schedule()
            .issued(issued.not_before_s, issued.not_after_s);
        self.issued.store(Some(Arc::new(issued)));
    }

    /// When it is ordered next.
    pub(super) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of its file: its first identifier and what sets it apart from others with that.
    pub(super) fn file_name(&self) -> String {
        let text = self.to_string();
        let first = text.split(' ').next().unwrap_or_default();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
        let first = first.replace(|letter| !plain(letter), "_");
        let all = format!("{text} {:?}", self.key_type);
        let sum = digest(&SHA256, all.as_bytes());
        format!("{first}-{}.pem", hex::text(&sum.as_ref()[..DIGEST_BYTES]))
    }
}

impl Expiring for Certificate {
    fn name(&self) -> String {
        format!("acme {}: {self}", self.issuer)
    }

    fn names(&self) -> String {
        self.to_string()
    }

    fn validity(&self) -> Option<Validity> {
        let issued = self.issued()?;
        Some(Validity {
            not_before_s: issued.not_before_s,
            not_after_s: issued.not_after_s,
        })
    }

    fn is_renewed(&self) -> bool {
        true
    }
}

/// The identifiers.
impl fmt::Display for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, identifier) in self.identifiers.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            match identifier {
                Identifier::Ip(address) => write!(out, "{space}{address}")?,
                Identifier::Dns(name) => write!(out, "{space}{name}")?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn certified(chain_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, String> {
    let chain = trust::chain(chain_pem).map_err(|error| error.to_string())?;
    let key = pem_key::read(key_pem)?;
    let signer = any_supported_type(&key).map_err(|error| error.to_string())?;
    let certified = CertifiedKey::new(chain, signer);
    let matches = certified.keys_match();
    matches.map_err(|error| error.to_string())?;
    Ok(certified)
}

/// Where handshakes get the certificate: it is in memory, so nothing is read for it.
pub(super) struct Source(pub(super) Arc<Certificate>);

impl CertificateSource for Source {
    fn load(&self, _: Vec<CertificateNames>) -> Loading {
        Loading::Done(match self.0.issued() {
            Some(issued) => Ok(vec![Arc::clone(&issued.certified)]),
            None => Err(format!(
                "no certificate for {} has been issued by acme issuer \"{}\" yet",
                self.0, self.0.issuer
            )),
        })
    }
}
