//! One connection: the bytes that go out, everything that comes back, and how it ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A server that keeps a connection open for so long after our side of it has ended hangs. Far
/// more than a loaded machine needs.
const HANG: Duration = Duration::from_secs(20);
/// A request that the server does not take: it may have answered and stopped reading.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);
/// More than the largest response of the configurations, times the requests of a connection.
const RECEIVED_BYTES_MAX: usize = 8 << 20;

/// The received bytes.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Vec<u8>,
    /// The server neither answered nor closed.
    pub(super) is_hung: bool,
}

/// Sends the pieces and reads until the server closes. When nothing comes for `patience`, our side
/// of the connection is ended, which makes a server that waits for more give up.
///
/// # Errors
/// The connection is refused.
pub(super) fn exchange(
    port: u16,
    pieces: &[&[u8]],
    patience: Duration,
) -> Result<Received, String> {
    let mut stream = connect(port)?;
    for piece in pieces {
        // The server may have closed already: its bytes can still be read.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut received = Received {
        bytes: Vec::new(),
        is_hung: false,
    };
    if !fill(&mut stream, &mut received.bytes, patience) {
        let _ = stream.shutdown(Shutdown::Write); // it may be closed
        received.is_hung = !fill(&mut stream, &mut received.bytes, HANG);
    }
    Ok(received)
}

fn connect(port: u16) -> Result<TcpStream, String> {
    let problem = |error: std::io::Error| format!("no connection to 127.0.0.1:{port}: {error}");
    let stream = TcpStream::connect(("127.0.0.1", port)).map_err(problem)?;
    stream.set_nodelay(true).map_err(problem)?;
    stream
        .set_write_timeout(Some(WRITE_PATIENCE))
        .map_err(problem)?;
    Ok(stream)
}

/// Reads until the server has closed: true; or until nothing came for `patience`: false.
fn fill(stream: &mut TcpStream, received: &mut Vec<u8>, patience: Duration) -> bool {
    let mut piece = [0; 16384];
    let end = Instant::now() + HANG;
    if stream.set_read_timeout(Some(patience)).is_err() {
        return true;
    }
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(length) => received.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            }
        }
        if received.len() > RECEIVED_BYTES_MAX || Instant::now() > end {
            return false;
        }
    }
}
