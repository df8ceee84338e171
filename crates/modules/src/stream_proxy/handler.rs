//! Finds a server for a session and connects to it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use turnpike_conf::value;
use turnpike_lane::counters::Answer;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::{self, Closed, Kind, PeerAddress};
use turnpike_plan::template::Template;
use turnpike_stream::client::{Client, Connected};
use turnpike_stream::flow::Flow;
use turnpike_stream::phase::{Content, LocalFuture, NewClient, Status, Steps};
use turnpike_stream::session::Session;
use turnpike_upstream::{
    Address, ConnectError, ConnectOptions, Connection, DatagramConnection, FailReason, Picked, Tls,
    Tries,
};
use turnpike_wire::proxy_protocol::Transport;

use super::datagrams::{DatagramEnd, DatagramRelay};
use super::direction_limit::DirectionLimit;
use super::flow_steps::FlowSteps;
use super::own_address::OwnAddress;
use super::plan::{Destination, Passing};
use super::relay::{End, Relay};
use super::steps::ConnectionSteps;
use crate::upstream::{Directory, Names, Target, Upstream, Url};

impl Content for Passing {
    fn datagrams_max(&self) -> u64 {
        self.requests
    }

    fn steps(self: Arc<Self>, client: NewClient) -> Result<Box<dyn Steps>, NewClient> {
        let has_rates = [&self.upload_rate, &self.download_rate]
            .iter()
            .any(|rate| rate.constant() != Some(b"0"));
        let is_known = matches!(self.destination, Destination::Fixed(_));
        match client {
            NewClient::Connection(client) if is_known && !has_rates && self.tls.is_none() => {
                Ok(Box::new(ConnectionSteps::new(self, client)))
            }
            NewClient::Flow(flow) if is_known && !has_rates => {
                Ok(Box::new(FlowSteps::new(self, flow)))
            }
            other => Err(other),
        }
    }

    fn serve<'a>(
        &'a self,
        session: &'a mut Session,
        client: &'a Client,
    ) -> LocalFuture<'a, Status> {
        Box::pin(async move {
            match self.pass(session, client).await {
                Ok(()) => Status::Ok,
                Err(status) => status,
            }
        })
    }
}

impl Passing {
    async fn pass(&self, session: &mut Session, client: &Client) -> Result<(), Status> {
        let upstream = self.upstream(session).await?;
        session.action.set("connecting to upstream");
        let mut tries = self.begin_tries(&upstream, session);
        match client {
            Client::Connected(client) => self.pass_bytes(session, client, &mut tries).await,
            Client::Flow(flow) => self.pass_datagrams(session, flow, &mut tries).await,
        }
    }

    async fn pass_bytes(
        &self,
        session: &mut Session,
        client: &Connected,
        tries: &mut Tries,
    ) -> Result<(), Status> {
        let connector = match &self.tls {
            None => None,
            Some(tls) => match tls.connector(&*session).await {
                Some(connector) => Some(connector),
                None => return Err(Status::InternalServerError),
            },
        };
        let open =
            async |session: &mut Session, (picked, own): (&Picked, &OwnAddress), host: &[u8]| {
                let tls = self.tls.as_ref();
                let name = tls.map_or(String::new(), |tls| tls.name(session, host));
                let protocols = self
                    .protocols
                    .iter()
                    .map(|protocol| protocol.value(session));
                let protocols: Vec<_> = protocols.filter(|name| !name.is_empty()).collect();
                let header = self
                    .proxy_header
                    .header(session, ends(session), Transport::Stream);
                let bind = self.bind.address(session);
                let options = ConnectOptions {
                    tls: connector.as_ref().map(|connector| Tls {
                        connector,
                        name: &name,
                        protocols: &protocols,
                        timeout_ms: self.connect_timeout_ms,
                    }),
                    unix_name: &own.unix_name,
                    ..self.options(&header, bind.as_ref())
                };
                let connection = Connection::start(picked, &options, session.lane.clock.now_ms())?;
                own.opened(session, connection.as_fd());
                connection.finish_opening(&options).await?;
                if let Some(one) = session.tries.last() {
                    one.bytes_sent.set(header.len() as u64);
                }
                Ok(connection)
            };
        let has_left = |session: &Session| self.has_left(session, client);
        let (connection, picked) = self.connected(session, tries, has_left, open).await?;
        keep(session, connection.as_fd())?;
        session.action.set("proxying connection");
        log_connected(
            session,
            || socket::local_address(connection.as_fd()),
            &picked,
        );
        picked.connected(session.lane.clock.now_ms());
        let limits = self.limits(session);
        let first = std::mem::take(&mut session.preread);
        if let Some(one) = session.tries.last() {
            let server = (&picked, &*connection);
            Relay::new(self, (session, one), client, server, limits)
                .run(first)
                .await;
        }
        succeeded(session, picked);
        Ok(())
    }

