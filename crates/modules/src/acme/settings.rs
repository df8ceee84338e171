//! The lines of an `acme_issuer` block, and what they mean.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use turnpike_conf::{Complaint, Directive, View, value};
use turnpike_http::plan::Builder;

use super::account;

/// Where Debian and its like have the certificates that everybody trusts.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// How the control over a name is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A file over HTTP on port 80 (RFC 8555 section 8.3).
    Http,
    /// A certificate in the handshake on port 443 (RFC 8737).
    Tls,
    /// A record of DNS, which this program sets (RFC 8555 section 8.4).
    Dns(PathBuf),
}

/// The name in the protocol.
impl fmt::Display for Challenge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Challenge::Http => "http-01",
            Challenge::Tls => "tls-alpn-01",
            Challenge::Dns(_) => "dns-01",
        })
    }
}

/// Where the account's key is from.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum AccountKey {
    /// Made once and kept with the state.
    Generated,
    /// From a file: PKCS#8, a key of P-256.
    Given(Arc<[u8]>),
}

/// A key that binds the account to one with the authority (RFC 8555 section 7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ExternalKey {
    pub(super) id: String,
    pub(super) key: Vec<u8>,
}

/// What an issuer's block says.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct IssuerSettings {
    pub(super) name: String,
    /// The address of the directory.
    pub(super) uri: String,
    pub(super) account_key: AccountKey,
    pub(super) challenge: Challenge,
    /// Addresses with their schemes.
    pub(super) contacts: Vec<String>,
    pub(super) external_key: Option<ExternalKey>,
    pub(super) profile: Option<String>,
    /// PEM: the certificates that the authority's server is verified with; empty without `verify`.
    pub(super) trusted: Arc<[u8]>,
    pub(super) verify: bool,
    /// `None`: nothing is kept on a disk.
    pub(super) state_path: Option<PathBuf>,
    pub(super) accepts_terms: bool,
}

/// The lines as they were written.
#[derive(Default)]
struct Written<'a> {
    uri: Option<&'a str>,
    account_key: Option<&'a str>,
    challenge: Option<Challenge>,
    contacts: Vec<String>,
    external_key: Option<ExternalKey>,
    profile: Option<&'a str>,
    trusted: Option<&'a str>,
    verify: Option<bool>,
    state_path: Option<&'a str>,
    accepts_terms: bool,
}

impl IssuerSettings {
    /// Reads a block.
    ///
    /// # Errors
    /// What is wrong with the block as a whole; errors of single lines are reported.
    pub(super) fn read(
        block: View<'_>,
        builder: &mut Builder<'_>,
    ) -> Result<IssuerSettings, Complaint> {
        let mut written = Written::default();
        for line in block.data() {
            if let Err(message) = written.line(line, builder) {
                builder.report(block.error(line.span, message));
            }
        }
        let name = block.argument(0).to_owned();
        let uri = written.uri.unwrap_or_default();
        let parsed: Result<http::Uri, _> = uri.parse();
        let scheme = parsed.as_ref().ok().and_then(http::Uri::scheme_str);
        match scheme {
            _ if uri.is_empty() => return Err("\"acme_issuer\" requires \"uri\"".into()),
            Some("https" | "http") => {}
            _ => {
                return Err(format!("invalid \"uri\" value \"{uri}\": write https://...").into());
            }
        }
        let account_key = match written.account_key {
            None | Some("ecdsa" | "ecdsa:256") => AccountKey::Generated,
            Some(kind) if kind.starts_with("rsa") || kind.starts_with("ecdsa:") => {
                return Err(format!(
                    "\"account_key {kind}\" is not supported: use \"ecdsa:256\" or a file with \
                     such a key"
                )
                .into());
            }
            Some(file) => AccountKey::Given(account_key(file, builder)?),
        };
        if written.external_key.is_some() && account_key != AccountKey::Generated {
            return Err(
                "\"external_account_key\" needs an account key that is made here: take \
                        the file out of \"account_key\""
                    .to_owned()
                    .into(),
            );
        }
        let verify = written.verify.unwrap_or(true) && scheme == Some("https");
        let trusted = if verify {
            trusted(written.trusted, builder)?
        } else {
            Arc::default()
        };
        let state_path = match written.state_path {
            Some("off") => None,
            Some(path) => Some(builder.environment.prefix().join(path)),
            None => Some(builder.environment.default_place(&format!("acme_{name}"))),
        };
        Ok(IssuerSettings {
            name,
            uri: uri.to_owned(),
            account_key,
            challenge: written.challenge.unwrap_or(Challenge::Http),
            contacts: written.contacts,
            external_key: written.external_key,
            profile: written.profile.map(str::to_owned),
            trusted,
            verify,
            state_path,
            accepts_terms: written.accepts_terms,
        })
    }
}

impl IssuerSettings {
    /// Whether the address of the directory is an https one.
    pub(super) fn is_secure(&self) -> bool {
        let uri: Result<http::Uri, _> = self.uri.parse();
        uri.is_ok_and(|uri| uri.scheme_str() == Some("https"))
    }
}

