//! The way of a session: header, phases, content, log.

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::timeout::bounded;
use turnpike_lane::turns;
use turnpike_plan::Quoted;
use turnpike_plan::messages::CLIENT_TIMED_OUT;
use turnpike_plan::passed::{PassedConnection, PassedFacts};
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::variables::Subject;
use turnpike_wire::proxy_protocol;

use crate::client::{Client, Connected};
use crate::cut::{self, Cut};
use crate::handshake::shake_hands;
use crate::phase::{Handler, Phase, Status, Verdict};
use crate::session::Session;

/// Serves a session to its end, or until its connection is passed to another server's address.
pub(crate) async fn serve(session: Session, client: Client, cut: &Cut) -> Option<PassedConnection> {
    let mut driven = DrivenSession(session);
    let session = &mut driven.0;
    begun(
        session,
        match client {
            Client::Connected(_) => "",
            Client::Flow(_) => "udp ",
        },
    );
    let started_ms = session.started_ms;
    let ended = tokio::select! {
        biased;
        status = run(session, &client) => Some(status),
        () = cut.of(started_ms) => None,
    };
    let status = ended.unwrap_or_else(|| {
        session.log(Level::Warn, format_args!("{}", cut::MESSAGE));
        Status::Ok
    });
    if let Some(address) = session.pass_to.take()
        && let Client::Connected(connected) = client
    {
        session.rooms.release();
        let came_through = session.route();
        let transport = connected.into_transport()?;
        let facts = PassedFacts {
            bytes: std::mem::take(&mut session.preread),
            peer: session.peer,
            tls: session.tls.take(),
            proxy_header: session.proxy_header.take(),
            passes: session.passes + 1,
            came_through,
        };
        return Some(PassedConnection::new(address, transport, facts));
    }
    // The line is written, and limits count the session no more, before the client sees its
    // connection closed.
    finish(session, status);
    drop(client);
    None
}

/// A session in the hands of a future. One whose future has had its turns is finished all the same.
struct DrivenSession(Session);

impl Drop for DrivenSession {
    fn drop(&mut self) {
        if turns::is_ending() {
            self.0.log(Level::Alert, format_args!("{}", turns::Ended));
            finish(&mut self.0, Status::InternalServerError);
        }
    }
}

/// Says who has connected; `kind` stands before it.
pub(crate) fn begun(session: &Session, kind: &str) {
    match (session.peer, session.local) {
        (PeerAddress::Inet(peer), PeerAddress::Inet(local)) => {
            let message = format_args!("{kind}client {peer} connected to {local}");
            session.log(Level::Info, message);
        }
        _ => session.log(Level::Info, format_args!("client unix: connected")),
    }
}

/// Asks the handlers before the content that need no bytes. The error is how the session ends.
pub(crate) fn admit(session: &mut Session) -> Result<(), Status> {
    if session.passes == 0 {
        session.refuse_loop()?;
    }
    let plan = session.plan.clone();
    let server = &plan.servers[session.listen().default_server];
    for phase in [Phase::PostAccept, Phase::PreAccess, Phase::Access] {
        for handler in server.handlers(phase) {
            let verdict = handler.handle(session);
            if session.is_undecided() {
                return Err(Status::InternalServerError);
            }
            if let Verdict::Status(status) = verdict {
                return Err(status);
            }
        }
    }
    Ok(())
}

/// A session has ended: it is written down, and limits count it no more.
pub(crate) fn finish(session: &mut Session, status: Status) {
    let number = status.number();
    session.log(
        Level::Debug,
        format_args!("session ends with status {number}"),
    );
    session.status = Some(status);
    session.action.set("logging");
    for logger in &session.server().loggers {
        logger.log(session);
    }
    session.rooms.release();
}

async fn run(session: &mut Session, client: &Client) -> Status {
    let plan = session.plan.clone();
    let server = &plan.servers[session.listen().default_server];
    if let Client::Connected(connected) = client {
        if server.settings.no_delay {
            connected.set_no_delay();
        }
        if session.listen().proxy_protocol
            && let Err(status) = read_proxy_header(session, connected).await
        {
            return status;
        }
    }
    if let Err(status) = admit(session) {
        return status;
    }
    if let Client::Connected(connected) = client
        && session.listen().ssl
        && let Err(status) = shake_hands(session, connected).await
    {
        return status;
    }
    if session.is_undecided() {
        return Status::InternalServerError;
    }
    for phase in [Phase::ServerChoice, Phase::Preread] {
        if let Err(status) = preread(session, client, phase).await {
            return status;
        }
    }
    session.action.set("");
    let Some(content) = session.server().content.clone() else {
        return Status::InternalServerError;
    };
    content.serve(session, client).await
}