    async fn pass_datagrams(
        &self,
        session: &mut Session,
        flow: &Flow,
        tries: &mut Tries,
    ) -> Result<(), Status> {
        let open =
            async |session: &mut Session, (picked, own): (&Picked, &OwnAddress), _: &[u8]| {
                let bind = self.bind.address(session);
                let options = self.options(&[], bind.as_ref());
                let connection = DatagramConnection::open(picked, &options)?;
                own.opened(session, connection.as_fd());
                Ok(connection)
            };
        let (connection, picked) = self.connected(session, tries, |_| false, open).await?;
        keep(session, connection.as_fd())?;
        session.action.set("proxying connection");
        log_connected(
            session,
            || socket::local_address(connection.as_fd()),
            &picked,
        );
        let limits = self.limits(session);
        let mut first = self
            .proxy_header
            .header(session, ends(session), Transport::Datagram);
        first.append(&mut session.preread);
        let relay = DatagramRelay::new(self, session, flow, (&picked, &connection), limits);
        let end = relay.run(first).await;
        if end == DatagramEnd::Done {
            succeeded(session, picked);
            return Ok(());
        }
        session.end_try();
        failed(session, picked, FailReason::Error);
        Err(Status::BadGateway)
    }

    /// Whether the client of a session is gone that nobody has been asked for yet: nothing could be
    /// passed on, or nobody is there to answer.
    fn has_left(&self, session: &Session, client: &Connected) -> bool {
        let closed = client.closed_by_peer();
        closed == Closed::Everything
            || closed == Closed::Sending
                && !self.half_close
                && !client.has_input()
                && (session.preread.is_empty() || is_handshake(&session.preread))
    }

    fn limits(&self, session: &Session) -> [DirectionLimit; 2] {
        let started_ms = session.lane.clock.now_ms();
        [&self.upload_rate, &self.download_rate].map(|template| DirectionLimit {
            bytes_per_second: bytes_per_second(template, session),
            started_ms,
        })
    }

    /// The group that a session is passed to.
    async fn upstream(&self, session: &Session) -> Result<Arc<Upstream>, Status> {
        match &self.destination {
            Destination::Fixed(upstream) => Ok(Arc::clone(upstream)),
            Destination::Evaluated {
                template,
                directory,
                names,
            } => {
                let text = template.value(session);
                let text = String::from_utf8_lossy(&text);
                evaluated(session, &text, directory, names.as_ref()).await
            }
        }
    }

