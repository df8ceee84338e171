use turnpike_testkit::corpus;

use super::*;

/// A fuzz target and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("h1_request", h1_request),
    ("h1_response", h1_response),
    ("h1_chunked", h1_chunked),
    ("proxy_protocol", proxy_protocol),
    ("client_hello", client_hello),
    ("ja4", ja4),
    ("dns_answer", dns_answer),
    ("fastcgi_response", fastcgi_response),
    ("cgi_head", cgi_head),
    ("memcached_value", memcached_value),
    ("ssi_template", ssi_template),
    ("mp4", mp4),
    ("certificate", certificate),
    ("pem", pem),
    ("ocsp", ocsp),
    ("h2_frames", h2_frames),
    ("h2_hpack", h2_hpack),
    ("h2_connection", h2_connection),
    ("h2_client", h2_client),
    ("qpack", qpack),
    ("h3_request", h3_request),
    ("h3_control", h3_control),
];

#[test]
fn committed_corpora_hold() {
    for (name, body) in TARGETS {
        corpus::hold(name, b"\r\n :/.%0\0\x80", body);
    }
}
