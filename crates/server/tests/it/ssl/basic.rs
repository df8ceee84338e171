//! Tests of TLS with clients: curl and OpenSSL's own client, with certificates from OpenSSL.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

use turnpike_testkit::{Origin, Server, Signal, StartError, Step, wait_for};

use crate::support::tls::{
    DH_PARAMETERS, TURNPIKE, big, configured, curl, curl_output, keys, openssl, s_client, start,
};

/// OpenSSL's client, which sends its standard input.
fn open_client(server: &Server) -> Child {
    let at = format!("127.0.0.1:{}", server.port());
    let mut client = Command::new("openssl");
    let client = client.args(["s_client", "-connect", &at, "-quiet"]);
    let client = client.stdin(Stdio::piped()).stdout(Stdio::piped());
    client.stderr(Stdio::null()).spawn().unwrap()
}

const TWO_SERVERS: &str = r#"
    server {
        listen 127.0.0.1:%PORT% ssl;
        server_name a.test;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/ec.key;
        root %FOLDER%/html;
        location /session {
            return 200 "$server_name $scheme $https $ssl_protocol $ssl_cipher $ssl_server_name";
        }
        location /folder { return 301 /elsewhere/; }
    }
    server {
        listen 127.0.0.1:%PORT% ssl;
        server_name b.test *.b.test;
        ssl_certificate %KEYS%/rsa.pem;
        ssl_certificate_key %KEYS%/pkcs1.key;
        location / { return 200 "$server_name $ssl_server_name $ssl_cipher"; }
    }
    server {
        listen 127.0.0.1:%PORT% ssl;
        server_name ~^(?<who>\w+)\.w\.test$;
        ssl_certificate %KEYS%/wild.pem;
        ssl_certificate_key %KEYS%/wild.key;
        location / { return 200 "who=$who"; }
    }"#;

/// A name, further arguments of curl, a target, and the response.
const ASKED: &[(&str, &[&str], &str, &str)] = &[
    ("a.test", &[], "/a.txt", "hello"),
    (
        "a.test",
        &["--tlsv1.3"],
        "/session",
        "a.test https on TLSv1.3 TLS_AES_256_GCM_SHA384 a.test",
    ),
    (
        "a.test",
        &["--tls-max", "1.2"],
        "/session",
        "a.test https on TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 a.test",
    ),
    (
        "B.test",
        &["--tls-max", "1.2"],
        "/",
        "b.test b.test ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        "x.b.test",
        &[],
        "/",
        "b.test x.b.test TLS_AES_256_GCM_SHA384",
    ),
    ("me.w.test", &[], "/", "who=me"),
    // A name that no server has: the default server.
    ("nobody.test", &[], "/a.txt", "hello"),
];

#[test]
fn a_server_is_chosen_by_the_requested_name() {
    let keys = keys();
    let server = start(&keys, TWO_SERVERS);
    for (name, more, target, expected) in ASKED {
        let answered = curl(&server, name, target, more);
        assert_eq!(answered, *expected, "{name} {more:?}");
    }
    for (name, subject) in [
        ("a.test", "subject=CN = a.test"),
        ("x.b.test", "subject=CN = b.test"),
        ("me.w.test", "subject=CN = w.test"),
        ("nobody.test", "subject=CN = a.test"),
    ] {
        let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", &["-servername", name]);
        assert!(output.contains(subject), "{name}: {output}");
    }
    // Without a Host field, the default server answers, as in nginx.
    let output = s_client(
        &server,
        "GET /a.txt HTTP/1.0\r\n\r\n",
        &["-servername", "b.test"],
    );
    assert!(
        output.contains("subject=CN = b.test") && output.contains("\r\n\r\nhello"),
        "{output}"
    );
    let redirect = curl(&server, "a.test", "/folder", &["-i"]);
    let location = format!("Location: https://a.test:{}/elsewhere/", server.port());
    assert!(redirect.contains(&location), "{redirect}");
}

