//! A scripted origin: it listens, and runs a script of the test on each connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::Linger};

use crate::{DEADLINE, wait_for};

/// Bytes received at a time where more than one may be.
const READ_BYTES: usize = 64 * 1024;

/// A step of a script. The end of a script closes the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Receives until the empty line after a head.
    ReadHead,
    /// Receives this many bytes.
    ReadBytes(usize),
    /// Receives until the peer ends its side.
    ReadToEnd,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    DelayMs(u64),
    /// Ends our side; the other stays open.
    HalfClose,
    /// Drops the connection by a reset.
    Reset,
}

impl Step {
    /// Sends a text.
    pub fn send(text: impl AsRef<[u8]>) -> Step {
        Step::Send(text.as_ref().to_vec())
    }
}

/// A running origin; it stops when dropped.
#[derive(Debug)]
pub struct Origin {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    /// The bytes received on each connection, in the order of the connections.
    received: Mutex<Vec<Vec<u8>>>,
    /// The number of connections whose scripts have ended.
    ended: AtomicUsize,
}

impl Origin {
    /// Listens on a port of 127.0.0.1. The first connection gets the first script, and so on; the
    /// last script also serves all later connections.
    ///
    /// # Panics
    /// There is no script, or the kernel gives no port.
    pub fn start(scripts: Vec<Vec<Step>>) -> Origin {
        assert!(!scripts.is_empty(), "an origin without a script");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port for the origin");
        let port = listener.local_addr().expect("the origin's address").port();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &scripts, &own));
        Origin {
            port,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The bytes received on each connection so far.
    pub fn received(&self) -> Vec<Vec<u8>> {
        self.shared
            .received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until `count` connections have come.
    ///
    /// # Panics
    /// They do not come before the deadline.
    pub fn wait_for_connections(&self, count: usize) {
        let found = wait_for(|| (self.received().len() >= count).then_some(()));
        assert!(
            found.is_some(),
            "{} of {count} connections came",
            self.received().len()
        );
    }

    /// Waits until the scripts of `count` connections have ended.
    ///
    /// # Panics
    /// They do not end before the deadline.
    pub fn wait_for_ended(&self, count: usize) {
        let ended = || self.shared.ended.load(Ordering::Acquire);
        let found = wait_for(|| (ended() >= count).then_some(()));
        assert!(found.is_some(), "{} of {count} connections ended", ended());
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the acceptor
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join(); // a panic there was printed there
        }
    }
}

fn accept(listener: &TcpListener, scripts: &[Vec<Step>], shared: &Arc<Shared>) {
    for (index, stream) in listener.incoming().enumerate() {
        if shared.is_stopped.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let script = scripts[index.min(scripts.len() - 1)].clone();
        let shared = Arc::clone(shared);
        let number = {
            let mut received = shared
                .received
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            received.push(Vec::new());
            received.len() - 1
        };
        std::thread::spawn(move || {
            let mut play = Play {
                stream,
                number,
                shared,
            };
            for step in &script {
                if !play.step(step) {
                    break; // the peer is gone: what it sent is there to be looked at
                }
            }
            play.shared.ended.fetch_add(1, Ordering::Release);
        });
    }
}

struct Play {
    stream: TcpStream,
    number: usize,
    shared: Arc<Shared>,
}

impl Play {
    /// Runs one step; false if the connection has failed.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::ReadHead => self.read(|bytes| usize::from(!bytes.ends_with(b"\r\n\r\n"))),
            Step::ReadBytes(count) => self.read(|bytes| count.saturating_sub(bytes.len())),
            Step::ReadToEnd => !self.read(|_| READ_BYTES),
            Step::Send(bytes) => self.stream.write_all(bytes).is_ok(),
            Step::DelayMs(time_ms) => {
                std::thread::sleep(Duration::from_millis(*time_ms));
                true
            }
            Step::HalfClose => self.stream.shutdown(Shutdown::Write).is_ok(),
            Step::Reset => {
                let linger = nix::libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                setsockopt(&self.stream, Linger, &linger).is_ok()
            }
        }
    }

    /// Receives as long as bytes are missing behind those that have come; no more than these, so
    /// that the step takes none of the next one's.
    fn read(&mut self, missing: impl Fn(&[u8]) -> usize) -> bool {
        if self.stream.set_read_timeout(Some(DEADLINE)).is_err() {
            return false;
        }
        let mut own = Vec::new();
        let mut buffer = [0; READ_BYTES];
        loop {
            let wanted = missing(&own).min(READ_BYTES);
            if wanted == 0 {
                return true;
            }
            let piece = match self.stream.read(&mut buffer[..wanted]) {
                Ok(0) | Err(_) => return false,
                Ok(read) => &buffer[..read],
            };
            own.extend_from_slice(piece);
            let mut received = self
                .shared
                .received
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            received[self.number].extend_from_slice(piece);
        }
    }
}

#[cfg(test)]
mod tests;
