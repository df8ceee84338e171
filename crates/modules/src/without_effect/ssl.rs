//! Rows of TLS with clients.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::checks;
use super::passing::{self, choice, table};

const SERVERS: &[Context] = &[Context::Http, Context::Server];

const fn server(row: Row) -> Row {
    Row {
        contexts: SERVERS,
        ..row
    }
}

const fn main(row: Row) -> Row {
    Row {
        contexts: &[Context::Main],
        merge: Merge::Own,
        ..row
    }
}

const FLAG: Row = server(passing::FLAG);
const TEXT: Row = server(passing::TEXT);
const FILE: Row = Row {
    syntax: "file",
    ..TEXT
};
const FILES: Row = Row {
    repeat: Repeat::Many,
    variables: Some(0),
    ..FILE
};
const OFF: Row = Row {
    value: Value::Checked(checks::off),
    syntax: "off",
    ..TEXT
};
const SESSION_CACHE: Row = Row {
    arguments: Arguments::between(1, 2),
    value: Value::Checked(checks::session_cache),
    repeat: Repeat::Many,
    syntax: "off | none | [builtin[:size]] [shared:name:size]",
    ..TEXT
};
const OCSP_CACHE: Row = Row {
    value: Value::Checked(checks::ocsp_cache),
    syntax: "off | shared:name:size",
    ..TEXT
};
const VERIFY: Row = server(choice(
    &["off", "on", "optional", "optional_no_ca"],
    "on | off | optional | optional_no_ca",
));
const SECONDS: Row = Row {
    value: Value::Seconds,
    syntax: "time",
    ..TEXT
};

pub(super) const ROWS: &[Row] = table! {
    "Checked; takes effect with TLS listeners, which are not supported yet.";
    "ssl" => OFF,
    "ssl_buffer_size" => server(passing::SIZE),
    "ssl_certificate" => FILES,
    "ssl_certificate_cache" => server(passing::CERTIFICATE_CACHE),
    "ssl_certificate_compression" => FLAG,
    "ssl_certificate_key" => FILES,
    "ssl_ciphers" => TEXT,
    "ssl_client_certificate" => FILE,
    "ssl_conf_command" => server(passing::COMMAND),
    "ssl_crl" => FILE,
    "ssl_dhparam" => FILE,
    "ssl_early_data" => FLAG,
    "ssl_ecdh_curve" => TEXT,
    "ssl_ech_file" => Row { repeat: Repeat::Many, ..FILE },
    "ssl_engine" => main(passing::TEXT),
    "ssl_object_cache_inheritable" => main(passing::FLAG),
    "ssl_ocsp" => server(choice(&["off", "on", "leaf"], "on | off | leaf")),
    "ssl_ocsp_cache" => OCSP_CACHE,
    "ssl_ocsp_responder" => TEXT,
    "ssl_password_file" => FILE,
    "ssl_prefer_server_ciphers" => FLAG,
    "ssl_protocols" => server(passing::PROTOCOLS),
    "ssl_reject_handshake" => FLAG,
    "ssl_session_cache" => SESSION_CACHE,
    "ssl_session_ticket_key" => Row { repeat: Repeat::Many, ..FILE },
    "ssl_session_tickets" => FLAG,
    "ssl_session_timeout" => SECONDS,
    "ssl_stapling" => FLAG,
    "ssl_stapling_file" => FILE,
    "ssl_stapling_responder" => TEXT,
    "ssl_stapling_verify" => FLAG,
    "ssl_trusted_certificate" => FILE,
    "ssl_verify_client" => VERIFY,
    "ssl_verify_depth" => server(passing::NUMBER),
};