#[test]
fn large_bodies_pass_both_ways() {
    let keys = keys();
    let taken = || {
        vec![
            Step::ReadHead,
            Step::ReadBytes(big().len()),
            Step::send(DONE),
        ]
    };
    let origin = Origin::start(vec![taken(), taken()]);
    let http = format!(
        "server {{
            listen 127.0.0.1:%PORT% ssl;
            ssl_certificate %KEYS%/ec.pem;
            ssl_certificate_key %KEYS%/sec1.key;
            client_max_body_size 0;
            root %FOLDER%/html;
            location /copied/ {{ alias %FOLDER%/html/; sendfile off; }}
            location /sent/ {{ alias %FOLDER%/html/; sendfile on; }}
            location /pass/ {{ proxy_pass http://127.0.0.1:%PORT_PLAIN%/; }}
            location /again/ {{ proxy_pass https://127.0.0.1:%PORT%/; }}
            location /save/ {{ proxy_pass http://127.0.0.1:{}; }}
        }}
        server {{ listen 127.0.0.1:%PORT_PLAIN%; root %FOLDER%/html; }}",
        origin.port()
    );
    let server = start(&keys, &http);
    let targets = [
        "/copied/big.bin",
        "/sent/big.bin",
        "/pass/big.bin",
        "/again/big.bin",
    ];
    for target in targets {
        for more in [&[][..], &["--tls-max", "1.2"], &["-H", "Connection: close"]] {
            let output = curl_output(&server, "a.test", target, more);
            assert!(output.stdout == big(), "{target} {more:?}: {output:?}");
            assert!(output.status.success(), "{target} {more:?}");
        }
    }
    let file = format!("@{}/html/big.bin", server.folder().display());
    let chunked = ["-H", "Transfer-Encoding: chunked", "--data-binary", &file];
    for more in [&["--data-binary", &file][..], &chunked] {
        assert_eq!(curl(&server, "a.test", "/save/a", more), "done");
    }
    for received in origin.received() {
        assert!(received.ends_with(&big()), "{} bytes", received.len());
    }
}

/// An answer of an origin.
const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone";

#[test]
fn many_requests_share_a_connection() {
    let keys = keys();
    let server = start(&keys, TWO_SERVERS);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let last = "GET /a.txt HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let output = s_client(&server, &(request.repeat(500) + last), &["-quiet"]);
    assert_eq!(output.matches("\r\n\r\nhello").count(), 501);
}

#[test]
fn sessions_are_resumed_on_every_lane_and_over_a_reload() {
    let keys = keys();
    let tickets = [
        "ssl_session_tickets on;",
        "ssl_session_tickets off; ssl_session_cache shared:s:1m;",
    ];
    for directives in tickets {
        let http = format!("ssl_session_timeout 1h; {directives} {TWO_SERVERS}");
        let server = start(&keys, &http);
        let session = server.folder().join("session.pem").display().to_string();
        for version in ["-tls1_2", "-tls1_3"] {
            let ask = "GET /session HTTP/1.0\r\n\r\n";
            let first = [version, "-servername", "a.test", "-sess_out", &session];
            let output = s_client(&server, ask, &first);
            assert!(output.contains("New, TLSv1"), "{output}");
            server.signal(Signal::SIGHUP);
            wait_for(|| {
                let generations = server.log("error.log");
                generations
                    .contains("serving with configuration 2")
                    .then_some(())
            });
            for _ in 0..4 {
                let again = [version, "-servername", "a.test", "-sess_in", &session];
                let again = [&again[..], &["-sess_out", &session]].concat();
                let output = s_client(&server, ask, &again);
                assert!(
                    output.contains("Reused, TLSv1"),
                    "{directives} {version}: {output}"
                );
            }
            // Sessions are not resumed with another certificate.
            let other = [version, "-servername", "b.test", "-sess_in", &session];
            let output = s_client(&server, ask, &other);
            assert!(
                !output.contains("Reused, TLSv1"),
                "{directives} {version}: {output}"
            );
        }
    }
}

#[test]
fn servers_with_the_same_key_file_resume_each_others_sessions() {
    let keys = keys();
    keys.write("old.key", [1; 48]).unwrap();
    keys.write("new.key", [2; 80]).unwrap();
    let ask = "GET /session HTTP/1.0\r\n\r\n";
    let started = |files: &[&str]| {
        let named = files
            .iter()
            .map(|file| format!("ssl_session_ticket_key %KEYS%/{file};"));
        start(
            &keys,
            &format!("{}{TWO_SERVERS}", named.collect::<String>()),
        )
    };
    let first = started(&["old.key"]);
    let session = first.folder().join("session.pem").display().to_string();
    let servers = [started(&["new.key", "old.key"]), started(&["new.key"])];
    for version in ["-tls1_2", "-tls1_3"] {
        let common = [version, "-servername", "a.test"];
        s_client(
            &first,
            ask,
            &[&common[..], &["-sess_out", &session]].concat(),
        );
        let again = [&common[..], &["-sess_in", &session]].concat();
        for (server, expected) in servers.iter().zip(["Reused, TLSv1", "New, TLSv1"]) {
            let output = s_client(server, ask, &again);
            assert!(output.contains(expected), "{version}: {output}");
        }
    }
}

#[test]
fn a_reload_closes_no_connection() {
    let keys = keys();
    let server = start(&keys, TWO_SERVERS);
    let mut client = open_client(&server);
    let mut input = client.stdin.take().unwrap();
    let mut output = client.stdout.take().unwrap();
    let mut read = String::new();
    for round in 1..=3 {
        let request = "GET /a.txt HTTP/1.1\r\nHost: a.test\r\n\r\n";
        input.write_all(request.as_bytes()).unwrap();
        while read.matches("hello").count() < round {
            let mut bytes = [0; 4096];
            let count = output.read(&mut bytes).unwrap();
            assert!(count > 0, "closed in round {round}: {read}");
            read.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        server.signal(Signal::SIGHUP);
        server.wait_for_log(
            "error.log",
            &format!("serving with configuration {}", round + 1),
        );
    }
    drop(input);
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn an_upgraded_connection_works() {
    let keys = keys();
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhi",
        ),
        Step::send("there"),
    ]]);
    let http = format!(
        "server {{
            %SECURE%
            location / {{
                proxy_pass http://127.0.0.1:{};
                proxy_http_version 1.1;
                proxy_set_header Upgrade $http_upgrade;
                proxy_set_header Connection upgrade;
            }}
        }}",
        origin.port()
    );
    let server = start(&keys, &http);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    let output = s_client(&server, request, &["-quiet"]);
    assert!(output.contains("101 Switching"), "{output}");
    assert!(output.contains("hithere"), "{output}");
}

