//! The webhook's certificate. The controllers of a cluster share one in a Secret, and the API
//! server trusts what the ValidatingWebhookConfiguration names.
//!
//! Each certificate has an authority of its own, whose key is dropped when it has signed: nothing
//! that a thief could take signs another one. The one that writes status makes a certificate and
//! renews it. The API server is told of a new authority, beside the last one, before any pod uses
//! it. Of several that do so at once, the version of the Secret lets one win; the others take its.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use turnpike_wire::certificate::Certificate;
use turnpike_wire::pem::{Piece, Pieces};

use crate::certificates::has_key;

/// How long a certificate is good.
const LIFE: Duration = Duration::from_hours(90 * 24);

/// How long before its end a certificate is renewed: a month in which all may be repaired.
const RENEWAL: Duration = Duration::from_hours(30 * 24);

/// How long before its making a certificate is good: clocks differ.
const CLOCK_DIFFERENCE: Duration = Duration::from_hours(24);

/// The keys of the Secret.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";

/// A certificate with its key, and the authorities to trust: its own, and the one before. PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) authorities: Vec<u8>,
}

/// The Secret, and the object that tells the API server whom to trust.
pub(crate) struct Keeper {
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    namespace: String,
    /// The name of both, and of the Service.
    name: String,
}

impl Keeper {
    pub(crate) fn new(client: &Client, namespace: &str, name: &str) -> Keeper {
        Keeper {
            secrets: Api::namespaced(client.clone(), namespace),
            configurations: Api::all(client.clone()),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The pair of the Secret, if it is good. The leader makes and renews it.
    ///
    /// # Errors
    /// What the API server or the library says.
    pub(crate) async fn pair(&self, is_leader: bool) -> Result<Option<Pair>, String> {
        let failed =
            |error: kube::Error| format!("Secret {}/{}: {error}", self.namespace, self.name);
        let secret = self.secrets.get_opt(&self.name).await.map_err(failed)?;
        let now_s = unix_s(SystemTime::now());
        let names = self.host_names();
        let last = secret.as_ref().map(stored);
        let good = last.clone().filter(|pair| is_good(pair, &names, now_s));
        if !is_leader {
            return Ok(good);
        }
        let is_lasting = |pair: &Pair| is_good(pair, &names, now_s + RENEWAL.as_secs());
        if let Some(pair) = good.as_ref().filter(|pair| is_lasting(pair)) {
            self.tell(&pair.authorities).await?;
            return Ok(good);
        }
        let before = good.map(|pair| pair.authorities).unwrap_or_default();
        let pair = issue(&names, &before)?;
        self.tell(&pair.authorities).await?;
        self.store(secret, &pair).await.map_err(failed)?;
        Ok(Some(pair))
    }

    /// The names by which the API server calls the Service.
    fn host_names(&self) -> Vec<String> {
        let short = format!("{}.{}.svc", self.name, self.namespace);
        vec![format!("{short}.cluster.local"), short]
    }

    async fn store(&self, secret: Option<Secret>, pair: &Pair) -> kube::Result<()> {
        let parameters = PostParams::default();
        let entries = [
            (CERTIFICATE, &pair.certificate),
            (KEY, &pair.key),
            (AUTHORITIES, &pair.authorities),
        ];
        let entries = entries.map(|(name, bytes)| (name.to_owned(), ByteString(bytes.clone())));
        let is_there = secret.is_some();
        let mut secret = secret.unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        });
        secret.data = Some(entries.into());
        if is_there {
            self.secrets
                .replace(&self.name, &parameters, &secret)
                .await?;
        } else {
            self.secrets.create(&parameters, &secret).await?;
        }
        Ok(())
    }

    /// Tells the API server whom to trust, unless it knows.
    async fn tell(&self, authorities: &[u8]) -> Result<(), String> {
        let failed =
            |error: kube::Error| format!("ValidatingWebhookConfiguration {}: {error}", self.name);
        let mut configuration = self.configurations.get(&self.name).await.map_err(failed)?;
        let mut is_changed = false;
        for webhook in configuration.webhooks.iter_mut().flatten() {
            let known = &mut webhook.client_config.ca_bundle;
            if known.as_ref().is_none_or(|known| known.0 != authorities) {
                *known = Some(ByteString(authorities.to_vec()));
                is_changed = true;
            }
        }
        if is_changed {
            let parameters = PostParams::default();
            let replaced = self
                .configurations
                .replace(&self.name, &parameters, &configuration);
            replaced.await.map_err(failed)?;
        }
        Ok(())
    }
}

/// Makes a certificate for names, signed by an authority whose key is dropped. The newest of the
/// authorities before stays trusted.
///
/// # Errors
/// The library's words.
pub(crate) fn issue(names: &[String], before: &[u8]) -> Result<Pair, String> {
    let wrong = |error: rcgen::Error| format!("no certificate can be made: {error}");
    let now = Duration::from_secs(unix_s(SystemTime::now()));
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let dated = |mut wanted: CertificateParams, name: &str| {
        wanted.not_before = epoch + now.saturating_sub(CLOCK_DIFFERENCE);
        wanted.not_after = epoch + now + LIFE;
        wanted.distinguished_name = rcgen::DistinguishedName::new();
        wanted.distinguished_name.push(DnType::CommonName, name);
        wanted
    };
    let authority = CertificateParams::new(Vec::new()).map_err(wrong)?;
    let mut authority = dated(authority, "turnpike-ingress admission authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let authority_key = KeyPair::generate().map_err(wrong)?;
    let signed = authority.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(authority, authority_key);
    let leaf = CertificateParams::new(names.to_vec()).map_err(wrong)?;
    let leaf = dated(leaf, "turnpike-ingress admission");
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = leaf.signed_by(&key, &issuer).map_err(wrong)?;
    let mut authorities = signed.pem().into_bytes();
    authorities.extend_from_slice(first_block(before));
    Ok(Pair {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        authorities,
    })
}

/// Whether a pair can be used at a time for all names.
pub(crate) fn is_good(pair: &Pair, names: &[String], unix_s: u64) -> bool {
    let mut blocks = Pieces::new(&pair.certificate).filter_map(|piece| match piece {
        Ok(Piece::Block(block)) => Some(block.data),
        _ => None,
    });
    let first = blocks.next().unwrap_or_default();
    let Some(certificate) = Certificate::read(&first) else {
        return false;
    };
    let is_named = |name: &String| {
        let mut own = certificate.extensions.dns_names();
        own.any(|own| own == name.as_bytes())
    };
    let valid = certificate.not_before_s..=certificate.not_after_s;
    has_key(&pair.key)
        && !pair.authorities.is_empty()
        && valid.contains(&unix_s)
        && names.iter().all(is_named)
}

fn stored(secret: &Secret) -> Pair {
    let entry = |name: &str| {
        let data = secret.data.as_ref().and_then(|data| data.get(name));
        data.map(|bytes| bytes.0.clone()).unwrap_or_default()
    };
    Pair {
        certificate: entry(CERTIFICATE),
        key: entry(KEY),
        authorities: entry(AUTHORITIES),
    }
}

/// The first block of a PEM text.
fn first_block(text: &[u8]) -> &[u8] {
    const END: &[u8] = b"-----END CERTIFICATE-----\n";
    let end = text.windows(END.len()).position(|window| window == END);
    end.map_or(b"", |end| &text[..end + END.len()])
}

pub(crate) fn unix_s(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
