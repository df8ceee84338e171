//! Finds a server for a session and connects to it.

use std::net::SocketAddr;
use std::sync::Arc;

use turnpike_conf::value;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::{self, PeerAddress};
use turnpike_plan::template::Template;
use turnpike_stream::client::Client;
use turnpike_stream::phase::{Content, LocalFuture, Status};
use turnpike_stream::session::Session;
use turnpike_upstream::{Address, ConnectOptions, Connection, FailReason, Picked, Tries};

use std::os::fd::AsFd as _;

use super::plan::{Destination, Passing};
use super::rate::Rate;
use super::relay::Relay;
use crate::upstream::{Directory, Names, Target, Upstream, Url};

impl Content for Passing {
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
        let mut tries = upstream.begin_session(session);
        if self.next_tries_max > 0 {
            tries.limit(self.next_tries_max);
        }
        let (connection, picked) = self.connected(session, &mut tries).await?;
        session.action.set("proxying connection");
        self.log_connected(session, &connection, &picked);
        let now_ms = session.lane.clock.now_ms();
        picked.connected(now_ms);
        let rate = |template: &Template, session: &Session| Rate {
            bytes_per_second: bytes_per_second(template, session),
            started_ms: now_ms,
        };
        let rates = [
            rate(&self.upload_rate, session),
            rate(&self.download_rate, session),
        ];
        let first = std::mem::take(&mut session.preread);
        Relay::new(self, session, client, &connection, rates)
            .run(first)
            .await;
        session.end_try();
        let Some(one) = session.tries.last() else {
            return Ok(());
        };
        let used_ms = one.session_ms.unwrap_or_default();
        let first_ms = one.first_byte_ms.get().unwrap_or(used_ms);
        picked.succeeded(session.lane.clock.now_ms(), first_ms, used_ms);
        Ok(())
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

    /// A connection to one of the servers.
    async fn connected(
        &self,
        session: &mut Session,
        tries: &mut Tries,
    ) -> Result<(Box<Connection>, Picked), Status> {
        let started_ms = session.lane.clock.now_ms();
        loop {
            let now_ms = session.lane.clock.now_ms();
            let Ok(picked) = tries.next(now_ms) else {
                session.begin_try(Arc::from(tries.group().name()));
                session.log(Level::Error, format_args!("no live upstreams"));
                return Err(Status::BadGateway);
            };
            session.begin_try(Arc::clone(picked.peer().shared_name()));
            let error = match self.connect(session, &picked).await {
                Ok(connection) => return Ok((connection, picked)),
                Err(error) => error,
            };
            session.log(Level::Error, format_args!("{error}"));
            session.end_try();
            let reason = match error.is_timeout() {
                true => FailReason::Timeout,
                false => FailReason::Error,
            };
            let now_ms = session.lane.clock.now_ms();
            if picked.failed(reason, now_ms) {
                let what = format_args!("upstream server temporarily disabled");
                session.log(Level::Warn, what);
            }
            let took_ms = now_ms.saturating_sub(started_ms);
            let is_late = self.next_timeout_ms > 0 && took_ms >= self.next_timeout_ms;
            if !self.tries_next || tries.left() == 0 || is_late {
                return Err(Status::BadGateway);
            }
        }
    }

    async fn connect(
        &self,
        session: &mut Session,
        picked: &Picked,
    ) -> Result<Box<Connection>, turnpike_upstream::ConnectError> {
        let bind = self.bind.address(session);
        let header = self.proxy_header.header(ends(session));
        let options = ConnectOptions {
            bind: bind.as_ref().map(|(address, _)| address),
            transparent: bind.is_some_and(|(_, transparent)| transparent),
            socket_keepalive: self.socket_keepalive,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            timeout_ms: self.connect_timeout_ms,
            proxy_header: &header,
            tls: None,
            location: 0,
        };
        let now_ms = session.lane.clock.now_ms();
        let connection = Connection::open(picked, &options, now_ms).await?;
        let connected_ms = session.lane.clock.now_ms();
        if let Some(one) = session.tries.last_mut() {
            one.connect_ms = Some(connected_ms.saturating_sub(one.started_ms));
            one.bytes_sent.set(header.len() as u64);
        }
        Ok(connection)
    }

    fn log_connected(&self, session: &Session, connection: &Connection, picked: &Picked) {
        let peer = picked.name();
        match socket::local_address(connection.as_fd()) {
            Ok(PeerAddress::Inet(own)) => {
                session.log(Level::Info, format_args!("proxy {own} connected to {peer}"))
            }
            _ => session.log(Level::Info, format_args!("proxy connected to {peer}")),
        }
    }
}

/// The ends that a PROXY protocol header tells of.
fn ends(session: &Session) -> Option<(SocketAddr, SocketAddr)> {
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
