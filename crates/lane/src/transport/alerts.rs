//! The alerts for errors that the library ends a session for without one (RFC 8446 sections 5.1 and
//! 5.4).
//!
//! The library lets its user send one alert, `close_notify`. So the cipher suites that sessions use
//! encrypt another alert in its place where one is due: the library counts a record, and the peer
//! learns why it is the last one.

use std::cell::Cell;
use std::sync::LazyLock;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::cipher::{
    AeadKey, Iv, KeyBlockShape, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls12AeadAlgorithm, Tls13AeadAlgorithm,
    UnsupportedOperationError,
};
use rustls::{
    CipherSuiteCommon, Connection, ConnectionTrafficSecrets, ContentType, Error, PeerMisbehaved,
    SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite,
};

/// Alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;
const HANDSHAKE_FAILURE: u8 = 40;

/// The level of alerts after which a connection is closed.
const FATAL: u8 = 2;

thread_local! {
    /// The alert that is encrypted in place of the next one on this thread.
    static INSTEAD: Cell<Option<u8>> = const { Cell::new(None) };
}

/// The library's suites, made so that alerts can be sent. They live as long as the process, as the
/// library's own.
static SUITES: LazyLock<Vec<SupportedCipherSuite>> = LazyLock::new(|| {
    let suites = default_provider().cipher_suites;
    suites.into_iter().map(alerting).collect()
});

/// The same cipher suites, for sessions that send all alerts.
pub fn alerting_suites(suites: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    let own = |suite: &SupportedCipherSuite| {
        let found = SUITES.iter().find(|own| own.suite() == suite.suite());
        *found.unwrap_or(suite)
    };
    suites.iter().map(own).collect()
}

/// The alert for an error of a session that stands, where the library has none; OpenSSL's.
pub(super) fn alert_for(error: &Error) -> Option<u8> {
    match error {
        Error::PeerMisbehaved(PeerMisbehaved::TooManyWarningAlertsReceived) => {
            Some(HANDSHAKE_FAILURE)
        }
        Error::PeerMisbehaved(_) => Some(UNEXPECTED_MESSAGE),
        _ => None,
    }
}

/// Ends a session that is encrypted by a fatal alert, unless the library has done so.
pub(super) fn end_by(connection: &mut Connection, alert: u8) {
    INSTEAD.set(Some(alert));
    connection.send_close_notify();
    INSTEAD.set(None);
}

fn alerting(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let common = |of: &CipherSuiteCommon| CipherSuiteCommon {
        suite: of.suite,
        hash_provider: of.hash_provider,
        confidentiality_limit: of.confidentiality_limit,
    };
    match suite {
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&suite.common),
                prf_provider: suite.prf_provider,
                kx: suite.kx,
                sign: suite.sign,
                aead_alg: Box::leak(Box::new(Alerting(suite.aead_alg))),
            })))
        }
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&suite.common),
                hkdf_provider: suite.hkdf_provider,
                aead_alg: Box::leak(Box::new(Alerting(suite.aead_alg))),
                quic: suite.quic,
            })))
        }
    }
}

/// An algorithm, or what encrypts by it.
struct Alerting<T>(T);

impl Tls12AeadAlgorithm for Alerting<&'static dyn Tls12AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Alerting(self.0.encrypter(key, iv, extra)))
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

impl Tls13AeadAlgorithm for Alerting<&'static dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Alerting(self.0.encrypter(key, iv)))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

impl MessageEncrypter for Alerting<Box<dyn MessageEncrypter>> {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        if message.typ != ContentType::Alert {
            return self.0.encrypt(message, sequence);
        }
        match INSTEAD.take() {
            None => self.0.encrypt(message, sequence),
            Some(alert) => {
                let content = [FATAL, alert];
                let message = OutboundPlainMessage {
                    typ: message.typ,
                    version: message.version,
                    payload: OutboundChunks::Single(&content),
                };
                self.0.encrypt(message, sequence)
            }
        }
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.0.encrypted_payload_len(payload_len)
    }
}
