//! The floor of what an HTTPS server spends: a bare loop of rustls that answers every request with
//! the same bytes from memory. `cargo xtask bench secure` measures it beside the servers.
//!
//! Arguments: the files of the certificate and the key, the bytes of an answer's body, and the
//! address to listen on. It serves until it is killed.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Connections served at a time: those of the measured case.
const THREADS: usize = 16;

/// Bytes that are encrypted before they are sent, as by the server.
const PIECE_BYTES: usize = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("CERTIFICATE KEY BYTES ADDRESS:PORT");
    let certificate = CertificateDer::from_pem_file(next()?)?;
    let key = PrivateKeyDer::from_pem_file(next()?)?;
    let body = vec![b'x'; next()?.parse()?];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer: Arc<[u8]> = [head.as_bytes(), &body].concat().into();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let listener = TcpListener::bind(next()?)?;
    // The threads stay, so that their time is counted as the process's.
    for _ in 1..THREADS {
        let (listener, config) = (listener.try_clone()?, Arc::clone(&config));
        let answer = Arc::clone(&answer);
        std::thread::spawn(move || serve(&listener, &config, &answer));
    }
    serve(&listener, &config, &answer);
    Ok(())
}

fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, answer: &[u8]) {
    for socket in listener.incoming().flatten() {
        if let Ok(session) = ServerConnection::new(Arc::clone(config)) {
            // A client that has gone is followed by the next.
            let _ = answer_all(StreamOwned::new(session, socket), answer);
        }
    }
}

fn answer_all(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    answer: &[u8],
) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    let mut received = Vec::new();
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&buffer[..count]);
        while let Some(end) = received.windows(4).position(|part| part == b"\r\n\r\n") {
            received.drain(..end + 4);
            for piece in answer.chunks(PIECE_BYTES) {
                stream.write_all(piece)?;
            }
        }
    }
}
