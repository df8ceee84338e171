//! QUIC (RFC 9000, RFC 9001, RFC 9002) for a lane: an endpoint that is given datagrams, and the
//! connections that it begins. `quinn-proto` is the protocol; what is here chooses a server by the
//! first flight, limits what strangers can cost, and says which lane a packet belongs to.
//!
//! ```text
//!  datagram ─► Endpoint ──first flight──► ClientHello whole: whoever serves chooses ─► accept
//!                 └─────of a connection─► Connection ─► streams, datagrams to send, a deadline
//! ```
//!
//! Nothing here enters the kernel or reads a clock: bytes and times come in, bytes and deadlines
//! come out. What streams carry is for others to know.

mod connection;
mod endpoint;
mod first_flight;
mod keys;
mod limits;
mod time;
mod tls;
mod tokens;

pub use connection::{
    Connection, Direction, Event, Handle, Loss, Read, StreamId, stream_id, stream_number,
};
pub use endpoint::{Accepted, Endpoint, EndpointRules, FlightId, From, Outcome, Refused, Transmit};
pub use keys::HostKey;
pub use limits::{
    ConnectionRules, FLIGHTS_MAX, HELLO_BYTES_MAX, HalfOpen, HalfOpenCount, IDLE_FLIGHT_MS,
};
pub use time::TimeScale;
pub use tls::{Negotiated, ServerConfiguration};
pub use tokens::UsedTokens;
pub use turnpike_lane::flows::connection_id::{CONNECTION_ID_BYTES, ConnectionIds, Place};
