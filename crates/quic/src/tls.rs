//! The handshake of TLS 1.3 inside of QUIC (RFC 9001), and what was negotiated in it.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::CertificateDer;
use rustls::quic::{KeyChange, Secrets, ServerConnection, Version};
use rustls::server::ResolvesServerCert;
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion, ServerConfig};
use turnpike_wire::varint;

/// What a server shows in handshakes.
#[derive(Clone)]
pub struct ServerConfiguration {
    config: Arc<ServerConfig>,
    quic: Arc<QuicServerConfig>,
    /// Connection IDs of a client that are kept.
    ids_max: u32,
    /// The alert that every client gets; `None`: they are served.
    alert: Option<u8>,
}

/// The transport parameter of that (RFC 9000 section 18.2).
const ACTIVE_IDS: u64 = 0x0e;

/// What a handshake has come to.
#[derive(Clone, Debug)]
pub struct Negotiated {
    pub version: ProtocolVersion,
    pub cipher: CipherSuite,
    /// The group of the key exchange; `None`: a session was resumed without one.
    pub group: Option<NamedGroup>,
    /// The protocol above (ALPN).
    pub protocol: Vec<u8>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The certificates that the client has shown, its own first.
    pub certificates: Vec<CertificateDer<'static>>,
}

impl ServerConfiguration {
    /// That of TLS 1.3 with `protocols` (ALPN), of a server that serves TCP by `config`. `None`:
    /// it has no TLS 1.3, or not the cipher suite of a first flight.
    #[must_use]
    pub fn new(config: &ServerConfig, protocols: Vec<Vec<u8>>) -> Option<Self> {
        let mut config = config.clone();
        config.alpn_protocols = protocols;
        // Records do not exist here, and early data has the limit of its streams (RFC 9001 section
        // 4.6.1).
        config.max_fragment_size = None;
        if config.max_early_data_size > 0 {
            config.max_early_data_size = u32::MAX;
        }
        let config = Arc::new(config);
        let quic = QuicServerConfig::try_from(Arc::clone(&config)).ok()?;
        // Finds out at the start what would fail for every client.
        ServerConnection::new(Arc::clone(&config), Version::V1, Vec::new()).ok()?;
        Some(Self {
            config,
            quic: Arc::new(quic),
            ids_max: u32::MAX,
            alert: None,
        })
    }

    /// The same, which keeps at most so many connection IDs of a client.
    pub(crate) fn keeping(&self, ids_max: u32) -> Self {
        Self {
            ids_max,
            ..self.clone()
        }
    }

    /// The same, which refuses every client by this alert.
    pub(crate) fn refusing(&self, alert: u8) -> Self {
        Self {
            alert: Some(alert),
            ..self.clone()
        }
    }

    /// The same, which shows other certificates.
    #[must_use]
    pub fn showing(&self, certificates: Arc<dyn ResolvesServerCert>) -> Option<Self> {
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = certificates;
        let config = Arc::new(config);
        let quic = QuicServerConfig::try_from(Arc::clone(&config)).ok()?;
        Some(Self {
            config,
            quic: Arc::new(quic),
            ids_max: self.ids_max,
            alert: self.alert,
        })
    }

    /// The keys of first flights, by the ID that the client has chosen.
    pub(crate) fn initial_keys(&self, destination: &ConnectionId) -> Option<Keys> {
        let version = turnpike_wire::quic::initial::VERSION;
        crypto::ServerConfig::initial_keys(&*self.quic, version, destination).ok()
    }
}

impl crypto::ServerConfig for ServerConfiguration {
    fn initial_keys(
        &self,
        version: u32,
        destination: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        crypto::ServerConfig::initial_keys(&*self.quic, version, destination)
    }

    fn retry_tag(&self, version: u32, destination: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.quic.retry_tag(version, destination, packet)
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut written = Vec::new();
        parameters.write(&mut written);
        limit(&mut written, ACTIVE_IDS, u64::from(self.ids_max));
        let connection = ServerConnection::new(Arc::clone(&self.config), Version::V1, written);
        Box::new(Session {
            configuration: self,
            connection: connection.ok(),
            next_secrets: None,
            is_known: false,
        })
    }
}

