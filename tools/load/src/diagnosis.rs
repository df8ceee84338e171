//! Why connections failed: one more attempt after the run, for a sentence instead of a number. And
//! what came instead of HTTP. A run that no server can answer is found here too, while it goes on.
//!
//! The run itself only counts kinds, since a text for each failure would cost what is measured.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use rustls::CertificateError;
use socket2::{Domain, Socket, Type};
use turnpike_wire::h2;

use crate::multiplexed::Protocol;
use crate::plan::Plan;
use crate::tally::{ErrorClass, ErrorKind, Errors, Tally};
use crate::target::Endpoint;
use crate::tls::ALPN_HTTP2;

/// How long the attempt may take at each step.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Endpoints that are tried: the first ones stand for all.
const ENDPOINTS_MAX: usize = 4;

/// How the beginning of data shows another protocol, and what to do about it.
const PROTOCOLS: &[(&[u8], &str)] = &[
    (b"\x15\x03", " (TLS: use an https URL)"),
    (b"\x16\x03", " (TLS: use an https URL)"),
    (b"\x00\x00", " (perhaps HTTP/2: use --h2)"),
    (b"SSH-", " (SSH)"),
];

/// A line for each endpoint that cannot be connected to, where connections failed, and one for data
/// that is no HTTP.
pub(crate) fn lines(plan: &Plan, tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    if tally.errors.of_class(ErrorClass::Connect) > 0 {
        let endpoints = plan.targets.endpoints.iter().enumerate();
        let endpoints = endpoints.take(ENDPOINTS_MAX);
        lines.extend(endpoints.filter_map(|(index, endpoint)| reason(plan, index, endpoint)));
    }
    lines.extend(tally.bad_bytes.as_deref().map(bad_bytes));
    lines
}

/// What came instead of HTTP.
fn bad_bytes(sample: &[u8]) -> String {
    let protocols = PROTOCOLS.iter();
    let mut hints = protocols.filter(|(beginning, _)| sample.starts_with(beginning));
    let hint = hints.next().map_or("", |(_, hint)| hint);
    let sample = sample.escape_ascii();
    format!("the server sent data that is not HTTP, beginning with \"{sample}\"{hint}")
}

/// Why none of the run's requests can be answered, where that is for certain: every server has a
/// certificate that is not trusted, or does not speak HTTP/2. Asked only where requests have failed
/// and none was answered.
pub(crate) fn hopeless(plan: &Plan, errors: &Errors, answered: u64) -> Option<String> {
    if answered > 0 || !may_be_hopeless(plan, errors) {
        return None;
    }
    let endpoints = plan.targets.endpoints.iter().enumerate();
    let reasons = endpoints.take(ENDPOINTS_MAX);
    let reasons = reasons.map(|(index, endpoint)| refusal(plan, index, endpoint));
    let reasons: Option<Vec<String>> = reasons.collect();
    reasons.map(|reasons| reasons.join("\n"))
}

/// Whether errors are of the kinds that such servers cause.
pub(crate) fn may_be_hopeless(plan: &Plan, errors: &Errors) -> bool {
    let no_tls = errors.of(ErrorKind::Tls) > 0;
    let no_frames = plan.protocol == Protocol::Http2 && errors.of(ErrorKind::BadBytes) > 0;
    // Where HTTP/3 is missing, nobody answers at all: the errors say so.
    plan.protocol != Protocol::Http3 && (no_tls || no_frames)
}

/// Why a server that is there cannot answer.
fn refusal(plan: &Plan, index: usize, endpoint: &Endpoint) -> Option<String> {
    let socket = connect(endpoint).ok()?;
    let label = &endpoint.label;
    let Some(tls) = plan.tls.as_ref().filter(|_| endpoint.tls) else {
        let answers = plan.protocol == Protocol::Http2 && answers_http1(&socket).unwrap_or(false);
        return answers.then(|| format!("{label} answers in HTTP/1.1{NO_HTTP2}"));
    };
    let mut session = tls.connect(&tls.thread(), index, false)?;
    match session.handshake(&socket) {
        Ok(_) => {
            let agrees = session.protocol() == Some(ALPN_HTTP2.as_bytes());
            let refuses = plan.protocol == Protocol::Http2 && !agrees;
            refuses.then(|| format!("{label} does not offer HTTP/2 (ALPN){NO_HTTP2}"))
        }
        Err(error) if certificate_error(&error).is_some() => Some(handshake_text(label, &error)),
        Err(_) => None,
    }
}

