//! The endpoint of a lane: it finds the connection of a datagram, and begins connections once the
//! server is chosen that the client asks for.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    EndpointConfig, EndpointEvent, Incoming, InvalidCid, ServerConfig,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use turnpike_lane::flows::connection_id::{CONNECTION_ID_BYTES, ConnectionIds, Place};
use turnpike_wire::quic::initial;
use turnpike_wire::quic::{Header, LongType, header};

use crate::connection::{Connection, Handle};
use crate::first_flight::{FirstFlight, HelloState};
use crate::keys::HostKey;
use crate::limits::{
    ConnectionRules, FLIGHT_BYTES_MAX, FLIGHTS_BYTES_MAX, FLIGHTS_MAX, HalfOpen, HalfOpenCount,
    IDLE_FLIGHT_MS, ResetCount,
};
use crate::tls::ServerConfiguration;
use crate::tokens::UsedTokens;

/// Datagrams of one send, at most: what the kernel cuts.
const SEGMENTS_MAX: usize = 64;

/// The first byte of a packet with a short header (RFC 9000 section 17.3.1).
const SHORT_HEADER: u8 = 0x40;

/// What an endpoint is made of.
pub struct EndpointRules {
    pub host_key: HostKey,
    /// The place of the endpoint's connections.
    pub place: Place,
    /// Handshakes of all endpoints of the process that are not complete.
    pub half_open: HalfOpenCount,
    /// The tokens that clients of the process have shown.
    pub used_tokens: UsedTokens,
}

/// Where a datagram came from, and by which address of ours.
#[derive(Clone, Copy, Debug)]
pub struct From {
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
}

/// Datagrams to one address, in a buffer: all are of one length, but that the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    pub peer: SocketAddr,
    /// The address of ours that they come from, where that is known.
    pub source: Option<IpAddr>,
    pub bytes: usize,
    /// Bytes of each.
    pub datagram_bytes: usize,
}

