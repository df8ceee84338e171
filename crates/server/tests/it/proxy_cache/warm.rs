//! Tests of `cache warm`, and of what caches save.

use std::process::{Command, Output};

use crate::support::tls::{TURNPIKE, certificate};
use crate::support::{output_of, stderr};
use turnpike_testkit::{Folder, Server};

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
control %FOLDER%/control;
events { }
http {
    access_log off;
    ssl_certificate %KEYS%/one.pem;
    ssl_certificate_key %KEYS%/one.key;
    proxy_cache_path hot keys_zone=hot:8m memory;
    proxy_cache hot;
    proxy_cache_valid 200 1h;
    proxy_cache_key $scheme://$host$request_uri;
    add_header X-Cache $upstream_cache_status;
    server {
        listen 127.0.0.1:%PORT%;
        listen 127.0.0.1:%PORT_TLS% ssl;
        listen 127.0.0.1:%PORT_PROXIED% proxy_protocol;
        server_name a.example;
        location / { proxy_pass http://127.0.0.1:%PORT_ORIGIN%; }
    }
    server {
        listen 127.0.0.1:%PORT%;
        server_name b.example;
        location / { proxy_pass http://127.0.0.1:%PORT_ORIGIN%; }
    }
    server {
        listen 127.0.0.1:%PORT_ORIGIN%;
        proxy_cache off;
        location / { return 200 'ten bytes.'; }
        location /missing { return 404; }
        location /large { root %FOLDER%/html; }
    }
    server { listen 127.0.0.1:%PORT_METRICS%; location / { metrics; } }
}";

/// More than answers that are looked at may have.
const LARGE_BYTES: usize = 1 << 20;

fn server(keys: &Folder) -> Server {
    certificate(
        keys.path(),
        "one",
        "a.example",
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    );
    let keys = keys.path().display().to_string();
    Server::builder(TURNPIKE)
        .configuration(&CONFIGURATION.replace("%KEYS%", &keys))
        .file("html/large", vec![b'x'; LARGE_BYTES])
        .start()
}

fn warm(server: &Server, list: &str, more: &[&str]) -> Output {
    let mut command = Command::new(TURNPIKE);
    command
        .args(["cache", "warm", "-", "--rate", "1000", "--socket"])
        .arg(server.folder().join("control"))
        .args(more);
    output_of(&mut command, list)
}

/// The cache's status of an answer to a client.
fn status(server: &Server, host: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    let answer = server.exchange(request);
    let answer = String::from_utf8_lossy(&answer);
    let field = answer.split("\r\nX-Cache: ").nth(1).unwrap();
    field.split("\r\n").next().unwrap().to_owned()
}

#[test]
fn a_list_is_stored_as_clients_would_have_stored_it() {
    let keys = Folder::create().unwrap();
    let server = server(&keys);
    let port = |name: &str| server.port_named(name);
    let (plain, tls, proxied) = (server.port(), port("TLS"), port("PROXIED"));
    let sitemap = format!(
        "<urlset><url><loc>http://a.example:{plain}/one?a=1&amp;b=2</loc></url>
         <url><loc>http://b.example:{plain}/two</loc></url>
         <url><loc>https://a.example:{tls}/three</loc></url>
         <url><loc>http://a.example:{plain}/large</loc></url>
         <url><loc>http://a.example:{proxied}/four</loc></url></urlset>"
    );
    assert_eq!(status(&server, "a.example", "/before"), "MISS");
    let output = warm(&server, &sitemap, &[]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}{}", stderr(&output));
    assert!(
        shown.starts_with("5 of 5 URLs answered, 1.00 MiB in "),
        "{shown}"
    );
    assert!(shown.ends_with(" keys, 1 before\n"), "{shown}");
    for (host, path, expected) in [
        ("a.example", "/one?a=1&b=2", "HIT"),
        ("a.example", "/four", "HIT"),
        ("a.example", "/large", "HIT"),
        ("b.example", "/two", "HIT"),
        ("a.example", "/two", "MISS"),
        // The other scheme is another key.
        ("a.example", "/three", "MISS"),
    ] {
        assert_eq!(status(&server, host, path), expected, "{host}{path}");
    }
}

#[test]
fn failures_are_told_with_their_urls_and_the_rest_is_stored() {
    let keys = Folder::create().unwrap();
    let server = server(&keys);
    let port = server.port();
    let missing = format!("http://a.example:{port}/missing");
    let list = format!("# a list\n{missing}\nhttp://a.example:1/\nhttp://a.example:{port}/x\n");
    let output = warm(&server, &list, &["--json"]);
    assert!(!output.status.success());
    let told = stderr(&output);
    for line in [
        format!("{missing}: status 404\n"),
        "http://a.example:1/: no listening socket has port 1\n".to_owned(),
        "turnpike: 2 of 3 URLs failed\n".to_owned(),
    ] {
        assert!(told.contains(&line), "{line}: {told}");
    }
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, value) in [("urls", 3), ("answered", 1), ("failed", 2)] {
        assert_eq!(shown[name], value, "{shown}");
    }
    assert_eq!(status(&server, "a.example", "/x"), "HIT");
    let output = warm(&server, "/x\n", &[]);
    assert!(stderr(&output).contains("-:1: \"/x\" does not begin with http://HOST"));
}

#[test]
fn hits_and_saved_bytes_are_counted_by_zone_and_host() {
    let keys = Folder::create().unwrap();
    let server = server(&keys);
    for (host, times) in [("a.example", 3), ("b.example", 2)] {
        for _ in 0..times {
            status(&server, host, "/");
        }
    }
    let head = server.exchange("HEAD / HTTP/1.0\r\nHost: b.example\r\n\r\n");
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    let request = "GET /x HTTP/1.0\r\n\r\n";
    let page = turnpike_testkit::exchange(server.port_named("METRICS"), request);
    let page = String::from_utf8_lossy(&page).into_owned();
    for line in [
        "cache_saved_bytes_total{zone=\"hot\"} 30",
        "cache_host_requests_total{host=\"a.example\"} 3",
        "cache_host_hits_total{host=\"a.example\"} 2",
        "cache_host_saved_bytes_total{host=\"a.example\"} 20",
        "cache_host_requests_total{host=\"b.example\"} 3",
        "cache_host_hits_total{host=\"b.example\"} 2",
        "cache_host_saved_bytes_total{host=\"b.example\"} 10",
    ] {
        assert!(
            page.contains(&format!("turnpike_{line}\n")),
            "{line}: {page}"
        );
    }
    assert!(!page.contains("host=\"_\""), "{page}");
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(["status", "--socket"])
        .arg(server.folder().join("control"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    for line in [
        "zone hot: 66.7 % of 6 requests hit, 30 B saved",
        "host a.example: 66.7 % of 3 requests hit, 20 B saved",
        "host b.example: 66.7 % of 3 requests hit, 10 B saved",
    ] {
        assert!(
            told.contains(&format!("cache          {line}\n")),
            "{line}: {told}"
        );
    }
}
