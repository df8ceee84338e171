//! From Secrets to the files that a configuration names: certificates with their keys, lists of
//! authorities and of users.

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use turnpike_agent::{Ownership, write_file};
use turnpike_wire::certificate::Certificate;
use turnpike_wire::pem::{Piece, Pieces};

use crate::findings::Subject;
use crate::objects::Objects;

/// The organisation and the name in the certificate for servers without one, as in ingress-nginx.
const FAKE_ORGANISATION: &str = "Acme Co";
const FAKE_NAME: &str = "Kubernetes Ingress Controller Fake Certificate";

/// What the names of files of users end with.
const USERS: &str = "users";

/// The file of the certificate for servers without one.
const FAKE_FILE: &str = "default-fake-certificate.pem";

/// The files of a configuration, by their paths. Files of Secrets are only for their owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    pub(crate) contents: BTreeMap<PathBuf, Vec<u8>>,
}

/// The files of a Secret, as far as it has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretFiles {
    /// The certificate and its key in one file.
    pub(crate) pair: Option<PathBuf>,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) revoked: Option<PathBuf>,
}

impl Files {
    /// Adds a file, and returns its path.
    pub(crate) fn add(&mut self, name: &str, content: Vec<u8>) -> PathBuf {
        let path = self.folder.join(name);
        self.contents.insert(path.clone(), content);
        path
    }

    /// The certificate, key and authorities of a Secret.
    ///
    /// # Errors
    /// What is wrong with the Secret.
    pub(crate) fn of_secret(
        &mut self,
        objects: &Objects,
        namespace: &str,
        name: &str,
    ) -> Result<SecretFiles, String> {
        let key = (namespace.to_owned(), name.to_owned());
        let secret = objects.secrets.get(&key);
        let secret = secret.ok_or_else(|| format!("there is no Secret {namespace}/{name}"))?;
        let wrong = |field: &str, text: &str| format!("Secret {namespace}/{name}: {field} {text}");
        let stem = format!("{namespace}_{name}");
        let mut files = SecretFiles::default();
        let (certificate, private) = (entry(secret, "tls.crt"), entry(secret, "tls.key"));
        if let (Some(certificate), Some(private)) = (certificate, private) {
            if first_certificate(&certificate).is_none() {
                return Err(wrong("tls.crt", "has no certificate that can be read"));
            }
            if !has_key(&private) {
                return Err(wrong("tls.key", "has no key"));
            }
            let mut pair = certificate;
            pair.push(b'\n');
            pair.extend_from_slice(&private);
            files.pair = Some(self.add(&format!("{stem}.pem"), pair));
        }
        if let Some(authorities) = entry(secret, "ca.crt") {
            if first_certificate(&authorities).is_none() {
                return Err(wrong("ca.crt", "has no certificate that can be read"));
            }
            files.authorities = Some(self.add(&format!("{stem}.ca.pem"), authorities));
        }
        if let Some(revoked) = entry(secret, "ca.crl") {
            files.revoked = Some(self.add(&format!("{stem}.crl.pem"), revoked));
        }
        Ok(files)
    }

    /// The users of a Secret, as a file for `auth_basic_user_file`.
    ///
    /// # Errors
    /// What is wrong with the Secret.
    pub(crate) fn users(
        &mut self,
        objects: &Objects,
        (namespace, name): (&str, &str),
        is_map: bool,
    ) -> Result<PathBuf, String> {
        let key = (namespace.to_owned(), name.to_owned());
        let secret = objects.secrets.get(&key);
        let secret = secret.ok_or_else(|| format!("there is no Secret {namespace}/{name}"))?;
        let users = if is_map {
            let mut lines = Vec::new();
            for user in names(secret) {
                lines.extend_from_slice(user.as_bytes());
                lines.push(b':');
                lines.extend_from_slice(entry(secret, &user).unwrap_or_default().trim_ascii());
                lines.push(b'\n');
            }
            lines
        } else {
            entry(secret, "auth")
                .ok_or_else(|| format!("Secret {namespace}/{name} has no key auth"))?
        };
        Ok(self.add(&format!("{namespace}_{name}.{USERS}"), users))
    }

    /// The file of a key of session tickets, which is written in base64; none if it is no key.
    pub(crate) fn ticket_key(&mut self, text: &str) -> Option<String> {
        let quoted = Value::String(text.to_owned());
        let key: k8s_openapi::ByteString = serde_json::from_value(quoted).ok()?;
        let is_key = matches!(key.0.len(), 48 | 80);
        is_key.then(|| self.add("tickets.key", key.0).display().to_string())
    }

