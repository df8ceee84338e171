//! A stream as a tunnel, once its extended CONNECT is answered (RFC 8441): its DATA is another
//! protocol's bytes.

use std::cell::Cell;
use std::io;

use turnpike_lane::log::Level;
use turnpike_lane::timeout::within;
use turnpike_lane::turns;

use super::answer::End;
use super::stream::Stream;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::Body;

/// Bytes of a DATA frame: the payload that every client takes.
const FRAME_BYTES: usize = 16 * 1024;

/// Replaces an answer that opens no tunnel and would be taken for one that does: by RFC 8441
/// section 5 any 2xx does.
pub(super) fn refuse_success(exchange: &mut Exchange, stream: &Stream) {
    let response = &mut exchange.response;
    let opens_none = !matches!(response.body(), Body::Tunnel(_));
    if !stream.asks_for_tunnel() || !opens_none || !(200..300).contains(&response.status()) {
        return;
    }
    exchange.log(
        Level::Error,
        format_args!("client asked for a tunnel where none is opened: answered with 501"),
    );
    exchange.end_body();
    exchange.response.clear();
    exchange.response.set_status(501);
    exchange.response.set_content_length(Some(0));
}

/// Runs the tunnel that the answer has opened; `None`: it has opened none.
pub(super) async fn run(exchange: &mut Exchange, stream: &Stream) -> Option<End> {
    let body = exchange.response.take_body();
    let Body::Tunnel(tunnel) = body else {
        exchange.response.set_body(body);
        return None;
    };
    stream.shared.work.notify_one();
    tunnel.run(exchange, Client::Http2(stream)).await;
    Some(End::TunnelEnded)
}

impl Stream {
    /// Waits until the client has sent something, then takes it behind what `buffer` holds. 0 is
    /// the end.
    ///
    /// # Errors
    /// `ConnectionReset` when the client has gone; `TimedOut` after `timeout_ms`; 0 waits for ever.
    pub(crate) async fn read_tunnel(
        &self,
        buffer: &mut Vec<u8>,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        within(timeout_ms, async {
            let mut has_waited = false;
            loop {
                if let Some(count) = self.take_bytes(buffer, has_waited) {
                    return count;
                }
                has_waited = true;
                self.changed().await;
            }
        })
        .await
    }

    /// Sends all of `bytes` as the windows allow. What the connection has taken is added to
    /// `taken_bytes` at once.
    ///
    /// # Errors
    /// `ConnectionReset` when the client has gone; `TimedOut` when nothing could be sent for
    /// `timeout_ms`.
    pub(crate) async fn write_tunnel(
        &self,
        bytes: &[u8],
        timeout_ms: u64,
        taken_bytes: &Cell<u64>,
    ) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.is_gone() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let mut sent = 0;
            if self.shared.has_room() {
                let mut frames = self.shared.frames.borrow_mut();
                sent = frames.send_data(self.id, rest, false, FRAME_BYTES);
            }
            self.shared.moved(self, sent);
            taken_bytes.set(taken_bytes.get() + sent as u64);
            rest = &rest[sent..];
            if sent > 0 {
                turns::moved();
            } else {
                self.shared.has_sent(self);
                self.wait_for_room(timeout_ms).await?;
            }
        }
        self.shared.has_sent(self);
        Ok(())
    }

    /// Ends our side; the client's is not waited for.
    pub(crate) fn finish_tunnel(&self) {
        let mut frames = self.shared.frames.borrow_mut();
        frames.send_data(self.id, &[], true, FRAME_BYTES);
        drop(frames);
        self.shared.work.notify_one();
    }
}
