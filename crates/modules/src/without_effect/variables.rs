//! Variables of what cannot be here, with the values that nginx gives them on plain connections.

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::VariableRow;

/// No value, as logs show by a hyphen.
const fn absent(name: &'static str, summary: &'static str) -> VariableRow {
    VariableRow {
        name,
        get: none,
        set: None,
        summary,
    }
}

/// An empty value.
const fn empty(name: &'static str, summary: &'static str) -> VariableRow {
    VariableRow {
        get: nothing,
        ..absent(name, summary)
    }
}

fn none(_: &Exchange, _: &mut Vec<u8>) -> bool {
    false
}

fn nothing(_: &Exchange, _: &mut Vec<u8>) -> bool {
    true
}

const NO_TLS: &str = "No value: TLS listeners are not supported yet.";

pub(super) const SSL: &[VariableRow] = &[
    empty("https", "`on` with TLS, else empty."),
    absent("ssl_alpn_protocol", NO_TLS),
    absent("ssl_cipher", NO_TLS),
    absent("ssl_ciphers", NO_TLS),
    absent("ssl_client_cert", NO_TLS),
    absent("ssl_client_escaped_cert", NO_TLS),
    absent("ssl_client_fingerprint", NO_TLS),
    absent("ssl_client_i_dn", NO_TLS),
    absent("ssl_client_i_dn_legacy", NO_TLS),
    absent("ssl_client_raw_cert", NO_TLS),
    absent("ssl_client_s_dn", NO_TLS),
    absent("ssl_client_s_dn_legacy", NO_TLS),
    absent("ssl_client_serial", NO_TLS),
    absent("ssl_client_sigalg", NO_TLS),
    absent("ssl_client_v_end", NO_TLS),
    absent("ssl_client_v_remain", NO_TLS),
    absent("ssl_client_v_start", NO_TLS),
    absent("ssl_client_verify", NO_TLS),
    absent("ssl_curve", NO_TLS),
    absent("ssl_curves", NO_TLS),
    absent("ssl_early_data", NO_TLS),
    absent("ssl_ech_outer_server_name", NO_TLS),
    absent("ssl_ech_status", NO_TLS),
    absent("ssl_protocol", NO_TLS),
    absent("ssl_server_name", NO_TLS),
    absent("ssl_session_id", NO_TLS),
    absent("ssl_session_reused", NO_TLS),
    absent("ssl_sigalg", NO_TLS),
];

pub(super) const HTTP2: &[VariableRow] = &[
    empty("http2", "Empty: HTTP/2 is not supported yet."),
    empty("http3", "Empty: HTTP/3 is not supported yet."),
];

pub(super) const GRPC: &[VariableRow] = &[absent(
    "grpc_internal_trailers",
    "No value: `grpc_pass` is not supported yet.",
)];

const NO_MODULE: &str = "No value: its module is not supported yet.";

pub(super) const OTHERS: &[VariableRow] = &[
    absent("slice_range", NO_MODULE),
    absent("uid_got", NO_MODULE),
    absent("uid_reset", NO_MODULE),
    absent("uid_set", NO_MODULE),
];