/// Lowers the number of a transport parameter among those that are written, if it is larger.
fn limit(written: &mut Vec<u8>, parameter: u64, most: u64) {
    let mut limited = Vec::with_capacity(written.len());
    let mut rest = written.as_slice();
    while let (Some(id), Some(length)) = (varint::read(&mut rest), varint::read(&mut rest)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((value, behind)) = rest.split_at_checked(length) else {
            return;
        };
        rest = behind;
        varint::write(&mut limited, id);
        let number = varint::read(&mut { value }).filter(|_| id == parameter);
        let lower = number.filter(|number| *number > most).map(|_| {
            let mut lower = Vec::new();
            varint::write(&mut lower, most);
            lower
        });
        let value = lower.as_deref().unwrap_or(value);
        varint::write(&mut limited, value.len() as u64);
        limited.extend_from_slice(value);
    }
    *written = limited;
}

/// A handshake, and the keys that follow from it.
struct Session {
    configuration: Arc<ServerConfiguration>,
    /// `None`: it could not begin, though one of its configuration could before.
    connection: Option<ServerConnection>,
    next_secrets: Option<Secrets>,
    /// Whether it was reported that the protocol is known.
    is_known: bool,
}

impl crypto::Session for Session {
    fn initial_keys(&self, destination: &ConnectionId, _side: Side) -> Keys {
        self.configuration
            .initial_keys(destination)
            .expect("the version was looked at when the connection was accepted")
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let connection = self.connection.as_ref()?;
        let group = connection.negotiated_key_exchange_group();
        let certificates = connection.peer_certificates().unwrap_or_default();
        Some(Box::new(Negotiated {
            version: connection.protocol_version()?,
            cipher: connection.negotiated_cipher_suite()?.suite(),
            group: group.map(|group| group.name()),
            protocol: connection.alpn_protocol().unwrap_or_default().to_vec(),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            certificates: certificates
                .iter()
                .map(|der| der.clone().into_owned())
                .collect(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.connection.as_ref()?.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.connection
            .as_ref()
            .is_none_or(|connection| connection.is_handshaking())
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Some(alert) = self.configuration.alert {
            let code = TransportErrorCode::crypto(alert);
            return Err(failure(code, "handshake rejected".to_owned()));
        }
        let Some(connection) = &mut self.connection else {
            return Err(failure(
                TransportErrorCode::INTERNAL_ERROR,
                "no session".to_owned(),
            ));
        };
        if let Err(error) = connection.read_hs(bytes) {
            return Err(match connection.alert() {
                Some(alert) => failure(TransportErrorCode::crypto(alert.into()), error.to_string()),
                None => failure(TransportErrorCode::PROTOCOL_VIOLATION, error.to_string()),
            });
        }
        let was_known = self.is_known;
        self.is_known |= connection.alpn_protocol().is_some() || !connection.is_handshaking();
        Ok(self.is_known && !was_known)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let connection = self.connection.as_ref();
        let Some(written) = connection.and_then(|all| all.quic_transport_parameters()) else {
            return Ok(None);
        };
        match TransportParameters::read(Side::Server, &mut Cursor::new(written)) {
            Ok(parameters) => Ok(Some(parameters)),
            Err(error) => Err(error.into()),
        }
    }

    fn write_handshake(&mut self, output: &mut Vec<u8>) -> Option<Keys> {
        let keys = match self.connection.as_mut()?.write_hs(output)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                keys
            }
        };
        Some(Keys {
            header: KeyPair {
                local: Box::new(keys.local.header),
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: Box::new(keys.local.packet),
                remote: Box::new(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    /// Only clients get such packets.
    fn is_valid_retry(&self, _destination: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    /// Keys for others are not made: nobody asks for any.
    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn failure(code: TransportErrorCode, reason: String) -> TransportError {
    TransportError {
        code,
        frame: None,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::limit;

    #[test]
    fn a_parameter_is_lowered_among_others() {
        let written = b"\x01\x01\x07\x0e\x02\x40\x50\x0c\0";
        for (most, expected) in [
            (2, b"\x01\x01\x07\x0e\x01\x02\x0c\0".as_slice()),
            (1000, written),
        ] {
            let mut parameters = written.to_vec();
            limit(&mut parameters, 0x0e, most);
            assert_eq!(parameters, expected, "{most}");
        }
    }
}
