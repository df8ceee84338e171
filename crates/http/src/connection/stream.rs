//! A driven connection's socket: reads and writes that wait, each with its time-out.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use turnpike_lane::sys::readiness;
use turnpike_lane::sys::socket::{self, More};

use super::transfer::{Sent, Transfer};
use crate::body::{BodyError, Progress};
use crate::exchange::{Action, Exchange};
use crate::phase::Verdict;

/// Bytes read at a time while a body is read or thrown away.
const READ_BYTES: usize = 16 * 1024;

/// The socket of a driven connection.
pub struct Stream {
    socket: AsyncFd<OwnedFd>,
}

/// What came of throwing a body away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discarded {
    /// The connection may take another request.
    Whole,
    /// It must be closed.
    Broken,
}

impl Stream {
    /// Takes a socket over; must be called on the lane's runtime.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            socket: readiness::register(socket, Interest::READABLE | Interest::WRITABLE)?,
        })
    }

    /// Gives the socket back.
    pub(super) fn into_socket(self) -> OwnedFd {
        self.socket.into_inner()
    }

    /// Ends when the client has closed its side. What it sends meanwhile is left unread, and hides
    /// the closing: then this never ends.
    pub(crate) async fn closed_by_client(&self) {
        let closed = match self.socket.ready(Interest::READABLE).await {
            Ok(ready) => ready.ready().is_read_closed(),
            Err(_) => true,
        };
        if !closed {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until something can be read, then reads it behind what `buffer` holds. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub async fn read_more(&self, buffer: &mut Vec<u8>, timeout_ms: u64) -> io::Result<usize> {
        within(timeout_ms, async {
            loop {
                let mut ready = self.socket.readable().await?;
                let read = ready.try_io(|socket| {
                    socket::receive_append(socket.get_ref().as_fd(), buffer, READ_BYTES)
                });
                if let Ok(result) = read {
                    return result;
                }
            }
        })
        .await
    }

    /// Sends on, waiting where the socket is full, until `budget` bytes are sent or no more can be.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` when nothing was taken for `timeout_ms`.
    pub(super) async fn send(
        &self,
        transfer: &mut Transfer,
        exchange: &mut Exchange,
        budget: u64,
        timeout_ms: u64,
    ) -> io::Result<Sent> {
        loop {
            let mut ready = within(timeout_ms, self.socket.writable()).await?;
            let sent = ready.try_io(|socket| {
                match transfer.send(exchange, socket.get_ref().as_fd(), budget) {
                    Ok(Sent::Blocked) => Err(io::ErrorKind::WouldBlock.into()),
                    other => other,
                }
            });
            if let Ok(result) = sent {
                return result;
            }
        }
    }

    /// Reads the whole request body into memory.
    ///
    /// `Err` holds the verdict that answers a body which cannot be read.
    pub async fn read_body(&mut self, exchange: &mut Exchange) -> Result<(), Verdict> {
        exchange.action.set(Action::ReadingBody);
        let timeout_ms = exchange.location().settings.client_body_timeout_ms;
        loop {
            match exchange.take_buffered_body(true) {
                Ok(Progress::Complete) => return Ok(()),
                Ok(Progress::Incomplete) => {}
                Err(error) => return Err(Verdict::Status(body_status(error))),
            }
            exchange.forget_taken_body();
            self.send_continue(exchange)
                .await
                .map_err(|_| Verdict::Close)?;
            match self.read_more(&mut exchange.input, timeout_ms).await {
                Ok(0) => return Err(Verdict::Close),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Verdict::Status(408));
                }
                Err(_) => return Err(Verdict::Close),
            }
        }
    }

    async fn send_continue(&self, exchange: &mut Exchange) -> io::Result<()> {
        if !exchange.take_expect() {
            return Ok(());
        }
        let line = b"HTTP/1.1 100 Continue\r\n\r\n";
        let sent = socket::send(self.as_fd(), line, More::No)?;
        if sent == line.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Reads what is left of the body and throws it away, so that the next request can be read.
    pub(super) async fn discard_body(&self, exchange: &mut Exchange) -> Discarded {
        let settings = &exchange.plan.location(exchange.location).settings;
        let (whole_ms, pause_ms) = (settings.lingering_time_ms, settings.lingering_timeout_ms);
        let until_ms = exchange.lane.clock.now_ms() + whole_ms;
        loop {
            match exchange.take_buffered_body(false) {
                Ok(Progress::Complete) => return Discarded::Whole,
                Ok(Progress::Incomplete) => {}
                Err(_) => return Discarded::Broken,
            }
            exchange.forget_taken_body();
            let now_ms = exchange.lane.clock.now_ms();
            if now_ms >= until_ms {
                return Discarded::Broken;
            }
            // Not 0, which would wait for ever.
            let timeout_ms = pause_ms.clamp(1, until_ms - now_ms);
            match self.read_more(&mut exchange.input, timeout_ms).await {
                Ok(0) | Err(_) => return Discarded::Broken,
                Ok(_) => {}
            }
        }
    }

    /// Ends our side and reads what the client still sends, so that the kernel does not answer it
    /// with a reset that would take the response away from the client.
    pub(super) async fn linger(&self, whole_ms: u64, pause_ms: u64) {
        if socket::shutdown(self.as_fd(), std::net::Shutdown::Write).is_err() {
            return;
        }
        let mut waste = Vec::new();
        // Not 0, which would wait for ever.
        let _ = within(whole_ms.max(1), async {
            loop {
                waste.clear();
                match self.read_more(&mut waste, pause_ms.max(1)).await {
                    Ok(0) | Err(_) => return Ok(()),
                    Ok(_) => {}
                }
            }
        })
        .await;
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// Bounds a wait; 0 waits for ever, as nginx's time-outs do.
async fn within<T>(timeout_ms: u64, wait: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    if timeout_ms == 0 {
        return wait.await;
    }
    match tokio::time::timeout(Duration::from_millis(timeout_ms), wait).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn body_status(error: BodyError) -> u16 {
    match error {
        BodyError::Malformed => 400,
        BodyError::TooLarge => 413,
    }
}