impl Transmit {
    pub(crate) fn of(transmit: &quinn_proto::Transmit) -> Self {
        Self {
            peer: transmit.destination,
            source: transmit.src_ip,
            bytes: transmit.size,
            datagram_bytes: transmit.segment_size.unwrap_or(transmit.size),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn datagrams(&self) -> usize {
        self.bytes
            .div_ceil(self.datagram_bytes.max(1))
            .min(SEGMENTS_MAX)
    }
}

/// The number of a first flight, until it is accepted or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightId(u64);

/// What a datagram has come to.
pub enum Outcome {
    /// Nothing more has to be done.
    Nothing,
    /// A connection was given something, and is to be looked at.
    Connection(Handle, Packet),
    /// A client has said which server it wants; these are its ClientHello's records.
    Hello(FlightId, Vec<u8>),
    /// This is to be sent, see [`Endpoint::output`].
    Answer(Transmit),
}

/// A packet on its way to its connection.
pub struct Packet {
    event: ConnectionEvent,
    /// The address that it has come from.
    peer: SocketAddr,
}

/// A connection that has begun.
pub struct Accepted {
    pub handle: Handle,
    pub connection: Connection,
}

/// A connection that has not.
pub struct Refused {
    /// What tells the client, where there is something.
    pub answer: Option<Transmit>,
    pub reason: String,
}

/// A first flight that no connection was made of yet.
struct Flight {
    id: FlightId,
    began_ms: u64,
    incoming: Incoming,
    half_open: HalfOpen,
    /// Whether clients prove their addresses first (`quic_retry`).
    must_prove: bool,
    /// `None`: its hello is whole.
    gathering: Option<FirstFlight>,
}

/// The endpoint of a lane.
pub struct Endpoint {
    quinn: quinn_proto::Endpoint,
    configuration: Arc<ServerConfig>,
    flights: HashMap<ConnectionId, Flight>,
    last_flight: u64,
    half_open: HalfOpenCount,
    used_tokens: UsedTokens,
    bare: ServerConfiguration,
    ids: ConnectionIds,
    resets: ResetCount,
    output: Vec<u8>,
}

/// Makes IDs that name this lane.
struct IdGenerator {
    ids: ConnectionIds,
    place: Place,
}

impl ConnectionIdGenerator for IdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut random = [0; 8];
        // Without random numbers no handshake comes to its end either.
        let _ = aws_lc_rs::rand::fill(&mut random);
        ConnectionId::new(&self.ids.write(random, self.place))
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        // Those of other lanes and processes were taken to them; of one that is no more, the client
        // is told so.
        match self.ids.read(id) {
            Some(_) => Ok(()),
            None => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Whether a datagram begins with a Handshake packet of the version that is spoken.
fn is_handshake(datagram: &[u8]) -> bool {
    let first = datagram.first().map(|first| LongType::of(*first));
    let version = match header(datagram) {
        Some(Header::Long { version, .. }) => Some(version),
        _ => None,
    };
    version == Some(initial::VERSION) && first == Some(LongType::Handshake)
}

/// Shows nothing: what first flights are read by has no server yet.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

/// The configuration of no server, by whose keys first flights are read.
fn bare() -> Option<ServerConfiguration> {
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .ok()?;
    let config = builder
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NoCertificate));
    ServerConfiguration::new(&config, Vec::new())
}

impl Endpoint {
    /// An endpoint without connections; `None`: the library has not what QUIC needs.
    #[must_use]
    pub fn new(rules: EndpointRules) -> Option<Self> {
        let EndpointRules {
            host_key,
            place,
            half_open,
            used_tokens,
        } = rules;
        let ids = ConnectionIds::new(host_key.connection_ids());
        let mut endpoint = EndpointConfig::new(host_key.resets());
        endpoint
            .supported_versions(vec![initial::VERSION])
            // They are counted here.
            .min_reset_interval(Duration::ZERO)
            .cid_generator(move || Box::new(IdGenerator { ids, place }));
        let bare = bare()?;
        let mut configuration = ServerConfig::new(Arc::new(bare.clone()), host_key.tokens());
        configuration
            .validation_token_config(used_tokens.rules(false))
            .max_incoming(FLIGHTS_MAX)
            .incoming_buffer_size(FLIGHT_BYTES_MAX)
            .incoming_buffer_size_total(FLIGHTS_BYTES_MAX);
        let configuration = Arc::new(configuration);
        let server = Some(Arc::clone(&configuration));
        Some(Self {
            quinn: quinn_proto::Endpoint::new(Arc::new(endpoint), server, true, None),
            configuration,
            flights: HashMap::new(),
            last_flight: 0,
            half_open,
            used_tokens,
            bare,
            ids,
            resets: ResetCount::default(),
            output: Vec::new(),
        })
    }

    /// The IDs of the endpoint's connections.
    #[must_use]
    pub fn ids(&self) -> &ConnectionIds {
        &self.ids
    }

    /// What is to be sent, as [`Outcome::Answer`] or [`Refused`] say.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes a datagram. `must_prove`: clients prove their addresses first (`quic_retry`).
    pub fn receive(
        &mut self,
        now: (Instant, u64),
        from: From,
        datagram: &[u8],
        must_prove: bool,
    ) -> Outcome {
        self.output.clear();
        let header = header(datagram);
        let destination = match header {
            Some(Header::Long { destination, .. }) if destination.len() <= 20 => {
                Some(ConnectionId::new(destination))
            }
            _ => None,
        };
        if destination.is_some_and(|id| self.is_strange(id, from.peer)) {
            return Outcome::Nothing;
        }
        let hello = destination.and_then(|id| self.gather(id, datagram));
        let bytes = BytesMut::from(datagram);
        let event = self
            .quinn
            .handle(now.0, from.peer, from.local, None, bytes, &mut self.output);
        match (event, hello) {
            (_, Some((id, HelloState::Whole(records)))) => Outcome::Hello(id, records),
            (_, Some((id, HelloState::Invalid))) => {
                self.ignore(id);
                Outcome::Nothing
            }
            (None, _) => match destination {
                Some(id) if is_handshake(datagram) => self.reset(now, from, id, datagram.len()),
                _ => Outcome::Nothing,
            },
            (Some(DatagramEvent::ConnectionEvent(handle, event)), _) => {
                let peer = from.peer;
                Outcome::Connection(Handle(handle), Packet { event, peer })
            }
            (Some(DatagramEvent::Response(transmit)), _) => {
                // Nothing else answers a packet of a connection that there is not.
                let is_reset = matches!(header, Some(Header::Short { .. }));
                self.answer(now.1, &transmit, is_reset)
            }
            (Some(DatagramEvent::NewConnection(incoming)), _) => {
                self.begin(now.1, incoming, destination, datagram, must_prove)
            }
        }
    }

