//! A client of HTTP/3 without sockets: datagrams come in and go out. It knows the body of each
//! answer that it asks for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ReadError, StreamEvent, StreamId, TransportConfig,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use turnpike_wire::field_section::{Indexing, ResponseReader};
use turnpike_wire::h3::{self, ConnectionRules, ResponseEvent, ResponseStream};

/// Bytes of the seed of an endpoint.
pub(crate) const SEED_BYTES: usize = 32;

/// The protocol (RFC 9114 section 3.1).
const HTTP3: &[u8] = b"h3";

/// A request that is under way.
struct Exchange {
    id: StreamId,
    /// What is to be sent, and how much of it the windows have let through.
    output: Vec<u8>,
    sent: usize,
    response: ResponseStream,
    expected: Vec<u8>,
    body: Vec<u8>,
    is_whole: bool,
}

/// A client.
pub(crate) struct QuicClient {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: Connection,
    remote: SocketAddr,
    wire: h3::Connection,
    reader: ResponseReader,
    /// What is still to be asked for, and the bodies of the answers.
    wanted: Vec<(usize, Vec<u8>)>,
    exchanges: Vec<Exchange>,
    /// Whether the server knows that the handshake is complete: from then on a client may get
    /// another address (RFC 9000 section 9).
    pub(crate) is_confirmed: bool,
    pub(crate) problem: Option<String>,
}

/// Takes any certificate: what is simulated is the network.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

fn configuration() -> Option<ClientConfig> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]);
    let mut tls = builder
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    tls.alpn_protocols = vec![HTTP3.to_vec()];
    let crypto = QuicClientConfig::try_from(Arc::new(tls)).ok()?;
    let mut transport = TransportConfig::default();
    // It never gives up: the run has an end.
    transport.max_idle_timeout(None);
    let mut configuration = ClientConfig::new(Arc::new(crypto));
    configuration.transport_config(Arc::new(transport));
    Some(configuration)
}

impl QuicClient {
    /// A client that connects to this address, and asks for these paths, which have these bodies.
    pub(crate) fn new(
        seed: [u8; SEED_BYTES],
        remote: SocketAddr,
        now: Instant,
        wanted: Vec<(usize, Vec<u8>)>,
    ) -> Option<QuicClient> {
        let rules = Arc::new(EndpointConfig::default());
        let mut endpoint = Endpoint::new(rules, None, false, Some(seed));
        let begun = endpoint.connect(now, configuration()?, remote, "simulated");
        let (handle, quic) = begun.ok()?;
        Some(QuicClient {
            endpoint,
            handle,
            quic,
            remote,
            wire: h3::Connection::client(ConnectionRules::default()),
            reader: ResponseReader::default(),
            wanted,
            exchanges: Vec::new(),
            is_confirmed: false,
            problem: None,
        })
    }

    /// Whether every request is answered.
    pub(crate) fn is_done(&self) -> bool {
        self.wanted.is_empty() && self.exchanges.iter().all(|exchange| exchange.is_whole)
    }

    /// The lengths of the bodies that have not come, and how much of each has.
    pub(crate) fn missing(&self) -> Vec<(usize, usize)> {
        let missing = self.exchanges.iter().filter(|exchange| !exchange.is_whole);
        missing
            .map(|exchange| (exchange.expected.len(), exchange.body.len()))
            .collect()
    }

    /// How many are.
    pub(crate) fn answered(&self) -> u64 {
        let whole = self.exchanges.iter().filter(|exchange| exchange.is_whole);
        whole.count() as u64
    }

