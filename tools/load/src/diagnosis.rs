//! Why connections failed: one more attempt after the run, for a sentence instead of a number. And
//! what came instead of HTTP.
//!
//! The run itself only counts kinds, since a text for each failure would cost what is measured.

use std::io;
use std::time::Duration;

use rustls::CertificateError;
use socket2::{Domain, Protocol, Socket, Type};

use crate::plan::Plan;
use crate::tally::{ErrorClass, Tally};
use crate::target::Endpoint;

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

fn reason(plan: &Plan, index: usize, endpoint: &Endpoint) -> Option<String> {
    let label = &endpoint.label;
    let socket = match connect(endpoint) {
        Ok(socket) => socket,
        Err(error) => return Some(format!("unable to connect to {label} {}", text_of(&error))),
    };
    let tls = plan.tls.as_ref().filter(|_| endpoint.tls)?;
    let mut session = tls.connect(&tls.thread(), index, false)?;
    match session.handshake(&socket) {
        Ok(_) => None,
        Err(error) => {
            let (text, hint) = (text_of(&error), hint(&error));
            Some(format!("TLS handshake with {label} failed: {text}{hint}"))
        }
    }
}

fn connect(endpoint: &Endpoint) -> io::Result<Socket> {
    let address = &endpoint.address;
    let protocol = endpoint.tcp.then_some(Protocol::TCP);
    let socket = Socket::new(
        Domain::from(i32::from(address.family())),
        Type::STREAM,
        protocol,
    )?;
    socket.set_read_timeout(Some(ATTEMPT_TIMEOUT))?;
    socket.set_write_timeout(Some(ATTEMPT_TIMEOUT))?;
    match endpoint.tcp {
        true => socket.connect_timeout(address, ATTEMPT_TIMEOUT)?,
        false => socket.connect(address)?,
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
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let source = error.get_ref();
    match source.and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(reason)) => match reason {
            UnknownIssuer => "; trust its certificate with --cacert, or any with --insecure",
            NotValidForName | NotValidForNameContext { .. } => {
                "; name the server with --sni, or accept any certificate with --insecure"
            }
            // The rest comes from the library that checks, as `CaUsedAsEndEntity`.
            Expired | ExpiredContext { .. } | CertificateError::Other(_) => {
                "; accept any certificate with --insecure"
            }
            _ => "",
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            "; the server does not speak TLS here: try http://"
        }
        _ => "",
    }
}