#[test]
fn plain_http_gets_an_error_page_about_tls() {
    let keys = keys();
    let server = start(
        &keys,
        "server {
            %SECURE%
            location /never { return 200; }
        }
        server {
            listen 127.0.0.1:%PORT_PAGE% ssl;
            ssl_certificate %KEYS%/ec.pem;
            ssl_certificate_key %KEYS%/ec.key;
            error_page 497 https://$host$request_uri;
        }",
    );
    let answer = String::from_utf8(server.exchange("GET /never HTTP/1.1\r\nHost: a\r\n\r\n"));
    let answer = answer.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    assert!(answer.contains("The plain HTTP request was sent to HTTPS port"));
    assert!(answer.contains("\r\nConnection: close\r\n"));
    let refused = server.exchange("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n");
    let refused = String::from_utf8(refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    assert!(!refused.contains("HTTPS port"), "{refused}");
    let mut page = TcpStream::connect(("127.0.0.1", server.port_named("PAGE"))).unwrap();
    page.write_all(b"GET /x HTTP/1.0\r\nHost: a.test\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 302 "), "{answer}");
    assert!(answer.contains("Location: https://a.test/x"), "{answer}");
    server.wait_for_log("error.log", "client sent plain HTTP request to HTTPS port");
}

/// A client's bytes instead of a handshake, whether it then leaves, and the log message.
const BROKEN: &[(&[u8], &str)] = &[
    (
        b"\x16\x03\x01\x00\x05garba",
        "SSL_do_handshake() failed (SSL: ",
    ),
    (
        b"\x16\x03\x01\xff\xffgarbage",
        "SSL_do_handshake() failed (SSL: ",
    ),
    (b"\x80\x2e\x01\x00\x02", "SSL_do_handshake() failed (SSL: "),
    // The start of a ClientHello.
    (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "peer closed connection in SSL handshake",
    ),
];