impl<'a> Written<'a> {
    fn line(&mut self, line: &'a Directive, builder: &mut Builder<'_>) -> Result<(), Complaint> {
        let name = line.name.text.as_str();
        let words: Vec<&str> = line.arguments.iter().map(|word| &*word.text).collect();
        let allowed = match name {
            "accept_terms_of_service" => 0..=0,
            "external_account_key" => 2..=2,
            "contact" => 1..=usize::MAX,
            "challenge" => 1..=2,
            "uri"
            | "account_key"
            | "profile"
            | "ssl_trusted_certificate"
            | "ssl_verify"
            | "state_path" => 1..=1,
            "preferred_chain" => {
                return Err(
                    "\"preferred_chain\" is not supported yet: the authority's own choice \
                            of the chain is used"
                        .to_owned()
                        .into(),
                );
            }
            _ => return Err(format!("unknown directive \"{name}\" in \"acme_issuer\"").into()),
        };
        if !allowed.contains(&words.len()) {
            return Err(format!(
                "invalid number of arguments in \"{name}\" directive of \"acme_issuer\""
            )
            .into());
        }
        let text = words.first().copied().unwrap_or_default();
        let is_new = match name {
            "uri" => self.uri.replace(text).is_none(),
            "account_key" => self.account_key.replace(text).is_none(),
            "profile" => self.profile.replace(text).is_none(),
            "ssl_trusted_certificate" => self.trusted.replace(text).is_none(),
            "state_path" => self.state_path.replace(text).is_none(),
            "challenge" => self
                .challenge
                .replace(challenge(&words, builder)?)
                .is_none(),
            "ssl_verify" => {
                let flag = value::flag(text);
                let flag = flag.ok_or_else(|| format!("invalid value \"{text}\" in \"{name}\""))?;
                self.verify.replace(flag).is_none()
            }
            "accept_terms_of_service" => !std::mem::replace(&mut self.accepts_terms, true),
            "external_account_key" => {
                let key = external_key(text, words[1], builder)?;
                self.external_key.replace(key).is_none()
            }
            _ => {
                self.contacts.extend(words.iter().map(|word| contact(word)));
                true
            }
        };
        if is_new {
            Ok(())
        } else {
            Err(format!("\"{name}\" directive is duplicate").into())
        }
    }
}

fn challenge(words: &[&str], builder: &mut Builder<'_>) -> Result<Challenge, Complaint> {
    match words {
        ["http" | "http-01"] => Ok(Challenge::Http),
        ["tls-alpn" | "tls-alpn-01"] => Ok(Challenge::Tls),
        ["dns" | "dns-01", _] if builder.environment.is_sandboxed() => Err(
            "\"challenge dns-01\" runs a program, which a sandbox forbids: use another challenge \
             or say \"sandbox off\""
                .to_owned()
                .into(),
        ),
        ["dns" | "dns-01", program] => {
            let program = builder.environment.prefix().join(program);
            Ok(Challenge::Dns(program))
        }
        ["dns" | "dns-01"] => Err(
            "\"challenge dns-01\" needs the program that sets records: write \
             challenge dns-01 PROGRAM"
                .to_owned()
                .into(),
        ),
        _ => Err(format!(
            "\"challenge {}\" is unknown: use http-01, tls-alpn-01 or dns-01 PROGRAM",
            words.join(" ")
        )
        .into()),
    }
}

/// An address for the authority; one without a scheme is of mail.
fn contact(word: &str) -> String {
    if word.contains(':') {
        word.to_owned()
    } else {
        format!("mailto:{word}")
    }
}

fn read_file(file: &str, builder: &mut Builder<'_>) -> Result<Arc<[u8]>, Complaint> {
    let path = builder.environment.conf_folder().join(file);
    let read = builder.environment.file(&path);
    read.map_err(|error| format!("failed to open \"{}\": {error}", path.display()).into())
}

fn account_key(file: &str, builder: &mut Builder<'_>) -> Result<Arc<[u8]>, Complaint> {
    let pem = read_file(file, builder)?;
    let key = account::pkcs8_of(&pem);
    let key = key.map_err(|why| format!("cannot load \"account_key {file}\": {why}"))?;
    Ok(key.into())
}

fn external_key(id: &str, file: &str, builder: &mut Builder<'_>) -> Result<ExternalKey, Complaint> {
    let text = match file.strip_prefix("data:") {
        Some(data) => data.as_bytes().into(),
        None => read_file(file, builder)?,
    };
    let key = account::base64url(text.trim_ascii());
    let key = key.ok_or("the key of \"external_account_key\" is not in base64url")?;
    Ok(ExternalKey {
        id: id.to_owned(),
        key,
    })
}

fn trusted(file: Option<&str>, builder: &mut Builder<'_>) -> Result<Arc<[u8]>, Complaint> {
    read_file(file.unwrap_or(SYSTEM_CERTIFICATES), builder).map_err(|error| match file {
        Some(_) => error,
        None => format!("{error}; name the certificates with \"ssl_trusted_certificate\"").into(),
    })
}
