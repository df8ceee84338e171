//! Certificates that variables name, to clients and to upstream servers; OpenSSL's client and curl
//! judge.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use turnpike_testkit::{Folder, Server};

use crate::support::tls;
use crate::support::tls::{TURNPIKE, curl, s_client};

/// The first server shows what the client's name stands for, the second wants a client's
/// certificate, and the third is of `stream`.
const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    map $ssl_server_name $file { a.test ec; b.test rsa; c.test none; }
    map $arg_who $client { ec %KEYS%/ec; rsa %KEYS%/rsa; none %KEYS%/none; }
    map $client $client_pem { "" ""; default $client.pem; }
    map $client $client_key { "" ""; default $client.key; }
    server {
        listen 127.0.0.1:%PORT% ssl;
        server_name ~^(?<label>\w)\.test$;
        ssl_certificate %KEYS%/$file.pem;
        ssl_certificate_key %KEYS%/$file.key;
        ssl_certificate_cache %CACHE%;
        location / { return 200 "$label $ssl_server_name"; }
        location /up {
            proxy_pass https://127.0.0.1:%PORT_2%;
            proxy_ssl_certificate $client_pem;
            proxy_ssl_certificate_key $client_key;
            proxy_ssl_certificate_cache %CACHE%;
        }
    }
    server {
        listen 127.0.0.1:%PORT_2% ssl;
        ssl_certificate %KEYS%/wild.pem;
        ssl_certificate_key %KEYS%/wild.key;
        ssl_verify_client optional_no_ca;
        location / { return 200 "client $ssl_client_s_dn."; }
    }
}
stream {
    server {
        listen 127.0.0.1:%PORT_3% ssl;
        ssl_certificate %KEYS%/$ssl_server_name.pem;
        ssl_certificate_key %KEYS%/$ssl_server_name.key;
        return "$ssl_server_name.";
    }
}"#;

/// Certificates whose keys the serving process may read, whoever its user is.
fn keys() -> Folder {
    let keys = tls::keys();
    for entry in fs::read_dir(keys.path()).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
    }
    keys
}

fn start(keys: &str, cache: &str) -> Server {
    let configuration = CONFIGURATION
        .replace("%KEYS%", keys)
        .replace("%CACHE%", cache);
    Server::builder(TURNPIKE)
        .configuration(&configuration)
        .start()
}

#[test]
fn certificates_are_those_that_variables_name() {
    let keys = keys();
    let at = keys.path().display().to_string();
    for cache in ["off", "max=8"] {
        let server = start(&at, cache);
        // The second time they may be kept.
        for _ in 0..2 {
            for (name, subject) in [("a.test", "CN = a.test"), ("b.test", "CN = b.test")] {
                let request = format!("GET / HTTP/1.0\r\nHost: {name}\r\n\r\n");
                let said = s_client(&server, &request, &["-servername", name]);
                assert!(said.contains(&format!("subject={subject}")), "{said}");
                let answer = format!("{} {name}", &name[..1]);
                assert!(said.contains(&answer), "{said}");
            }
        }
        let refused = s_client(&server, "", &["-servername", "c.test"]);
        assert!(refused.contains("internal error"), "{refused}");
        let log = fs::read_to_string(server.folder().join("error.log")).unwrap();
        let missing = format!("cannot load certificate \"{at}/none.pem\": BIO_new_file() failed");
        assert!(log.contains(&missing), "{log}");
    }
}

#[test]
fn upstream_servers_are_shown_what_variables_name() {
    let keys = keys();
    let at = keys.path().display().to_string();
    for cache in ["off", "max=8"] {
        let server = start(&at, cache);
        let cases = [
            ("ec", "client CN=a.test."),
            ("rsa", "client CN=b.test."),
            ("ec", "client CN=a.test."),
            ("", "client ."),
        ];
        for (who, expected) in cases {
            let said = curl(&server, "a.test", &format!("/up?who={who}"), &[]);
            assert_eq!(said, expected, "{who} {cache}");
        }
        let failed = curl(
            &server,
            "a.test",
            "/up?who=none",
            &["-o", "/dev/null", "-w", "%{http_code}"],
        );
        assert_eq!(failed, "500");
    }
}

#[test]
fn a_certificate_that_is_replaced_is_shown_without_a_reload() {
    let keys = keys();
    let at = keys.path();
    let copy = |from: &str, to: &str| {
        for end in ["pem", "key"] {
            fs::copy(
                at.join(format!("{from}.{end}")),
                at.join(format!("{to}.{end}")),
            )
            .unwrap();
        }
    };
    let server = start(&at.display().to_string(), "off");
    let mut arguments = vec![
        "s_client",
        "-ign_eof",
        "-servername",
        "tenant.test",
        "-connect",
    ];
    let port = format!("127.0.0.1:{}", server.port_named("3"));
    arguments.push(&port);
    for (from, subject) in [("ec", "CN = a.test"), ("rsa", "CN = b.test")] {
        copy(from, "tenant.test");
        let output = std::process::Command::new("openssl")
            .args(&arguments)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("subject={subject}")), "{said}");
        assert!(said.contains("tenant.test."), "{said}");
    }
}
