//! Rows of HTTP/2 and HTTP/3.

use turnpike_conf::{Context, Merge, Repeat, Row, Value};

use super::passing::{self, table};

const SERVERS: &[Context] = &[Context::Http, Context::Server];

const fn server(row: Row) -> Row {
    Row {
        contexts: SERVERS,
        ..row
    }
}

const FLAG: Row = server(passing::FLAG);
const NUMBER: Row = server(passing::NUMBER);
const SIZE: Row = server(passing::SIZE);
const TIME: Row = server(passing::TIME);

const PUSH: Row = Row {
    repeat: Repeat::Many,
    ..passing::KEY
};
const BPF: Row = Row {
    contexts: &[Context::Main],
    merge: Merge::Own,
    ..FLAG
};
const HOST_KEY: Row = Row {
    value: Value::Text,
    syntax: "file",
    ..FLAG
};

pub(super) const ROWS: &[Row] = table! {
    "Accepted, without effect: nginx has removed it, or it is the size of a table that Turnpike \
     does not have.";
    "http2_idle_timeout" => TIME,
    "http2_max_concurrent_pushes" => NUMBER,
    "http2_max_field_size" => SIZE,
    "http2_max_header_size" => SIZE,
    "http2_max_requests" => NUMBER,
    "http2_pool_size" => SIZE,
    "http2_push" => PUSH,
    "http2_push_preload" => passing::FLAG,
    "http2_recv_timeout" => TIME,
    "http2_streams_index_size" => NUMBER,
};

/// Directives of HTTP/3.
pub(super) const HTTP3: &[Row] = table! {
    "Checked; takes effect with HTTP/3, which is not supported yet.";
    "http3" => FLAG,
    "http3_hq" => FLAG,
    "http3_max_concurrent_streams" => NUMBER,
    "http3_stream_buffer_size" => SIZE,
    "quic_active_connection_id_limit" => NUMBER,
    "quic_bpf" => BPF,
    "quic_gso" => FLAG,
    "quic_host_key" => HOST_KEY,
    "quic_retry" => FLAG,
};
