//! `proxy_protocol`: each connection to a server begins with who the client is, by the PROXY
//! protocol. It is then one client's, and is not kept for another.

use std::net::{IpAddr, SocketAddr};

use turnpike_conf::{Arguments, Complaint, ConfError, Repeat, Row, Value, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_plan::builder::Builder;
use turnpike_plan::template::Template;
use turnpike_plan::tls::{ClientFailure, HasTlsSession, TlsSession};
use turnpike_plan::variables::Subject;
use turnpike_wire::certificate::Certificate;
use turnpike_wire::proxy_protocol::{Kind, Ssl, Tlv, Transport, V2_BYTES_MAX, write_v1, write_v2};

/// The longest identity of a connection in bytes, by section 2.2.5 of the specification.
const UNIQUE_ID_BYTES_MAX: usize = 128;

/// A session without a certificate of the client has no result of its check; OpenSSL's number for
/// that, which nginx sends.
const VERIFY_UNSPECIFIED: u32 = 1;

/// The number of OpenSSL for a revoked certificate, which nginx sends for every OCSP response that
/// is not good.
const VERIFY_REVOKED: u32 = 23;

/// The row of the additions; the family says where they may stand.
pub(crate) const ADDITION_ROW: Row = Row {
    name: "proxy_protocol_v2_tlv",
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    value: Value::Checked(check_kind),
    variables: Some(1),
    syntax: "type value",
    summary: "Adds a value to the headers of `proxy_protocol v2`. The type is `unique_id`, \
        `netns`, `authority`, `alpn` or a number from `0xe0` to `0xff`. An empty value is not \
        sent. If the client uses TLS, the header has its server name as `authority`, the protocol \
        that was agreed on as `alpn`, and the TLS version, the cipher suite and the name in its \
        certificate. It has at most 4096 bytes.",
    ..Row::PLAIN
};

/// The header that connections to servers begin with.
#[derive(Default)]
pub(crate) struct ProxyHeader {
    version: Version,
    additions: Vec<(Kind, Template)>,
}

/// The version of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    /// No header.
    #[default]
    No,
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

impl ProxyHeader {
    /// Reads the directives in force.
    ///
    /// # Errors
    /// nginx's words, of a type that was given twice and of a value that is no template.
    pub(crate) fn read<S: Subject>(
        view: View<'_>,
        builder: &mut Builder<'_, S>,
    ) -> Result<Self, ConfError> {
        let version = match view.choice("proxy_protocol") {
            "on" => Version::V1,
            "v2" => Version::V2,
            _ => Version::No,
        };
        let mut additions: Vec<(Kind, Template)> = Vec::new();
        for entry in view.nearest_all(ADDITION_ROW.name) {
            let (name, value) = (entry.argument(0), entry.argument(1));
            let Some(kind) = Kind::to_send(name) else {
                continue; // refused by the row's check
            };
            if additions.iter().any(|(known, _)| *known == kind) {
                let message = format!("duplicate TLV type \"{name}\"");
                return Err(view.error(entry.span, message));
            }
            additions.push((kind, builder.template(view, entry, &bytes_of(value))?));
        }
        Ok(Self { version, additions })
    }

    /// Whether connections begin without one.
    pub(crate) fn is_none(&self) -> bool {
        self.version == Version::No
    }

    /// What the connection for this exchange begins with: the client as `$remote_addr` has it, and
    /// the address that it has connected to.
    pub(crate) fn of(&self, exchange: &Exchange) -> Vec<u8> {
        if self.is_none() {
            return Vec::new();
        }
        let ends = exchange
            .requester
            .peer()
            .inet()
            .zip(exchange.local_address());
        self.header(exchange, ends, Transport::Stream)
    }

    /// The header of a connection that this server opens for itself.
    pub(crate) fn of_nobody(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.version {
            Version::No => {}
            Version::V1 => write_v1(&mut out, None),
            Version::V2 => write_bare(&mut out, None, Transport::Stream),
        }
        out
    }

    /// The header for these ends; without them it says that it speaks for nobody. Version 1 knows
    /// no other transport than TCP.
    pub(crate) fn header<S: Subject + HasTlsSession>(
        &self,
        subject: &S,
        ends: Option<(SocketAddr, SocketAddr)>,
        transport: Transport,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        match self.version {
            Version::No => {}
            Version::V1 => write_v1(&mut out, ends.map(of_one_family)),
            Version::V2 => self.write_v2(&mut out, subject, ends, transport),
        }
        out
    }

    fn write_v2<S: Subject + HasTlsSession>(
        &self,
        out: &mut Vec<u8>,
        subject: &S,
        ends: Option<(SocketAddr, SocketAddr)>,
        transport: Transport,
    ) {
        let session = subject.tls_session();
        let own = self.values(subject);
        let mut tlvs: Vec<Tlv<'_>> = Vec::new();
        for (kind, value) in session.map(named).into_iter().flatten() {
            let is_replaced = self.additions.iter().any(|(own, _)| *own == kind);
            if !value.is_empty() && !is_replaced {
                tlvs.push(kind.with(value));
            }
        }
        tlvs.extend(own.iter().map(|(kind, value)| kind.with(value)));
        let inner = session.map(summary).unwrap_or_default();
        let inner: Vec<Tlv<'_>> = inner.iter().map(|(kind, value)| kind.with(value)).collect();
        let ssl = session.map(|session| Ssl {
            client: certificate_bits(session),
            verify: verify_result(session),
            tlvs: &inner,
        });
        let written = write_v2(out, ends, transport, &tlvs, ssl);
        // nginx and HAProxy read no longer one.
        if written.is_err() || out.len() > V2_BYTES_MAX {
            let what = format_args!(
                "PROXY protocol header is longer than {V2_BYTES_MAX} bytes, it is sent without \
                 additions"
            );
            subject.log(Level::Error, what);
            out.clear();
            write_bare(out, ends, transport);
        }
    }

    /// The values of the additions that are configured, without those that are empty.
    fn values<S: Subject>(&self, subject: &S) -> Vec<(Kind, Vec<u8>)> {
        let mut values = Vec::new();
        for (kind, template) in &self.additions {
            let value = template.value(subject);
            if *kind == Kind::UNIQUE_ID && value.len() > UNIQUE_ID_BYTES_MAX {
                let what = format_args!(
                    "the unique ID of a PROXY protocol header is longer than \
                     {UNIQUE_ID_BYTES_MAX} bytes, it is not sent"
                );
                subject.log(Level::Error, what);
            } else if !value.is_empty() {
                values.push((*kind, value));
            }
        }
        values
    }
}

/// Checks the type of an addition.
fn check_kind(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        [name, ..] if Kind::to_send(name).is_none() => {
            Err(format!("invalid TLV type \"{name}\"").into())
        }
        _ => Ok(()),
    }
}

