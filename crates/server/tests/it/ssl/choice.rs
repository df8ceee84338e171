//! Which server a handshake is with, and which one answers a request in it: by SNI, Host and the
//! client's certificate. nginx is asked the same.

use std::path::Path;
use std::thread;

use turnpike_testkit::{Folder, Server};

use crate::support::tls::{TURNPIKE, configured, keys, s_client};

const NGINX: &str = "/usr/sbin/nginx";

/// Threads that ask.
const THREADS: usize = 4;

/// Three addresses: the default server of the second one verifies clients, and so does the only one
/// of the third. The certificates of `ec` and `wild` are their own authorities.
const SERVERS: &str = "
    server {
        listen 127.0.0.1:%PORT% ssl; %FIRST%
        add_header X-Server first always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT% ssl; %SECOND%
        add_header X-Server second always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT% ssl; %VERIFIED% ssl_client_certificate %KEYS%/ec.pem;
        add_header X-Server verified always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT_B% ssl; %FIRST%
        ssl_verify_client on; ssl_client_certificate %KEYS%/ec.pem;
        add_header X-Server first always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT_B% ssl; %SECOND%
        add_header X-Server second always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT_B% ssl; %VERIFIED% ssl_client_certificate %KEYS%/wild.pem;
        add_header X-Server verified always;
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:%PORT_C% ssl; %FIRST%
        ssl_verify_client on; ssl_client_certificate %KEYS%/ec.pem;
        add_header X-Server first always;
        location / { return 200; }
    }";

/// What stands for the words of [`SERVERS`]: names and certificates.
const WORDS: &[(&str, &str)] = &[
    (
        "%FIRST%",
        "server_name first.test; %PAIR%/ec.pem; ssl_certificate_key %KEYS%/ec.key;",
    ),
    (
        "%SECOND%",
        "server_name second.test; %PAIR%/rsa.pem; ssl_certificate_key %KEYS%/rsa.key;",
    ),
    (
        "%VERIFIED%",
        "server_name verified.test; %PAIR%/wild.pem; ssl_certificate_key %KEYS%/wild.key;
         ssl_verify_client on;",
    ),
    ("%PAIR%", "ssl_certificate %KEYS%"),
];

/// Names in handshakes; an empty one is not sent.
const ASKED_NAMES: &[&str] = &[
    "",
    "first.test",
    "second.test",
    "SECOND.test.",
    "verified.test",
    "unknown.test",
];

/// Requests for these hosts; an empty one is not sent, and a request without it is of HTTP/1.0.
const HOSTS: &[&str] = &[
    "first.test",
    "second.test.:443",
    "verified.test",
    "other.test",
    "",
];

/// Requests that are refused, wherever they go.
const REFUSED: &[&str] = &[
    "GET /%zz HTTP/1.1\r\nHost: first.test\r\n\r\n",
    "GET /../x HTTP/1.1\r\nHost: first.test\r\n\r\n",
    "garbage\r\n\r\n",
    "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: first.test\r\nContent-Length: x\r\n\r\n",
    "GET / HTTP/1.1\r\n: x\r\nHost: first.test\r\n\r\n",
    "GET http://first.test/%zz HTTP/1.1\r\nHost: first.test\r\n\r\n",
];

/// A part of the name of the certificate that is shown, the status, and the server that answers.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    certificate: String,
    status: String,
    server: String,
}

/// What a server answers on one of its ports (`A` is the first address).
fn ask(
    (server, keys): (&Server, &Folder),
    [port, name, certificate]: [&str; 3],
    request: &str,
) -> Answer {
    let port = match port {
        "A" => server.port(),
        port => server.port_named(port),
    };
    let at = format!("127.0.0.1:{port}");
    let mut more = vec!["-connect", &at];
    match name {
        "" => more.push("-noservername"),
        name => more.extend(["-servername", name]),
    }
    let (pem, key) = (format!("{certificate}.pem"), format!("{certificate}.key"));
    let [pem, key] = [pem, key].map(|file| keys.path().join(file).display().to_string());
    if !certificate.is_empty() {
        more.extend(["-cert", &pem, "-key", &key]);
    }
    let said = s_client(server, request, &more);
    let part = |before: &str| {
        let rest = said.split_once(before).map_or("", |(_, rest)| rest);
        let end = rest.find([' ', '\r', '\n']).unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    Answer {
        certificate: part("subject=CN = "),
        status: part("HTTP/1.1 "),
        server: part("X-Server: "),
    }
}

fn start(program: &str, keys: &Folder) -> Server {
    let words = WORDS.iter();
    let text = words.fold(SERVERS.to_owned(), |text, (word, is)| {
        text.replace(word, is)
    });
    Server::builder(Path::new(program))
        .configuration(&configured(keys, &text))
        .start()
}

#[test]
fn the_server_of_a_handshake_and_of_its_requests_are_those_of_nginx() {
    let keys = keys();
    let [ours, nginx] = [TURNPIKE, NGINX].map(|program| start(program, &keys));
    let mut cases = Vec::new();
    for name in ASKED_NAMES {
        for host in HOSTS {
            let request = match *host {
                "" => "GET / HTTP/1.0\r\n\r\n".to_owned(),
                host => format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
            };
            cases.push((["A", name, ""], request.clone()));
            cases.push((["B", name, ""], request.clone()));
            if ["first.test", "unknown.test"].contains(name) {
                cases.push((["C", name, "ec"], request.clone()));
                // What nginx does otherwise is below.
                if *host != "verified.test" {
                    cases.push((["B", name, "ec"], request));
                }
            }
        }
    }
    for request in REFUSED {
        cases.push((["A", "second.test", ""], (*request).to_owned()));
        cases.push((["A", "unknown.test", ""], (*request).to_owned()));
    }
    let differences = |cases: &[([&str; 3], String)]| -> Vec<String> {
        let compared = cases.iter().filter_map(|(asked, request)| {
            let [own, theirs] = [&ours, &nginx].map(|it| ask((it, &keys), *asked, request));
            let difference = format!("{asked:?} {request:?}: {own:?}, nginx {theirs:?}");
            (own != theirs).then_some(difference)
        });
        compared.collect()
    };
    let found: Vec<String> = thread::scope(|scope| {
        let parts = cases.chunks(cases.len().div_ceil(THREADS));
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(|| differences(part)))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The name in the handshake, the client's certificate, and the status that the server
/// `verified.test` of the second address answers with: it trusts `wild` alone.
const VERIFIED: &[(&str, &str, &str)] = &[
    ("", "", "400"),
    ("", "ec", "400"),
    ("", "wild", "200"),
    ("unknown.test", "", "400"),
    ("unknown.test", "ec", "400"),
    ("unknown.test", "wild", "200"),
    ("first.test", "ec", "421"),
    ("first.test", "wild", "421"),
    ("second.test", "wild", "421"),
    ("verified.test", "ec", "400"),
    ("verified.test", "wild", "200"),
    ("VERIFIED.test.", "wild", "200"),
];

#[test]
fn no_server_is_reached_without_its_own_verification() {
    let keys = keys();
    let server = start(TURNPIKE, &keys);
    let request = "GET / HTTP/1.1\r\nHost: verified.test\r\nConnection: close\r\n\r\n";
    for (name, certificate, status) in VERIFIED {
        let answer = ask((&server, &keys), ["B", name, certificate], request);
        assert_eq!(answer.status, *status, "{name} {certificate}");
    }
}
