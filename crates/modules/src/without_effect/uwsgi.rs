//! uwsgi's rows.

use turnpike_conf::{Row, Value};

use super::passing::*;

/// One byte of a uwsgi packet's head.
const MODIFIER: Row = Row {
    value: Value::Between(0, 255),
    ..NUMBER
};

pub(super) const ROWS: &[Row] = passing! {
    "uwsgi";
    "uwsgi_modifier1" => MODIFIER,
    "uwsgi_modifier2" => MODIFIER,
    "uwsgi_ssl_certificate" => KEY,
    "uwsgi_ssl_certificate_cache" => CERTIFICATE_CACHE,
    "uwsgi_ssl_certificate_key" => KEY,
    "uwsgi_ssl_ciphers" => TEXT,
    "uwsgi_ssl_conf_command" => COMMAND,
    "uwsgi_ssl_crl" => TEXT,
    "uwsgi_ssl_name" => KEY,
    "uwsgi_ssl_password_file" => TEXT,
    "uwsgi_ssl_protocols" => PROTOCOLS,
    "uwsgi_ssl_server_name" => FLAG,
    "uwsgi_ssl_session_reuse" => FLAG,
    "uwsgi_ssl_trusted_certificate" => TEXT,
    "uwsgi_ssl_verify" => FLAG,
    "uwsgi_ssl_verify_depth" => NUMBER,
    "uwsgi_string" => KEY,
};
