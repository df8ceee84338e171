//! The TLS handshake with a client: a parked state of its connection, driven by readiness.
//!
//! ```text
//!  accepted ─► beginning ──first bytes──► hello ──whole──► session ──done──► first request
//!                  │ plain HTTP: answered with 497   │ no such server, no agreement: closed
//! ```
//!
//! No task runs for it, except while the socket does not take what has to be sent.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket_option;
use turnpike_lane::timeout::bounded;
use turnpike_lane::transport::{Greeting, Handshake, HandshakeError, Hello};

use super::security::{Agreed, Certified, Handshaking, Security};
use crate::connection::connections::Connections;
use crate::connection::open::{Connection, receive};
use crate::connection::proxy_header::{self, ProxyHeaderState};
use crate::connection::return_queue::{DrivenSlot, HandBackOnDrop, Left};
use crate::connection::slot::{Await, DrivenWork, More};
use crate::connection::slots::Place;
use crate::connection_context::ConnectionContext;
use crate::counters::CloseReason;
use crate::exchange::{Action, Exchange};
use crate::h1::peer::Peer;
use crate::h1::watch::Why;
use crate::lane::LanePlan;
use crate::plan::ServerIndex;
use crate::requester::ConnectionFacts;
use turnpike_plan::tls::{
    ACME_TLS, Agreement, CertifiedKeys, Loading, Offer, PendingSession, ServerTls, TlsSession,
    challenged, expect_hello,
};

/// First byte of a TLS record that holds a handshake message (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 0x16;

/// Set in the first byte of a hello of SSL 2, which is none of HTTP either.
const SSL2_HELLO: u8 = 0x80;

/// What a connection on a TLS port begins with.
enum FirstBytes {
    Tls,
    /// Not TLS: a plain request.
    Plain,
    /// Nothing yet, or a part of a PROXY protocol header.
    Incomplete,
    /// No PROXY protocol header where one is expected.
    Invalid,
}

/// How one step ended.
enum Step {
    /// The client has to send.
    WantsRead(Handshaking),
    /// The socket has to take more.
    WantsWrite(Handshaking),
    /// The handshake is over.
    Done(Agreed),
    /// The session stands.
    Complete(Box<TlsSession>),
    /// The connection is to be closed.
    Failed(CloseReason),
    /// Certificates have to be read first.
    Reads(Box<Reads>),
    /// The client speaks plain HTTP: what it sent stands in the connection's input.
    Plain,
}

/// A ClientHello whose certificates are being read.
struct Reads {
    greeting: Greeting,
    agreed: Agreed,
    loading: Loading,
}

impl Connections {
    /// Goes on with the handshake as far as the socket and the turn let it, and serves what the
    /// client has sent behind it.
    pub(in crate::connection) fn shake_hands(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        state: Handshaking,
    ) -> More {
        if self.lane.handshakes.are_spent() {
            let token = self.park_handshake(event_loop, place, connection, state);
            if let Some(token) = token {
                self.read_later(event_loop, token);
            }
            return More::No;
        }
        let step = self.handshake_step(&mut connection, state);
        match step {
            Step::WantsRead(state) => {
                self.park_handshake(event_loop, place, connection, state);
                More::No
            }
            Step::WantsWrite(state) => {
                self.wait_to_shake(event_loop, place, connection, state);
                More::No
            }
            Step::Reads(reads) => {
                self.wait_for_certificates(event_loop, place, connection, *reads);
                More::No
            }
            Step::Failed(reason) => {
                self.unpark(event_loop, place);
                self.close(connection, reason);
                More::No
            }
            Step::Plain => {
                connection.security = Security::PlainOnTlsPort;
                let exchange = self.exchange(&connection);
                self.serve(event_loop, place, connection, exchange, None);
                More::Likely
            }
            Step::Done(Agreed { offer, identity }) => {
                match TlsSession::of(&connection.transport, offer, &identity) {
                    Agreement::Complete(session) => {
                        self.secured(event_loop, place, connection, session)
                    }
                    Agreement::Pending(pending) => {
                        self.wait_for_status(event_loop, place, connection, *pending);
                        More::No
                    }
                }
            }
            Step::Complete(session) => self.secured(event_loop, place, connection, *session),
        }
    }

