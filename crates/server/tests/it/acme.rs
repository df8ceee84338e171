//! Tests of `acme_issuer` with an authority of our own: orders, renewals, and orders that fail.
//! curl judges what the server shows. `cargo xtask acme` does more with Pebble.

use std::process::Command;

use turnpike_testkit::authority::{Authority, Order};
use turnpike_testkit::{Server, Signal, wait_for};

use crate::support::tls;

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

/// Servers with certificates of the authority; the first port is that of plain HTTP.
fn configuration(authority: &Authority, names: &[&str]) -> String {
    let certificates: Vec<_> = names.iter().map(|name| ("own", *name)).collect();
    configured(&[("own", authority)], &certificates)
}

/// A server for each certificate, which is an issuer's name and a server's.
fn configured(issuers: &[(&str, &Authority)], certificates: &[(&str, &str)]) -> String {
    let issuer = |(issuer, authority): &(&str, &Authority)| {
        let directory = authority.directory();
        format!("acme_issuer {issuer} {{ uri {directory}; state_path %FOLDER%/{issuer}; }}")
    };
    let server = |(issuer, name): &(&str, &str)| {
        format!(
            "server {{
                listen 127.0.0.1:%PORT_SECURE% ssl;
                server_name {name};
                acme_certificate {issuer} {name};
                ssl_certificate $acme_certificate;
                ssl_certificate_key $acme_certificate_key;
                location / {{ return 200 $ssl_server_name; }}
            }}"
        )
    };
    let issuers: String = issuers.iter().map(issuer).collect();
    let servers: String = certificates.iter().map(server).collect();
    format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            access_log off;
            {issuers}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ return 301 https://$host$request_uri; }}
            }}
            {servers}
        }}"
    )
}

fn start(authority: &Authority, names: &[&str]) -> Server {
    let configuration = configuration(authority, names);
    let server = Server::builder(TURNPIKE)
        .configuration(&configuration)
        .start();
    authority.look_at(server.port());
    server
}

/// What curl gets for a name from a server with a certificate that the authority has issued for it.
fn fetch(server: &Server, authority: &Authority, name: &str) -> Result<String, String> {
    let port = server.port_named("SECURE");
    let mut curl = Command::new("curl");
    let curl = curl.args(["--silent", "--show-error", "--fail", "--cacert"]);
    let curl = curl.arg(authority.root());
    let curl = curl.args(["--resolve", &format!("{name}:{port}:127.0.0.1")]);
    let output = curl
        .arg(format!("https://{name}:{port}/"))
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn wait_until_in_force(server: &Server, name: &str) {
    let text = format!("a certificate for {name} is in force for ");
    server.wait_for_log("error.log", &text);
}

/// The number of orders for a name.
fn ordered(authority: &Authority, name: &str) -> usize {
    let orders = authority.orders();
    orders.iter().filter(|order| order.names == [name]).count()
}

#[test]
fn a_certificate_is_ordered_and_kept() {
    let authority = Authority::start();
    // A client gets another nonce, and asks again.
    authority.refuse_nonces(2);
    let server = start(&authority, &["a.test", "b.test"]);
    for name in ["a.test", "b.test"] {
        wait_until_in_force(&server, name);
        assert_eq!(fetch(&server, &authority, name), Ok(name.to_owned()));
    }
    assert!(fetch(&server, &authority, "c.test").is_err());
    // An order of the past does not answer challenges any more.
    let path = authority.challenge_path(0, 0);
    assert_ne!(server.get(&path).status, 200);
    // A reload orders nothing.
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "reconfiguring");
    assert_eq!(
        fetch(&server, &authority, "a.test"),
        Ok("a.test".to_owned())
    );
    assert_eq!(authority.orders().len(), 2);
}

