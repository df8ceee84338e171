//! Tests of what people look for when a server is slow or fails: the heaviest URLs, hosts and
//! clients, and the last failure of an upstream server.

use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Server, wait_for};

const RANKED: &str = "
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
http {
    heavy_hitters on;
    server {
        listen 127.0.0.1:%PORT%;
        location /slow { echo_sleep 0.02; echo late; }
        location /broken { return 503; }
        location / { return 200 served; }
        location /uncounted { heavy_hitters off; return 200; }
        location /live { heavy_hitters off; status html; }
        location /metrics { heavy_hitters off; metrics; }
    }
}";

/// The value of a metric of the ranking.
fn ranked(page: &Value, metric: &str, subject: &str, name: &str) -> Option<f64> {
    let rows = page["metrics"].as_array()?;
    let row = rows.iter().find(|row| row["name"] == metric)?;
    let is_it = |sample: &&Value| {
        let labels = &sample["labels"];
        labels["subject"] == subject && labels["name"] == name
    };
    row["samples"].as_array()?.iter().find(is_it)?["value"].as_f64()
}

#[test]
fn the_heaviest_urls_hosts_and_clients_are_ranked() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(RANKED)
        .start();
    for (path, host, times) in [
        ("/slow?password=secret", "a.example", 3),
        ("/broken", "b.example", 2),
        ("/fast", "a.example", 5),
        ("/uncounted", "c.example", 5),
    ] {
        for _ in 0..times {
            server.exchange(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"));
        }
    }
    let requests = "heavy_hitter_requests";
    let page = || -> Value { serde_json::from_str(&server.get("/live?json").text()).unwrap() };
    let counted = wait_for(|| {
        let page = page();
        (ranked(&page, requests, "client", "127.0.0.1") == Some(10.0)).then_some(page)
    });
    let page = counted.unwrap_or_else(page);
    for (metric, subject, name, value) in [
        (requests, "client", "127.0.0.1", Some(10.0)),
        (requests, "url", "a.example/slow", Some(3.0)),
        (requests, "url", "a.example/fast", Some(5.0)),
        (requests, "url", "c.example/uncounted", None),
        (requests, "host", "a.example", Some(8.0)),
        (requests, "host", "b.example", Some(2.0)),
        (requests, "host", "c.example", None),
        ("heavy_hitter_server_errors", "host", "b.example", Some(2.0)),
        ("heavy_hitter_server_errors", "host", "a.example", Some(0.0)),
    ] {
        let found = ranked(&page, metric, subject, name);
        assert_eq!(found, value, "{metric} {subject} {name}: {page}");
    }
    let slow = |metric| ranked(&page, metric, "url", "a.example/slow").unwrap();
    assert!(slow("heavy_hitter_slowest_seconds") >= 0.02, "{page}");
    assert!(slow("heavy_hitter_seconds") >= 0.06, "{page}");
    assert!(!page.to_string().contains("secret"), "{page}");
    // Prometheus would keep a series for each name.
    assert!(!server.get("/metrics").text().contains("heavy_hitter"));
}

const FAILING: &str = "
error_log %FOLDER%/error.log notice;
control %FOLDER%/control;
events { }
http {
    upstream application { server 127.0.0.1:%REFUSED%; }
    server {
        listen 127.0.0.1:%PORT%;
        location / { proxy_pass http://application; }
        location /metrics { metrics; }
    }
}
stream {
    upstream database { server 127.0.0.1:%REFUSED%; }
    server { listen 127.0.0.1:%PORT_STREAM%; proxy_pass database; }
}";

#[test]
fn the_last_failure_of_an_upstream_server_is_shown_with_its_reason() {
    let refused = RefusedPort::new().unwrap();
    let peer = format!("127.0.0.1:{}", refused.number());
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&FAILING.replace("%REFUSED%", &refused.number().to_string()))
        .start();
    let status = || -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(["status", "--json", "--socket"])
            .arg(server.folder().join("control"))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let failure = "upstream_last_failure_timestamp_seconds";
    assert!(!server.get("/metrics").text().contains(failure));
    assert_eq!(status()["serving"]["upstream_failure"], Value::Null);
    assert!(server.get("/").text().contains("502"));
    let page = server.get("/metrics").text();
    let series = format!(
        "turnpike_{failure}{{upstream=\"application\",peer=\"{peer}\",reason=\"error\"}} 1"
    );
    assert!(page.contains(&series), "{series}: {page}");
    let shown = status()["serving"]["upstream_failure"].clone();
    assert_eq!(shown["upstream"], "application");
    assert_eq!(shown["server"], peer);
    assert_eq!(shown["reason"], "error");
    let _client = TcpStream::connect(("127.0.0.1", server.port_named("STREAM"))).unwrap();
    let series = format!(
        "turnpike_stream_{failure}{{upstream=\"database\",peer=\"{peer}\",reason=\"error\"}} 1"
    );
    let page = || server.get("/metrics").text();
    let seen = wait_for(|| page().contains(&series).then_some(()));
    assert!(seen.is_some(), "{series}: {}", page());
}
