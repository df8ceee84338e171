//! `$ssl_...` and `$https`; those of clients' certificates are beside.

use turnpike_http::exchange::Exchange;
use turnpike_plan::tls::{
    FINGERPRINT_VARIABLE, HasTlsSession, TlsSession, cipher_name, group_name, signature_name,
};
use turnpike_plan::variables::{Getter, VariableRow};

pub(super) const fn row<S>(
    name: &'static str,
    get: Getter<S>,
    summary: &'static str,
) -> VariableRow<S> {
    VariableRow {
        name,
        get,
        set: None,
        summary,
    }
}

/// The meaning of the fingerprint's variable.
const JA4_SUMMARY: &str = "The JA4 fingerprint of the client: which versions, cipher suites, \
    extensions and signature algorithms its hello offers, such as \
    `t13d1516h2_8daaf6152771_e5627efa2ab1`. Clients can imitate one another. nginx has no such \
    variable. It is computed only if the configuration names it or uses `ssi`, so it has no value \
    on a connection that was opened before that configuration was loaded.";

/// No value yet, with TLS or without.
pub(super) const fn absent<S>(name: &'static str, summary: &'static str) -> VariableRow<S> {
    row(name, |_, _| false, summary)
}

const UNKNOWN: &str = "No value: the TLS library does not report it.";
const NO_ECH: &str = "No value: Encrypted Client Hello is not supported yet.";

/// The variables that HTTP alone has.
pub(super) fn of_http() -> [VariableRow<Exchange>; 2] {
    [
        row("https", https, "`on` with TLS, otherwise empty."),
        row(
            "ssl_early_data",
            |exchange, out| {
                let is_early = exchange.requester.is_early();
                if is_early {
                    out.push(b'1');
                }
                is_early
            },
            "`1` if the request came as early data and was started before the handshake was \
             complete, otherwise no value. `proxy_set_header Early-Data $ssl_early_data` lets an \
             upstream server answer with 425 (RFC 8470).",
        ),
    ]
}

/// The variables of whatever may have come by TLS, but those of clients' certificates.
pub(super) fn of_sessions<S: HasTlsSession>() -> [VariableRow<S>; 14] {
    [
        row(
            "ssl_alpn_protocol",
            |subject, out| append(subject, out, |session| &session.protocol),
            "The protocol that was negotiated by ALPN, if any.",
        ),
        row(
            "ssl_cipher",
            |subject, out| append(subject, out, |session| session.cipher.as_bytes()),
            "The cipher suite, by OpenSSL's name.",
        ),
        row(
            "ssl_ciphers",
            |subject, out| {
                let session = subject.tls_session();
                session.is_some_and(|session| names(&session.offered_ciphers, cipher_name, out))
            },
            "The cipher suites that the client offers, separated by colons. Unknown ones are \
             hexadecimal.",
        ),
        row(
            "ssl_curve",
            |subject, out| append(subject, out, |session| session.group.as_bytes()),
            "The group of the key exchange. There is no value if a session was resumed without \
             one.",
        ),
        row(
            "ssl_curves",
            |subject, out| {
                let session = subject.tls_session();
                session.is_some_and(|session| names(&session.offered_groups, group_name, out))
            },
            "The groups that the client offers, separated by colons. Unknown ones are hexadecimal.",
        ),
        absent("ssl_ech_outer_server_name", NO_ECH),
        absent("ssl_ech_status", NO_ECH),
        row(FINGERPRINT_VARIABLE, fingerprint, JA4_SUMMARY),
        row(
            "ssl_protocol",
            |subject, out| append(subject, out, |session| session.version.as_bytes()),
            "The version of TLS, such as `TLSv1.3`.",
        ),
        row(
            "ssl_server_name",
            |subject, out| append(subject, out, |session| &session.server_name),
            "The name that the client sent (SNI), in lower case, if any.",
        ),
        absent("ssl_session_id", UNKNOWN),
        row(
            "ssl_session_reused",
            |subject, out| {
                append(
                    subject,
                    out,
                    |session| if session.is_resumed { b"r" } else { b"." },
                )
            },
            "`r` if an earlier session was resumed, otherwise `.`.",
        ),
        absent("ssl_sigalg", UNKNOWN),
        row(
            "ssl_sigalgs",
            offered_signatures,
            "The signature algorithms that the client offers, separated by colons. Unknown ones \
             are hexadecimal.",
        ),
    ]
}

fn https(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    if exchange.requester.tls().is_some() {
        out.extend_from_slice(b"on");
    }
    true
}

fn offered_signatures<S: HasTlsSession>(subject: &S, out: &mut Vec<u8>) -> bool {
    let session = subject.tls_session();
    session.is_some_and(|session| names(&session.offered_signatures, signature_name, out))
}

fn fingerprint<S: HasTlsSession>(subject: &S, out: &mut Vec<u8>) -> bool {
    let session = subject.tls_session();
    let fingerprint = session.and_then(|session| session.fingerprint.as_ref());
    out.extend_from_slice(fingerprint.map_or(&[], |text| text.as_slice()));
    fingerprint.is_some()
}

/// What a session knows; no value where that is empty.
fn append<S: HasTlsSession>(subject: &S, out: &mut Vec<u8>, of: fn(&TlsSession) -> &[u8]) -> bool {
    let text = subject.tls_session().map(of).unwrap_or_default();
    out.extend_from_slice(text);
    !text.is_empty()
}

fn names(numbers: &[u16], name: fn(u16) -> Option<&'static str>, out: &mut Vec<u8>) -> bool {
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            out.push(b':');
        }
        match name(*number) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => out.extend_from_slice(format!("{number:#06x}").as_bytes()),
        }
    }
    !numbers.is_empty()
}