#[test]
fn a_certificate_is_renewed_when_the_authority_wants_it() {
    let authority = Authority::start();
    authority.want_renewals(1);
    let server = start(&authority, &["a.test"]);
    let renewed = || {
        let orders = authority.orders();
        let issued = orders.iter().filter(|order| order.is_issued);
        (issued.count() == 2).then_some(())
    };
    assert_eq!(wait_for(renewed), Some(()), "{}", server.log("error.log"));
    let orders = authority.orders();
    let replaces = |order: &Order| order.replaces.is_some();
    let replace: Vec<bool> = orders.iter().map(replaces).collect();
    assert_eq!(replace, [false, true]);
    let text = "the authority suggests to renew the certificate for a.test in 0 s";
    server.wait_for_log("error.log", text);
    assert_eq!(
        fetch(&server, &authority, "a.test"),
        Ok("a.test".to_owned())
    );
}

#[test]
fn an_order_that_fails_is_tried_again_later_and_others_go_on() {
    let authority = Authority::start();
    authority.refuse("no.test");
    let mut server = start(&authority, &["no.test"]);
    let failed = "ordering a certificate for no.test failed: no.test: ";
    server.wait_for_log("error.log", failed);
    server.wait_for_log("error.log", "the next try is in 60 s");
    assert!(fetch(&server, &authority, "no.test").is_err());
    // A reload is no reason to try again, and another certificate does not wait.
    server.write_configuration(&configuration(&authority, &["no.test", "a.test"]));
    server.signal(Signal::SIGHUP);
    wait_until_in_force(&server, "a.test");
    assert_eq!(
        fetch(&server, &authority, "a.test"),
        Ok("a.test".to_owned())
    );
    assert_eq!(ordered(&authority, "no.test"), 1);
}

/// An answer in place of another one (its place, status, fields and body), and what the log says.
type Interrupted = (&'static str, u16, &'static str, &'static str, &'static str);

const INTERRUPTED: &[Interrupted] = &[
    (
        "orders",
        429,
        "Retry-After: 7200\r\n",
        r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many"}"#,
        "too many (urn:ietf:params:acme:error:rateLimited); the next try is in 7200 s",
    ),
    (
        "orders",
        500,
        "Retry-After: 3000000\r\n",
        "",
        "/orders: status 500, and an unexpected body; the next try is in 604800",
    ),
    (
        "finalize",
        429,
        "Retry-After: 900\r\n",
        "<html></html>",
        "/finalize/0: status 429, and an unexpected body; the next try is in \
         900 s",
    ),
    (
        "directory",
        200,
        "",
        "<html></html>",
        "/directory: status 200, and an unexpected body; the next try is in \
         60 s",
    ),
    (
        "order",
        503,
        "",
        "<html></html>",
        "/order/0: status 503, and an unexpected body; the next try is in 60 s",
    ),
];

#[test]
fn an_authority_is_asked_again_when_it_says() {
    for (place, status, fields, body, expected) in INTERRUPTED {
        let authority = Authority::start();
        authority.answer_instead(place, *status, fields, body);
        let server = start(&authority, &["a.test", "b.test"]);
        server.wait_for_log("error.log", expected);
        // It holds for that certificate alone.
        wait_until_in_force(&server, "b.test");
        assert!(ordered(&authority, "a.test") < 2, "{place}");
    }
}

#[test]
fn an_authority_that_is_unavailable_is_asked_nothing() {
    for place in ["account", "orders"] {
        let authority = Authority::start();
        authority.answer_instead(place, 503, "Retry-After: 3600\r\n", "<html></html>");
        let mut server = start(&authority, &["a.test", "b.test"]);
        let text = "the authority asks for a pause of 3600 s";
        server.wait_for_log("error.log", text);
        // Nor after a reload.
        server.write_configuration(&configuration(&authority, &["a.test", "c.test"]));
        server.signal(Signal::SIGHUP);
        server.wait_for_log("error.log", "reconfiguring");
        assert!(authority.orders().is_empty(), "{place}");
    }
}

