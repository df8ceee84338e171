//! Connections of HTTP/3: how datagrams find them, and how they begin and end.
//!
//! ```text
//!  gate ─► endpoint ──ClientHello whole──► the server is chosen ─► (certificates) ─► accepted
//!             └── of a connection ─► it is due ──end of the turn──► a turn of the connection
//! ```
//!
//! Such connections have no sockets of their own, and no future has them: they stand in a list by
//! the numbers that their endpoint gives, and are due when a datagram, a deadline or an answer
//! wants them.

mod all;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use turnpike_lane::event_loop::{EventLoop, Owner};
use turnpike_lane::flows::{Arrival, ForwardedDatagram};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::steering::QuicRules;
use turnpike_lane::sys::datagram::{self, Batch, DATAGRAMS_MAX, Route};
use turnpike_lane::sys::epoll::Interest;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::timeout::bounded;
use turnpike_lane::transport::{INTERNAL_ERROR, SocketFacts, UNRECOGNIZED_NAME};
use turnpike_plan::tls::expect_hello;
use turnpike_plan::tls::{CertifiedKeys, Loaded, Loading, Offer, ServerIdentity, ServerTls};
use turnpike_quic::{self as quic, ConnectionRules, FlightId, Outcome, TimeScale};
use turnpike_wire::h3;
use turnpike_wire::message::HeadRules;

use super::connections::Connections;
use crate::connection_context::ConnectionContext;
use crate::exchange::Action;
use crate::h3::connection::{Http3Connection, Opening};
use crate::h3::flows::QuicFlows;
use crate::h3::frames::Http3Frames;
use crate::lane::{LanePlan, LaneShared};
use crate::plan::ServerIndex;
use crate::plan::index::ListenIndex;
use crate::requester::ConnectionFacts;
use crate::settings::ServerSettings;
use crate::streams::serving::Serving;
use crate::streams::shared::{Shared, Work};

/// Calls that empty a gate in a turn: a flood is not to keep everything else on the lane waiting.
const CALLS_PER_TURN_MAX: usize = 8;

/// Milliseconds that certificates may take to be read, where no time-out of heads says it.
const CERTIFICATES_TIMEOUT_MS: u64 = 60_000;

/// What a lane has for HTTP/3.
pub(super) struct Http3 {
    endpoint: quic::Endpoint,
    scale: TimeScale,
    owner: Owner,
    flows: QuicFlows,
    /// By the numbers that the endpoint gives.
    connections: Vec<Option<Box<Http3Connection>>>,
    /// Connections that have not ended.
    open: usize,
    due: Rc<DueConnections>,
    /// Gates that are still read though the lane has them no more, for the connections that came by
    /// them.
    last_gates: Vec<LastGate>,
    /// First flights whose certificates were read.
    loaded: Rc<RefCell<Vec<Certified>>>,
    batch: Batch,
}

/// A datagram, and how it came.
struct Received<'b> {
    listen: ListenIndex,
    /// The address that the gate is bound to.
    own: SocketAddr,
    peer: SocketAddr,
    /// Our address, where the gate is bound to all of them.
    source: Option<IpAddr>,
    bytes: &'b [u8],
}

/// A gate that is read until its connections have ended.
#[derive(Clone)]
struct LastGate {
    socket: Arc<OwnedFd>,
    address: SocketAddr,
}

/// The place of gates that no plan has: no connection begins there.
const NO_LISTEN: ListenIndex = ListenIndex(u32::MAX);

/// Connections that are due at the end of the turn.
struct DueConnections {
    numbers: RefCell<Vec<usize>>,
    /// Has the lane's loop take a turn.
    notify: Rc<Notify>,
}

/// A first flight whose server is known.
struct Chosen {
    flight: FlightId,
    facts: ConnectionFacts,
    gate: Arc<OwnedFd>,
    offer: Offer,
    identity: Arc<ServerIdentity>,
}

/// The same, with the certificates that it is shown.
struct Certified {
    chosen: Chosen,
    loaded: Loaded,
}

impl DueConnections {
    fn add(&self, number: usize) {
        self.numbers.borrow_mut().push(number);
        self.notify.notify_one();
    }
}