/// What to do about a server without HTTP/2.
const NO_HTTP2: &str = ": leave --h2 out, or switch HTTP/2 on there (in nginx: http2 on;)";

/// Empty settings, which follow the preface of a connection of HTTP/2 by prior knowledge (RFC 9113
/// section 3.4).
const EMPTY_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

fn answers_http1(mut socket: &Socket) -> io::Result<bool> {
    const BEGIN: &[u8] = b"HTTP/1.";
    socket.write_all(&[h2::PREFACE, EMPTY_SETTINGS].concat())?;
    let mut answer = [0; BEGIN.len()];
    socket.read_exact(&mut answer)?;
    Ok(answer == BEGIN)
}

fn handshake_text(label: &str, error: &io::Error) -> String {
    let text = certificate_error(error).map(certificate_text);
    let text = text.unwrap_or_else(|| text_of(error));
    format!("TLS handshake with {label} failed: {text}{}", hint(error))
}

fn certificate_error(error: &io::Error) -> Option<&CertificateError> {
    let source = error.get_ref();
    match source.and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(reason)) => Some(reason),
        _ => None,
    }
}

/// What is wrong with a certificate, in words.
fn certificate_text(error: &CertificateError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    let text = match error {
        UnknownIssuer => "its certificate is from an issuer that is not trusted here",
        Expired | ExpiredContext { .. } => "its certificate has expired",
        NotValidYet | NotValidYetContext { .. } => "its certificate is not valid yet",
        NotValidForName | NotValidForNameContext { .. } => "its certificate is for another name",
        // The library that checks has no number for it.
        CertificateError::Other(other) if other.to_string().contains(SELF_SIGNED) => {
            "its certificate is self-signed and not trusted here"
        }
        other => return format!("its certificate is not accepted ({other})"),
    };
    text.to_owned()
}

/// What the library calls a certificate that its own authority serves with.
const SELF_SIGNED: &str = "CaUsedAsEndEntity";

/// Clients of HTTP/3 come by UDP: an attempt by TCP shows whether the certificate, which is mostly
/// the same, is at fault, and nothing else.
fn reason(plan: &Plan, index: usize, endpoint: &Endpoint) -> Option<String> {
    let label = &endpoint.label;
    let is_http3 = plan.protocol == Protocol::Http3;
    let socket = match connect(endpoint) {
        Ok(socket) => socket,
        Err(_) if is_http3 => return None,
        Err(error) => return Some(format!("unable to connect to {label} {}", text_of(&error))),
    };
    let tls = plan.tls.as_ref().filter(|_| endpoint.tls)?;
    let mut session = tls.connect(&tls.thread(), index, false)?;
    match session.handshake(&socket) {
        Ok(_) => None,
        Err(error) if is_http3 && certificate_error(&error).is_none() => None,
        Err(error) => Some(handshake_text(label, &error)),
    }
}

fn connect(endpoint: &Endpoint) -> io::Result<Socket> {
    let address = &endpoint.address;
    let protocol = endpoint.tcp.then_some(socket2::Protocol::TCP);
    let socket = Socket::new(
        Domain::from(i32::from(address.family())),
        Type::STREAM,
        protocol,
    )?;
    socket.set_read_timeout(Some(ATTEMPT_TIMEOUT))?;
    socket.set_write_timeout(Some(ATTEMPT_TIMEOUT))?;
    if endpoint.tcp {
        socket.connect_timeout(address, ATTEMPT_TIMEOUT)?;
    } else {
        socket.connect(address)?;
    }
    Ok(socket)
}

/// The system's words without the number behind them.
fn text_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// What a person can do about a handshake that failed.
fn hint(error: &io::Error) -> &'static str {
    use CertificateError::{NotValidForName, NotValidForNameContext, UnknownIssuer};
    let source = error.get_ref();
    match source.and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(reason)) => match reason {
            UnknownIssuer | CertificateError::Other(_) => {
                "; trust it with --cacert FILE, or accept any with -k (--insecure)"
            }
            NotValidForName | NotValidForNameContext { .. } => {
                "; name the server with --sni NAME, or accept any with -k (--insecure)"
            }
            _ => "; accept any with -k (--insecure)",
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            "; the server does not speak TLS here: try http://"
        }
        _ => "",
    }
}
