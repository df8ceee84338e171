//! Tests of `$ssl_ja4`, with OpenSSL's own client and curl.

use std::collections::BTreeSet;

use turnpike_testkit::{Server, wait_for};

use crate::support::tls::{curl, keys, s_client, start};

const HTTP: &str = r#"
    map $ssl_ja4 $client {
        "" plain;
        ~^t13i nameless;
        ~^t13d new;
        ~^t12 old;
    }
    limit_req_zone $ssl_ja4 zone=clients:1m rate=1r/m;
    log_format fingerprint "$request_uri $ssl_ja4";
    server {
        %SECURE%
        listen 127.0.0.1:%PORT_PLAIN%;
        access_log %FOLDER%/fingerprint.log fingerprint;
        location / { return 200 "client($client $ssl_ja4)end"; }
        location /limited { limit_req zone=clients; try_files /none =204; }
    }"#;

const REQUEST: &str = "GET / HTTP/1.0\r\n\r\n";

/// What the server returned for a request of OpenSSL's client.
fn returned(server: &Server, more: &[&str]) -> String {
    let output = s_client(server, REQUEST, more);
    let found = output.split_once("client(");
    let found = found.and_then(|(_, rest)| rest.split_once(")end"));
    let (found, _) = found.unwrap_or_else(|| panic!("{more:?}: {output}"));
    found.to_owned()
}

/// Arguments of OpenSSL's client, and the beginning of what is returned.
const CLIENTS: &[(&[&str], &str)] = &[
    (&["-noservername"], "nameless t13i"),
    (&["-servername", "a.test"], "new t13d"),
    (&["-servername", "a.test", "-tls1_2"], "old t12d"),
];

#[test]
fn a_page_may_show_it_without_a_word_in_the_configuration() {
    let keys = keys();
    let page = "server { %SECURE% root %FOLDER%/html; location / { ssi on; } }";
    let server = start(&keys, page);
    let text = "client(<!--# echo var=\"ssl_ja4\" -->)end";
    server.write("html/index.html", text);
    let shown = returned(&server, &["-servername", "a.test"]);
    assert!(shown.starts_with("t13d"), "{shown}");
}

#[test]
fn a_client_is_known_by_its_hello() {
    let keys = keys();
    let server = start(&keys, HTTP);
    let mut seen = BTreeSet::new();
    for (more, expected) in CLIENTS {
        let first = returned(&server, more);
        assert!(first.starts_with(expected), "{more:?}: {first}");
        // Its random bytes and keys are new, what it offers is not.
        assert_eq!(returned(&server, more), first);
        seen.insert(first);
    }
    assert_eq!(seen.len(), CLIENTS.len(), "{seen:?}");
    // The protocols stand in the first part, the suites are all of the second.
    let part = |more: &[&str], at: usize| {
        let fingerprint = returned(&server, more);
        fingerprint.split('_').nth(at).unwrap().to_owned()
    };
    let one = [
        "-servername",
        "a.test",
        "-ciphersuites",
        "TLS_AES_128_GCM_SHA256",
    ];
    let with_protocol = [&one[..], &["-alpn", "http/1.1"]].concat();
    assert!(part(&with_protocol, 0).ends_with("h1"));
    assert_eq!(part(&with_protocol, 1), part(&one, 1));
    assert_ne!(part(&one[..2], 1), part(&one, 1));
    let plain = format!("http://127.0.0.1:{}/", server.port_named("PLAIN"));
    let plain = std::process::Command::new("curl")
        .args(["-s", &plain])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "client(plain )end");
}

#[test]
fn a_fingerprint_is_a_key_of_limits_and_stands_in_logs() {
    let keys = keys();
    let server = start(&keys, HTTP);
    let status = |more: &[&str]| {
        let status = ["-o", "/dev/null", "-w", "%{http_code}"];
        curl(&server, "a.test", "/limited", &[&status, more].concat())
    };
    assert_eq!(status(&[]), "204");
    assert_eq!(status(&[]), "503");
    // Another client from the same address.
    assert_eq!(status(&["--tls-max", "1.2"]), "204");
    // Connections may be on different lanes, so their lines come in any order.
    let log =
        wait_for(|| Some(server.log("fingerprint.log")).filter(|log| log.lines().count() == 3));
    let log = log.unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert!(lines[0].starts_with("/limited t12d"), "{log}");
    assert!(lines[1].starts_with("/limited t13d"), "{log}");
    assert_eq!(lines[1], lines[2]);
}
