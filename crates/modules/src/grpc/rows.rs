//! Rows of this family.

use turnpike_conf::{Arguments, Context, Row};

use crate::common::row_tables::join;
use crate::pass::rows::{MANY, PASS, only, shared_rows, tls_rows};

const ALL: &[Row] = shared_rows!("grpc");

/// The shared rows that nginx has for gRPC too: nothing is buffered.
const SHARED: &[Row] = &only(
    ALL,
    &[
        "grpc_bind",
        "grpc_buffer_size",
        "grpc_connect_timeout",
        "grpc_hide_header",
        "grpc_ignore_headers",
        "grpc_intercept_errors",
        "grpc_next_upstream",
        "grpc_next_upstream_timeout",
        "grpc_next_upstream_tries",
        "grpc_pass_header",
        "grpc_read_timeout",
        "grpc_send_timeout",
        "grpc_socket_keepalive",
        "grpc_socket_rcvbuf",
        "grpc_socket_sndbuf",
    ],
);

const TLS: &[Row] = tls_rows!("grpc", "grpcs");

const INHERITED: &[Row] = &join::<{ SHARED.len() + TLS.len() }>(SHARED, TLS);

/// The directives.
pub(super) const ROWS: &[Row] = &join::<{ INHERITED.len() + OWN.len() }>(INHERITED, OWN);

/// The rows of this family alone.
const OWN: &[Row] = &[
    Row {
        name: "grpc_pass",
        contexts: &[Context::Location, Context::IfInLocation],
        syntax: "address",
        summary: "Passes requests to a gRPC server over HTTP/2: `grpc://` or, with TLS, `grpcs://` \
            and an address with a port, the name of an `upstream` block, or `unix:` and a path. \
            Without a scheme it is `grpc://`. Requests and responses are not buffered. A \
            connection carries one request at a time.",
        ..PASS
    },
    Row {
        name: "grpc_set_header",
        variables: Some(1),
        arguments: Arguments::exactly(2),
        syntax: "field value",
        summary: "Sets a field in requests to gRPC servers, instead of the client's field. An \
            empty value removes the field. `Host` is sent as `:authority`; the server's own is if \
            it is empty.",
        ..MANY
    },
];