    /// The certificate for servers without one. It is made once for a folder.
    ///
    /// # Errors
    /// The library's words.
    pub(crate) fn fake(&mut self) -> Result<PathBuf, String> {
        let path = self.folder.join(FAKE_FILE);
        if let Ok(content) = std::fs::read(&path) {
            self.contents.insert(path.clone(), content);
            return Ok(path);
        }
        let wrong = |error: rcgen::Error| format!("no certificate can be made: {error}");
        let mut wanted =
            rcgen::CertificateParams::new(vec!["ingress.local".to_owned()]).map_err(wrong)?;
        let subject = &mut wanted.distinguished_name;
        subject.push(rcgen::DnType::OrganizationName, FAKE_ORGANISATION);
        subject.push(rcgen::DnType::CommonName, FAKE_NAME);
        let key = rcgen::KeyPair::generate().map_err(wrong)?;
        let certificate = wanted.self_signed(&key).map_err(wrong)?;
        let text = format!("{}{}", certificate.pem(), key.serialize_pem());
        Ok(self.add(FAKE_FILE, text.into_bytes()))
    }
}

/// Whether the certificate of a Secret is for a host: by its names, else by its common name.
pub(crate) fn is_for_host(objects: &Objects, namespace: &str, name: &str, host: &str) -> bool {
    let key = (namespace.to_owned(), name.to_owned());
    let secret = objects.secrets.get(&key);
    let Some(der) = secret
        .and_then(|secret| entry(secret, "tls.crt"))
        .and_then(|text| first_certificate(&text))
    else {
        return false;
    };
    let Some(certificate) = Certificate::read(&der) else {
        return false;
    };
    let mut names = certificate.extensions.dns_names().peekable();
    match names.peek() {
        Some(_) => names.any(|name| covers(name, host)),
        None => certificate
            .subject
            .common_name()
            .is_some_and(|name| covers(name, host)),
    }
}

/// The subject of a Secret's findings.
pub(crate) fn subject(namespace: &str, name: &str) -> Subject {
    Subject::new("Secret", namespace, name)
}

fn covers(name: &[u8], host: &str) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    match name.strip_prefix("*.") {
        _ if name == host => true,
        Some(rest) => host
            .split_once('.')
            .is_some_and(|(_, parent)| parent == rest),
        None => false,
    }
}

/// The first certificate of a PEM text, if it can be read.
fn first_certificate(text: &[u8]) -> Option<Vec<u8>> {
    let mut blocks = Pieces::new(text).filter_map(|piece| match piece {
        Ok(Piece::Block(block)) if block.label == b"CERTIFICATE" => Some(block.data),
        _ => None,
    });
    let first = blocks.next()?;
    Certificate::read(&first)?;
    Some(first)
}

/// Whether a PEM text has a certificate that can be read.
pub(crate) fn has_certificate(text: &[u8]) -> bool {
    first_certificate(text).is_some()
}

/// Whether a PEM text has a private key.
pub(crate) fn has_key(text: &[u8]) -> bool {
    Pieces::new(text).any(
        |piece| matches!(piece, Ok(Piece::Block(block)) if block.label.ends_with(b"PRIVATE KEY")),
    )
}

fn entry(secret: &Secret, name: &str) -> Option<Vec<u8>> {
    let plain = secret.string_data.as_ref().and_then(|data| data.get(name));
    let encoded = secret.data.as_ref().and_then(|data| data.get(name));
    let plain = plain.map(|text| text.clone().into_bytes());
    plain.or_else(|| encoded.map(|bytes| bytes.0.clone()))
}

fn names(secret: &Secret) -> Vec<String> {
    let plain = secret.string_data.iter().flat_map(|data| data.keys());
    let encoded = secret.data.iter().flat_map(|data| data.keys());
    let mut names: Vec<String> = plain.chain(encoded).cloned().collect();
    names.sort();
    names.dedup();
    names.retain(|name| !name.contains(':'));
    names
}

/// Writes files. The serving process reads those of users itself.
///
/// # Errors
/// The path and the system's words.
pub(crate) fn write_files(contents: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
    for (path, content) in contents {
        let is_of_users = path.extension().is_some_and(|extension| extension == USERS);
        let ownership = if is_of_users {
            Ownership::Server
        } else {
            Ownership::Own
        };
        write_file(path, content, ownership)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