    /// Serves what comes over a session that stands.
    fn secured(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        session: TlsSession,
    ) -> More {
        self.lane.counters.handshakes.add();
        if *session.protocol == *ACME_TLS {
            // The handshake was the answer; no application speaks here.
            self.unpark(event_loop, place);
            self.close(connection, CloseReason::ClientClosed);
            return More::No;
        }
        connection.security = Security::Secure(Arc::new(session));
        if let Place::At(_) = place {
            return self.receive_first(event_loop, place, connection);
        }
        // It gets a place, so that what the session holds already can be read.
        let Some((token, connection)) = self.insert(event_loop, connection) else {
            return More::No;
        };
        self.receive_first(event_loop, Place::At(token), connection);
        self.parked_ready(event_loop, token, false);
        More::No
    }

    /// Parks the connection; returns its place.
    fn park_handshake(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        state: Handshaking,
    ) -> Option<u32> {
        let waits_for = Await::Handshake(Box::new(state));
        self.park(event_loop, place, connection, waits_for)
    }

    /// Lets a future wait until the socket takes more: few clients ever let it come to that.
    fn wait_to_shake(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        state: Handshaking,
    ) {
        let timeout_ms = self.header_timeout_ms(&connection);
        let Some((slot, connection)) =
            self.driven_slot(event_loop, place, connection, DrivenWork::None)
        else {
            return;
        };
        let state = Box::new(state);
        let return_queue = Rc::clone(&self.return_queue);
        event_loop.drive(Box::pin(async move {
            let handed_back = HandBackOnDrop::new(&return_queue, &slot);
            let (transport, input, detached) = connection.detach();
            let peer = Peer::new(transport, input, Rc::clone(&slot.watch));
            let waited = peer.writable(timeout_ms).await;
            let (transport, input) = peer.into_parts();
            let transport = waited.ok().and(transport);
            let left = match transport {
                Some(transport) => Left::Handshake(detached.attach(transport, input), state),
                None => Left::Ended(CloseReason::HandshakeFailed),
            };
            handed_back.disarm();
            return_queue.give_back(slot, left);
        }));
    }

    /// Lets a future wait for certificates that another thread reads.
    fn wait_for_certificates(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        reads: Reads,
    ) {
        let timeout_ms = self.header_timeout_ms(&connection);
        let Reads {
            greeting,
            agreed,
            loading,
        } = reads;
        self.handshake_later(event_loop, place, connection, async move {
            let loaded = bounded(timeout_ms, loading.done()).await;
            let late = || Err("reading a certificate took too long".to_owned());
            Handshaking::Certified(Box::new(Certified {
                greeting,
                agreed,
                certificates: loaded.unwrap_or_else(late),
            }))
        });
    }

    /// Lets a future wait until it is known whether the client's certificate is revoked.
    fn wait_for_status(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        pending: PendingSession,
    ) {
        let timeout_ms = self.header_timeout_ms(&connection);
        self.handshake_later(event_loop, place, connection, async move {
            let session = pending.complete(timeout_ms).await;
            Handshaking::Complete(Box::new(session))
        });
    }

    /// Goes on with the handshake from the state that a future ends with.
    fn handshake_later(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        later: impl Future<Output = Handshaking> + 'static,
    ) {
        let Some((slot, connection)) =
            self.driven_slot(event_loop, place, connection, DrivenWork::None)
        else {
            return;
        };
        let return_queue = Rc::clone(&self.return_queue);
        event_loop.drive(Box::pin(async move {
            let handed_back = HandBackOnDrop::new(&return_queue, &slot);
            let state = Box::new(later.await);
            handed_back.disarm();
            return_queue.give_back(slot, Left::Handshake(connection, state));
        }));
    }

    /// A connection comes back whose handshake goes on.
    pub(in crate::connection) fn taken_back_in_handshake(
        &mut self,
        event_loop: &mut EventLoop,
        slot: DrivenSlot,
        connection: Connection,
        state: Handshaking,
    ) {
        let DrivenSlot { token, watch } = slot;
        if let Some(why @ (Why::Cut | Why::MakesRoom)) = watch.why_closed() {
            self.unpark(event_loop, Place::At(token));
            self.close(connection, why.reason());
            return;
        }
        self.shake_hands(event_loop, Place::At(token), connection, state);
        self.parked_ready(event_loop, token, watch.has_ended());
    }

    fn handshake_step(&self, connection: &mut Connection, mut state: Handshaking) -> Step {
        loop {
            let next = match state {
                Handshaking::Session(agreed) => {
                    self.lane.handshakes.count();
                    return self.session_step(connection, agreed);
                }
                Handshaking::Complete(session) => return Step::Complete(session),
                Handshaking::Certified(certified) => self.certified(connection, *certified),
                Handshaking::Beginning(_) | Handshaking::Given(_) | Handshaking::Hello(_) => {
                    self.hello_step(connection, state)
                }
            };
            state = match next {
                Ok(state) => state,
                Err(step) => return step,
            };
        }
    }