impl Http3 {
    fn new(owner: Owner, lane: &LaneShared, plan: &LanePlan) -> Option<Self> {
        let process = &lane.all_counters.http3;
        let host_key = process.host_key(plan.quic_key.as_ref())?;
        let own = process.place(lane.index)?;
        let place = own.get();
        lane.common.flows.steer(QuicRules {
            key: host_key.connection_ids(),
            old_key: None,
            process: place.process,
        });
        let flows = QuicFlows::new(lane, owner, &host_key, own);
        let endpoint = quic::Endpoint::new(quic::EndpointRules {
            host_key,
            place,
            half_open: process.half_open().clone(),
            used_tokens: process.used_tokens().clone(),
        })?;
        let notify = lane.background.wake();
        Some(Self {
            flows,
            endpoint,
            scale: TimeScale::new(lane.clock.now_ns()),
            owner,
            connections: Vec::new(),
            open: 0,
            due: Rc::new(DueConnections {
                numbers: RefCell::default(),
                notify: Rc::clone(notify),
            }),
            last_gates: Vec::new(),
            loaded: Rc::default(),
            batch: Batch::default(),
        })
    }

    fn get(&mut self, number: usize) -> Option<&mut Box<Http3Connection>> {
        self.connections.get_mut(number)?.as_mut()
    }

    /// The connections that have not ended.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    fn iter(&self) -> impl Iterator<Item = &Http3Connection> {
        self.connections.iter().flatten().map(|boxed| &**boxed)
    }

    /// The numbers of those that have not ended.
    fn numbers(&self) -> Vec<usize> {
        let numbered = self.connections.iter().enumerate();
        let open = numbered.filter(|(_, slot)| {
            slot.as_ref()
                .is_some_and(|connection| connection.ended().is_none())
        });
        open.map(|(number, _)| number).collect()
    }

    /// Sends what the endpoint has to say to somebody without a connection.
    fn answer(&self, gate: &OwnedFd, transmit: quic::Transmit) {
        let route = Route {
            peer: Some(transmit.peer),
            source: transmit.source,
        };
        let datagrams = [self.endpoint.output()].into_iter();
        // It is lost as any datagram may be.
        let _ = datagram::send(gate.as_fd(), datagrams, route, &Cell::new(false));
    }
}

impl Connections {
    /// Reads the datagrams that wait at a gate. `room`: connections that may begin.
    pub(super) fn read_datagrams(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        gate: &Arc<OwnedFd>,
        mut room: usize,
    ) {
        let Some(listen) = self.plan.listens.get(place as usize) else {
            return;
        };
        let ListenAddress::Udp(own) = listen.address else {
            return;
        };
        self.read_gate(event_loop, (ListenIndex(place), own), gate, &mut room);
    }

    /// The same, of a gate that is bound to that address of ours.
    fn read_gate(
        &mut self,
        event_loop: &mut EventLoop,
        (listen, own): (ListenIndex, SocketAddr),
        gate: &Arc<OwnedFd>,
        room: &mut usize,
    ) {
        let Some(mut http3) = self.take_http3() else {
            return;
        };
        let mut batch = std::mem::take(&mut http3.batch);
        for _ in 0..CALLS_PER_TURN_MAX {
            let Ok(count) = batch.receive(gate.as_fd(), DATAGRAMS_MAX) else {
                break;
            };
            for datagram in batch.datagrams() {
                let Some(peer) = datagram.peer.inet() else {
                    continue;
                };
                let datagram = Received {
                    listen,
                    own,
                    peer,
                    source: datagram.local.filter(|_| own.ip().is_unspecified()),
                    bytes: datagram.bytes,
                };
                if takes(&mut http3, gate, &datagram) {
                    self.guarded(event_loop, &mut http3, gate, &datagram, room);
                }
            }
            if count < DATAGRAMS_MAX {
                break;
            }
        }
        http3.batch = batch;
        self.http3 = Some(http3);
    }