#[test]
fn other_bytes_than_a_handshake_end_only_their_connection() {
    let keys = keys();
    for (bytes, logged) in BROKEN {
        let server = start(&keys, TWO_SERVERS);
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
        server.wait_for_log("error.log", logged);
        assert_eq!(curl(&server, "a.test", "/a.txt", &[]), "hello");
    }
}

#[test]
fn a_client_that_breaks_off_is_no_error() {
    let keys = keys();
    let server = start(&keys, TWO_SERVERS);
    // OpenSSL's client is killed: its session has no end.
    let mut client = open_client(&server);
    let mut input = client.stdin.take().unwrap();
    input
        .write_all(b"GET /a.txt HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .unwrap();
    let mut bytes = [0; 4096];
    let count = client.stdout.take().unwrap().read(&mut bytes).unwrap();
    assert!(bytes[..count].starts_with(b"HTTP/1.1 200 OK"));
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(curl(&server, "a.test", "/a.txt", &[]), "hello");
    let log = server.log("error.log");
    assert!(
        !log.contains("[alert]") && !log.contains("[error]"),
        "{log}"
    );
}

#[test]
fn a_client_that_stops_in_the_handshake_is_given_up() {
    let keys = keys();
    let http = format!("client_header_timeout 300ms; {TWO_SERVERS}");
    let server = start(&keys, &http);
    for bytes in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        client.write_all(bytes).unwrap();
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    server.wait_for_log(
        "error.log",
        "client timed out (110: Connection timed out) while SSL handshaking",
    );
}

/// Directives, arguments of OpenSSL's client, and a part of its output.
const CHOICES: &[(&str, &[&str], &str)] = &[
    ("ssl_protocols TLSv1.2;", &[], "Protocol  : TLSv1.2"),
    (
        "ssl_protocols TLSv1.2;",
        &["-tls1_3"],
        "alert protocol version",
    ),
    (
        "ssl_protocols TLSv1.3;",
        &["-tls1_2"],
        "alert protocol version",
    ),
    (
        "ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305;",
        &["-tls1_2"],
        "New, TLSv1.2, Cipher is ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        "ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;",
        &["-tls1_2"],
        "alert handshake failure",
    ),
    (
        "ssl_prefer_server_ciphers on; ssl_ciphers CHACHA20:AES256;",
        &["-tls1_2", "-cipher", "AES256:CHACHA20"],
        "Cipher is ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        "ssl_ciphers CHACHA20:AES256;",
        &[
            "-tls1_2",
            "-cipher",
            "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305",
        ],
        "Cipher is ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        "ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;",
        &[],
        "Cipher is TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        "ssl_ecdh_curve secp384r1;",
        &[],
        "Server Temp Key: ECDH, secp384r1, 384 bits",
    ),
    ("", &["-alpn", "h2,http/1.1"], "ALPN protocol: http/1.1"),
    ("", &["-alpn", "h2"], "alert no application protocol"),
    (
        "ssl_session_tickets off;",
        &["-sess_out", "/dev/null"],
        "closed",
    ),
    ("ssl_reject_handshake on;", &[], "alert number 112"),
];

#[test]
fn protocols_ciphers_and_curves_are_chosen_by_the_configuration() {
    let keys = keys();
    for (directives, more, expected) in CHOICES {
        let http = format!(
            "server {{
                listen 127.0.0.1:%PORT% ssl;
                {directives}
                ssl_certificate %KEYS%/ec.pem;
                ssl_certificate_key %KEYS%/ec.key;
                location / {{ return 200; }}
            }}"
        );
        let server = start(&keys, &http);
        let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", more);
        assert!(output.contains(expected), "{directives} {more:?}: {output}");
        let has_tickets = output.contains("New Session Ticket");
        assert!(
            !directives.contains("tickets off") || !has_tickets,
            "{output}"
        );
    }
}