    fn session_step(&self, connection: &mut Connection, agreed: Agreed) -> Step {
        match connection.transport.handshake() {
            Ok(Handshake::Done) => Step::Done(agreed),
            Ok(Handshake::WantsRead) => Step::WantsRead(Handshaking::Session(agreed)),
            Ok(Handshake::WantsWrite) => Step::WantsWrite(Handshaking::Session(agreed)),
            Err(error) => {
                log(connection, Level::Info, format_args!("{error}"));
                Step::Failed(CloseReason::HandshakeFailed)
            }
        }
    }

    /// Reads what has come and gets on with it; the error is what to do where that is not possible
    /// now.
    fn hello_step(
        &self,
        connection: &mut Connection,
        state: Handshaking,
    ) -> Result<Handshaking, Step> {
        connection.input.release();
        let was_given = matches!(state, Handshaking::Given(_));
        if let Handshaking::Beginning(bytes) | Handshaking::Given(bytes) = &state {
            connection.input.put(bytes);
        }
        let received = if was_given {
            Ok(connection.input.bytes().len())
        } else {
            receive(connection)
        };
        let went = match received {
            Ok(0) => Some(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.input.release();
                return Err(Step::WantsRead(state));
            }
            Err(error) => Some(error),
        };
        if let Some(error) = went {
            return Err(client_went(connection, &state, error));
        }
        let hello = match state {
            Handshaking::Hello(hello) => hello,
            _ => match first_bytes(connection) {
                FirstBytes::Tls => Box::new(expect_hello(connection.plan.variables())),
                FirstBytes::Plain => return Err(Step::Plain),
                FirstBytes::Incomplete => {
                    return Ok(Handshaking::Beginning(connection.input.take_bytes()));
                }
                FirstBytes::Invalid => return Err(Step::Failed(CloseReason::Refused)),
            },
        };
        let fed = self.feed(connection, hello, connection.input.bytes());
        connection.input.release();
        fed
    }

    fn feed(
        &self,
        connection: &Connection,
        mut hello: Box<Hello>,
        bytes: &[u8],
    ) -> Result<Handshaking, Step> {
        match hello.feed(bytes) {
            Ok(None) => Ok(Handshaking::Hello(hello)),
            Ok(Some(greeting)) => self.greeted(connection, greeting),
            Err(why) => {
                log(connection, Level::Info, format_args!("{why}"));
                connection.transport.refuse(why);
                Err(Step::Failed(CloseReason::HandshakeFailed))
            }
        }
    }

    /// Begins the session with the server that the client asks for.
    fn greeted(&self, connection: &Connection, greeting: Greeting) -> Result<Handshaking, Step> {
        let mut offer = Offer::of(&greeting);
        if let Some(identity) = challenged(&greeting, &offer) {
            return self.accept(connection, greeting, Agreed { offer, identity }, None);
        }
        let (plan, facts) = (&connection.plan, &connection.facts);
        let make = || self.exchange(connection);
        let (tls, loading) = self.server_tls(plan, facts, &mut offer, make);
        let identity = match tls {
            Some(ServerTls::Serve(identity)) => identity,
            Some(ServerTls::Reject) | None => {
                let reason = "handshake rejected";
                log(
                    connection,
                    Level::Info,
                    format_args!("SSL_do_handshake() failed (SSL: {reason})"),
                );
                connection.transport.refuse_name();
                return Err(Step::Failed(CloseReason::HandshakeFailed));
            }
        };
        let agreed = Agreed { offer, identity };
        match loading {
            None => self.accept(connection, greeting, agreed, None),
            Some(Loading::Done(certificates)) => self.certified(
                connection,
                Certified {
                    greeting,
                    agreed,
                    certificates,
                },
            ),
            Some(loading) => Err(Step::Reads(Box::new(Reads {
                greeting,
                agreed,
                loading,
            }))),
        }
    }

    /// Goes on with certificates that were read.
    fn certified(
        &self,
        connection: &Connection,
        certified: Certified,
    ) -> Result<Handshaking, Step> {
        let Certified {
            greeting,
            agreed,
            certificates,
        } = certified;
        match certificates {
            Ok(keys) => self.accept(connection, greeting, agreed, Some(keys)),
            Err(why) => {
                log(connection, Level::Error, format_args!("{why}"));
                connection.transport.refuse_for_error();
                Err(Step::Failed(CloseReason::HandshakeFailed))
            }
        }
    }