    /// Goes on to read the gates of connections that are not closed yet: those that the plan in
    /// force does not have, or all while the process ends, if no other one reads them.
    pub(super) fn keep_quic_gates(&mut self, event_loop: &mut EventLoop) {
        let is_draining = self.is_draining();
        let Some(http3) = &mut self.http3 else {
            return;
        };
        if self.lane.common.flows.have_successor() {
            return;
        }
        let sockets = event_loop.numbered_sockets(http3.owner);
        let connections = http3.connections.iter().flatten();
        for connection in connections.filter(|connection| connection.ended().is_none()) {
            let (serving, gate) = (&connection.serving, &connection.gate);
            let ListenAddress::Udp(address) = serving.plan.listen(serving.facts.listen).address
            else {
                continue;
            };
            let is_gone = serving
                .plan
                .same_listen(serving.facts.listen, &self.plan)
                .is_none();
            let mut others = http3.last_gates.iter();
            if (is_draining || is_gone) && !others.any(|other| Arc::ptr_eq(&other.socket, gate)) {
                let number = http3.last_gates.len() as u64;
                // One that cannot be watched loses what is left of its connections.
                let _ = sockets.add(gate.as_fd(), Interest::READ, number);
                http3.last_gates.push(LastGate {
                    socket: Arc::clone(gate),
                    address,
                });
            }
        }
    }

    /// Datagrams wait at a gate that is still read.
    pub(super) fn last_gate_ready(&mut self, event_loop: &mut EventLoop, number: u64) {
        let gates = self.http3.as_ref().map(|http3| &http3.last_gates);
        let gate = gates.and_then(|gates| gates.get(usize::try_from(number).ok()?).cloned());
        if let Some(LastGate { socket, address }) = gate {
            self.read_gate(event_loop, (NO_LISTEN, address), &socket, &mut 0);
        }
    }

    /// Takes a datagram that came to another lane or process.
    pub(super) fn take_forwarded(
        &mut self,
        event_loop: &mut EventLoop,
        datagram: &ForwardedDatagram,
        room: &mut usize,
    ) {
        let mut listens = self.plan.listens.iter();
        let place = listens.position(|listen| listen.address == datagram.gate_address);
        // The gate of a datagram from another process is the one that its connection has.
        let gate = match &datagram.arrival {
            Arrival::Gate(gate) => Some(Arc::clone(gate)),
            Arrival::Process(_) | Arrival::Returned => None,
        };
        let (Some(place), Some(mut http3)) = (place, self.http3.take()) else {
            return;
        };
        let received = Received {
            listen: ListenIndex(place as u32),
            own: datagram.local,
            peer: datagram.peer,
            source: datagram.source,
            bytes: &datagram.bytes,
        };
        let gate = gate.or_else(|| {
            let mut others = http3.iter();
            let other = others.find(|other| other.serving.facts.listen == received.listen);
            other.map(|other| Arc::clone(&other.gate))
        });
        if let Some(gate) = gate {
            self.guarded(event_loop, &mut http3, &gate, &received, room);
        }
        self.http3 = Some(http3);
    }

    /// What the lane has for HTTP/3, made with the first datagram; whoever takes it puts it back.
    fn take_http3(&mut self) -> Option<Box<Http3>> {
        if let Some(http3) = self.http3.take() {
            return Some(http3);
        }
        let made = Http3::new(self.owner, &self.lane, &self.plan);
        if made.is_none() {
            self.report_as(Level::Alert, format_args!("QUIC cannot be set up"));
        }
        made.map(Box::new)
    }

    /// Takes a datagram; a panic costs no more than what it was for.
    fn guarded(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        gate: &Arc<OwnedFd>,
        datagram: &Received<'_>,
        room: &mut usize,
    ) {
        let taken = AssertUnwindSafe(|| self.datagram(event_loop, http3, gate, datagram, room));
        if catch_unwind(taken).is_err() {
            self.lane.counters.panics.add();
            self.report(format_args!("a panic was caught; a datagram is lost"));
        }
    }

