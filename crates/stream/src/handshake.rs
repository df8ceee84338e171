//! The TLS handshake with a client: the step of a session between access rules and preread.

use std::io;
use std::sync::Arc;

use turnpike_lane::log::Level;
use turnpike_lane::timeout::bounded;
use turnpike_lane::transport::{Greeting, HandshakeError};
use turnpike_plan::messages::CLIENT_TIMED_OUT;
use turnpike_plan::tls::{Agreement, Offer, ServerTls, TlsSession, expect_hello};
use turnpike_plan::variables::Subject as _;

use crate::client::Connected;
use crate::phase::Status;
use crate::session::Session;

/// Bytes that are read of a hello at a time: nearly all hellos fit.
const READ_BYTES: usize = 4096;

/// Secures the connection. What was read of it before is the beginning of the handshake.
pub(crate) async fn shake_hands(session: &mut Session, client: &Connected) -> Result<(), Status> {
    session.action.set("SSL handshaking");
    let tls = session.server().tls.as_ref();
    let timeout_ms = tls.map_or(0, |tls| tls.handshake_timeout_ms);
    let done = bounded(timeout_ms, secure(session, client)).await;
    let why = match done {
        Some(Ok(())) => {
            session.action.set("");
            return Ok(());
        }
        Some(Err(why)) => why,
        None => CLIENT_TIMED_OUT.to_owned(),
    };
    session.log(Level::Info, format_args!("{why}"));
    Err(Status::InternalServerError)
}

/// The error is what the log says.
async fn secure(session: &mut Session, client: &Connected) -> Result<(), String> {
    let greeting = greeting(session, client).await?;
    let offer = Offer::of(&greeting);
    session.choose_server(&offer.server_name);
    // One without a certificate shows that of the default server.
    let default = &session.plan.servers[session.listen().default_server];
    let tls = session.server().tls.as_ref().or(default.tls.as_ref());
    let (identity, verify_client) = match tls {
        Some(tls) if let ServerTls::Serve(identity) = &tls.tls => {
            (Arc::clone(identity), tls.verify_client)
        }
        _ => {
            client.transport().refuse_name();
            return Err("SSL_do_handshake() failed (SSL: handshake rejected)".to_owned());
        }
    };
    let config = match &identity.by_name {
        None => Arc::clone(&identity.config),
        Some(named) => {
            session.tls = Some(Box::new(offer.session()));
            let loading = named.load(session);
            let loaded = if session.is_undecided() {
                Err("the name of a certificate has no value".to_owned())
            } else {
                loading.done().await
            };
            session.tls = None;
            match loaded {
                Ok(keys) => identity.with_certificates(keys),
                Err(why) => {
                    client.transport().refuse_for_error();
                    session.log(Level::Error, format_args!("{why}"));
                    return Err("SSL_do_handshake() failed (SSL: cert cb error)".to_owned());
                }
            }
        }
    };
    session.lane.handshakes.admitted().await;
    let transport = client.transport();
    let accepted = transport.accept(greeting, config, identity.speaks_tls13);
    accepted.map_err(|error| HandshakeError::Tls(error).to_string())?;
    let done = client.handshake().await;
    done.map_err(|error| error.to_string())?;
    let agreed = match TlsSession::of(client.transport(), offer, &identity) {
        Agreement::Complete(agreed) => agreed,
        // The whole handshake has its limit.
        Agreement::Pending(pending) => pending.complete(0).await,
    };
    let refusal = verify_client.refusal(agreed.client.as_deref());
    session.tls = Some(Box::new(agreed));
    refusal.map_or(Ok(()), |refusal| Err(refusal.to_string()))
}

/// Reads the client's hello.
async fn greeting(session: &mut Session, client: &Connected) -> Result<Greeting, String> {
    let mut hello = expect_hello(session.plan.variables());
    let mut bytes = std::mem::take(&mut session.preread);
    session.bytes_received.set(0);
    loop {
        match hello.feed(&bytes) {
            Ok(Some(greeting)) => return Ok(greeting),
            Ok(None) => {}
            Err(why) => {
                let message = why.to_string();
                client.transport().refuse(why);
                return Err(message);
            }
        }
        bytes.clear();
        let went = match client.read(&mut bytes, READ_BYTES).await {
            Ok(0) => io::Error::from(io::ErrorKind::UnexpectedEof),
            Ok(_) => continue,
            Err(error) => error,
        };
        return Err(HandshakeError::Socket(went).to_string());
    }
}
