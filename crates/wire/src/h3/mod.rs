//! HTTP/3 (RFC 9114): bytes of QUIC's streams in, events and bytes out.
//!
//! [`Connection`] is what both ends keep of a connection. The caller keeps a [`RequestStream`] (a
//! client a [`ResponseStream`]) beside each stream of a request, and an [`UnidirectionalStream`]
//! beside each that only the peer writes. Streams, windows and resets are QUIC's, so that this
//! module stores no body and sends nothing itself.

mod connection;
mod control;
mod error;
mod flood;
mod frame;
mod message;
mod request;
mod response;
mod settings;
#[cfg(test)]
mod tests;
mod unidirectional;

pub use connection::{Connection, ConnectionRules, ControlEvent};
pub use error::{ConnectionError, ErrorCode};
pub use frame::{
    FrameHeader, FrameKind, FrameReader, HEADER_BYTES_MAX, Part, StreamId, write_data_header,
};
pub use request::{RequestEvent, RequestStream};
pub use response::{ResponseEvent, ResponseStream};
pub use settings::{PeerSettings, Setting};
pub use unidirectional::UnidirectionalStream;
