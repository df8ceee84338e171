//! Tests of compressed certificates (RFC 8879), with a client that tells what it was sent.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::ZlibDecoder;
use rustls::compress::{CertDecompressor, DecompressionFailed};
use rustls::pki_types::ServerName;
use rustls::{CertificateCompressionAlgorithm, ClientConnection};

use crate::support::tls;
use crate::support::tls::{keys, start};
use crate::support::tls_peer;

/// Bytes of certificates that were compressed, before that.
static DECOMPRESSED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Zlib;

impl CertDecompressor for Zlib {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let read = ZlibDecoder::new(input).read_exact(output);
        DECOMPRESSED_BYTES.fetch_add(output.len(), Ordering::Relaxed);
        read.map_err(|_| DecompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}

/// The certificate that a server shows, and how many bytes of it came compressed.
fn shown(port: u16) -> (Vec<u8>, usize) {
    let mut config = tls_peer::client();
    config.cert_decompressors = vec![&Zlib];
    let name = ServerName::try_from("a.test").unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let before = DECOMPRESSED_BYTES.load(Ordering::Relaxed);
    while session.is_handshaking() {
        session.complete_io(&mut socket).unwrap();
    }
    let chain = session.peer_certificates().unwrap();
    let bytes = DECOMPRESSED_BYTES.load(Ordering::Relaxed) - before;
    (chain[0].as_ref().to_vec(), bytes)
}

#[test]
fn certificates_are_compressed_where_the_client_takes_it() {
    let keys = keys();
    let server = start(
        &keys,
        "server { %SECURE% ssl_certificate_compression on; }
         server {
            listen 127.0.0.1:%PORT_PLAIN% ssl;
            ssl_certificate %KEYS%/ec.pem;
            ssl_certificate_key %KEYS%/ec.key;
         }",
    );
    let (plain, bytes) = shown(server.port_named("PLAIN"));
    assert_eq!(bytes, 0);
    for _ in 0..2 {
        let (compressed, bytes) = shown(server.port());
        assert_eq!(compressed, plain);
        assert!(bytes > plain.len(), "{bytes}");
    }
    // A client that does not know of it.
    let output = tls::s_client(&server, "GET / HTTP/1.0\r\n\r\n", &[]);
    assert!(output.contains("subject=CN = a.test"), "{output}");
}