    fn answer(&mut self, now_ms: u64, transmit: &quinn_proto::Transmit, is_reset: bool) -> Outcome {
        if is_reset && !self.resets.add(now_ms) {
            return Outcome::Nothing;
        }
        Outcome::Answer(Transmit::of(transmit))
    }

    /// Answers a Handshake packet of so many bytes that belongs to no connection. Its client has
    /// the reset's token mostly, since that comes with the packets that it answers (RFC 9000
    /// section 10.3), and sends no other packets until they are acknowledged. The library resets
    /// packets with short headers alone, so it is given one.
    fn reset(
        &mut self,
        now: (Instant, u64),
        from: From,
        id: ConnectionId,
        datagram_bytes: usize,
    ) -> Outcome {
        let mut packet = BytesMut::with_capacity(datagram_bytes);
        packet.extend_from_slice(&[SHORT_HEADER]);
        packet.extend_from_slice(&id);
        packet.resize(datagram_bytes.max(packet.len()), 0);
        let event = self
            .quinn
            .handle(now.0, from.peer, from.local, None, packet, &mut self.output);
        match event {
            Some(DatagramEvent::Response(transmit)) => self.answer(now.1, &transmit, true),
            // The connection is there, but the packet was not well-formed.
            _ => Outcome::Nothing,
        }
    }

    /// Whether a datagram for a first flight has come from another address than its beginning. It
    /// would count to what the first address may be sent (RFC 9000 section 8.1).
    fn is_strange(&self, id: ConnectionId, peer: SocketAddr) -> bool {
        let flight = self.flights.get(&id);
        flight.is_some_and(|flight| flight.incoming.remote_address() != peer)
    }

    /// Adds a datagram to the first flight that it belongs to, if that is not whole yet.
    fn gather(&mut self, id: ConnectionId, datagram: &[u8]) -> Option<(FlightId, HelloState)> {
        let flight = self.flights.get_mut(&id)?;
        let state = flight.gathering.as_mut()?.add(datagram);
        if state != HelloState::Partial {
            flight.gathering = None;
        }
        Some((flight.id, state))
    }

    /// A client sends its first packet.
    fn begin(
        &mut self,
        now_ms: u64,
        incoming: Incoming,
        destination: Option<ConnectionId>,
        datagram: &[u8],
        must_prove: bool,
    ) -> Outcome {
        let is_proved = incoming.remote_address_validated();
        if !is_proved && (must_prove || self.half_open.is_high()) {
            return match self.quinn.retry(incoming, &mut self.output) {
                Ok(transmit) => Outcome::Answer(Transmit::of(&transmit)),
                Err(error) => {
                    self.quinn.ignore(error.into_incoming());
                    Outcome::Nothing
                }
            };
        }
        let keys = destination.and_then(|id| Some((id, self.bare.initial_keys(&id)?)));
        let (Some((destination, keys)), Some(half_open)) = (keys, self.half_open.add()) else {
            self.quinn.ignore(incoming);
            return Outcome::Nothing;
        };
        let mut gathering = FirstFlight::new(keys);
        let state = gathering.add(datagram);
        // What has nothing of a hello begins none: it comes from a client whose handshake another
        // process had, or from nobody.
        if state == HelloState::Invalid || gathering.is_empty() {
            self.quinn.ignore(incoming);
            return Outcome::Nothing;
        }
        self.last_flight += 1;
        let id = FlightId(self.last_flight);
        let flight = Flight {
            id,
            began_ms: now_ms,
            incoming,
            half_open,
            must_prove,
            gathering: (state == HelloState::Partial).then_some(gathering),
        };
        if let Some(replaced) = self.flights.insert(destination, flight) {
            self.quinn.ignore(replaced.incoming);
        }
        match state {
            HelloState::Whole(records) => Outcome::Hello(id, records),
            _ => Outcome::Nothing,
        }
    }