#[test]
fn a_client_gets_the_certificate_that_it_can_use() {
    let keys = keys();
    let server = start(
        &keys,
        "server {
            %SECURE%
            ssl_certificate %KEYS%/rsa.pem;
            ssl_certificate_key %KEYS%/rsa.key;
        }",
    );
    let clients: &[(&[&str], &str)] = &[
        (&[], "subject=CN = a.test"),
        (&["-sigalgs", "rsa_pss_rsae_sha256"], "subject=CN = b.test"),
        (&["-tls1_2", "-cipher", "ECDHE+aRSA"], "subject=CN = b.test"),
        (
            &["-tls1_2", "-cipher", "ECDHE+aECDSA"],
            "subject=CN = a.test",
        ),
    ];
    for (more, subject) in clients {
        let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", more);
        assert!(output.contains(subject), "{more:?}: {output}");
    }
}

#[test]
fn keys_are_decrypted_by_a_password_and_trust_settings_are_ignored() {
    let keys = keys();
    keys.write("passwords", "wrong\n\nsecret\r\n").unwrap();
    let trusted = [
        "x509",
        "-in",
        "ec.pem",
        "-addtrust",
        "serverAuth",
        "-trustout",
    ];
    openssl(
        keys.path(),
        &[&trusted[..], &["-out", "trusted.pem"]].concat(),
    );
    let server = start(
        &keys,
        "ssl_password_file %KEYS%/passwords;
        server {
            listen 127.0.0.1:%PORT% ssl;
            ssl_certificate %KEYS%/rsa.pem;
            ssl_certificate_key %KEYS%/old_locked.key;
            ssl_certificate %KEYS%/wild.pem;
            ssl_certificate_key %KEYS%/wild.key;
            ssl_certificate %KEYS%/trusted.pem;
            ssl_certificate_key %KEYS%/locked.key;
        }",
    );
    for (more, subject) in [
        (
            &["-sigalgs", "rsa_pss_rsae_sha256"][..],
            "subject=CN = b.test",
        ),
        // The last one of its kind.
        (
            &["-sigalgs", "ecdsa_secp256r1_sha256"],
            "subject=CN = a.test",
        ),
    ] {
        let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", more);
        assert!(output.contains(subject), "{more:?}: {output}");
    }
}

#[test]
fn a_certificate_of_version_1_is_served() {
    let keys = keys();
    let at = keys.path();
    let request = ["req", "-new", "-key", "ec.key", "-subj", "/CN=old.test"];
    openssl(at, &[&request[..], &["-out", "old.csr"]].concat());
    let sign = ["x509", "-req", "-in", "old.csr", "-signkey", "ec.key"];
    openssl(
        at,
        &[&sign[..], &["-days", "3650", "-out", "old.pem"]].concat(),
    );
    let server = start(
        &keys,
        "server {
            listen 127.0.0.1:%PORT% ssl;
            ssl_certificate %KEYS%/old.pem;
            ssl_certificate_key %KEYS%/ec.key;
            location / { return 200 \"served\"; }
        }",
    );
    let output = s_client(&server, "GET / HTTP/1.0\r\n\r\n", &[]);
    assert!(output.contains("subject=CN = old.test"), "{output}");
    assert!(output.contains("served"), "{output}");
}

