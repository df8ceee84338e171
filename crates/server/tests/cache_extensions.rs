//! What the cache does beyond RFC 9111's core. Each test bears the section's number.

#![allow(clippy::unwrap_used)]

#[path = "support/cache.rs"]
mod support;

use support::{Counting, MEMORY, ask, response, server, status};
use turnpike_testkit::Server;

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn rfc9213_s2_2_the_targeted_field_is_followed_and_passed_on() {
    let cases = [
        (
            "",
            "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
            "HIT",
        ),
        (
            "",
            "CDN-Cache-Control: no-store\r\nCache-Control: max-age=600\r\n",
            "MISS",
        ),
        (
            "",
            "CDN-Cache-Control: max-age=\"6\"\r\nCache-Control: no-store\r\n",
            "MISS",
        ),
        (
            "proxy_ignore_headers CDN-Cache-Control;",
            "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
            "MISS",
        ),
    ];
    for (directives, fields, expected) in cases {
        let origin = Counting::start(&response(fields, "x"));
        let server = server(&origin, MEMORY, directives);
        ask(&server, "GET /a", "");
        let got = ask(&server, "GET /a", "");
        assert_eq!(status(&got), expected, "{fields}");
        assert!(got.header("CDN-Cache-Control").is_some());
    }
}