    fn datagram(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        gate: &Arc<OwnedFd>,
        datagram: &Received<'_>,
        room: &mut usize,
    ) {
        let Received {
            listen,
            peer,
            source: local,
            bytes,
            ..
        } = *datagram;
        let proves = self
            .plan
            .listens
            .get(listen.0 as usize)
            .is_some_and(|listen| {
                let server = self.plan.server(listen.default_server);
                server.settings.http3.proves_addresses
            });
        let now = (
            http3.scale.instant(event_loop.clock.now_ns()),
            event_loop.clock.now_ms(),
        );
        let from = quic::From { peer, local };
        match http3.endpoint.receive(now, from, bytes, proves) {
            Outcome::Nothing => {}
            Outcome::Answer(transmit) => http3.answer(gate, transmit),
            Outcome::Connection(handle, packet) => {
                let number = handle.index();
                let Http3 {
                    endpoint,
                    connections,
                    due,
                    ..
                } = http3;
                if let Some(Some(connection)) = connections.get_mut(number) {
                    if !Arc::ptr_eq(&connection.gate, gate) {
                        connection.gate = Arc::clone(gate);
                    }
                    let mut frames = connection.frames.borrow_mut();
                    endpoint.deliver(handle, &mut frames.quic, packet);
                    due.add(number);
                }
            }
            Outcome::Hello(flight, records) => {
                if *room == 0 || self.is_draining() {
                    self.refuse(http3, flight, gate, None);
                    return;
                }
                *room -= 1;
                let facts = self.facts(event_loop, listen, PeerAddress::Inet(peer), local);
                self.greeted_by_quic(event_loop, http3, (flight, facts), gate, &records);
            }
        }
    }

    fn facts(
        &self,
        event_loop: &EventLoop,
        listen: ListenIndex,
        peer: PeerAddress,
        local: Option<IpAddr>,
    ) -> ConnectionFacts {
        let gate = match self.plan.listen(listen).address {
            ListenAddress::Udp(address) => Some(address),
            ListenAddress::Tcp(_) | ListenAddress::Unix(_) => None,
        };
        let local = gate.map(|mut address| {
            if let Some(local) = local {
                address.set_ip(local);
            }
            address
        });
        ConnectionFacts {
            serial: self.lane.next_serial(),
            peer,
            listen,
            socket: SocketFacts::NONE,
            local,
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        }
    }

    /// Refuses a client, by an alert where TLS has one for the reason.
    fn refuse(&self, http3: &mut Http3, flight: FlightId, gate: &OwnedFd, alert: Option<u8>) {
        let now = http3.scale.instant(self.lane.clock.now_ns());
        if let Some(transmit) = http3.endpoint.refuse(now, flight, alert) {
            http3.answer(gate, transmit);
        }
    }

    /// A client has said which server it wants.
    fn greeted_by_quic(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        (flight, facts): (FlightId, ConnectionFacts),
        gate: &Arc<OwnedFd>,
        records: &[u8],
    ) {
        let plan = Rc::clone(&self.plan);
        let mut hello = expect_hello(plan.variables());
        let greeting = match hello.feed(records) {
            Ok(Some(greeting)) => greeting,
            Ok(None) => return self.refuse(http3, flight, gate, None),
            Err(why) => {
                self.log_handshake_of(&facts, Level::Info, format_args!("{why}"));
                return self.refuse(http3, flight, gate, why.alert());
            }
        };
        let mut offer = Offer::of(&greeting).over_quic();
        let make = || self.lane.exchange(&plan, &facts);
        let (tls, loading) = self.server_tls(&plan, &facts, &mut offer, make);
        let Some(ServerTls::Serve(identity)) = tls else {
            let why = format_args!("SSL_do_handshake() failed (SSL: handshake rejected)");
            self.log_handshake_of(&facts, Level::Info, why);
            return self.refuse(http3, flight, gate, Some(UNRECOGNIZED_NAME));
        };
        let chosen = Chosen {
            flight,
            facts,
            gate: Arc::clone(gate),
            offer,
            identity,
        };
        match loading {
            None => self.accept_http3(event_loop, http3, chosen, None),
            Some(Loading::Done(loaded)) => {
                self.certified_http3(event_loop, http3, Certified { chosen, loaded });
            }
            Some(loading) => {
                let (all, notify) = (Rc::clone(&http3.loaded), Rc::clone(&http3.due));
                self.lane.run_in_background(Box::pin(async move {
                    let loaded = bounded(CERTIFICATES_TIMEOUT_MS, loading.done()).await;
                    let late = || Err("reading a certificate took too long".to_owned());
                    let loaded = loaded.unwrap_or_else(late);
                    all.borrow_mut().push(Certified { chosen, loaded });
                    notify.notify.notify_one();
                }));
            }
        }
    }

