//! gRPC's rows.

use turnpike_conf::{Arguments, Repeat, Row};

use super::passing::*;

const SET_HEADER: Row = Row {
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    variables: Some(1),
    syntax: "field value",
    ..TEXT
};

pub(super) const ROWS: &[Row] = table! {
    "Checked; takes effect with `grpc_pass`, which is not supported yet.";
    "grpc_bind" => BIND,
    "grpc_buffer_size" => SIZE,
    "grpc_connect_timeout" => TIME,
    "grpc_hide_header" => FIELD,
    "grpc_ignore_headers" => IGNORED,
    "grpc_intercept_errors" => FLAG,
    "grpc_next_upstream" => NEXT,
    "grpc_next_upstream_timeout" => TIME,
    "grpc_next_upstream_tries" => NUMBER,
    "grpc_pass_header" => FIELD,
    "grpc_read_timeout" => TIME,
    "grpc_send_timeout" => TIME,
    "grpc_set_header" => SET_HEADER,
    "grpc_socket_keepalive" => FLAG,
    "grpc_socket_rcvbuf" => SIZE,
    "grpc_socket_sndbuf" => SIZE,
    "grpc_ssl_certificate" => KEY,
    "grpc_ssl_certificate_cache" => CERTIFICATE_CACHE,
    "grpc_ssl_certificate_key" => KEY,
    "grpc_ssl_ciphers" => TEXT,
    "grpc_ssl_conf_command" => COMMAND,
    "grpc_ssl_crl" => TEXT,
    "grpc_ssl_name" => KEY,
    "grpc_ssl_password_file" => TEXT,
    "grpc_ssl_protocols" => PROTOCOLS,
    "grpc_ssl_server_name" => FLAG,
    "grpc_ssl_session_reuse" => FLAG,
    "grpc_ssl_trusted_certificate" => TEXT,
    "grpc_ssl_verify" => FLAG,
    "grpc_ssl_verify_depth" => NUMBER,
};