#[test]
fn a_proxy_protocol_header_precedes_the_handshake() {
    let keys = keys();
    let server = start(
        &keys,
        "server {
            listen 127.0.0.1:%PORT% ssl proxy_protocol;
            ssl_certificate %KEYS%/ec.pem;
            ssl_certificate_key %KEYS%/ec.key;
            location / { return 200 \"from $proxy_protocol_addr by $ssl_protocol\"; }
        }",
    );
    let output = curl(&server, "a.test", "/", &["--haproxy-protocol"]);
    assert_eq!(output, "from 127.0.0.1 by TLSv1.3");
}

/// The directives of a server, and their error.
const WRONG: &[(&str, &str)] = &[
    (
        "",
        "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem;",
        "no \"ssl_certificate_key\" is defined for certificate \"%KEYS%/ec.pem\"",
    ),
    (
        "ssl_certificate %KEYS%/none.pem; ssl_certificate_key %KEYS%/ec.key;",
        "cannot load certificate \"%KEYS%/none.pem\": BIO_new_file() failed (2: No such file or \
         directory)",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/none.key;",
        "cannot load certificate key \"%KEYS%/none.key\": BIO_new_file() failed (2: No such file \
         or directory)",
    ),
    (
        "ssl_certificate %KEYS%/text.pem; ssl_certificate_key %KEYS%/ec.key;",
        "cannot load certificate \"%KEYS%/text.pem\": PEM_read_bio_X509_AUX() failed",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/text.pem;",
        "cannot load certificate key \"%KEYS%/text.pem\": PEM_read_bio_PrivateKey() failed",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/rsa.key;",
        "SSL_CTX_use_PrivateKey(\"%KEYS%/rsa.key\") failed (SSL: key values mismatch)",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/wild.key;",
        "SSL_CTX_use_PrivateKey(\"%KEYS%/wild.key\") failed (SSL: key values mismatch)",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/locked.key;",
        "PEM_read_bio_PrivateKey() failed (SSL: bad password read)",
    ),
    (
        "ssl_certificate %KEYS%/rsa.pem; ssl_certificate_key %KEYS%/old_locked.key; \
         ssl_password_file %KEYS%/text.pem;",
        "PEM_read_bio_PrivateKey() failed (SSL: bad decrypt)",
    ),
    (
        "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/ec.key; \
         ssl_password_file %KEYS%/none;",
        "open() \"%KEYS%/none\" failed (2: No such file or directory)",
    ),
    (
        "%PAIR% ssl_certificate_key $ssl_server_name.key; ssl_certificate $ssl_server_name.pem;
         ssl_certificate_cache valid=1s;",
        "\"ssl_certificate_cache\" must have the \"max\" parameter",
    ),
    (
        "%PAIR% ssl_verify_client on;",
        "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client",
    ),
    (
        "%PAIR% ssl_verify_client on; ssl_client_certificate %KEYS%/text.pem;",
        "SSL_CTX_load_verify_locations(\"%KEYS%/text.pem\") failed (SSL: error:05800088:x509 \
         certificate routines::no certificate or crl found)",
    ),
    (
        "%PAIR% ssl_verify_client optional; ssl_trusted_certificate %KEYS%/ec.pem; \
         ssl_crl %KEYS%/ec.pem;",
        "X509_LOOKUP_load_file(\"%KEYS%/ec.pem\") failed (SSL: no list of revoked certificates",
    ),
    (
        "%PAIR% ssl_verify_client optional_no_ca; ssl_ocsp leaf;",
        "\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"",
    ),
    (
        "%PAIR% ssl_session_ticket_key %KEYS%/t.key;",
        "open() \"%KEYS%/t.key\" failed (2: No such file or directory)",
    ),
    (
        "%PAIR% ssl_session_ticket_key %KEYS%/text.pem;",
        "\"%KEYS%/text.pem\" must be 48 or 80 bytes",
    ),
    (
        "%PAIR% ssl_protocols TLSv1 TLSv1.1;",
        "TLSv1, TLSv1.1 are not supported, add TLSv1.2 or TLSv1.3",
    ),
    (
        "%PAIR% ssl_ciphers NOTHING;",
        "SSL_CTX_set_cipher_list(\"NOTHING\") failed (SSL: no cipher match)",
    ),
    (
        "%PAIR% ssl_ecdh_curve brainpoolP256r1;",
        "SSL_CTX_set1_curves_list(\"brainpoolP256r1\") failed: none is supported",
    ),
    (
        "%PAIR% ssl_conf_command MinProtocol TLSv1.4;",
        "SSL_CONF_cmd(\"MinProtocol\", \"TLSv1.4\") failed: a version is wanted",
    ),
    (
        "%PAIR% ssl_conf_command MaxProtocol TLSv1.1;",
        "\"ssl_conf_command MaxProtocol\" leaves neither TLSv1.2 nor TLSv1.3",
    ),
    (
        "%PAIR% ssl_conf_command VerifyMode Peer;",
        "\"ssl_conf_command VerifyMode\" is not supported: use the directives of ssl",
    ),
    (
        "%PAIR% ssl_conf_command Certificate %KEYS%/ec.pem;",
        "\"ssl_conf_command Certificate\" needs \"ssl_conf_command PrivateKey\" beside it",
    ),
    (
        "%PAIR% ssl_ech_file %KEYS%/ech.pem;",
        "the library has no Encrypted Client Hello for servers; it is not supported yet",
    ),
];

