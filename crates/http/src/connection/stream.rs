//! A driven connection's socket: reads and writes that wait, each with its time-out.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use turnpike_lane::log::Level;
use turnpike_lane::sys::readiness;
use turnpike_lane::sys::socket::{self, More};
use turnpike_lane::timeout::within;
use turnpike_wire::h1::Framing;

use super::transfer::{Sent, Transfer};
use super::watch::Watch;
use crate::body::{self, Progress};
use crate::exchange::{Action, Exchange};
use crate::phase::Verdict;

/// Bytes read at a time while a body is read or thrown away.
const READ_BYTES: usize = 16 * 1024;

/// The socket of a driven connection.
pub struct Stream {
    socket: Rc<OwnedFd>,
    /// What the lane's loop sees of it.
    watch: Rc<Watch>,
    /// The registration with the runtime, once it was full: few ever are.
    writer: OnceCell<AsyncFd<Rc<OwnedFd>>>,
}

/// What came of throwing a body away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discarded {
    /// The connection may take another request.
    Whole,
    /// The connection must be closed.
    Broken,
}

impl Stream {
    /// Takes a socket over that the lane's loop watches.
    pub(super) fn new(socket: OwnedFd, watch: Rc<Watch>) -> Self {
        Self {
            socket: Rc::new(socket),
            watch,
            writer: OnceCell::new(),
        }
    }

    /// Gives the socket back.
    pub(super) fn into_socket(self) -> Option<OwnedFd> {
        drop(self.writer);
        Rc::into_inner(self.socket)
    }

    /// Ends when the client has closed its side. What it sends meanwhile is left unread, and hides
    /// the closing: then this never ends.
    pub async fn closed_by_client(&self) {
        loop {
            self.watch.readable().await;
            if self.watch.has_ended() {
                return;
            }
            match socket::peek(self.as_fd(), &mut [0]) {
                Ok(0) => return,
                Ok(_) => return std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.emptied(),
                Err(_) => return,
            }
        }
    }

    /// Waits for `work` while the client stays; `None`: it went.
    pub async fn while_there<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.closed_by_client() => None,
        }
    }

    /// Sends all of `bytes`: for what does not belong to the response, such as an interim one or
    /// what a tunnel carries.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` when nothing was taken for `timeout_ms`.
    pub async fn send_all(&self, bytes: &[u8], timeout_ms: u64) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match socket::send(self.as_fd(), rest, More::No) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_full();
                    self.writable(timeout_ms).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends our side of the connection; the client's stays open.
    pub fn finish_sending(&self) {
        // One that is closed already needs no more.
        let _ = socket::shutdown(self.as_fd(), std::net::Shutdown::Write);
    }

    /// Waits until the socket, which was full, takes more.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub(super) async fn writable(&self, timeout_ms: u64) -> io::Result<()> {
        let writer = match self.writer.get() {
            Some(writer) => writer,
            None => {
                let socket = Rc::clone(&self.socket);
                let writer = readiness::register_shared(socket, Interest::WRITABLE)?;
                self.writer.get_or_init(|| writer)
            }
        };
        within(timeout_ms, async { writer.writable().await.map(|_| ()) }).await
    }

    /// Forgets that the socket took bytes before: it has just said that it is full, and no event
    /// was looked at since.
    fn is_full(&self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(writer) = self.writer.get()
            && let Poll::Ready(Ok(mut ready)) = writer.poll_write_ready(&mut context)
        {
            ready.clear_ready();
        }
    }

    /// Waits until something can be read, then reads it behind what `buffer` holds. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub async fn read_more(&self, buffer: &mut Vec<u8>, timeout_ms: u64) -> io::Result<usize> {
        within(timeout_ms, async {
            loop {
                self.watch.readable().await;
                match socket::receive_append(self.as_fd(), buffer, READ_BYTES) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.emptied(),
                    Ok(received) => {
                        if (1..READ_BYTES).contains(&received) {
                            self.watch.emptied();
                        }
                        return Ok(received);
                    }
                    failed => return failed,
                }
            }
        })
        .await
    }

    /// Sends what the socket takes at once, at most about `budget` bytes.
    ///
    /// # Errors
    /// What the socket says.
    pub(super) fn send(
        &self,
        transfer: &mut Transfer,
        exchange: &mut Exchange,
        budget: u64,
    ) -> io::Result<Sent> {
        let sent = transfer.send(exchange, self.as_fd(), budget);
        if let Ok(Sent::Blocked) = sent {
            self.is_full();
        }
        sent
    }

    /// Reads the whole request body: into memory, or, where it is larger than
    /// `client_body_buffer_size`, into a temporary file.
    ///
    /// `Err` holds the verdict that answers a body which cannot be read.
    pub async fn read_body(&mut self, exchange: &mut Exchange) -> Result<(), Verdict> {
        if matches!(exchange.head.framing, Framing::None | Framing::Length(0)) {
            // nginx answers this too, and clients that ask for it wait.
            self.send_continue(exchange)
                .await
                .map_err(|_| Verdict::Close)?;
        }
        while self.read_body_piece(exchange).await? == Progress::Incomplete {
            exchange.spill_body()?;
        }
        exchange.settle_body()
    }

    /// Takes what has come of the body, or waits for more of it, behind what
    /// [`RequestBody::bytes`](crate::body::RequestBody::bytes) holds. Nothing is lost where it is
    /// dropped before its end.
    ///
    /// `Err` holds the verdict that answers a body which cannot be read.
    pub async fn read_body_piece(&self, exchange: &mut Exchange) -> Result<Progress, Verdict> {
        let before = exchange.action.replace(Action::ReadingBody);
        let kept = exchange.body.length();
        match exchange.take_buffered_body(true) {
            Ok(Progress::Complete) => {
                exchange.action.set(before);
                return Ok(Progress::Complete);
            }
            Ok(Progress::Incomplete) => {}
            Err(error) => return Err(body::refused(exchange, error)),
        }
        exchange.forget_taken_body();
        if exchange.body.length() > kept {
            exchange.action.set(before);
            return Ok(Progress::Incomplete);
        }
        self.send_continue(exchange)
            .await
            .map_err(|_| Verdict::Close)?;
        let timeout_ms = exchange.location().settings.client_body_timeout_ms;
        match self.read_more(&mut exchange.input, timeout_ms).await {
            Ok(0) => {
                exchange.log(
                    Level::Info,
                    format_args!("client prematurely closed connection"),
                );
                exchange.error_status = 400;
                Err(Verdict::Close)
            }
            Ok(_) => {
                exchange.action.set(before);
                Ok(Progress::Incomplete)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                exchange.log(
                    Level::Info,
                    format_args!("client timed out (110: Connection timed out)"),
                );
                Err(Verdict::Status(408))
            }
            Err(_) => Err(Verdict::Close),
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
        self.socket.as_fd()
    }
}
