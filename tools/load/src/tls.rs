//! TLS as a transport row, through rustls; the only file that names its types.
//!
//! A connection either may resume an earlier session or must do a full handshake; the share is
//! `--tls-resume`. Each thread keeps its own session store, so threads share nothing.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn_proto::EndpointConfig;
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore};
use rustls::{HandshakeKind, SignatureScheme};
use turnpike_wire::pem::{Piece, Pieces};

use crate::http3::Dialling;
use crate::options::Options;
use crate::target::Endpoint;

/// Sessions each thread remembers: one or two a server name are enough, tickets come several.
const SESSIONS_MAX: usize = 256;
/// The protocol offered unless `--alpn` names others.
const ALPN_DEFAULT: &str = "http/1.1";
/// The protocol offered with `--h3`.
const ALPN_HTTP3: &str = "h3";
/// The protocol offered with `--h2`.
pub(crate) const ALPN_HTTP2: &str = "h2";

/// Why TLS cannot be set up.
#[derive(Debug)]
pub(crate) enum TlsError {
    /// A file of certificates cannot be read or holds none.
    Certificates(PathBuf),
    /// The host is neither a name nor an address.
    Name(String),
    /// The library refused the settings.
    Library(rustls::Error),
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TlsError::Certificates(path) => {
                write!(formatter, "no certificates in {}", path.display())
            }
            TlsError::Name(name) => write!(formatter, "not a server name: {name}"),
            TlsError::Library(error) => write!(formatter, "unable to initialize TLS: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// What all threads' connections have in common.
pub(crate) struct TlsPlan {
    base: ClientConfig,
    /// By endpoint; meaningless for those without TLS.
    names: Vec<Option<ServerName<'static>>>,
    /// Share of connections that may resume, 0.0 to 1.0.
    pub(crate) resume_share: f64,
    /// Share of these whose first requests are sent early, where that can be: 0.0 to 1.0.
    pub(crate) early_share: f64,
    /// Looks at the certificates of servers of HTTP/3, if that is spoken.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
}

/// One thread's settings for QUIC.
pub(crate) struct QuicThread {
    endpoint: Arc<EndpointConfig>,
    /// Neither resuming nor early; resuming; resuming and early.
    configs: [quinn_proto::ClientConfig; 3],
    verified: Arc<AtomicU64>,
}

/// One thread's settings: with and without a session store.
pub(crate) struct TlsThread {
    resuming: Arc<ClientConfig>,
    full: Arc<ClientConfig>,
}

impl TlsPlan {
    /// Reads the certificates and settles names and protocols.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub(crate) fn new(options: &Options, endpoints: &[Endpoint]) -> Result<TlsPlan, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?;
        let mut verifier: Option<Arc<dyn ServerCertVerifier>> = None;
        let mut base = if options.insecure {
            let any = Arc::new(AcceptAny(provider));
            verifier = Some(any.clone()).filter(|_| options.h3).map(|any| any as _);
            builder
                .dangerous()
                .with_custom_certificate_verifier(any)
                .with_no_client_auth()
        } else {
            let roots = Arc::new(roots(options.cacert.as_deref())?);
            if options.h3 {
                verifier = Some(web_pki(Arc::clone(&roots), provider)?);
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        };
        let default = match (options.h2, options.h3) {
            (_, true) => ALPN_HTTP3,
            (true, false) => ALPN_HTTP2,
            (false, false) => ALPN_DEFAULT,
        };
        let protocols = options.alpn.as_deref().unwrap_or(default);
        base.alpn_protocols = protocols
            .split(',')
            .filter(|name| !name.is_empty())
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let name_of = |endpoint: &Endpoint| {
            if !endpoint.tls {
                return Ok(None);
            }
            let name = options.sni.as_ref().unwrap_or(&endpoint.host);
            ServerName::try_from(name.clone())
                .map(Some)
                .map_err(|_| TlsError::Name(name.clone()))
        };
        let names = endpoints.iter().map(name_of).collect::<Result<_, _>>()?;
        Ok(TlsPlan {
            base,
            names,
            resume_share: options.tls_resume / 100.0,
            early_share: options.early_data / 100.0,
            verifier,
        })
    }

    /// The settings of one thread, with a session store of its own.
    pub(crate) fn thread(&self) -> TlsThread {
        let mut resuming = self.base.clone();
        resuming.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        let mut full = self.base.clone();
        full.resumption = Resumption::disabled();
        TlsThread {
            resuming: Arc::new(resuming),
            full: Arc::new(full),
        }
    }

    /// The settings of one thread for QUIC, with a session store of its own; `None` if HTTP/3 is
    /// not spoken.
    pub(crate) fn quic_thread(&self) -> Option<QuicThread> {
        let verified = Arc::new(AtomicU64::new(0));
        let verifier: Arc<dyn ServerCertVerifier> = Arc::new(Counting {
            inner: Arc::clone(self.verifier.as_ref()?),
            count: Arc::clone(&verified),
        });
        let sessions = Resumption::in_memory_sessions(SESSIONS_MAX);
        let config = |resumption: Resumption, is_early: bool| {
            let mut config = self.base.clone();
            config
                .dangerous()
                .set_certificate_verifier(Arc::clone(&verifier));
            config.resumption = resumption;
            config.enable_early_data = is_early;
            let config = QuicClientConfig::try_from(config).ok()?;
            Some(quinn_proto::ClientConfig::new(Arc::new(config)))
        };
        Some(QuicThread {
            endpoint: Arc::new(EndpointConfig::default()),
            configs: [
                config(Resumption::disabled(), false)?,
                config(sessions.clone(), false)?,
                config(sessions, true)?,
            ],
            verified,
        })
    }

    /// What a new connection of HTTP/3 is begun with; whether it may resume a session, and send
    /// requests early.
    pub(crate) fn dial(
        &self,
        thread: &QuicThread,
        endpoint: usize,
        remote: SocketAddr,
        (resumes, is_early): (bool, bool),
    ) -> Option<Dialling> {
        let name = self.names.get(endpoint)?.as_ref()?;
        let [full, resuming, early] = &thread.configs;
        let config = match (resumes, is_early) {
            (false, _) => full,
            (true, false) => resuming,
            (true, true) => early,
        };
        Some(Dialling {
            endpoint: Arc::clone(&thread.endpoint),
            config: config.clone(),
            verified: Arc::clone(&thread.verified),
            name: name.to_str().into_owned(),
            remote,
        })
    }

    /// A session for a new connection.
    pub(crate) fn connect(
        &self,
        thread: &TlsThread,
        endpoint: usize,
        resume: bool,
    ) -> Option<TlsSession> {
        let name = self.names.get(endpoint)?.clone()?;
        let config = if resume {
            &thread.resuming
        } else {
            &thread.full
        };
        let connection = ClientConnection::new(Arc::clone(config), name).ok()?;
        Some(TlsSession { connection })
    }
}

/// The TLS side of one connection.
pub(crate) struct TlsSession {
    connection: ClientConnection,
}

impl TlsSession {
    /// Goes on with the handshake as far as the socket lets it; `true` when it is done.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included; `InvalidData` when the peer's handshake is refused.
    pub(crate) fn handshake(&mut self, socket: &socket2::Socket) -> io::Result<bool> {
        while self.connection.is_handshaking() {
            if self.connection.wants_write() {
                self.flush(socket)?;
            } else if self.read_records(socket)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush(socket)?;
        Ok(true)
    }

    /// Whether the handshake resumed a session.
    pub(crate) fn resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The protocol that the server has chosen.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Takes plain bytes and writes what the socket takes of their records. Bytes once taken are
    /// kept here; `flush` sends what is left.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn send(&mut self, socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.connection.writer().write(bytes)?;
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends records that wait.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included.
    pub(crate) fn flush(&mut self, socket: &socket2::Socket) -> io::Result<()> {
        let mut socket = socket;
        while self.connection.wants_write() {
            self.connection.write_tls(&mut socket)?;
        }
        Ok(())
    }

    /// Sends the end of the session, if the socket takes it at once.
    pub(crate) fn end(&mut self, socket: &socket2::Socket) {
        self.connection.send_close_notify();
        let _ = self.flush(socket);
    }

    /// Plain bytes that have arrived; 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included; `InvalidData` for bytes that are no TLS.
    pub(crate) fn receive(
        &mut self,
        socket: &socket2::Socket,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A stream cut off without close_notify is judged by the HTTP framing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.read_records(socket)? == 0 {
                return Ok(0);
            }
        }
    }

    fn read_records(&mut self, socket: &socket2::Socket) -> io::Result<usize> {
        let mut socket = socket;
        let count = self.connection.read_tls(&mut socket)?;
        self.connection
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(count)
    }
}

/// Counts the certificates that are looked at: a handshake that resumes a session shows none.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn ServerCertVerifier>,
    count: Arc<AtomicU64>,
}

impl ServerCertVerifier for Counting {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    match file {
        Some(path) => {
            let missing = || TlsError::Certificates(path.to_owned());
            let text = fs::read(path).map_err(|_| missing())?;
            for piece in Pieces::new(&text) {
                // One that cannot be used is not left out.
                match piece.map_err(|_| missing())? {
                    Piece::Block(block) if block.label.ends_with(b"CERTIFICATE") => {
                        let added = store.add(CertificateDer::from(block.data));
                        added.map_err(|_| missing())?;
                    }
                    _ => {}
                }
            }
            if store.is_empty() {
                return Err(missing());
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(store)
}

/// The verifier that a configuration with these roots has.
fn web_pki(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let built = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
    let verifier =
        built.map_err(|error| TlsError::Library(rustls::Error::General(error.to_string())))?;
    Ok(verifier)
}

/// `--insecure`: any certificate will do; signatures are still checked, since that costs what
/// it costs in real traffic.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