    /// The result of `open` for one of the servers; its last argument is the name of the group.
    async fn connected<T>(
        &self,
        session: &mut Session,
        tries: &mut Tries,
        has_left: impl Fn(&Session) -> bool,
        mut open: impl AsyncFnMut(
            &mut Session,
            (&Picked, &OwnAddress),
            &[u8],
        ) -> Result<T, ConnectError>,
    ) -> Result<(T, Picked), Status> {
        let started_ms = session.lane.clock.now_ms();
        loop {
            if has_left(session) {
                End::Client.log(session);
                return Err(Status::Ok);
            }
            let picked = self.next_server(session, tries)?;
            let own = OwnAddress::of(session, &picked)?;
            let host = tries.group().name().as_bytes();
            match open(session, (&picked, &own), host).await {
                Ok(connection) => {
                    session.connected();
                    return Ok((connection, picked));
                }
                Err(error) => self.not_connected(session, tries, picked, &error, started_ms)?,
            }
        }
    }

    /// Begins the tries of a session.
    pub(super) fn begin_tries(&self, upstream: &Upstream, session: &Session) -> Tries {
        let is_flow = session.listen().address.kind() == Kind::Datagram;
        let connections = self.quic.as_ref().filter(|_| is_flow);
        let bound = connections.and_then(|connections| {
            connections.server(&session.preread, session.lane.clock.now_ms())
        });
        let mut tries = upstream.begin_session(session, bound.as_deref());
        if self.next_tries_max > 0 {
            tries.limit(self.next_tries_max);
        }
        tries
    }

    /// The server that is tried next.
    pub(super) fn next_server(
        &self,
        session: &mut Session,
        tries: &mut Tries,
    ) -> Result<Picked, Status> {
        let now_ms = session.lane.clock.now_ms();
        let Ok(picked) = tries.next(now_ms) else {
            session.begin_try(Arc::from(tries.group().name()));
            session.log(Level::Error, format_args!("no live upstreams"));
            return Err(Status::BadGateway);
        };
        session.begin_try(Arc::clone(picked.peer().shared_name()));
        Ok(picked)
    }

    /// A server could not be connected to; the first try began at `started_ms`. The error is how
    /// the session ends, where no other may be tried.
    pub(super) fn not_connected(
        &self,
        session: &mut Session,
        tries: &Tries,
        picked: Picked,
        error: &ConnectError,
        started_ms: u64,
    ) -> Result<(), Status> {
        session.action.set(error.action());
        session.log(Level::Error, format_args!("{error}"));
        session.action.set("connecting to upstream");
        session.end_try();
        let reason = if error.is_timeout() {
            FailReason::Timeout
        } else {
            FailReason::Error
        };
        failed(session, picked, reason);
        let now_ms = session.lane.clock.now_ms();
        let took_ms = now_ms.saturating_sub(started_ms);
        let is_late = self.next_timeout_ms > 0 && took_ms >= self.next_timeout_ms;
        if !self.tries_next || tries.left() == 0 || is_late {
            return Err(Status::BadGateway);
        }
        if !tries.spend_retry(now_ms) {
            let name = tries.group().name();
            let what = format_args!("retry budget of upstream \"{name}\" is used up");
            session.log(Level::Warn, what);
            return Err(Status::BadGateway);
        }
        Ok(())
    }

    pub(super) fn options<'a>(
        &self,
        proxy_header: &'a [u8],
        bind: Option<&'a (SocketAddr, bool)>,
    ) -> ConnectOptions<'a> {
        ConnectOptions {
            bind: bind.map(|(address, _)| address),
            transparent: bind.is_some_and(|(_, transparent)| *transparent),
            socket_keepalive: self.socket_keepalive,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            timeout_ms: self.connect_timeout_ms,
            sends_at_once: false,
            unix_name: &[],
            proxy_header,
            tls: None,
            protocol_state: None,
            location: 0,
        }
    }
}

/// Ends a session whose server's socket is one of the last that the process may open.
pub(super) fn keep(session: &Session, opened: BorrowedFd<'_>) -> Result<(), Status> {
    session.lane.may_keep(opened).map_err(|most| {
        let message = format_args!("{most} open files are not enough for another session");
        session.log(Level::Alert, message);
        Status::InternalServerError
    })
}