    fn accept(
        &self,
        connection: &Connection,
        greeting: Greeting,
        agreed: Agreed,
        certificates: Option<CertifiedKeys>,
    ) -> Result<Handshaking, Step> {
        let identity = &agreed.identity;
        let config = match certificates {
            None => Arc::clone(&identity.config),
            Some(keys) => identity.with_certificates(keys),
        };
        let speaks_tls13 = identity.speaks_tls13;
        match connection.transport.accept(greeting, config, speaks_tls13) {
            Ok(()) => Ok(Handshaking::Session(agreed)),
            Err(error) => {
                let error = HandshakeError::Tls(error);
                log(connection, Level::Info, format_args!("{error}"));
                Err(Step::Failed(CloseReason::HandshakeFailed))
            }
        }
    }

    /// TLS of the server that a client asks for: of the default server, where it has none. Where
    /// variables name its certificates, the reading of these has begun. The offer's host is
    /// forgotten if no server has it.
    pub(in crate::connection) fn server_tls(
        &self,
        plan: &LanePlan,
        facts: &ConnectionFacts,
        offer: &mut Offer,
        exchange: impl FnOnce() -> Box<Exchange>,
    ) -> (Option<ServerTls>, Option<Loading>) {
        let name = offer.host();
        let listen = plan.listen(facts.listen);
        let tls = |server: ServerIndex| plan.location(plan.server(server).root).tls.clone();
        let default = || tls(listen.default_server);
        if (name.is_empty() || listen.names.is_empty())
            && default().is_none_or(|tls| tls.by_name().is_none())
        {
            offer.host_bytes = 0;
            return (default(), None);
        }
        let found = if name.is_empty() {
            None
        } else {
            ConnectionContext::new(plan, facts).server_named(name)
        };
        if found.is_none() {
            offer.host_bytes = 0;
        }
        let tls = found.and_then(tls).or_else(default);
        let by_name = tls.as_ref().and_then(ServerTls::by_name);
        let loading = by_name.map(|by_name| {
            let mut exchange = exchange();
            exchange.begin_request();
            if found.is_some() {
                // Groups of its pattern may stand in the names of certificates.
                let _ = listen.names.find(offer.host(), &*exchange);
            }
            let session = Arc::new(offer.session());
            exchange.requester.set_tls(Some(&session));
            let loading = by_name.load(&*exchange);
            self.recycle(exchange);
            loading
        });
        (tls, loading)
    }

    /// Says that a handshake was given up, since it did not end in time.
    pub(in crate::connection) fn handshake_late(&self, connection: &Connection, why: &str) {
        log(connection, Level::Info, format_args!("{why}"));
        if connection.context().settings().reset_timedout_connection {
            let _ = socket_option::set_reset_on_close(connection.transport.as_fd());
        }
    }
}

/// Looks at what a connection begins with, behind a PROXY protocol header where one is
/// expected.
fn first_bytes(connection: &mut Connection) -> FirstBytes {
    match proxy_header::read(connection) {
        ProxyHeaderState::Read | ProxyHeaderState::Complete => {}
        ProxyHeaderState::Incomplete => return FirstBytes::Incomplete,
        ProxyHeaderState::Invalid => return FirstBytes::Invalid,
    }
    match connection.input.bytes().first() {
        None => FirstBytes::Incomplete,
        Some(&byte) if byte == HANDSHAKE_RECORD || byte & SSL2_HELLO != 0 => FirstBytes::Tls,
        Some(_) => FirstBytes::Plain,
    }
}

fn client_went(connection: &Connection, state: &Handshaking, error: io::Error) -> Step {
    if matches!(state, Handshaking::Beginning(bytes) if bytes.is_empty()) {
        // Nothing was said: somebody looked whether we are there.
        return Step::Failed(match error.kind() {
            io::ErrorKind::UnexpectedEof => CloseReason::ClientClosed,
            _ => CloseReason::of(&error),
        });
    }
    let error = HandshakeError::Socket(error);
    log(connection, Level::Info, format_args!("{error}"));
    Step::Failed(CloseReason::HandshakeFailed)
}

fn log(connection: &Connection, level: Level, why: std::fmt::Arguments<'_>) {
    let context = connection.context();
    context.log(Action::HandshakingClient, level, why);
}
