//! The account with an authority: its key is made once and kept; the authority knows it by an
//! address.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, Key, NewAccount};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use turnpike_http::base64;
use turnpike_plan::background::run_blocking;

use super::client::{Client, Route};
use super::settings::{AccountKey, IssuerSettings};
use super::state::{ACCOUNT_KEY, ACCOUNT_URL, State};
use crate::common::pem_key;

/// Characters of a line of PEM (RFC 7468 section 2).
const PEM_LINE: usize = 64;

/// What is known of an account. It outlives a reload, also without `state_path`.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The key: PKCS#8, DER.
    key: Option<Vec<u8>>,
    /// The address.
    url: Option<String>,
}

impl Known {
    /// What the configuration and the files say. It blocks.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(super) fn read(settings: &IssuerSettings, state: Option<&State>) -> Result<Known, String> {
        let kept = match state {
            Some(state) => Known::kept(settings, state)?,
            None => Known::default(),
        };
        match &settings.account_key {
            AccountKey::Given(given) if kept.key.as_deref() != Some(&**given) => Ok(Known {
                key: Some(given.to_vec()),
                url: None,
            }),
            _ => Ok(kept),
        }
    }

    fn kept(settings: &IssuerSettings, state: &State) -> Result<Known, String> {
        let unreadable = |name, error| format!("cannot read {name}: {error}");
        let read = |name| state.read(name).map_err(|error| unreadable(name, error));
        let key = read(ACCOUNT_KEY)?.map(|text| {
            let key = pkcs8_of(text.as_bytes());
            key.map_err(|why| format!("cannot read {ACCOUNT_KEY}: {why}"))
        });
        let text = read(ACCOUNT_URL)?.unwrap_or_default();
        // The address belongs to an authority: another one does not know it.
        let (uri, url) = text.trim_end().split_once('\n').unwrap_or_default();
        Ok(Known {
            key: key.transpose()?,
            url: (uri == settings.uri && !url.is_empty()).then(|| url.to_owned()),
        })
    }

    /// Writes the files. It blocks.
    fn keep(&self, uri: &str, state: &State) -> Result<(), String> {
        let key = pem_of(self.key.as_deref().unwrap_or_default());
        let url = self.url.as_deref().unwrap_or_default();
        let written = state
            .write(ACCOUNT_KEY, &key)
            .and_then(|()| state.write(ACCOUNT_URL, &format!("{uri}\n{url}\n")));
        written.map_err(|error| {
            let path = state.path().display();
            format!("the account cannot be kept in \"{path}\": {error}")
        })
    }

    /// The authority does not know the address any more: the key will be registered again.
    pub(super) fn forget_url(&mut self) {
        self.url = None;
    }
}

/// Opens the account that is known, or makes one; returns what is known then.
///
/// # Errors
/// The authority's error, or that of the files.
pub(super) async fn open(
    settings: &IssuerSettings,
    state: Option<&State>,
    known: Known,
    route: &Route,
) -> Result<(Account, Known), String> {
    let builder = Account::builder_with_http(Box::new(Client::new(route.clone())));
    let uri = settings.uri.clone();
    if let (Some(key), Some(url)) = (&known.key, &known.url) {
        let key = PrivatePkcs8KeyDer::from(key.as_slice());
        let opened = builder.from_parts(url.clone(), key, uri).await;
        let account = opened.map_err(|error| error.to_string())?;
        return Ok((account, known));
    }
    let (account, credentials) = match known.key {
        Some(key) => with_key(settings, key, route).await?,
        None => {
            let contacts: Vec<&str> = settings.contacts.iter().map(String::as_str).collect();
            let wanted = NewAccount {
                contact: &contacts,
                terms_of_service_agreed: settings.accepts_terms,
                only_return_existing: false,
            };
            let external = settings.external_key.as_ref();
            let external = external
                .map(|external| ExternalAccountKey::new(external.id.clone(), &external.key));
            let made = builder.create(&wanted, uri, external.as_ref()).await;
            made.map_err(|error| told(settings, &error))?
        }
    };
    let made = Known {
        key: Some(credentials.private_key().secret_pkcs8_der().to_vec()),
        url: Some(account.id().to_owned()),
    };
    if let Some(state) = state {
        let (own, state, uri) = (made.clone(), state.clone(), settings.uri.clone());
        let kept = run_blocking(move || own.keep(&uri, &state));
        let kept = kept.map_err(|refusal| refusal.to_string())?;
        kept.await
            .unwrap_or_else(|| Err("keeping the account failed".to_owned()))?;
    }
    Ok((account, made))
}

/// Registers a key, or finds the account that has it.
async fn with_key(
    settings: &IssuerSettings,
    key: Vec<u8>,
    route: &Route,
) -> Result<(Account, AccountCredentials), String> {
    if !settings.accepts_terms {
        return Err("the account's terms of service are not accepted: write \
                    \"accept_terms_of_service\" in \"acme_issuer\""
            .to_owned());
    }
    let der = PrivatePkcs8KeyDer::from(key);
    let read = Key::from_pkcs8_der(der.clone_key()).map_err(|error| error.to_string())?;
    let builder = Account::builder_with_http(Box::new(Client::new(route.clone())));
    let pair = (read, PrivateKeyDer::Pkcs8(der));
    let made = builder.create_from_key(pair, settings.uri.clone()).await;
    let made = made.map_err(|error| told(settings, &error))?;
    if !settings.contacts.is_empty() {
        let contacts: Vec<&str> = settings.contacts.iter().map(String::as_str).collect();
        let updated = made.0.update_contacts(&contacts).await;
        updated.map_err(|error| error.to_string())?;
    }
    Ok(made)
}

fn told(settings: &IssuerSettings, error: &Error) -> String {
    match (settings.accepts_terms, error) {
        (false, Error::Api(_)) => format!(
            "{error}; the authority may want its terms of service accepted: write \
             \"accept_terms_of_service\" in \"acme_issuer\""
        ),
        _ => error.to_string(),
    }
}

/// The key of a PEM text as PKCS#8; it must be one of P-256.
///
/// # Errors
/// What is wrong with it.
pub(super) fn pkcs8_of(pem: &[u8]) -> Result<Vec<u8>, String> {
    let key = pem_key::read(pem)?;
    let pair =
        EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der());
    let pair = pair.map_err(|_| "it is not a private key of P-256 (prime256v1)".to_owned())?;
    let der = pair.to_pkcs8v1().map_err(|error| error.to_string())?;
    Ok(der.as_ref().to_vec())
}

fn pem_of(key: &[u8]) -> String {
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    let text = base64::encode(key);
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END PRIVATE KEY-----\n"
}

/// The bytes of a text in base64url, with padding or without (RFC 4648 section 5).
pub(super) fn base64url(text: &[u8]) -> Option<Vec<u8>> {
    let plain = text.iter().filter(|byte| **byte != b'=');
    let mut plain: Vec<u8> = plain
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    plain.resize(plain.len().next_multiple_of(4), b'=');
    base64::decode(&plain)
}