#[test]
fn what_an_authority_must_not_say_is_refused() {
    let authority = Authority::start();
    authority.spoil_tokens();
    let server = start(&authority, &["a.test"]);
    server.wait_for_log(
        "error.log",
        "the authority's token for a.test is not base64url",
    );
    // The directory comes over TLS, and what it names would not.
    let directory = authority.directory();
    let authority = directory.trim_end_matches("/directory");
    let keys = tls::keys();
    let http = format!(
        "acme_issuer own {{ uri https://127.0.0.1:%PORT%/directory; ssl_verify off; }}
        server {{ %SECURE% location / {{ proxy_pass {authority}; }} }}
        server {{
            listen 127.0.0.1:%PORT_B% ssl;
            server_name a.test;
            acme_certificate own;
            ssl_certificate $acme_certificate;
            ssl_certificate_key $acme_certificate_key;
        }}"
    );
    let server = tls::start(&keys, &http);
    let text = "/nonce is not used: the authority's directory uses https";
    server.wait_for_log("error.log", text);
}

#[test]
fn each_of_two_issuers_certifies_its_own_names() {
    let (first, second) = (Authority::start(), Authority::start());
    let issuers = [("first", &first), ("second", &second)];
    let certificates = [("first", "a.test"), ("second", "b.test")];
    let server = Server::builder(TURNPIKE)
        .configuration(&configured(&issuers, &certificates))
        .start();
    first.look_at(server.port());
    second.look_at(server.port());
    for (own, other, name) in [(&first, &second, "a.test"), (&second, &first, "b.test")] {
        wait_until_in_force(&server, name);
        assert_eq!(fetch(&server, own, name), Ok(name.to_owned()));
        assert!(fetch(&server, other, name).is_err(), "{name}");
        assert_eq!((ordered(own, name), ordered(other, name)), (1, 0), "{name}");
    }
}

/// Servers with a certificate by one line in `http`, and those that cannot have one.
fn one_line(authority: &Authority) -> String {
    format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            access_log off;
            acme_issuer own {{ uri {}; state_path %FOLDER%/own; }}
            acme_certificate own;
            server {{ listen 127.0.0.1:%PORT%; server_name plain.example.com; }}
            server {{
                listen 127.0.0.1:%PORT_SECURE% ssl;
                server_name a.example.com *.example.com ~^b a.local;
                location / {{ return 200 $ssl_server_name; }}
            }}
            server {{
                listen 127.0.0.1:%PORT_SECURE% ssl;
                server_name c.example.com;
                location / {{ return 200 $ssl_server_name; }}
            }}
        }}",
        authority.directory()
    )
}

#[test]
fn one_line_gives_every_server_a_certificate_for_its_public_names() {
    let authority = Authority::start();
    let server = Server::builder(TURNPIKE)
        .configuration(&one_line(&authority))
        .start();
    authority.look_at(server.port());
    for name in ["a.example.com", "c.example.com"] {
        wait_until_in_force(&server, name);
        assert_eq!(fetch(&server, &authority, name), Ok(name.to_owned()));
        assert_eq!(ordered(&authority, name), 1, "{name}");
    }
    assert_eq!(authority.orders().len(), 2);
    let log = server.log("error.log");
    for (name, why) in [
        ("*.example.com", "not the name of one host"),
        ("~^b", "not the name of one host"),
        ("a.local", "not a name of the public DNS"),
    ] {
        let line = format!("no certificate is ordered for \"{name}\": it is {why} in ");
        assert!(log.contains(&line), "{line}: {log}");
    }
}

#[test]
fn a_secure_server_without_a_public_name_is_named_by_the_test() {
    for names in ["server_name _;", "", "server_name localhost ~a;"] {
        let folder = turnpike_testkit::Folder::create().unwrap();
        let text = format!(
            "events {{ }} http {{ acme_certificate own;
            acme_issuer own {{ uri http://127.0.0.1:1/; state_path own; }}
            server {{ listen unix:s ssl; {names} }} }}"
        );
        folder.write("nginx.conf", text).unwrap();
        let output = crate::support::turnpike(&folder.arguments(&["-t"]));
        let shown = crate::support::stderr(&output);
        let message = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive, \
                       and none is ordered: the server has no public name in ";
        assert!(shown.contains(message), "{names}: {shown}");
        assert!(shown.contains("nginx.conf:3\n"), "{names}: {shown}");
    }
}
