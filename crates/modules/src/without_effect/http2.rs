//! Rows of HTTP/2 and QUIC.

use turnpike_conf::{Context, Merge, Repeat, Row};

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

/// Directives of QUIC.
pub(super) const QUIC: &[Row] = table! {
    "Accepted, without effect: each packet finds its lane by its connection ID in any case.";
    "quic_bpf" => BPF,
};
