//! TLS directives as generators, certificate clients and distributions write them, and OpenSSL's
//! own commands: they load unchanged, and serve what their authors meant. The texts are written
//! here from what those files say.

use turnpike_testkit::{Folder, Server};

use crate::support::tls;
use crate::support::tls::{DH_PARAMETERS, configured, curl_output, keys, s_client, start};

/// Parts of their lists of cipher suites, which are one word there.
const PARTS: &[(&str, &str)] = &[
    (
        "%SIX%",
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
         ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
         ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
    ),
    (
        "%DHE%",
        "DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384",
    ),
    (
        "%OLD%",
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
         ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA:AES128-GCM-SHA256:AES256-SHA:DES-CBC3-SHA",
    ),
];

/// Mozilla's generator, intermediate: clients since about 2015.
const MOZILLA_INTERMEDIATE: &str = r#"
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ecdh_curve X25519:prime256v1:secp384r1;
    ssl_ciphers %SIX%:%DHE%:DHE-RSA-CHACHA20-POLY1305;
    ssl_prefer_server_ciphers off;
    ssl_session_timeout 1d;
    ssl_session_cache shared:MozSSL:10m;
    ssl_session_tickets off;
    ssl_dhparam "%KEYS%/dhparam";
    ssl_stapling on;
    ssl_stapling_verify on;
    ssl_trusted_certificate %KEYS%/ec.pem;
    resolver 127.0.0.1;
    add_header Strict-Transport-Security "max-age=63072000" always;"#;

/// Mozilla's generator, modern: TLS 1.3 alone.
const MOZILLA_MODERN: &str = r#"
    ssl_protocols TLSv1.3;
    ssl_ecdh_curve X25519:prime256v1:secp384r1;
    ssl_prefer_server_ciphers off;
    ssl_session_timeout 1d;
    ssl_session_cache shared:MozSSL:10m;
    add_header Strict-Transport-Security "max-age=63072000" always;"#;

/// Mozilla's generator, old: most of it is for clients that no server should have any more.
const MOZILLA_OLD: &str = r#"
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_ciphers @SECLEVEL=0:%OLD%;
    ssl_prefer_server_ciphers on;
    ssl_session_timeout 1d;
    ssl_session_cache shared:MozSSL:10m;
    ssl_session_tickets off;
    ssl_dhparam "%KEYS%/dhparam";"#;

/// The options that certbot includes into every server that it installs a certificate for.
const CERTBOT: &str = r#"
    ssl_session_cache shared:le_nginx_SSL:10m;
    ssl_session_timeout 1440m;
    ssl_session_tickets off;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers off;
    ssl_ciphers "%SIX%:%DHE%";
    ssl_dhparam %KEYS%/dhparam;"#;

/// The http block of Debian and Ubuntu.
const DEBIAN: &str = r#"
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;"#;

/// The server for TLS of Fedora and Red Hat.
const FEDORA: &str = r#"
    ssl_session_cache shared:SSL:1m;
    ssl_session_timeout 10m;
    ssl_ciphers PROFILE=SYSTEM;
    ssl_prefer_server_ciphers on;"#;

/// The http block of Alpine.
const ALPINE: &str = r#"
    ssl_protocols TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    ssl_session_cache shared:SSL:2m;
    ssl_session_timeout 1h;
    ssl_session_tickets off;"#;

/// The example of nginx's own package.
const NGINX: &str = r#"
    ssl_session_cache shared:SSL:1m;
    ssl_session_timeout 5m;
    ssl_ciphers HIGH:!aNULL:!MD5;
    ssl_prefer_server_ciphers on;"#;

/// A name, the directives, and the suite of a client that can no more than TLS 1.2 and likes
/// AES-128 best; `None`: such a client is refused.
const FILES: &[(&str, &str, Option<&str>)] = &[
    (
        "intermediate",
        MOZILLA_INTERMEDIATE,
        Some("ECDHE-ECDSA-AES128-GCM-SHA256"),
    ),
    ("modern", MOZILLA_MODERN, None),
    ("old", MOZILLA_OLD, Some("ECDHE-ECDSA-AES128-GCM-SHA256")),
    ("certbot", CERTBOT, Some("ECDHE-ECDSA-AES128-GCM-SHA256")),
    ("debian", DEBIAN, Some("ECDHE-ECDSA-AES256-GCM-SHA384")),
    ("fedora", FEDORA, Some("ECDHE-ECDSA-AES256-GCM-SHA384")),
    ("alpine", ALPINE, Some("ECDHE-ECDSA-AES256-GCM-SHA384")),
    ("nginx", NGINX, Some("ECDHE-ECDSA-AES256-GCM-SHA384")),
];