    fn certified_http3(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        certified: Certified,
    ) {
        let Certified { chosen, loaded } = certified;
        match loaded {
            Ok(keys) => self.accept_http3(event_loop, http3, chosen, Some(keys)),
            Err(why) => {
                self.log_handshake_of(&chosen.facts, Level::Error, format_args!("{why}"));
                self.refuse(http3, chosen.flight, &chosen.gate, Some(INTERNAL_ERROR));
            }
        }
    }

    /// Begins a connection.
    fn accept_http3(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        chosen: Chosen,
        keys: Option<CertifiedKeys>,
    ) {
        let Chosen {
            flight,
            facts,
            gate,
            offer,
            identity,
        } = chosen;
        let plan = Rc::clone(&self.plan);
        let Some(listen) = plan.listens.get(facts.listen.0 as usize) else {
            return self.refuse(http3, flight, &gate, None);
        };
        let server = listen.default_server;
        let rules = connection_rules(&plan, server);
        let Some(configuration) = identity.quic_with(keys) else {
            let why = format_args!("SSL_do_handshake() failed (SSL: no QUIC at this server)");
            self.log_handshake_of(&facts, Level::Info, why);
            return self.refuse(http3, flight, &gate, None);
        };
        let now = http3.scale.instant(event_loop.clock.now_ns());
        let accepted = http3.endpoint.accept(now, flight, &configuration, &rules);
        let quic::Accepted { handle, connection } = match accepted {
            Ok(accepted) => accepted,
            Err(refused) => {
                let why = refused.reason;
                let why = format_args!("SSL_do_handshake() failed (SSL: {why})");
                self.log_handshake_of(&facts, Level::Info, why);
                if let Some(transmit) = refused.answer {
                    http3.answer(&gate, transmit);
                }
                return;
            }
        };
        let frames = frames(&plan.server(server).settings, connection);
        let number = handle.index();
        let due = Rc::clone(&http3.due);
        let work = Work::told_by(move || due.add(number));
        let (clock, places) = (&self.lane.clock, self.lane.stream_places());
        let shared = Shared::new(frames.clone(), clock, places, work);
        let opening = Opening {
            serving: Serving {
                lane: Rc::clone(&self.lane),
                plan,
                server,
                facts,
                proxy_header: None,
                tls: None,
            },
            frames,
            shared,
            gate,
            offer,
            identity,
            scale: http3.scale,
        };
        self.add_http3(event_loop, http3, number, Http3Connection::new(opening));
    }

    /// Takes up a connection that has begun.
    fn add_http3(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        number: usize,
        mut connection: Http3Connection,
    ) {
        connection.timer = event_loop.numbered_timer(http3.owner, number as u64);
        let counters = &self.lane.counters;
        counters.accepted.add();
        counters.handled.add();
        counters.active.add();
        http3.open += 1;
        if http3.connections.len() <= number {
            http3.connections.resize_with(number + 1, || None);
        }
        http3.connections[number] = Some(Box::new(connection));
        http3.due.add(number);
    }

