//! The client of an HTTP/1 exchange: reads and writes of its connection that wait, each with its
//! time-out.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::rc::Rc;

use turnpike_lane::sys::socket::{self, Closed, More};
use turnpike_lane::sys::socket_option;
use turnpike_lane::timeout::within;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::Waited;
use turnpike_wire::h1;
use turnpike_wire::message::{BodyLength, Strictness, Version, reason_phrase};

use super::input::Input;
use super::watch::Watch;
use crate::arrived::Arrived;
use crate::body::buffers::{BodyBuffers, READ_BYTES};
use crate::interim::InterimHead;

/// The client of a driven connection.
pub struct Peer {
    /// Registered with the runtime once the socket was full: few ever are.
    waited: Waited,
    /// What the lane's loop sees of it.
    watch: Rc<Watch>,
    /// What it has sent and nobody has taken; never borrowed over a wait.
    input: RefCell<Input>,
}

impl Peer {
    /// Takes a transport over whose socket the lane's loop watches, and what has come of it.
    pub(crate) fn new(transport: Transport, input: Input, watch: Rc<Watch>) -> Self {
        Self {
            waited: Waited::for_writing(transport),
            watch,
            input: RefCell::new(input),
        }
    }

    /// Gives the transport back, and what was not taken of what has come.
    pub(crate) fn into_parts(self) -> (Option<Transport>, Input) {
        (self.waited.into_transport(), self.input.into_inner())
    }

    /// The transport, for the connection that it is of.
    pub(crate) fn transport(&self) -> &Transport {
        self.waited.transport()
    }

    /// Ends when the client has closed its side. What it sends meanwhile is left unread, and hides
    /// the closing: then this never ends.
    pub(crate) async fn closed(&self) {
        loop {
            self.watch.readable().await;
            if self.watch.has_ended() {
                return;
            }
            match self.transport().peek() {
                Ok(0) => return,
                Ok(_) => return std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.emptied(),
                Err(_) => return,
            }
        }
    }

    /// Ends when the client's connection is gone. A client that has ended its sending side alone
    /// still takes a response: whether it does, the next send shows.
    pub(crate) async fn gone(&self) {
        self.closed().await;
        if let Ok(Closed::Sending) = socket::closed_by_peer(self.transport().as_fd()) {
            std::future::pending().await
        }
    }

