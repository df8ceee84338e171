//! Tests of many concurrent clients: one fetch for all, and complete purges under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::cache::{
    Counting, DISK, MEMORY, command, response, server, status, wait_until,
};
use turnpike_testkit::{Peer, Server};

/// The number of concurrent clients.
const CLIENTS: usize = 1000;

/// The number of keys with one tag.
const KEYS: usize = 10_000;

const GET: &str = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn a_herd_on_a_cold_key_makes_one_request() {
    for zone in [MEMORY, DISK] {
        let body = "x".repeat(10_000);
        let origin = Counting::start(&response("Cache-Control: max-age=600\r\n", &body));
        // The delay is long enough for most clients to come in time; the others hit.
        origin.delay(Duration::from_secs(1));
        let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
        let server = server(&origin, zone, lock);
        let mut peers: Vec<Peer> = (0..CLIENTS).map(|_| server.connect()).collect();
        for peer in &mut peers {
            peer.send(GET);
        }
        let mut misses = 0;
        for peer in &mut peers {
            let got = peer.response();
            assert_eq!((got.status, got.body.len()), (200, body.len()));
            misses += usize::from(status(&got) == "MISS");
        }
        assert_eq!((origin.requests(), misses), (1, 1), "{zone}");
    }
}

#[test]
fn requests_for_an_uncacheable_response_do_not_queue() {
    let origin = Counting::start(&response("Cache-Control: no-store\r\n", "x"));
    origin.delay(Duration::from_millis(200));
    let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
    let server = server(&origin, MEMORY, lock);
    let mut peers: Vec<Peer> = (0..100).map(|_| server.connect()).collect();
    for peer in &mut peers {
        peer.send(GET);
    }
    for peer in &mut peers {
        assert_eq!(peer.response().status, 200);
    }
    assert_eq!(origin.requests(), 100);
}

#[test]
fn a_fetch_that_fails_is_taken_over() {
    let origin = Counting::start(&response("Cache-Control: max-age=600\r\n", "x"));
    origin.delay(Duration::from_millis(300));
    let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
    let server = server(&origin, MEMORY, lock);
    origin.refuse(true);
    let mut first = server.connect();
    first.send(GET);
    assert_eq!(first.response().status, 502);
    origin.refuse(false);
    let mut peers: Vec<Peer> = (0..50).map(|_| server.connect()).collect();
    for peer in &mut peers {
        peer.send(GET);
    }
    for peer in &mut peers {
        assert_eq!(peer.response().status, 200);
    }
    assert_eq!(origin.requests(), 2);
}

#[test]
fn a_fetch_continues_for_the_others_when_its_client_leaves() {
    for zone in [MEMORY, DISK] {
        let origin = Counting::start(&response("Cache-Control: max-age=600\r\n", "x"));
        let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
        let server = server(&origin, zone, lock);
        // On a new connection, then on a kept one.
        for (round, path) in ["/a", "/b"].iter().enumerate() {
            origin.delay(Duration::from_millis(500));
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let mut first = server.connect();
            first.send(&request);
            wait_until("a request", || origin.requests() > round);
            let mut others: Vec<Peer> = (0..10).map(|_| server.connect()).collect();
            for peer in &mut others {
                peer.send(&request);
            }
            drop(first);
            for peer in &mut others {
                let got = peer.response();
                assert_eq!((got.status, status(&got)), (200, "HIT"), "{zone} {path}");
            }
            assert_eq!(origin.requests(), round + 1, "{zone} {path}");
        }
    }
}

/// An origin in the same server: it serves a file, which is replaced while it runs.
const TAGGED: &str = "
    error_log %FOLDER%/error.log info;
    worker_processes 2;
    control %FOLDER%/control.sock;
    events { worker_connections 4096; }
    http {
        access_log off;
        proxy_cache_path mem keys_zone=Z:64m memory;
        upstream origin { server 127.0.0.1:%PORT_ORIGIN%; keepalive 16; }
        server {
            listen 127.0.0.1:%PORT_ORIGIN%;
            location / {
                root %FOLDER%/html;
                rewrite ^ /version break;
                add_header Cache-Control max-age=600;
                add_header Cache-Tag all;
            }
        }
        server {
            listen 127.0.0.1:%PORT%;
            keepalive_requests 1000000;
            location / {
                proxy_pass http://origin;
                proxy_cache Z;
                add_header X-Cache $upstream_cache_status;
            }
        }
    }";

fn get(peer: &mut Peer, key: usize) -> String {
    let got = peer.round(format!("GET /{key} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(got.status, 200);
    got.text()
}

#[test]
fn no_stale_response_comes_after_a_purge_by_tag_under_load() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(TAGGED)
        .file("html/version", "old")
        .start();
    let server = Arc::new(server);
    let mut peer = Peer::connect(server.port());
    for key in 0..KEYS {
        assert_eq!(get(&mut peer, key), "old");
    }
    let purged = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (server, purged, done) = (server.clone(), purged.clone(), done.clone());
            thread::spawn(move || load(&server, client, &purged, &done))
        })
        .collect();
    // The load runs before, during and after the purge.
    while done.load(Ordering::Relaxed) < 2000 {
        thread::sleep(Duration::from_millis(1));
    }
    server.write("html/next", "new");
    let html = server.folder().join("html");
    std::fs::rename(html.join("next"), html.join("version")).unwrap();
    let answer = command(&server, r#"{"id":1,"verb":"cache.purge","tag":"all"}"#);
    purged.store(true, Ordering::SeqCst);
    assert_eq!(answer["result"]["keys"], KEYS, "{answer}");
    for client in clients {
        client.join().unwrap();
    }
}

/// Requests keys until every one was requested after the purge; those responses must be new.
fn load(server: &Server, client: usize, purged: &AtomicBool, done: &AtomicUsize) {
    let mut peer = Peer::connect(server.port());
    let (mut key, mut after) = (client * 1237, 0);
    while after < KEYS / 4 {
        key = (key + 4001) % KEYS;
        let is_after = purged.load(Ordering::SeqCst);
        let text = get(&mut peer, key);
        done.fetch_add(1, Ordering::Relaxed);
        if is_after {
            after += 1;
            assert_eq!(text, "new", "key {key}");
        }
    }
}