/// The suites that the older client offers, the best first.
const OFFERED: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";

fn with_parameters() -> Folder {
    let keys = keys();
    keys.write("dhparam", DH_PARAMETERS).unwrap();
    keys
}

/// The directives as they stand in the file.
fn written(directives: &str) -> String {
    let text = directives.to_owned();
    PARTS
        .iter()
        .fold(text, |text, (part, list)| text.replace(part, list))
}

fn suite(server: &Server) -> Option<String> {
    let offered = ["-tls1_2", "-cipher", OFFERED];
    let output = s_client(server, "GET / HTTP/1.0\r\n\r\n", &offered);
    let (_, rest) = output.split_once("suite(")?;
    rest.split_once(")end").map(|(name, _)| name.to_owned())
}

#[test]
fn strangers_files_load_unchanged_and_mean_what_they_meant() {
    let keys = with_parameters();
    for (name, directives, expected) in FILES {
        let directives = written(directives);
        // Where the files have them: at the level of http, or in the server.
        let location = "location / { return 200 \"suite($ssl_cipher)end\"; }";
        for http in [
            format!("server {{ %SECURE% {directives} {location} }}"),
            format!("{directives} server {{ %SECURE% {location} }}"),
        ] {
            let server = start(&keys, &http);
            let answered = curl_output(&server, "a.test", "/", &["--tlsv1.3"]);
            let answered = String::from_utf8_lossy(&answered.stdout).into_owned();
            assert!(answered.starts_with("suite(TLS_"), "{name}: {answered}");
            assert_eq!(suite(&server).as_deref(), *expected, "{name}");
        }
    }
}

#[test]
fn settings_without_a_listener_of_tls_load_too() {
    let keys = with_parameters();
    for (name, directives, _) in FILES {
        let directives = written(directives);
        let http = format!("{directives} server {{ listen 127.0.0.1:%PORT%; return 200 plain; }}");
        let server = Server::builder(tls::TURNPIKE)
            .configuration(&configured(&keys, &http))
            .start();
        assert_eq!(server.get("/").text(), "plain", "{name}");
    }
}

/// OpenSSL's commands, arguments of its client, and what that says.
const COMMANDS: &[(&str, &[&str], &str)] = &[
    (
        "ssl_conf_command MaxProtocol TLSv1.2;",
        &[],
        "New, TLSv1.2, Cipher is",
    ),
    (
        "ssl_conf_command MinProtocol TLSv1.3;",
        &["-tls1_2"],
        "alert protocol version",
    ),
    (
        "ssl_ciphers AES256; ssl_conf_command CipherString CHACHA20;",
        &["-tls1_2"],
        "Cipher is ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        "ssl_conf_command Groups P-384;",
        &[],
        "Server Temp Key: ECDH, secp384r1, 384 bits",
    ),
    (
        "ssl_conf_command Options ServerPreference; ssl_ciphers CHACHA20:AES256;",
        &["-tls1_2", "-cipher", "AES256:CHACHA20"],
        "Cipher is ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        "ssl_conf_command Certificate %KEYS%/wild.pem;
         ssl_conf_command PrivateKey %KEYS%/wild.key;",
        &[],
        "subject=CN = w.test",
    ),
    (
        "ssl_session_tickets off; ssl_conf_command Options SessionTicket;",
        &["-tls1_2"],
        "TLS session ticket:",
    ),
];

#[test]
fn openssls_commands_take_the_place_of_directives() {
    let keys = keys();
    for (directives, more, expected) in COMMANDS {
        let server = start(&keys, &format!("server {{ %SECURE% {directives} }}"));
        let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", more);
        assert!(output.contains(expected), "{directives}: {output}");
    }
}
