//! HTTP/2 (RFC 9113): bytes in, events and bytes out.
//!
//! [`Connection`] is the server's side of a connection, [`ClientConnection`] the client's. They use
//! no socket and no clock, and store no body: received DATA is passed on at once, and DATA to send
//! is taken only as far as the windows allow.

mod client;
mod connection;
mod endpoint;
mod error;
mod flood;
mod frame;
mod header_block;
pub mod hpack;
mod settings;
mod stream;
mod window;

pub use crate::field_section::{HeadFault, RequestReader, ResponseFault, ResponseReader};
pub use crate::message::Priority;
pub use client::{ClientConnection, ServerEvent, ServerStep};
pub use connection::{Connection, ConnectionRules, Event, PREFACE, Step};
pub use error::{ConnectionError, ErrorCode};
pub use frame::{
    Frame, FrameHeader, FrameKind, HEADER_BYTES, PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX,
    StreamId, write_data, write_go_away, write_headers, write_ping_ack, write_rst_stream,
    write_settings, write_settings_ack, write_window_update,
};
pub use settings::{PeerSettings, Setting};
pub use window::{WINDOW_DEFAULT, WINDOW_MAX, Window, WindowOverflow};
