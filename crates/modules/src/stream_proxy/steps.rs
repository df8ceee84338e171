//! Sessions that need no future: connections without TLS and rates, to servers that are known. The
//! lane's loop waits for their sockets and deadlines.

use std::mem;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::{Closed, Kind};
use turnpike_stream::phase::{Happened, NEVER_MS, Next, Status, Steps};
use turnpike_stream::relay_socket::RelaySocket;
use turnpike_stream::session::Session;
use turnpike_stream::watch::{SocketOf, Watch};
use turnpike_upstream::{ConnectError, ConnectOptions, Picked, Tries, begin_connecting};
use turnpike_wire::proxy_protocol::Transport;

use super::handler::{ends, keep, log_connected, succeeded};
use super::own_address::OwnAddress;
use super::plain_relay::{Passed, PlainRelay};
use super::plan::{Destination, Passing};
use super::relay::{End, failed};

/// A session of a connection.
pub(super) struct ConnectionSteps {
    passing: Arc<Passing>,
    /// The client, while no relay has it. It is closed last, when the session is written down.
    client: Option<RelaySocket>,
    /// What the client had sent before a server was tried.
    early: Vec<u8>,
    stage: Stage,
}

/// What the session is at.
enum Stage {
    /// No server was tried yet.
    New,
    /// A server is being connected to.
    Connecting(Connecting),
    /// Bytes are passed on.
    Relaying { picked: Picked, relay: PlainRelay },
    /// The end.
    Over,
}

struct Connecting {
    tries: Tries,
    /// When the first try began.
    started_ms: u64,
    picked: Picked,
    server: RelaySocket,
    until_ms: u64,
}

impl ConnectionSteps {
    /// A session of this client.
    pub(super) fn new(passing: Arc<Passing>, client: RelaySocket) -> Self {
        Self {
            passing,
            client: Some(client),
            early: Vec::new(),
            stage: Stage::New,
        }
    }
}

impl Steps for ConnectionSteps {
    fn step(&mut self, session: &mut Session, watch: &Watch<'_>, happened: Happened<'_>) -> Next {
        let stage = mem::replace(&mut self.stage, Stage::Over);
        let next = match (stage, happened) {
            (Stage::New, _) => self.begin(session, watch),
            (Stage::Connecting(connecting), Happened::Ready(SocketOf::Server, event)) => {
                self.connect_ended(session, watch, connecting, event)
            }
            (Stage::Connecting(connecting), Happened::Due) => {
                self.not_connected(session, watch, connecting, &ConnectError::TimedOut)
            }
            (Stage::Relaying { picked, mut relay }, Happened::Ready(of, event)) => {
                let passed = self.passed(session, watch, &picked);
                let end = relay.ready(&passed, of, event).err();
                self.relayed(session, picked, relay, end)
            }
            (Stage::Relaying { picked, relay }, Happened::Due) => {
                self.relayed(session, picked, relay, Some(End::Idle))
            }
            (stage, _) => Ok(stage),
        };
        match next {
            Ok(stage) => {
                let until_ms = self.until_ms(&stage);
                self.stage = stage;
                Next::Wait { until_ms }
            }
            Err(status) => Next::End(status),
        }
    }
}

impl ConnectionSteps {
    fn begin(&mut self, session: &mut Session, watch: &Watch<'_>) -> Result<Stage, Status> {
        self.receive_early(session)?;
        let Destination::Fixed(upstream) = &self.passing.destination else {
            return Err(Status::InternalServerError);
        };
        session.action.set("connecting to upstream");
        let tries = self.passing.begin_tries(upstream, session);
        let started_ms = session.lane.clock.now_ms();
        self.connect(session, watch, (tries, started_ms))
    }