fn write_bare(out: &mut Vec<u8>, ends: Option<(SocketAddr, SocketAddr)>, transport: Transport) {
    let written = write_v2(out, ends, transport, &[], None);
    debug_assert!(written.is_ok(), "nothing is added that could be too long");
}

/// What a session with the client says beside its summary, in nginx's order.
fn named(session: &TlsSession) -> [(Kind, &[u8]); 2] {
    [
        (Kind::AUTHORITY, &session.server_name),
        (Kind::ALPN, &session.protocol),
    ]
}

/// The version, the client's name in its certificate, and the cipher suite.
fn summary(session: &TlsSession) -> Vec<(Kind, &[u8])> {
    let client = session.client.as_ref();
    let certificate = client.and_then(|client| Certificate::read(&client.der));
    let name = certificate.and_then(|certificate| certificate.subject.common_name());
    [
        (Kind::SSL_VERSION, Some(session.version.as_bytes())),
        (Kind::SSL_CN, name),
        (Kind::SSL_CIPHER, Some(session.cipher.as_bytes())),
    ]
    .into_iter()
    .filter_map(|(kind, value)| Some((kind, value?)))
    .collect()
}

/// Whether there is a session, and whether the client has shown a certificate in it or before.
fn certificate_bits(session: &TlsSession) -> u8 {
    match (&session.client, session.is_resumed) {
        (None, _) => Ssl::CLIENT_TLS,
        (Some(_), true) => Ssl::CLIENT_TLS | Ssl::CERTIFICATE_IN_SESSION,
        (Some(_), false) => {
            Ssl::CLIENT_TLS | Ssl::CERTIFICATE_IN_SESSION | Ssl::CERTIFICATE_ON_CONNECTION
        }
    }
}

fn verify_result(session: &TlsSession) -> u32 {
    match session.client.as_ref().map(|client| client.failure) {
        None => VERIFY_UNSPECIFIED,
        Some(None) => 0,
        Some(Some(ClientFailure::Chain(failure))) => u32::from(failure.number()),
        Some(Some(ClientFailure::Status(_))) => VERIFY_REVOKED,
    }
}

/// A line has one family for both addresses.
fn of_one_family((source, destination): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    if source.is_ipv4() == destination.is_ipv4() {
        (source, destination)
    } else {
        (mapped(source), mapped(destination))
    }
}