    /// Gives connections that are due their turns.
    pub(super) fn serve_http3(&mut self, event_loop: &mut EventLoop) {
        let Some(mut http3) = self.http3.take() else {
            return;
        };
        let loaded = http3.loaded.take();
        for certified in loaded {
            self.certified_http3(event_loop, &mut http3, certified);
        }
        let mut numbers = http3.due.numbers.take();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            self.turn_of_http3(event_loop, &mut http3, number, Http3Connection::take_turn);
        }
        self.http3 = Some(http3);
    }

    /// Lets a connection do something, and sees to what follows from it.
    fn turn_of_http3(
        &mut self,
        event_loop: &mut EventLoop,
        http3: &mut Http3,
        number: usize,
        does: impl FnOnce(&mut Http3Connection),
    ) {
        let Some(connection) = http3.get(number) else {
            return;
        };
        let had_ended = connection.ended().is_some();
        if catch_unwind(AssertUnwindSafe(|| does(connection))).is_err() {
            if let Some(timer) = connection.timer.take() {
                event_loop.deadlines.remove(timer);
            }
            http3.connections[number] = None;
            http3.open -= usize::from(!had_ended);
            return self.panicked();
        }
        let ended = connection.ended().filter(|_| !had_ended);
        let frames = Rc::clone(&connection.frames);
        let is_drained = {
            let mut frames = frames.borrow_mut();
            http3.endpoint.settle_at(number, &mut frames.quic);
            frames.quic.is_drained()
        };
        if let Some(reason) = ended {
            http3.open -= 1;
            self.lane.counters.was_closed(reason);
        }
        let Some(connection) = http3.get(number) else {
            return;
        };
        if is_drained {
            if let Some(timer) = connection.timer.take() {
                event_loop.deadlines.remove(timer);
            }
            http3.connections[number] = None;
            return;
        }
        let deadline_ms = connection.deadline_ms();
        if let Some(timer) = &connection.timer {
            match deadline_ms {
                Some(deadline_ms) => event_loop.deadlines.set(timer, deadline_ms),
                None => event_loop.deadlines.clear(timer),
            }
        }
    }

    /// The deadline of a connection has passed.
    pub(super) fn http3_due(&mut self, event_loop: &mut EventLoop, number: u64) {
        let Some(mut http3) = self.http3.take() else {
            return;
        };
        let number = number as usize;
        self.turn_of_http3(event_loop, &mut http3, number, |connection| {
            connection.time_passed();
            connection.take_turn();
        });
        self.http3 = Some(http3);
    }

    fn log_handshake_of(
        &self,
        facts: &ConnectionFacts,
        level: Level,
        why: std::fmt::Arguments<'_>,
    ) {
        let context = ConnectionContext::new(&self.plan, facts);
        context.log(Action::HandshakingClient, level, why);
    }
}

/// Whether this lane is to take a datagram.
fn takes(http3: &mut Http3, gate: &Arc<OwnedFd>, datagram: &Received<'_>) -> bool {
    http3.flows.takes(datagram.bytes, gate, |key| {
        let mut local = datagram.own;
        if let Some(source) = datagram.source {
            local.set_ip(source);
        }
        ForwardedDatagram {
            key,
            gate_address: ListenAddress::Udp(datagram.own),
            peer: datagram.peer,
            local,
            source: datagram.source,
            arrival: Arrival::Gate(Arc::clone(gate)),
            bytes: datagram.bytes.to_vec(),
        }
    })
}

/// What a connection with that default server may use.
fn connection_rules(plan: &LanePlan, server: ServerIndex) -> ConnectionRules {
    let server = plan.server(server);
    let root = &plan.location(server.root).settings;
    let settings = &server.settings;
    ConnectionRules {
        streams_max: settings.http3.streams_max,
        stream_buffer_bytes: settings.http3.stream_buffer_bytes,
        ids_max: settings.http3.ids_max,
        idle_timeout_ms: match root.keepalive_timeout_ms {
            0 => settings.client_header_timeout_ms,
            timeout_ms => timeout_ms,
        },
    }
}

/// The frames of a connection.
fn frames(settings: &ServerSettings, connection: quic::Connection) -> Rc<RefCell<Http3Frames>> {
    let wire = h3::Connection::server(h3::ConnectionRules {
        head: HeadRules {
            line_bytes_max: settings.http2.field_bytes_max,
            head_bytes_max: settings.http2.list_bytes_max,
            ..settings.head_rules
        },
        has_connect_protocol: true,
    });
    let preread_bytes = settings.http3.stream_buffer_bytes as usize;
    let frames = Http3Frames::new(connection, wire, preread_bytes);
    Rc::new(RefCell::new(frames))
}
