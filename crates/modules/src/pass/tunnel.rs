//! After `101 Switching Protocols`, or where `CONNECT` has asked for it: bytes go both ways until
//! one side has had enough.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use turnpike_http::client::{Client, Duplex};
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::Verdict;
use turnpike_http::response::{Body, LocalFuture, Tunnel};
use turnpike_lane::alternating::first_of;
use turnpike_lane::log::{Errno, Level};
use turnpike_upstream::UPSTREAM_TIMED_OUT;
use turnpike_wire::message::Known;

use super::response;
use super::server::UpstreamConnection;
use super::settings::Passing;
use super::try_notes::end_try;
use super::websocket;

/// Bytes that are read of a server of HTTP at a time.
const PIECE_BYTES: usize = 16 * 1024;

struct Upgraded {
    passing: Arc<Passing>,
    server: UpstreamConnection,
    /// What the server sent behind its head.
    early: Vec<u8>,
    /// Bytes that are read of the server at a time.
    piece_bytes: usize,
}

/// What a tunnel has carried. The bytes are those from the server: a piece may be received and sent
/// in part.
#[derive(Default)]
struct Carried {
    from_server: Cell<u64>,
    to_client: Cell<u64>,
    /// When the client's last bytes came, on the lane's clock.
    from_client_ms: Cell<u64>,
}

/// How a tunnel ended.
enum Ended {
    /// One side closed it.
    Closed,
    /// The server sent nothing for too long.
    Silent,
    /// A server's connection failed.
    Upstream(&'static str, io::Error),
    /// The client's connection failed.
    Client,
}

/// Passes `101` on; then the connection is a tunnel.
pub(crate) fn begin(
    exchange: &mut Exchange,
    passing: &Arc<Passing>,
    server: UpstreamConnection,
) -> Verdict {
    server.picked.header_received(exchange.lane.clock.now_ms());
    response::take_head(exchange, passing);
    if let Some(value) = exchange.upstream.head().known(Known::Upgrade) {
        exchange.response.fields_mut().add(b"Upgrade", value);
    }
    if exchange.request().head().is_extended_connect {
        // It answers a key that the client has not sent.
        exchange.response.fields_mut().remove(websocket::ACCEPT);
    }
    let early = std::mem::take(exchange.upstream.input_mut()).into_vec();
    exchange.sending.close_connection();
    exchange.response.set_body(Body::Tunnel(Box::new(Upgraded {
        passing: Arc::clone(passing),
        server,
        early,
        piece_bytes: PIECE_BYTES,
    })));
    Verdict::Respond
}

/// Answers `CONNECT`: its connection to the server is there, and becomes a tunnel.
pub(crate) fn connected(
    exchange: &mut Exchange,
    passing: &Arc<Passing>,
    server: UpstreamConnection,
) -> Verdict {
    if let Some(one) = exchange.upstream.last_try() {
        one.status = 200;
    }
    server.picked.connected(exchange.lane.clock.now_ms());
    exchange.sending.close_connection();
    exchange.response.set_status(200);
    exchange.response.set_body(Body::Tunnel(Box::new(Upgraded {
        passing: Arc::clone(passing),
        server,
        early: Vec::new(),
        piece_bytes: passing.buffers.first_bytes,
    })));
    Verdict::Respond
}

impl Tunnel for Upgraded {
    fn run<'a>(
        mut self: Box<Self>,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, ()> {
        Box::pin(async move {
            let Some(mut client) = client.take_over() else {
                end_try(
                    &mut exchange.upstream,
                    &exchange.lane,
                    Some(&self.server.connection),
                );
                return;
            };
            exchange.account.set_action(Action::Tunnelling);
            let early = std::mem::take(&mut client.early);
            let carried = Carried::default();
            let first = std::mem::take(&mut self.early);
            let ended = {
                let exchange = &*exchange;
                let down = self.down(exchange, &client, first, &carried);
                let up = self.up(exchange, &client, early, &carried);
                first_of(down, up).await
            };
            exchange.account.sent(carried.to_client.get());
            exchange.account.set_completed(true);
            if let Some(one) = exchange.upstream.last_try() {
                one.response_bytes = carried.from_server.get();
            }
            match ended {
                Ended::Closed | Ended::Client => {}
                Ended::Silent => exchange.log(Level::Error, format_args!("{UPSTREAM_TIMED_OUT}")),
                Ended::Upstream(call, error) => {
                    let errno = Errno(&error);
                    exchange.log(Level::Error, format_args!("{call} failed {errno}"));
                }
            }
            end_try(
                &mut exchange.upstream,
                &exchange.lane,
                Some(&self.server.connection),
            );
        })
    }
}

impl Upgraded {
    /// What the server says goes to the client, until the server ends. As in nginx, the server may
    /// be silent for as long as the client talks.
    async fn down(
        &self,
        exchange: &Exchange,
        client: &Duplex<'_>,
        mut piece: Vec<u8>,
        carried: &Carried,
    ) -> Ended {
        let send_ms = exchange.location().settings.send_timeout_ms;
        let read_ms = self.passing.timeouts.read_ms;
        let mut wait_ms = read_ms;
        loop {
            let from_server = carried.from_server.get() + piece.len() as u64;
            carried.from_server.set(from_server);
            let sent = client.write_all(&piece, send_ms, &carried.to_client);
            if sent.await.is_err() {
                return Ended::Client;
            }
            piece.clear();
            match self
                .server
                .connection
                .read(&mut piece, self.piece_bytes, wait_ms)
                .await
            {
                Ok(0) => {
                    client.finish();
                    return Ended::Closed;
                }
                Ok(_) => wait_ms = read_ms,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let now_ms = exchange.lane.clock.now_ms();
                    let silent_ms = now_ms.saturating_sub(carried.from_client_ms.get());
                    if silent_ms >= read_ms {
                        return Ended::Silent;
                    }
                    wait_ms = read_ms - silent_ms;
                }
                Err(error) => return Ended::Upstream("recv()", error),
            }
        }
    }

    /// Passes the client's bytes to the server. When the client ends its side, the server's side is
    /// ended too; the server may still answer.
    async fn up(
        &self,
        exchange: &Exchange,
        client: &Duplex<'_>,
        mut piece: Vec<u8>,
        carried: &Carried,
    ) -> Ended {
        let send_ms = self.passing.timeouts.send_ms;
        loop {
            if let Err(error) = self.server.connection.write_all(&piece, send_ms).await {
                return Ended::Upstream("send()", error);
            }
            piece.clear();
            match client.read(&mut piece, 0).await {
                Ok(0) => {
                    if self.server.connection.shutdown_write().is_err() {
                        return Ended::Closed;
                    }
                    return std::future::pending().await;
                }
                Ok(_) => carried.from_client_ms.set(exchange.lane.clock.now_ms()),
                Err(_) => return Ended::Client,
            }
        }
    }
}