    /// Reads what the client has sent already: it can then leave with the handshake's last packet.
    fn receive_early(&mut self, session: &Session) -> Result<(), Status> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let mut buffer = session.lane.buffer();
        match client.receive_early(&mut buffer, self.passing.buffer_bytes) {
            Ok(Some(0)) if !self.passing.half_close => {
                // It is gone, and nothing could be passed on.
                End::Client.log(session);
                Err(Status::Ok)
            }
            Ok(count) => {
                let count = count.unwrap_or(0);
                let received = &session.bytes_received;
                received.set(received.get() + count as u64);
                self.early = buffer.to_vec();
                Ok(())
            }
            Err(error) => {
                failed(session, "recv()", &error, End::Client).log(session);
                Err(Status::Ok)
            }
        }
    }

    /// Connects to the next server that does not refuse at once.
    fn connect(
        &mut self,
        session: &mut Session,
        watch: &Watch<'_>,
        (mut tries, started_ms): (Tries, u64),
    ) -> Result<Stage, Status> {
        loop {
            let picked = self.passing.next_server(session, &mut tries)?;
            let own = OwnAddress::of(session, &picked)?;
            let bind = self.passing.bind.address(session);
            let options = ConnectOptions {
                sends_at_once: !self.early.is_empty(),
                unix_name: &own.unix_name,
                ..self.passing.options(&[], bind.as_ref())
            };
            let opened = begin_connecting(&picked, Kind::Stream, &options);
            let mut kept = Ok(());
            let opened = opened.and_then(|(socket, under_way)| {
                kept = keep(session, socket.as_fd());
                own.opened(session, socket.as_fd());
                let mut server = RelaySocket::server(socket);
                if under_way {
                    server.watch_space(watch).map_err(ConnectError::Socket)?;
                }
                Ok((server, under_way))
            });
            kept?;
            match opened {
                Ok((server, true)) => {
                    let timeout_ms = self.passing.connect_timeout_ms;
                    return Ok(Stage::Connecting(Connecting {
                        tries,
                        started_ms,
                        picked,
                        server,
                        until_ms: after(session.lane.clock.now_ms(), timeout_ms),
                    }));
                }
                Ok((server, false)) => {
                    return self.connected(session, watch, picked, server);
                }
                Err(error) => {
                    let passing = &self.passing;
                    passing.not_connected(session, &tries, picked, &error, started_ms)?;
                    self.stay(session)?;
                }
            }
        }
    }

    /// Ends a session before another server is tried, where the client has left meanwhile.
    fn stay(&self, session: &Session) -> Result<(), Status> {
        match &self.client {
            Some(client) if client.closed_by_peer() == Closed::Everything => {
                End::Client.log(session);
                Err(Status::Ok)
            }
            _ => Ok(()),
        }
    }

    fn connect_ended(
        &mut self,
        session: &mut Session,
        watch: &Watch<'_>,
        mut connecting: Connecting,
        event: Event,
    ) -> Result<Stage, Status> {
        connecting.server.note(event);
        let has_failed = if event.is_error() || event.is_hang_up() {
            connecting.server.check().err()
        } else {
            None
        };
        match has_failed {
            Some(error) => {
                let error = ConnectError::Connect(error);
                self.not_connected(session, watch, connecting, &error)
            }
            None if event.is_writable() => {
                let Connecting { picked, server, .. } = connecting;
                self.connected(session, watch, picked, server)
            }
            None => Ok(Stage::Connecting(connecting)),
        }
    }

    fn not_connected(
        &mut self,
        session: &mut Session,
        watch: &Watch<'_>,
        connecting: Connecting,
        error: &ConnectError,
    ) -> Result<Stage, Status> {
        let Connecting {
            tries,
            started_ms,
            picked,
            server,
            ..
        } = connecting;
        drop(server);
        self.passing
            .not_connected(session, &tries, picked, error, started_ms)?;
        self.stay(session)?;
        self.connect(session, watch, (tries, started_ms))
    }

    fn connected(
        &mut self,
        session: &mut Session,
        watch: &Watch<'_>,
        picked: Picked,
        server: RelaySocket,
    ) -> Result<Stage, Status> {
        let Some(mut client) = self.client.take() else {
            return Err(Status::InternalServerError);
        };
        session.connected();
        session.action.set("proxying connection");
        log_connected(session, || server.local_address(), &picked);
        let now_ms = session.lane.clock.now_ms();
        picked.connected(now_ms);
        client.set_no_delay(session.server().settings.no_delay);
        let mut first = self
            .passing
            .proxy_header
            .header(session, ends(session), Transport::Stream);
        first.append(&mut self.early);
        let mut relay = PlainRelay::new([client, server], first, now_ms);
        let end = relay.begin(&self.passed(session, watch, &picked)).err();
        self.relayed(session, picked, relay, end)
    }

    /// A step of the relay was made, perhaps the last.
    fn relayed(
        &mut self,
        session: &mut Session,
        picked: Picked,
        relay: PlainRelay,
        end: Option<End>,
    ) -> Result<Stage, Status> {
        let Some(end) = end else {
            return Ok(Stage::Relaying { picked, relay });
        };
        end.log(session);
        succeeded(session, picked);
        self.client = Some(relay.into_client());
        Err(Status::Ok)
    }

    fn passed<'a>(
        &'a self,
        session: &'a Session,
        watch: &'a Watch<'a>,
        picked: &'a Picked,
    ) -> Passed<'a> {
        Passed {
            passing: &self.passing,
            session,
            picked,
            watch,
        }
    }

    fn until_ms(&self, stage: &Stage) -> u64 {
        match stage {
            Stage::New | Stage::Over => NEVER_MS,
            Stage::Connecting(connecting) => connecting.until_ms,
            Stage::Relaying { relay, .. } => after(relay.last_ms(), self.passing.idle_timeout_ms),
        }
    }
}

/// When so many milliseconds have passed, 0 is without limit.
fn after(now_ms: u64, timeout_ms: u64) -> u64 {
    match timeout_ms {
        0 => NEVER_MS,
        timeout_ms => now_ms.saturating_add(timeout_ms),
    }
}
