//! `listen ... ssl` of `http` and `stream`: certificates, protocols and sessions of TLS with
//! clients.
//!
//! What is configured becomes one `ServerConfig` of rustls for each server that has a certificate;
//! the handshake itself is a state of its connection in `http`, and a step of its session in
//! `stream`. What cannot be done is refused by
//! name, with the place of its directive; what only cannot be done as well is a warning.

mod certificate_compression;
mod chain;
mod checks;
mod ciphers;
mod client_status;
mod client_variables;
mod clients;
mod commands;
mod files;
mod identity;
mod key_log;
mod ocsp;
mod offered;
mod peers;
mod plan;
mod private_key;
mod rows;
mod sessions;
mod shared_sessions;
mod shared_ticket_keys;
mod source;
mod stapling;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod ticket_keys;
mod variables;
mod versioned;

use std::sync::LazyLock;

use rustls::sign::CertifiedKey;
use turnpike_conf::{ConfError, Context, Entry, ReferenceText, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder as HttpBuilder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::{CertificatesByName, HTTP2};

use crate::common::certificate_expiry;
use crate::common::issued_certificate::IssuedSource;

pub(crate) use identity::has_variables;
pub(crate) use peers::PeerDirectives;

/// All variables of the family.
static VARIABLES: LazyLock<Vec<VariableRow>> = LazyLock::new(|| {
    let mut rows = variables::of_http().to_vec();
    rows.extend(variables::of_sessions::<Exchange>());
    rows.extend(client_variables::rows::<Exchange>());
    rows.extend(client_variables::legacy::<Exchange>());
    rows
});

/// The error of a TLS listener whose server names no certificate.
const NO_CERTIFICATE: &str =
    "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";

/// The same error where an issuer would give one.
const NO_NAME: &str = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive, \
    and none is ordered: the server has no public name";

/// What is spoken over TLS where HTTP/2 is not, the best first.
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];

/// The certificate that a directive names, with the key that another one names; `passwords` names
/// the file of what opens the key.
///
/// # Errors
/// What is missing, unreadable, or does not belong together, in nginx's words.
pub(crate) fn certified_key<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    [certificate, key]: [&Entry; 2],
    passwords: Option<&Entry>,
) -> Result<CertifiedKey, ConfError> {
    let passwords = match passwords {
        Some(entry) => files::passwords(view, builder, entry)?,
        None => Vec::new(),
    };
    identity::certified(view, builder, [certificate, key], &passwords)
}

/// The certificate that directives name by variables, with the key that another one names. `cache`
/// is the directive that says what is kept.
///
/// # Errors
/// What the directives say that cannot be, in nginx's words.
pub(crate) fn certificates_by_name<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    pair: [&Entry; 2],
    passwords: Option<&Entry>,
    cache: Option<&Entry>,
) -> Result<CertificatesByName, ConfError> {
    let passwords = match passwords {
        Some(entry) => files::passwords(view, builder, entry)?,
        None => Vec::new(),
    };
    identity::by_name(view, builder, &[pair], passwords, cache)
}

/// The error where a listener needs a certificate and the server names none. What is wrong with one
/// that it names is reported where it is read.
fn no_certificate(view: View<'_>) -> Option<&'static str> {
    match view.nearest("ssl_certificate") {
        Some(_) => None,
        None => Some(NO_CERTIFICATE),
    }
}

pub(crate) const FAMILY: Family = Family {
    name: "ssl",
    rows: rows::HTTP,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || &VARIABLES,
    metrics: certificate_expiry::METRICS,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut HttpBuilder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if view.context() != Context::Server {
        return Ok(());
    }
    draft.verify_client = clients::mode(view);
    draft.no_certificate = match builder.store::<IssuedSource>() {
        IssuedSource {
            source: Some(_), ..
        } => None,
        IssuedSource {
            lacks_name: true, ..
        } => Some(NO_NAME),
        _ => no_certificate(view),
    };
    let http2 = view.flag("http2").then_some(HTTP2);
    let protocols = http2.into_iter().chain(HTTP1);
    let protocols = protocols.map(<[u8]>::to_vec).collect();
    draft.tls = plan::server(view, builder, protocols)?;
    Ok(())
}
