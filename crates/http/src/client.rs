//! The client of an exchange, in either protocol: handlers and filters read the body from it, send
//! interim responses to it, and give up when it disconnects.
//!
//! The response itself is sent by the connection that the exchange came on.

use std::cell::Cell;
use std::io;

use turnpike_lane::log::Level;
use turnpike_lane::waiting::leave_the_lane_to_others;
use turnpike_wire::message::{BodyLength, Fields};

use crate::body::Progress;
use crate::exchange::{Action, Exchange};
use crate::h1::peer::Peer;
pub use crate::interim::InterimHead;
use crate::phase::Verdict;
use crate::streams::stream::{BodyPart, Stream};

/// The client of an exchange.
#[derive(Clone, Copy)]
pub enum Client<'a> {
    /// The peer of an HTTP/1 connection.
    Http1(&'a Peer),
    /// A stream of an HTTP/2 connection.
    Http2(&'a Stream),
    /// No client: a subrequest, or work in the background. It has no body, never disconnects, and
    /// discards what is sent to it.
    Nobody,
}

/// A connection, or a stream of one, that was taken over from HTTP: bytes both ways, until either
/// side ends.
pub struct Duplex<'a> {
    /// Bytes that the client sent after its request.
    pub early: Vec<u8>,
    end: ClientEnd<'a>,
}

/// The client's end of a tunnel.
enum ClientEnd<'a> {
    Peer(&'a Peer),
    Stream(&'a Stream),
}

impl<'a> Client<'a> {
    /// Completes when the client has disconnected; never while unread input hides the end.
    pub async fn gone(self) {
        match self {
            Self::Http1(peer) => peer.closed().await,
            Self::Http2(stream) => stream.gone().await,
            Self::Nobody => std::future::pending().await,
        }
    }

    /// Runs `work` until the client disconnects; `None` if it did.
    pub async fn unless_gone<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.gone() => None,
        }
    }

    /// Sends an interim response before the final one.
    ///
    /// # Errors
    /// The error of the connection; `TimedOut` if the client took nothing for `send_timeout`.
    pub async fn send_interim(
        self,
        exchange: &mut Exchange,
        head: &InterimHead<'_>,
    ) -> io::Result<()> {
        let peer = match self {
            Self::Http1(peer) => peer,
            Self::Http2(stream) => {
                exchange.account.sent(stream.send_interim(head));
                return Ok(());
            }
            Self::Nobody => return Ok(()),
        };
        let settings = &exchange.location().settings;
        let timeout_ms = settings.send_timeout_ms;
        if settings.tcp_nodelay && exchange.requester.peer().inet().is_some() {
            // Else the answer, which follows soon, would wait for this to be acknowledged.
            peer.set_no_delay();
        }
        let taken_bytes = Cell::new(0);
        let sent = peer.send_interim(head, timeout_ms, &taken_bytes).await;
        exchange.account.sent(taken_bytes.get());
        sent
    }

    /// Takes the connection over, once the head of the response is sent. `None`: there is none.
    pub fn take_over(self) -> Option<Duplex<'a>> {
        match self {
            Self::Http1(peer) => Some(Duplex {
                early: peer.take_input(),
                end: ClientEnd::Peer(peer),
            }),
            Self::Http2(stream) if stream.asks_for_tunnel() => Some(Duplex {
                early: Vec::new(),
                end: ClientEnd::Stream(stream),
            }),
            Self::Http2(_) | Self::Nobody => None,
        }
    }

    /// Reads the whole request body: into memory, or, where it is larger than
    /// `client_body_buffer_size`, into a temporary file.
    ///
    /// # Errors
    /// The verdict that answers a body which cannot be read.
    pub async fn read_body(self, exchange: &mut Exchange) -> Result<(), Verdict> {
        if matches!(
            exchange.body_length(),
            BodyLength::None | BodyLength::Bytes(0)
        ) {
            // nginx answers this too, and clients that ask for it wait.
            self.ask_for_body(exchange)?;
        }
        if let Self::Http2(stream) = self {
            stream.open_window();
        }
        let destination = Destination::of(exchange);
        let mut length = 0;
        while self.read_piece(exchange, destination).await? == Progress::Incomplete {
            exchange.spill_body()?;
            let before = std::mem::replace(&mut length, exchange.body.length());
            let came = usize::try_from(length.saturating_sub(before)).unwrap_or(usize::MAX);
            leave_the_lane_to_others(came).await;
        }
        exchange.settle_body()
    }

    /// Takes what has come of the body, or waits for more of it, behind what
    /// [`RequestBody::bytes`](crate::body::RequestBody::bytes) holds. Nothing is lost where it is
    /// dropped before its end.
    ///
    /// # Errors
    /// The verdict that answers a body which cannot be read.
    pub async fn read_body_piece(self, exchange: &mut Exchange) -> Result<Progress, Verdict> {
        self.read_piece(exchange, Destination::Memory).await
    }

    /// Takes a piece of a body of known length that has come, without a wait for it. One that the
    /// client sends only when it is asked has not come.
    ///
    /// # Errors
    /// As for [`Client::read_body_piece`].
    pub async fn read_body_at_hand(self, exchange: &mut Exchange) -> Result<(), Verdict> {
        if exchange.body_length() == BodyLength::Unknown || exchange.expects_continue() {
            return Ok(());
        }
        let action = exchange.account.action();
        let read = tokio::select! {
            biased;
            read = self.read_body_piece(exchange) => read.map(|_| ()),
            () = std::future::ready(()) => Ok(()),
        };
        exchange.account.set_action(action);
        read
    }

    async fn read_piece(
        self,
        exchange: &mut Exchange,
        destination: Destination,
    ) -> Result<Progress, Verdict> {
        let before = exchange.account.replace_action(Action::ReadingBody);
        let kept = exchange.body.length();
        match exchange.keep_buffered_body() {
            Ok(Progress::Complete) => {
                exchange.account.set_action(before);
                return Ok(Progress::Complete);
            }
            Ok(Progress::Incomplete) => {}
            Err(error) => return Err(exchange.body_refused(error)),
        }
        if exchange.body.length() > kept {
            exchange.account.set_action(before);
            return Ok(Progress::Incomplete);
        }
        self.ask_for_body(exchange)?;
        let peer = match self {
            Self::Http1(peer) => peer,
            Self::Http2(stream) => {
                stream.widen_window(body_buffer_bytes(exchange));
                read_part(exchange, stream).await?;
                exchange.account.set_action(before);
                return Ok(Progress::Incomplete);
            }
            // Nothing will come of what is announced.
            Self::Nobody => return Err(Verdict::Close),
        };
        let settings = &exchange.location().settings;
        let timeout_ms = settings.client_body_timeout_ms;
        let buffer_bytes = settings.client_body_buffer_bytes;
        let form = (exchange.body_length(), exchange.strictness());
        let scratches = match destination {
            Destination::Memory => None,
            Destination::File => Some(exchange.lane.scratches()),
        };
        let buffers = exchange.body.reading_buffers(buffer_bytes, scratches);
        match peer.read_kept_body(form, buffers, timeout_ms).await {
            Ok(0) => {
                exchange.log_client_closed();
                exchange.walk.set_error_status(400);
                Err(Verdict::Close)
            }
            Ok(_) => {
                exchange.account.set_action(before);
                let taken = exchange.keep_buffered_body();
                taken.map_err(|error| exchange.body_refused(error))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                exchange.log_client_timeout();
                Err(Verdict::Status(408))
            }
            Err(_) => Err(Verdict::Close),
        }
    }

    /// Asks a client that waits for `100 Continue` to send its body.
    fn ask_for_body(self, exchange: &mut Exchange) -> Result<(), Verdict> {
        if !exchange.take_expect() {
            return Ok(());
        }
        match self {
            Self::Http1(peer) => peer.send_continue().map_err(|_| Verdict::Close),
            Self::Http2(stream) => {
                let head = InterimHead {
                    status: 100,
                    fields: &Fields::default(),
                };
                exchange.account.sent(stream.send_interim(&head));
                Ok(())
            }
            Self::Nobody => Ok(()),
        }
    }
}