/// Asks the handlers of a phase that looks at the first bytes. The error is how the session ends.
async fn preread(session: &mut Session, client: &Client, phase: Phase) -> Result<(), Status> {
    let handlers = session.server().handlers(phase).to_vec();
    for handler in handlers {
        let verdict = match (handler.handle(session), client) {
            (Verdict::Again, Client::Connected(connected)) => {
                read_for(session, &*handler, connected).await?
            }
            // A datagram is all there is.
            (Verdict::Again, Client::Flow(_)) => Verdict::Declined,
            (other, _) => other,
        };
        if session.is_undecided() {
            return Err(Status::InternalServerError);
        }
        if let Verdict::Status(status) = verdict {
            return Err(status);
        }
    }
    Ok(())
}

/// Reads until a handler has seen enough: all in all for `preread_timeout`, so that a client that
/// sends a byte now and then does not hold the session.
async fn read_for(
    session: &mut Session,
    handler: &dyn Handler,
    client: &Connected,
) -> Result<Verdict, Status> {
    let timeout_ms = session.server().settings.preread_timeout_ms;
    let read = bounded(timeout_ms, async {
        loop {
            read_more(session, client).await?;
            match handler.handle(session) {
                Verdict::Again => {}
                verdict => return Ok(verdict),
            }
        }
    });
    match read.await {
        Some(read) => read,
        None => Err(timed_out(session)),
    }
}

/// How a session ends whose client has not sent in time what is looked at first.
fn timed_out(session: &Session) -> Status {
    session.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
    Status::Ok
}

/// Reads the PROXY protocol header; what stands behind it is kept.
async fn read_proxy_header(session: &mut Session, client: &Connected) -> Result<(), Status> {
    session.action.set("reading PROXY protocol");
    let timeout_ms = session.server().settings.proxy_protocol_timeout_ms;
    let read = bounded(timeout_ms, proxy_header(session, client)).await;
    match read {
        Some(done) => {
            done?;
            // What came behind the header.
            session.bytes_received.set(session.preread.len() as u64);
        }
        None => return Err(timed_out(session)),
    }
    session.action.set("");
    Ok(())
}

async fn proxy_header(session: &mut Session, client: &Connected) -> Result<(), Status> {
    loop {
        match proxy_protocol::parse(&session.preread) {
            Ok(Some(header)) => {
                session.proxy_header = Some(ProxyHeader::new(&header, &session.preread));
                session.preread.drain(..header.len);
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => {
                let shown = session.preread.len().min(proxy_protocol::V1_BYTES_MAX);
                let (reason, bytes) = (error.reason(), Quoted(&session.preread[..shown]));
                session.log(Level::Error, format_args!("{reason}: \"{bytes}\""));
                return Err(Status::BadRequest);
            }
        }
        let read = client.read(&mut session.preread, proxy_protocol::V2_BYTES_MAX);
        match read.await {
            Ok(0) => return Err(Status::BadRequest),
            Ok(_) => {}
            Err(error) => {
                session.log(Level::Info, format_args!("recv() failed {}", Errno(&error)));
                return Err(Status::BadRequest);
            }
        }
    }
}

/// Reads more for a handler of the preread phase.
async fn read_more(session: &mut Session, client: &Connected) -> Result<(), Status> {
    session.action.set("prereading client data");
    let room = session.server().settings.preread_bytes;
    let room = room.saturating_sub(session.preread.len());
    if room == 0 {
        session.log(Level::Error, format_args!("preread buffer full"));
        return Err(Status::BadRequest);
    }
    match client.read(&mut session.preread, room).await {
        Ok(0) => Err(Status::Ok),
        Ok(count) => {
            let received = session.bytes_received.get() + count as u64;
            session.bytes_received.set(received);
            Ok(())
        }
        Err(error) => {
            session.log(Level::Info, format_args!("recv() failed {}", Errno(&error)));
            Err(Status::Ok)
        }
    }
}