    /// Sends all of `bytes`: for what does not belong to the response, such as an interim one or
    /// what a tunnel carries. What the connection has taken is added to `taken_bytes` at once, so
    /// that it counts too where this fails or is dropped.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` when nothing was taken for `timeout_ms`.
    pub(crate) async fn write_all(
        &self,
        bytes: &[u8],
        timeout_ms: u64,
        taken_bytes: &Cell<u64>,
    ) -> io::Result<()> {
        let mut rest = bytes;
        loop {
            let sent = match rest {
                [] => self.transport().flush().map(|()| 0),
                rest => self.transport().try_write(&[IoSlice::new(rest)], More::No),
            };
            match sent {
                Ok(_) if rest.is_empty() => return Ok(()),
                Ok(sent) => {
                    taken_bytes.set(taken_bytes.get() + sent as u64);
                    rest = rest.get(sent..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_full();
                    self.writable(timeout_ms).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends an interim response; its bytes are added to `taken_bytes` as they are taken.
    ///
    /// # Errors
    /// As [`Peer::write_all`].
    pub(crate) async fn send_interim(
        &self,
        head: &InterimHead<'_>,
        timeout_ms: u64,
        taken_bytes: &Cell<u64>,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        h1::status_line(
            &mut text,
            Version::Http11,
            head.status,
            reason_phrase(head.status),
        );
        for field in head.fields.spans() {
            h1::write_field(&mut text, head.fields.bytes(), field);
        }
        h1::end(&mut text);
        self.write_all(&text, timeout_ms, taken_bytes).await
    }

    /// Asks for the body that the client holds back until `100 Continue` comes.
    ///
    /// # Errors
    /// What the socket says; `WriteZero` where it does not take so few bytes at once.
    pub(crate) fn send_continue(&self) -> io::Result<()> {
        let line = b"HTTP/1.1 100 Continue\r\n\r\n";
        let sent = self
            .transport()
            .try_write(&[IoSlice::new(line)], More::No)?;
        if sent == line.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Lets small pieces leave at once. A socket that cannot do this is only slower.
    pub(crate) fn set_no_delay(&self) {
        let _ = socket_option::set_no_delay(self.transport().as_fd(), true);
    }

    /// Ends our side of the connection; the client's stays open.
    ///
    /// # Errors
    /// What shutdown(2) says.
    pub(crate) fn finish_sending(&self) -> io::Result<()> {
        self.transport().shutdown_write()
    }

    /// Ends the TLS session, if there is one, by `close_notify`, and waits until that has left.
    /// Without it, the client would have to take the end for an attack.
    pub(crate) async fn end_session(&self, timeout_ms: u64) {
        self.transport().end_session();
        // The connection is closed in any case.
        let _ = self.waited.flush(timeout_ms).await;
    }

    /// Waits until the socket, which was full, takes more.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub(crate) async fn writable(&self, timeout_ms: u64) -> io::Result<()> {
        let writable = self.waited.writable(timeout_ms).await;
        self.watch.drained();
        writable
    }

    /// Forgets that the socket took bytes before: it has just said that it is full, and no event
    /// was looked at since.
    pub(crate) fn is_full(&self) {
        self.waited.filled();
        self.watch.filled();
    }

    /// Takes out what has come and was not taken.
    pub(crate) fn take_input(&self) -> Vec<u8> {
        self.input.borrow_mut().take_bytes()
    }

    /// Whether the client has sent more than was taken as requests.
    pub(crate) fn has_unread(&self) -> bool {
        self.input.borrow().has_unread()
    }

    /// Waits until something can be read, and reads of the request's body what that is, straight
    /// to where it is kept if its length is known. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub(crate) async fn read_kept_body(
        &self,
        (length, strictness): (BodyLength, Strictness),
        mut buffers: BodyBuffers<'_>,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        let left = self.input.borrow_mut().left_past(length, strictness);
        let Some(left) = left else {
            let form = (length, strictness);
            return self.read_body(form, buffers.arrived(), timeout_ms).await;
        };
        let bytes_max = buffers.read_bytes_max(left);
        let mut behind = None;
        let read = self.when_readable(timeout_ms, bytes_max, |transport| {
            let read = buffers.read(transport, bytes_max, left)?;
            behind = read.behind;
            Ok(read.bytes + usize::from(behind.is_some()))
        });
        let received = read.await?;
        let bytes = received - usize::from(behind.is_some());
        if self.input.borrow_mut().passed(bytes, behind) {
            buffers.arrived().set_whole();
        }
        Ok(bytes)
    }

    /// Waits until something can be read, and takes what that is of the request's body. 0 is the
    /// end.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub(crate) async fn read_body(
        &self,
        (length, strictness): (BodyLength, Strictness),
        body: &mut Arrived,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        let received = self.when_readable(timeout_ms, READ_BYTES, |transport| {
            self.input.borrow_mut().receive(transport, READ_BYTES)
        });
        let received = received.await?;
        let mut input = self.input.borrow_mut();
        input.read_body(length, strictness, body);
        Ok(received)
    }

    /// Waits until something can be read, then reads it behind what `buffer` holds. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms`.
    pub(crate) async fn read_more(
        &self,
        buffer: &mut Vec<u8>,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        self.when_readable(timeout_ms, READ_BYTES, |transport| {
            transport.try_read(buffer, READ_BYTES)
        })
        .await
    }

    /// Reads at most `bytes_max` by `read` once there is something to be read.
    async fn when_readable(
        &self,
        timeout_ms: u64,
        bytes_max: usize,
        mut read: impl FnMut(&Transport) -> io::Result<usize>,
    ) -> io::Result<usize> {
        within(timeout_ms, async {
            loop {
                self.watch.readable().await;
                match end_of_input(read(self.transport())) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.emptied(),
                    Ok(received) => {
                        if self.transport().was_emptied(received, bytes_max) {
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

    /// Ends our side and reads what the client still sends, so that the kernel does not answer it
    /// with a reset that would take the response away from the client.
    pub(crate) async fn linger(&self, whole_ms: u64, pause_ms: u64) {
        if self.finish_sending().is_err() {
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

/// What a read says where the end of the connection is as good as that of its TLS session: HTTP
/// says by itself where its messages end (RFC 9112 section 9.8).
pub(crate) fn end_of_input(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}