/// Where a body is read to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    Memory,
    /// A file, and memory as far as `client_body_buffer_size` lets it.
    File,
}

impl Destination {
    /// The destination of a body that is read whole.
    fn of(exchange: &Exchange) -> Self {
        let buffer_bytes = exchange.location().settings.client_body_buffer_bytes as u64;
        match exchange.body_length() {
            BodyLength::Bytes(length) if length > buffer_bytes => Self::File,
            _ => Self::Memory,
        }
    }
}

/// Bytes of the buffer for a body that is not read whole.
fn body_buffer_bytes(exchange: &Exchange) -> usize {
    let buffer_bytes = exchange.location().settings.client_body_buffer_bytes;
    match exchange.request().head().body {
        BodyLength::Bytes(length) => usize::try_from(length).map_or(buffer_bytes, |length| {
            buffer_bytes.min(length.saturating_add(1))
        }),
        _ => buffer_bytes,
    }
}

/// Waits for more of the body on a stream.
async fn read_part(exchange: &mut Exchange, stream: &Stream) -> Result<(), Verdict> {
    let timeout_ms = exchange.location().settings.client_body_timeout_ms;
    let arrived = exchange.body.arrived();
    match stream.read_body(arrived, timeout_ms).await {
        Ok(BodyPart::Some) => Ok(()),
        Ok(BodyPart::Malformed) => {
            exchange.log(
                Level::Info,
                format_args!("client sent a body of another length than it announced"),
            );
            Err(Verdict::Status(400))
        }
        Ok(BodyPart::Gone) => Err(exchange.client_went_away()),
        Err(_) => {
            exchange.log_client_timeout();
            exchange.walk.set_error_status(408);
            Err(Verdict::Close)
        }
    }
}

impl Duplex<'_> {
    /// Waits until the client has sent something, then reads it behind what `buffer` holds. 0 is
    /// the end.
    ///
    /// # Errors
    /// What the connection says; `TimedOut` after `timeout_ms`; 0 waits for ever.
    pub async fn read(&self, buffer: &mut Vec<u8>, timeout_ms: u64) -> io::Result<usize> {
        match self.end {
            ClientEnd::Peer(peer) => peer.read_more(buffer, timeout_ms).await,
            ClientEnd::Stream(stream) => stream.read_tunnel(buffer, timeout_ms).await,
        }
    }

    /// Sends all of `bytes`. What the connection has taken is added to `taken_bytes` at once, so
    /// that it counts too where this fails or is dropped.
    ///
    /// # Errors
    /// What the connection says; `TimedOut` when nothing was taken for `timeout_ms`.
    pub async fn write_all(
        &self,
        bytes: &[u8],
        timeout_ms: u64,
        taken_bytes: &Cell<u64>,
    ) -> io::Result<()> {
        match self.end {
            ClientEnd::Peer(peer) => peer.write_all(bytes, timeout_ms, taken_bytes).await,
            ClientEnd::Stream(stream) => stream.write_tunnel(bytes, timeout_ms, taken_bytes).await,
        }
    }

    /// Ends our side; the client's stays open.
    pub fn finish(&self) {
        match self.end {
            // One that is closed already needs no more.
            ClientEnd::Peer(peer) => drop(peer.finish_sending()),
            ClientEnd::Stream(stream) => stream.finish_tunnel(),
        }
    }
}

#[cfg(test)]
mod tests;
