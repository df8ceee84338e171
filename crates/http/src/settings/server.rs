//! Settings that hold before a location is known, and those of `events`.

use turnpike_conf::View;
use turnpike_wire::h2::WINDOW_MAX;
use turnpike_wire::message::{HeadRules, InvalidFields, Strictness};

use super::debugged::DebuggedClients;

/// `events { }`.
#[derive(Clone, Debug)]
pub struct EventsSettings {
    /// Connections that a lane may hold.
    pub connections_max: usize,
    /// Accept all that wait, not one at a time.
    pub multi_accept: bool,
    /// One lane at a time accepts on shared gates.
    pub accept_mutex: bool,
    /// How long a lane that did not get the mutex waits, in milliseconds.
    pub accept_mutex_delay_ms: u64,
    /// Tengine's `reuse_port`: a gate per lane for every address.
    pub reuse_port: bool,
    /// `debug_connection`.
    pub debugged: DebuggedClients,
}

/// Settings of a server block.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// How long a whole request head may take, in milliseconds; 0 is for ever.
    pub client_header_timeout_ms: u64,
    /// Limits on the head.
    pub head_rules: HeadRules,
    /// Several slashes in a path become one.
    pub merge_slashes: bool,
    pub http2: Http2Settings,
    pub http3: Http3Settings,
}

/// How HTTP/2 is spoken.
#[derive(Clone, Copy, Debug)]
pub struct Http2Settings {
    /// `http2`
    pub is_on: bool,
    /// Streams of a connection that may be open at once.
    pub streams_max: u32,
    /// Bytes of a request's body that may come before they are asked for.
    pub preread_bytes: u32,
    /// Longest name or value in bytes, and longest list of fields: nginx's, which do not count the
    /// first buffer of HTTP/1.
    pub field_bytes_max: usize,
    pub list_bytes_max: usize,
    /// Bytes that are read of a connection in a turn.
    pub receive_bytes_max: usize,
}

/// How HTTP/3 is spoken.
#[derive(Clone, Copy, Debug)]
pub struct Http3Settings {
    /// `http3`
    pub is_on: bool,
    /// Requests of a connection that may be open at once.
    pub streams_max: u32,
    /// Bytes that may come on a stream before they are read.
    pub stream_buffer_bytes: u32,
    /// Whether clients prove their addresses first.
    pub proves_addresses: bool,
    /// Whether the kernel cuts datagrams.
    pub cuts: bool,
    /// Connection IDs of a client that are kept.
    pub ids_max: u32,
}

impl EventsSettings {
    /// Reads the `events` block.
    pub fn read(events: View<'_>) -> Self {
        Self {
            connections_max: usize::try_from(events.number("worker_connections")).unwrap_or(512),
            multi_accept: events.flag("multi_accept"),
            accept_mutex: events.flag("accept_mutex"),
            accept_mutex_delay_ms: events.milliseconds("accept_mutex_delay"),
            reuse_port: events.flag("reuse_port"),
            debugged: DebuggedClients::read(events),
        }
    }
}

impl ServerSettings {
    /// Reads a server block (or what it inherits).
    pub fn read(server: View<'_>) -> Self {
        let (count, bytes) = server.buffers("large_client_header_buffers");
        let (count, bytes) = (count as usize, bytes as usize);
        let first = server.size("client_header_buffer_size") as usize;
        Self {
            client_header_timeout_ms: server.milliseconds("client_header_timeout"),
            head_rules: HeadRules {
                line_bytes_max: bytes.max(first),
                head_bytes_max: first + count * bytes,
                fields_max: usize::try_from(server.number("max_headers")).unwrap_or(usize::MAX),
                invalid_fields: if server.flag("ignore_invalid_headers") {
                    InvalidFields::Ignore
                } else {
                    InvalidFields::Keep
                },
                underscores: server.flag("underscores_in_headers"),
                connect: false,
                http09: server.flag("http09"),
                strictness: match server.choice("http_strictness") {
                    "nginx" => Strictness::Nginx,
                    _ => Strictness::Rfc,
                },
            },
            merge_slashes: server.flag("merge_slashes"),
            http2: Http2Settings::read(server),
            http3: Http3Settings::read(server),
        }
    }
}

impl Http2Settings {
    fn read(server: View<'_>) -> Self {
        let (count, bytes) = server.buffers("large_client_header_buffers");
        let streams_max = server.number("http2_max_concurrent_streams");
        let preread_bytes = server.size("http2_body_preread_size");
        Self {
            is_on: server.flag("http2"),
            field_bytes_max: bytes as usize,
            list_bytes_max: (count as usize).saturating_mul(bytes as usize),
            streams_max: u32::try_from(streams_max).unwrap_or(u32::MAX),
            preread_bytes: u32::try_from(preread_bytes)
                .map_or(WINDOW_MAX, |bytes| bytes.min(WINDOW_MAX)),
            receive_bytes_max: server.size("http2_recv_buffer_size") as usize,
        }
    }
}

impl Http3Settings {
    fn read(server: View<'_>) -> Self {
        let streams_max = server.number("http3_max_concurrent_streams");
        let stream_buffer_bytes = server.size("http3_stream_buffer_size");
        Self {
            is_on: server.flag("http3"),
            streams_max: u32::try_from(streams_max).unwrap_or(u32::MAX),
            stream_buffer_bytes: u32::try_from(stream_buffer_bytes)
                .map_or(WINDOW_MAX, |bytes| bytes.min(WINDOW_MAX)),
            proves_addresses: server.flag("quic_retry"),
            cuts: server.flag("quic_gso"),
            ids_max: u32::try_from(server.number("quic_active_connection_id_limit"))
                .unwrap_or(u32::MAX),
        }
    }
}
