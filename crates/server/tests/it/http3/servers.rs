//! Servers by name: each has its own certificates, clients' certificates and protocols, as over
//! TCP.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use turnpike_testkit::Folder;

use super::start;
use crate::support::http3::{ask, has_client};
use crate::support::tls::keys;

const NAMED: &str = "
    server {
        %QUIC%
        server_name a.test;
        return 200 \"first $ssl_server_name\";
    }
    server {
        listen 127.0.0.1:%PORT% quic;
        server_name b.test;
        ssl_certificate %KEYS%/rsa.pem;
        ssl_certificate_key %KEYS%/rsa.key;
        ssl_verify_client optional_no_ca;
        ssl_client_certificate %KEYS%/ec.pem;
        return 200 \"second $ssl_client_verify $ssl_client_s_dn\";
    }
    server {
        listen 127.0.0.1:%PORT% quic;
        server_name rejected.test;
        ssl_reject_handshake on;
    }
    server {
        listen 127.0.0.1:%PORT% quic;
        server_name off.test;
        http3 off;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/ec.key;
    }
    server {
        listen 127.0.0.1:%PORT% quic;
        server_name ~^(?<key>[a-z]+)\\.variable\\.test$;
        ssl_certificate %KEYS%/$key.pem;
        ssl_certificate_key %KEYS%/$key.key;
        return 200 \"by name $key\";
    }
    server {
        listen 127.0.0.1:%PORT% quic;
        server_name required.test;
        ssl_verify_client on;
        ssl_client_certificate %KEYS%/ec.pem;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/ec.key;
        return 200 \"known $ssl_client_verify\";
    }";

#[test]
fn servers_are_chosen_by_name() {
    if !has_client("servers_are_chosen_by_name") {
        return;
    }
    let keys = keys();
    readable(&keys);
    let server = start(&keys, NAMED);
    let certificate = format!("{0}/ec.pem,{0}/ec.key", keys.path().display());
    let cases: &[(&[&str], &str)] = &[
        (&["--name", "a.test"], "200 12 first a.test"),
        (&["--name", "unknown.test"], "200 18 first unknown.test"),
        (&["--name", "b.test"], "200 12 second NONE "),
        (
            &["--name", "b.test", "--certificate", &certificate],
            "200 24 second SUCCESS CN=a.test",
        ),
        (&["--name", "wild.variable.test"], "200 12 by name wild"),
        (&["--name", "rsa.variable.test"], "200 11 by name rsa"),
        (
            &["--name", "required.test", "--certificate", &certificate],
            "200 13 known SUCCESS",
        ),
    ];
    for (arguments, expected) in cases {
        let printed = ask(&server, arguments, "GET /");
        assert_eq!(printed.trim_end(), expected.trim_end(), "{arguments:?}");
    }
    let refused = ask(&server, &["--name", "required.test"], "GET /");
    assert!(refused.starts_with("400"), "{refused}");
    // Alerts of TLS: unrecognized_name, no_application_protocol, internal_error.
    for (name, code) in [
        ("rejected.test", 0x170),
        ("off.test", 0x178),
        ("none.variable.test", 0x150),
    ] {
        let printed = ask(&server, &["--name", name], "GET /");
        let expected = format!("refused closed {code:#x}");
        assert!(printed.starts_with(&expected), "{name}: {printed}");
    }
}

/// Lets the serving process read keys that variables name.
fn readable(keys: &Folder) {
    for name in ["wild.key", "rsa.key"] {
        let path = keys.path().join(name);
        std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
}

#[test]
fn names_of_other_servers_are_misdirected() {
    if !has_client("names_of_other_servers_are_misdirected") {
        return;
    }
    let keys = keys();
    let server = start(&keys, NAMED);
    let cases = [
        ("a.test", "wild.variable.test", "200"),
        ("a.test", "off.test", "421"),
        ("a.test", "b.test", "421"),
        ("a.test", "required.test", "421"),
    ];
    for (name, authority, status) in cases {
        let arguments = ["--name", name, "--authority", authority];
        let printed = ask(&server, &arguments, "GET /");
        assert!(printed.starts_with(status), "{name} {authority}: {printed}");
    }
}