/// Says which server a session is passed to, from which address of ours, if that is logged at all.
pub(super) fn log_connected(
    session: &Session,
    local_address: impl FnOnce() -> io::Result<PeerAddress>,
    picked: &Picked,
) {
    if !session.server().error_log.enabled(Level::Info) {
        return;
    }
    let peer = picked.name();
    let kind = match session.listen().address.kind() {
        Kind::Stream => "",
        Kind::Datagram => "udp ",
    };
    match local_address() {
        Ok(PeerAddress::Inet(own)) => {
            let message = format_args!("{kind}proxy {own} connected to {peer}");
            session.log(Level::Info, message);
        }
        _ => session.log(Level::Info, format_args!("{kind}proxy connected to {peer}")),
    }
}

/// A server has served a session.
pub(super) fn succeeded(session: &mut Session, picked: Picked) {
    session.end_try();
    if let Some(one) = session.tries.last() {
        let now_ms = session.lane.clock.now_ms();
        let connect_ms = one.connect_ms.unwrap_or_default();
        let used_ms = one.session_ms.unwrap_or_default();
        picked.count_answer(Answer {
            status: Status::Ok.number(),
            request_bytes: one.bytes_sent.get(),
            response_bytes: one.bytes_received.get(),
            took_ms: used_ms,
        });
        picked.session_ended(now_ms, connect_ms, one.first_byte_ms.get(), used_ms);
    }
}

/// A server could not serve a session.
pub(super) fn failed(session: &Session, picked: Picked, reason: FailReason) {
    if picked.failed(reason, session.lane.clock.now_ms()) {
        let what = format_args!("upstream server temporarily disabled");
        session.log(Level::Warn, what);
    }
}

/// Whether these are handshake records of TLS and nothing else: a client that sends no more cannot
/// go on (RFC 8446 section 4).
fn is_handshake(mut bytes: &[u8]) -> bool {
    while let [22, 3, _, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        match rest.get(length..) {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    bytes.is_empty()
}

/// The two addresses in a PROXY protocol header.
pub(super) fn ends(session: &Session) -> Option<(SocketAddr, SocketAddr)> {
    session.peer.inet().zip(session.local.inet())
}

fn bytes_per_second(template: &Template, session: &Session) -> u64 {
    match template.constant() {
        Some(b"0") => 0,
        _ => {
            let text = template.value(session);
            let text = std::str::from_utf8(&text).unwrap_or_default();
            value::size(text).unwrap_or(0)
        }
    }
}

/// The group that an address made of variables stands for.
async fn evaluated(
    session: &Session,
    text: &str,
    directory: &Directory,
    names: Option<&Names>,
) -> Result<Arc<Upstream>, Status> {
    let refused = |what: std::fmt::Arguments<'_>| {
        session.log(Level::Error, what);
        Status::InternalServerError
    };
    let url =
        Url::parse(text).map_err(|what| refused(format_args!("{what} in upstream \"{text}\"")))?;
    if let Some(upstream) = directory.find(&url, 0) {
        return Ok(upstream);
    }
    let host = &url.host;
    let port = match (&url.target, url.port) {
        (Target::Unix(_), _) => 0,
        (_, Some(port)) => port,
        (_, None) => return Err(refused(format_args!("no port in upstream \"{host}\""))),
    };
    let addresses = match &url.target {
        Target::Unix(path) => vec![Address::unix(path)],
        Target::Ip(address) => vec![Address::Inet((*address, port).into())],
        Target::Name(name) => {
            let Some(names) = names else {
                let what = format_args!("no resolver defined to resolve {name}");
                return Err(refused(what));
            };
            match names.addresses(name, port).await {
                Ok(addresses) => addresses,
                Err(error) => {
                    let what = format_args!("{name} could not be resolved {error}");
                    return Err(refused(what));
                }
            }
        }
    };
    Ok(Arc::new(directory.passing(host, addresses)))
}