    /// Takes a datagram.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Instant) {
        let bytes = BytesMut::from(bytes);
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(now, self.remote, None, None, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.quic.handle_event(event);
        }
    }

    /// Does what is due.
    pub(crate) fn run(&mut self, now: Instant) {
        if self.quic.poll_timeout().is_some_and(|due| due <= now) {
            self.quic.handle_timeout(now);
        }
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => self.connected(),
                Event::ConnectionLost { reason } => {
                    let problem = format!("the connection was lost: {reason}");
                    self.problem.get_or_insert(problem);
                }
                // The server's control stream.
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => self.is_confirmed = true,
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => self.read(id),
                Event::Stream(StreamEvent::Writable { id }) => self.write(id),
                Event::Stream(_)
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// When something is due next.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        self.quic.poll_timeout()
    }

    /// The next datagram that it sends.
    pub(crate) fn next_datagram(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        // All of it goes to the one address.
        let _ = self.quic.poll_transmit(now, 1, &mut bytes)?;
        Some(bytes)
    }

    /// Ends the connection.
    pub(crate) fn leave(&mut self, now: Instant) {
        let code = quinn_proto::VarInt::from_u32(0x100);
        self.quic.close(now, code, Bytes::new());
    }

    fn connected(&mut self) {
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            let mut bytes = Vec::new();
            self.wire.open_control(&mut bytes);
            // A few bytes: every window takes them.
            let _ = self.quic.send_stream(id).write(&bytes);
        }
        for (path, expected) in std::mem::take(&mut self.wanted) {
            self.ask(&format!("/{path}"), expected);
        }
    }

    fn ask(&mut self, path: &str, expected: Vec<u8>) {
        let Some(id) = self.quic.streams().open(Dir::Bi) else {
            self.problem = Some("there is no stream".to_owned());
            return;
        };
        let fields: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"simulated"),
            (b":path", path.as_bytes()),
        ];
        let (mut block, mut output) = (Vec::new(), Vec::new());
        self.wire
            .write_head(&mut block, &mut output, |encoder, block| {
                for (name, value) in fields {
                    encoder.field(name, value, Indexing::No, block);
                }
            });
        self.exchanges.push(Exchange {
            id,
            output,
            sent: 0,
            response: ResponseStream::new(false),
            expected,
            body: Vec::new(),
            is_whole: false,
        });
        self.write(id);
    }

    fn write(&mut self, id: StreamId) {
        let mut exchanges = self.exchanges.iter_mut();
        let Some(exchange) = exchanges.find(|exchange| exchange.id == id) else {
            return;
        };
        let mut stream = self.quic.send_stream(id);
        while exchange.sent < exchange.output.len() {
            match stream.write(&exchange.output[exchange.sent..]) {
                Ok(count) => exchange.sent += count,
                Err(_) => return,
            }
        }
        // One that the server has stopped needs no end.
        let _ = stream.finish();
    }

    fn read(&mut self, id: StreamId) {
        let mut exchanges = self.exchanges.iter_mut();
        let Some(exchange) = exchanges.find(|exchange| exchange.id == id) else {
            return;
        };
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            let (bytes, ends) = match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => (chunk.bytes, false),
                Ok(None) => (Bytes::new(), true),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    self.problem = Some(format!("a stream was reset: {code}"));
                    break;
                }
            };
            let mut input = &bytes[..];
            let (response, reader) = (&mut exchange.response, &mut self.reader);
            loop {
                let event = self
                    .wire
                    .receive_response(response, &mut input, ends, reader, 0);
                match event {
                    Ok(ResponseEvent::More) => break,
                    Ok(ResponseEvent::Data(data)) => exchange.body.extend_from_slice(data),
                    Ok(ResponseEvent::End) => {
                        exchange.is_whole = exchange.body == exchange.expected;
                        if !exchange.is_whole {
                            let (got, wanted) = (exchange.body.len(), exchange.expected.len());
                            let status = reader.head.status;
                            self.problem = Some(format!("{status}: {got} bytes for {wanted} came"));
                        }
                        break;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        self.problem = Some(format!("no response: {}", error.reason));
                        break;
                    }
                }
            }
            if ends {
                break;
            }
        }
        // What it asks to be sent is looked for after every turn.
        let _ = chunks.finalize();
    }
}
