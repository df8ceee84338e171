//! When the authority wants a certificate renewed (RFC 9773): it may suggest a time before the
//! usual one, as when it has to revoke certificates.

use std::time::Duration;

use instant_acme::{Account, CertificateIdentifier, Error, RenewalInfo};
use rustls::pki_types::Der;
use turnpike_lane::sys::process::unix_s;
use turnpike_wire::certificate as x509;

use super::certificate::Issued;
use super::schedule::random_below;

/// The shortest and the longest pause between two questions, in seconds (RFC 9773 section 4.3.2).
const ASK_PAUSE_S_MIN: u64 = 60;
const ASK_PAUSE_S_MAX: u64 = 24 * 60 * 60;

/// The pause where the authority does not say one, or does not answer, in seconds.
const ASK_PAUSE_S: u64 = 6 * 60 * 60;

/// What an authority suggests. Times are in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// When the certificate is to be renewed; `None`: the authority suggests nothing.
    pub(super) renew_at_s: Option<u64>,
    /// When to ask again; `None`: the authority has no such service.
    pub(super) ask_at_s: Option<u64>,
}

impl Suggestion {
    /// Nothing is suggested, and the authority is asked again.
    pub(super) fn later() -> Suggestion {
        Suggestion {
            renew_at_s: None,
            ask_at_s: Some(unix_s() + ASK_PAUSE_S),
        }
    }

    /// The same, but the authority is not asked again before that time, in Unix seconds.
    pub(super) fn not_before(self, at_s: u64) -> Suggestion {
        Suggestion {
            ask_at_s: self.ask_at_s.map(|ask_at_s| ask_at_s.max(at_s)),
            ..self
        }
    }
}

/// The name of a certificate for its authority; `None`: it does not say by which key it was issued.
pub(super) fn identifier(issued: &Issued) -> Option<CertificateIdentifier<'static>> {
    let end = issued.certified.cert.first()?;
    let read = x509::Certificate::read(end)?;
    let key = read.extensions.authority_key?;
    let named = CertificateIdentifier::new(Der::from_slice(key), Der::from_slice(read.serial));
    Some(named.into_owned())
}

/// Asks the authority.
pub(super) async fn ask(account: &Account, issued: &Issued) -> Suggestion {
    let Some(identifier) = identifier(issued) else {
        return Suggestion {
            renew_at_s: None,
            ask_at_s: None,
        };
    };
    match account.renewal_info(&identifier).await {
        Ok((info, pause)) => suggestion(&info, pause),
        Err(Error::Unsupported(_)) => Suggestion {
            renew_at_s: None,
            ask_at_s: None,
        },
        Err(_) => Suggestion::later(),
    }
}

/// A random time in the window, so that not all certificates are renewed at once.
fn suggestion(info: &RenewalInfo, pause: Duration) -> Suggestion {
    let window = &info.suggested_window;
    let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
    let start_s = seconds(window.start.unix_timestamp());
    let end_s = seconds(window.end.unix_timestamp());
    let renew_at_s = start_s + random_below(end_s.saturating_sub(start_s));
    let pause_s = pause.as_secs().clamp(ASK_PAUSE_S_MIN, ASK_PAUSE_S_MAX);
    Suggestion {
        renew_at_s: Some(renew_at_s),
        ask_at_s: Some(unix_s() + pause_s),
    }
}