const PAIR: &str = "ssl_certificate %KEYS%/ec.pem; ssl_certificate_key %KEYS%/ec.key;";

#[test]
fn unusable_settings_are_refused_by_name_and_place() {
    let keys = keys();
    let folder = keys.path().display().to_string();
    for (directives, expected) in WRONG {
        let directives = directives.replace("%PAIR%", PAIR);
        let http = format!("\nserver {{ listen 127.0.0.1:%PORT% ssl;\n{directives} }}");
        let builder = Server::builder(TURNPIKE).configuration(&configured(&keys, &http));
        let Err(StartError::Ended(_, output)) = builder.try_start() else {
            panic!("started with {directives}");
        };
        let expected = expected.replace("%KEYS%", &folder);
        assert!(output.contains(&expected), "{directives}: {output}");
        assert!(output.contains("turnpike.conf:"), "{output}");
    }
}

/// Directives that are accepted with a warning.
const WARNED: &[(&str, &str)] = &[
    (
        "ssl_protocols TLSv1 TLSv1.2;",
        "TLSv1 ignored: only TLSv1.2 and TLSv1.3 are supported",
    ),
    (
        "ssl_dhparam %KEYS%/dh.pem;",
        "\"ssl_dhparam\" has no effect",
    ),
    (
        "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256;",
        "cipher suites in \"ssl_ciphers\" are not supported: DHE-RSA-AES128-GCM-SHA256",
    ),
    (
        "ssl_ciphers HIGH:FANCY;",
        "unknown words in \"ssl_ciphers\": FANCY",
    ),
    (
        "ssl_stapling on; ssl_stapling_verify on;",
        "\"ssl_stapling\" ignored",
    ),
    (
        "ssl_early_data on; ssl_session_ticket_key %KEYS%/ec.key;",
        "\"ssl_session_ticket_key\" ignored: with \"ssl_early_data on\"",
    ),
    (
        "ssl_conf_command Options KTLS,NoRenegotiation,-SessionTicket;",
        "\"ssl_conf_command Options KTLS\" ignored",
    ),
    (
        "ssl_ecdh_curve X25519:secp521r1;",
        "groups in \"ssl_ecdh_curve\" are not supported: secp521r1",
    ),
];

#[test]
fn ignored_settings_are_warnings() {
    let keys = keys();
    keys.write("dh.pem", DH_PARAMETERS).unwrap();
    for (directives, expected) in WARNED {
        let http = format!("server {{ listen 127.0.0.1:%PORT% ssl;\n{PAIR} {directives} }}");
        let server = start(&keys, &http);
        let output = format!("{}{}", server.output(), server.log("error.log"));
        assert!(output.contains(expected), "{directives}: {output}");
        assert!(output.contains("turnpike.conf:"), "{output}");
    }
}
