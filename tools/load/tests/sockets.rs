//! Where connections come from and go to: unix sockets, IPv6, source ranges, many targets.

#![allow(clippy::unwrap_used)]

mod peers;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use peers::{answering, load_json, ok};

/// Answers one request on each connection and notes who asked.
fn noting_peer(address: &str) -> (SocketAddr, Arc<Mutex<Vec<SocketAddr>>>) {
    let listener = TcpListener::bind(address).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let local = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, peer)) = listener.accept() {
            noted.lock().unwrap().push(peer);
            std::thread::spawn(move || {
                let mut chunk = [0; 1024];
                while matches!(stream.read(&mut chunk), Ok(count) if count > 0) {
                    let _ = stream.write_all(&ok("hello"));
                }
            });
        }
    });
    (local, seen)
}

#[test]
fn sources_are_taken_from_the_ranges_in_turn() {
    let (address, seen) = noting_peer("127.0.0.1:0");
    let line = "-t 2 -c 8 -n 80 -C 1 -S 127.0.7.1-127.0.7.4:40000-40999 -S 127.0.8.1:20000-20999";
    let (report, status) = load_json(&format!("{line} http://{address}/"));
    assert_eq!(status, 0, "{report:#}");
    let seen = seen.lock().unwrap();
    let addresses: BTreeSet<String> = seen.iter().map(|peer| peer.ip().to_string()).collect();
    let expected = [
        "127.0.7.1",
        "127.0.7.2",
        "127.0.7.3",
        "127.0.7.4",
        "127.0.8.1",
    ];
    assert_eq!(addresses.into_iter().collect::<Vec<_>>(), expected);
    // Within the ephemeral range the kernel chooses; elsewhere the generator does.
    for (start, ports) in [("127.0.7.", 40_000..=40_999), ("127.0.8.", 20_000..=20_999)] {
        let from = seen
            .iter()
            .filter(|peer| peer.ip().to_string().starts_with(start));
        assert!(
            from.clone().all(|peer| ports.contains(&peer.port())),
            "{seen:?}"
        );
        assert_eq!(from.count(), 40);
    }
}

#[test]
fn a_source_range_without_free_ports_is_the_clients_limit() {
    let (address, _) = noting_peer("127.0.0.1:0");
    let line = "-t 1 -c 8 -d 300ms -S 127.0.9.1:21000-21003";
    let (report, status) = load_json(&format!("{line} http://{address}/"));
    assert_eq!(status, 3, "{report:#}");
    assert!(
        report["errors"]["no_ports"].as_u64().unwrap() > 0,
        "{report:#}"
    );
    assert_eq!(report["client_limited"], true);
    let reasons = report["client_limits"].as_array().unwrap();
    assert!(
        reasons.iter().any(|limit| limit["reason"] == "ports"),
        "{report:#}"
    );
    assert_eq!(report["connection_counts"]["opened"], 4, "{report:#}");
}

#[test]
fn ipv6_and_socket_options_work() {
    let (address, seen) = noting_peer("[::1]:0");
    for options in [
        "",
        "--linger0 -C 1",
        "--fastopen -C 1",
        "-N",
        "-B",
        "-B=0",
        "--delay",
    ] {
        let (report, status) = load_json(&format!("-t 1 -c 2 -n 20 {options} http://{address}/"));
        assert_eq!(status, 0, "{options}: {report:#}");
        assert_eq!(report["requests"]["answered"], 20, "{options}");
    }
    assert!(seen.lock().unwrap().iter().all(SocketAddr::is_ipv6));
}

#[test]
fn unix_sockets_work_both_ways() {
    let path = std::env::temp_dir().join(format!("turnpike-load-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut chunk = [0; 1024];
                while matches!(stream.read(&mut chunk), Ok(count) if count > 0) {
                    let _ = stream.write_all(&ok("hello"));
                }
            });
        }
    });
    let name = path.display();
    let lines = [
        format!("-t 1 -c 2 -n 20 unix:{name}:/x"),
        format!("-t 1 -c 2 -n 20 -C 1 --unix {name} http://a.test/"),
    ];
    for line in lines {
        let line = if line.contains("a.test") {
            line.replace("a.test", "127.0.0.1")
        } else {
            line
        };
        let (report, status) = load_json(&line);
        assert_eq!(status, 0, "{line}: {report:#}");
        assert_eq!(report["requests"]["answered"], 20, "{line}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn targets_come_by_weight_or_in_order() {
    let (first, second) = (answering(ok("first")), answering(ok("second")));
    let folder = std::env::temp_dir();
    let path = folder.join(format!("turnpike-load-{}-targets", std::process::id()));
    let file = path.display();
    std::fs::write(&path, format!("{} 9\n{} 1\n", first.url(), second.url())).unwrap();
    let (report, _) = load_json(&format!("-t 1 -c 4 -n 1000 -C 1 --urls-from {file}"));
    assert_eq!(report["requests"]["answered"], 1000, "{report:#}");
    assert_eq!(first.requests() + second.requests(), 1000);
    assert!(
        (50..150).contains(&second.requests()),
        "{}",
        second.requests()
    );

    let pages = format!(
        "new a 0 get {} /\nnew b 0 get {} /\n",
        first.address, second.address
    );
    std::fs::write(&path, pages).unwrap();
    let before = (first.requests(), second.requests());
    let (report, _) = load_json(&format!("-t 1 -u 2 -n 100 -f {file}"));
    assert_eq!(report["requests"]["answered"], 100, "{report:#}");
    let asked = (first.requests() - before.0, second.requests() - before.1);
    // Each of the two users begins with the first page and may end on it.
    assert!(
        asked.0 + asked.1 == 100 && (50..=51).contains(&asked.0),
        "{asked:?}"
    );
    std::fs::remove_file(path).unwrap();
}