    /// Begins the connection of a first flight with the server that was chosen for it. Its packets
    /// so far are handled.
    ///
    /// # Errors
    /// Why there is none.
    pub fn accept(
        &mut self,
        now: Instant,
        id: FlightId,
        server: &ServerConfiguration,
        rules: &ConnectionRules,
    ) -> Result<Accepted, Refused> {
        self.output.clear();
        let Some(flight) = self.take(id) else {
            return Err(Refused {
                answer: None,
                reason: "the first flight was given up".to_owned(),
            });
        };
        let mut configuration = ServerConfig::clone(&self.configuration);
        configuration.crypto = Arc::new(server.keeping(rules.ids_max));
        configuration.transport_config(Arc::new(rules.transport()));
        if flight.must_prove {
            configuration.validation_token_config(self.used_tokens.rules(true));
        }
        let configuration = Some(Arc::new(configuration));
        let accepted = self
            .quinn
            .accept(flight.incoming, now, &mut self.output, configuration);
        match accepted {
            Ok((handle, connection)) => Ok(Accepted {
                handle: Handle(handle),
                connection: Connection::new(connection, flight.half_open),
            }),
            Err(error) => Err(Refused {
                answer: error.response.as_ref().map(Transmit::of),
                reason: error.cause.to_string(),
            }),
        }
    }

    /// Refuses the connection of a first flight, by an alert of TLS or, where that has none to say,
    /// by QUIC's own error; what is returned is to be sent.
    pub fn refuse(&mut self, now: Instant, id: FlightId, alert: Option<u8>) -> Option<Transmit> {
        self.output.clear();
        let flight = self.take(id)?;
        let Some(alert) = alert else {
            let transmit = self.quinn.refuse(flight.incoming, &mut self.output);
            return Some(Transmit::of(&transmit));
        };
        let mut configuration = ServerConfig::clone(&self.configuration);
        configuration.crypto = Arc::new(self.bare.refusing(alert));
        let configuration = Some(Arc::new(configuration));
        let begun = self
            .quinn
            .accept(flight.incoming, now, &mut self.output, configuration);
        match begun {
            Err(error) => error.response.as_ref().map(Transmit::of),
            // The hello begins in a later packet than the first, which was handled by now.
            Ok((handle, mut connection)) => {
                let transmit = connection.poll_transmit(now, 1, &mut self.output);
                self.quinn.handle_event(handle, EndpointEvent::drained());
                transmit.as_ref().map(Transmit::of)
            }
        }
    }

    /// Forgets a first flight.
    fn ignore(&mut self, id: FlightId) {
        if let Some(flight) = self.take(id) {
            self.quinn.ignore(flight.incoming);
        }
    }

    fn take(&mut self, id: FlightId) -> Option<Flight> {
        let mut flights = self.flights.iter();
        let found = flights.find(|(_, flight)| flight.id == id);
        let destination = found.map(|(destination, _)| *destination)?;
        self.flights.remove(&destination)
    }

    /// Forgets first flights of which the rest does not come.
    pub fn tick(&mut self, now_ms: u64) {
        let is_late = |flight: &Flight| flight.began_ms + IDLE_FLIGHT_MS <= now_ms;
        let late: Vec<_> = self
            .flights
            .extract_if(|_, flight| is_late(flight))
            .collect();
        for (_, flight) in late {
            self.quinn.ignore(flight.incoming);
        }
    }

    /// First flights that no connection was made of yet.
    #[must_use]
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// Gives a connection its packet. One from another address is left out until the handshake is
    /// complete: clients move only then (RFC 9000 section 9), and it would count to what the first
    /// address may be sent although that is not proved (section 8.1).
    pub fn deliver(&mut self, handle: Handle, connection: &mut Connection, packet: Packet) {
        if connection.is_handshaking() && connection.peer() != packet.peer {
            return;
        }
        connection.handle(packet.event);
        self.settle(handle, connection);
    }

    /// As [`Endpoint::settle`], of the connection with that number, which is this one.
    pub fn settle_at(&mut self, number: usize, connection: &mut Connection) {
        self.settle(Handle(ConnectionHandle(number)), connection);
    }

    /// Exchanges what a connection and its endpoint have to tell each other; to be called whenever
    /// something was done with a connection.
    pub fn settle(&mut self, handle: Handle, connection: &mut Connection) {
        while let Some(event) = connection.poll_endpoint_event() {
            if let Some(answer) = self.quinn.handle_event(handle.0, event) {
                connection.handle(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests;
