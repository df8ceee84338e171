//! The challenges of all orders of this process, which lanes answer.
//!
//! Challenges belong to the process, not to a plan: an order goes on during a reload.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use turnpike_plan::background::run_blocking;
use turnpike_plan::tls::ShownChallenge;

use super::hook::{self, Verb};

/// The path below which tokens are asked for (RFC 8555 section 8.3).
pub(super) const HTTP_PATH: &[u8] = b"/.well-known/acme-challenge/";

/// The key authorizations by their tokens. An order publishes one for each of its identifiers, and
/// an issuer runs one order at a time.
static TOKENS: LazyLock<RwLock<Tokens>> = LazyLock::new(RwLock::default);

type Tokens = HashMap<Vec<u8>, Vec<u8>>;

/// A challenge that can be answered while this lives.
pub(super) enum Published {
    Http(Vec<u8>),
    /// Kept for its end alone.
    Tls {
        _shown: ShownChallenge,
    },
    Dns(Arc<Record>),
}

/// A record of DNS, and the program that set it.
pub(super) struct Record {
    program: PathBuf,
    name: String,
    value: String,
}

impl Published {
    /// Has requests for a token answered with its key authorization.
    pub(super) fn http(token: &str, authorization: &str) -> Published {
        let token = token.as_bytes().to_vec();
        let mut tokens = TOKENS.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(token.clone(), authorization.as_bytes().to_vec());
        Published::Http(token)
    }

    /// Has handshakes for a name by that protocol shown a certificate with the digest of the key
    /// authorization (RFC 8737 section 3).
    ///
    /// # Errors
    /// What the libraries say.
    pub(super) fn tls(name: &str, digest: &[u8]) -> Result<Published, String> {
        let failed = |error: rcgen::Error| error.to_string();
        let mut wanted = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        wanted.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = wanted.self_signed(&key).map_err(failed)?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der);
        let signer = signer.map_err(|error| error.to_string())?;
        let certified = CertifiedKey::new(vec![certificate.der().clone()], signer);
        let shown = ShownChallenge::new(asked_name(name).as_bytes(), certified);
        let shown = shown.map_err(|error| error.to_string())?;
        Ok(Published::Tls { _shown: shown })
    }

    /// Has the program set a record of DNS (RFC 8555 section 8.4), and waits for its end.
    ///
    /// # Errors
    /// The program has failed.
    pub(super) async fn dns(
        program: PathBuf,
        name: &str,
        value: String,
    ) -> Result<Published, String> {
        let name = format!("_acme-challenge.{name}");
        let record = Arc::new(Record {
            program,
            name,
            value,
        });
        let own = Arc::clone(&record);
        // From here on the record is removed, however setting it ends.
        let published = Published::Dns(record);
        let run = run_blocking(move || hook::run(&own.program, Verb::Add, &own.name, &own.value));
        let run = run.map_err(|refusal| refusal.to_string())?.await;
        run.unwrap_or_else(|| Err("running the program failed".to_owned()))?;
        Ok(published)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        match self {
            Published::Http(token) => {
                let mut tokens = TOKENS.write().unwrap_or_else(PoisonError::into_inner);
                tokens.remove(token);
            }
            Published::Tls { .. } => {}
            Published::Dns(record) => {
                let own = Arc::clone(record);
                // A record that is left does no harm: its value is of no use any more.
                let removal = move || {
                    let _ = hook::run(&own.program, Verb::Remove, &own.name, &own.value);
                };
                let _ = run_blocking(removal).map(drop);
            }
        }
    }
}

/// The answer to a request for this path; `None`: it asks for no known token.
pub(super) fn http_answer(path: &[u8]) -> Option<Vec<u8>> {
    let token = path.strip_prefix(HTTP_PATH)?;
    let tokens = TOKENS.read().unwrap_or_else(PoisonError::into_inner);
    tokens.get(token).cloned()
}

/// The name that an authority asks for in a handshake: an address is turned into a name of its
/// reverse zone (RFC 8738 section 6).
pub(super) fn asked_name(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(address)) => {
            let digits = address.octets().into_iter().rev();
            let digits = digits.map(|byte| format!("{:x}.{:x}.", byte & 0xf, byte >> 4));
            digits.collect::<String>() + "ip6.arpa"
        }
        Err(_) => name.to_ascii_lowercase(),
    }
}
