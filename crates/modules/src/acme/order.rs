//! One order, from the identifiers to the certificate (RFC 8555 section 7.4).

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName};
use turnpike_plan::background::run_blocking;

use super::certificate::{Certificate, Issued};
use super::challenges::Published;
use super::key_type::KeyType;
use super::renewal;
use super::settings::{Challenge, IssuerSettings};

/// The longest wait for an authority to check the challenges, and again for it to issue: longer
/// than any takes that is well.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The longest time of a whole order: whatever hangs, the next certificate has its turn.
const ORDER_MAX: Duration = Duration::from_secs(10 * 60);

/// The first pause between two questions how an order is; each next one is twice as long.
const POLL_PAUSE: Duration = Duration::from_millis(250);

/// Why there is no certificate.
pub(super) enum Failure {
    /// The authority does not know the account.
    UnknownAccount,
    /// Any other reason, for the log.
    Other(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Api(problem)
                if problem.r#type.as_deref()
                    == Some("urn:ietf:params:acme:error:accountDoesNotExist") =>
            {
                Failure::UnknownAccount
            }
            _ => Failure::Other(error.to_string()),
        }
    }
}

/// Has a certificate issued.
///
/// # Errors
/// See [`Failure`].
pub(super) async fn obtain(
    settings: &IssuerSettings,
    account: &Account,
    certificate: &Certificate,
) -> Result<Issued, Failure> {
    let obtained = tokio::time::timeout(ORDER_MAX, steps(settings, account, certificate)).await;
    let late = || {
        let limit_s = ORDER_MAX.as_secs();
        Failure::Other(format!("the order took longer than {limit_s} s"))
    };
    obtained.unwrap_or_else(|_| Err(late()))
}

async fn steps(
    settings: &IssuerSettings,
    account: &Account,
    certificate: &Certificate,
) -> Result<Issued, Failure> {
    let mut order = begin(settings, account, certificate).await?;
    // They can be answered until the order is ready.
    let published = publish(settings, &mut order).await?;
    let polling = RetryPolicy::new()
        .initial_delay(POLL_PAUSE)
        .timeout(WAIT_MAX);
    if !matches!(
        order.state().status,
        OrderStatus::Ready | OrderStatus::Valid | OrderStatus::Processing
    ) {
        let polled = order.poll_ready(&polling).await;
        match polled {
            Ok(OrderStatus::Invalid) | Err(Error::Api(_)) => {
                return Err(refused(&mut order, polled.err()).await);
            }
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(published);
    let (request, key_pem) = signing_request(certificate).await.map_err(Failure::Other)?;
    order.finalize_csr(&request).await?;
    let chain_pem = order.poll_certificate(&polling).await?;
    Issued::read(chain_pem, key_pem).map_err(Failure::Other)
}

/// Begins the order. Where the authority suggests times of renewals, it is said which certificate
/// is replaced (RFC 9773 section 5): such an order may pass limits.
async fn begin(
    settings: &IssuerSettings,
    account: &Account,
    certificate: &Certificate,
) -> Result<Order, Error> {
    let wanted = || {
        let wanted = NewOrder::new(&certificate.identifiers);
        match &settings.profile {
            Some(profile) => wanted.profile(profile),
            None => wanted,
        }
    };
    let suggests = certificate.schedule().ask_at_s().is_some();
    let replaced = certificate.issued().filter(|_| suggests);
    if let Some(replaced) = replaced.and_then(|issued| renewal::identifier(&issued)) {
        // An authority may refuse that part; the order is wanted all the same.
        if let Ok(order) = account.new_order(&wanted().replaces(replaced)).await {
            return Ok(order);
        }
    }
    account.new_order(&wanted()).await
}

/// Publishes the challenge of each identifier whose control is not shown yet, and has the authority
/// look at it.
async fn publish(settings: &IssuerSettings, order: &mut Order) -> Result<Vec<Published>, Failure> {
    let mut published = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let kind = match &settings.challenge {
            Challenge::Http => ChallengeType::Http01,
            Challenge::Tls => ChallengeType::TlsAlpn01,
            Challenge::Dns(_) => ChallengeType::Dns01,
        };
        let name = authorization.identifier().to_string();
        let Some(mut challenge) = authorization.challenge(kind) else {
            return Err(Failure::Other(format!(
                "the authority offers no challenge {} for {name}",
                settings.challenge
            )));
        };
        if !is_token(&challenge.token) {
            return Err(Failure::Other(format!(
                "the authority's token for {name} is not base64url"
            )));
        }
        let answer = challenge.key_authorization();
        published.push(match &settings.challenge {
            Challenge::Http => Published::http(&challenge.token, answer.as_str()),
            Challenge::Tls => {
                let shown = Published::tls(plain_name(&name), answer.digest().as_ref());
                shown.map_err(Failure::Other)?
            }
            Challenge::Dns(program) => {
                let (program, value) = (program.clone(), answer.dns_value());
                let set = Published::dns(program, plain_name(&name), value).await;
                set.map_err(Failure::Other)?
            }
        });
        challenge.set_ready().await?;
    }
    Ok(published)
}

/// Whether a token has the letters that it must have (RFC 8555 section 8): what is published by its
/// name can be no other path.
pub(super) fn is_token(token: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !token.is_empty() && token.bytes().all(is_digit)
}

/// A name without the star of a wildcard.
fn plain_name(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name)
}

/// Why an order failed: what the authority says about its challenges, or else about the order.
async fn refused(order: &mut Order, error: Option<Error>) -> Failure {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        let problems = authorization.challenges.iter();
        let problems = problems.filter_map(|challenge| challenge.error.as_ref());
        reasons.extend(problems.map(|problem| format!("{name}: {problem}")));
    }
    Failure::Other(match (reasons.is_empty(), error) {
        (false, _) => reasons.join("; "),
        (true, Some(error)) => error.to_string(),
        (true, None) => "the authority refused the order".to_owned(),
    })
}

/// A new key, and the request for its certificate (RFC 2986).
async fn signing_request(certificate: &Certificate) -> Result<(Vec<u8>, String), String> {
    let names = certificate
        .identifiers
        .iter()
        .map(|identifier| match identifier {
            Identifier::Ip(address) => address.to_string(),
            Identifier::Dns(name) => name.clone(),
            _ => String::new(),
        });
    let names: Vec<String> = names.collect();
    let key_type = certificate.key_type;
    // A key of RSA takes seconds, in which other services go on.
    let made = run_blocking(move || make_request(names, key_type));
    let made = made.map_err(|refusal| refusal.to_string())?;
    made.await
        .unwrap_or_else(|| Err("making a key failed".to_owned()))
}

fn make_request(names: Vec<String>, key_type: KeyType) -> Result<(Vec<u8>, String), String> {
    let failed = |error: rcgen::Error| error.to_string();
    let mut wanted = CertificateParams::new(names).map_err(failed)?;
    wanted.distinguished_name = DistinguishedName::new();
    let key = key_type.generate().map_err(failed)?;
    let request = wanted.serialize_request(&key).map_err(failed)?;
    Ok((request.der().to_vec(), key.serialize_pem()))
}
