//! HTTP/3: requests, connections, resumed sessions and early data agree with what aioquic has seen.

#![allow(clippy::unwrap_used)]

mod peers;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use peers::{load, load_json};
use turnpike_testkit::python::AIOQUIC;

/// A server of other authors.
struct Peer {
    child: Child,
    port: u16,
    output: BufReader<std::process::ChildStdout>,
}

impl Peer {
    /// A server whose answers have bodies of so many bytes; `None` where it cannot be had.
    fn start(test: &str, body_bytes: usize) -> Option<Peer> {
        let python = AIOQUIC.python(test)?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
        let mut child = Command::new(python)
            .current_dir(folder)
            .args(["http3_server.py", "certificate.pem", "key.pem"])
            .arg(body_bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Some(Peer {
            child,
            port: line.trim().parse().unwrap(),
            output,
        })
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.port)
    }

    /// Ends it; returns what it has seen.
    fn end(mut self) -> serde_json::Value {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// Options, then requests, connections, and how many of these resume a session and send early.
const COUNTS: &[(&str, u64, u64, u64, u64)] = &[
    ("-t 1 -c 2 -n 40", 40, 2, 0, 0),
    ("-t 2 -c 3 -n 41 --streams 10", 41, 3, 0, 0),
    // The server allows 128 streams, and more once some have ended.
    ("-t 1 -c 1 -n 300 --streams 300", 300, 1, 0, 0),
    ("-t 1 -c 1 -n 12 -C 3", 12, 4, 3, 0),
    ("-t 1 -c 1 -n 12 -C 3 --tls-resume 0", 12, 4, 0, 0),
    ("-t 1 -c 1 -n 12 -C 3 --early-data 100", 12, 4, 3, 3),
    ("-t 1 -c 2 -n 20 --rate 500", 20, 2, 0, 0),
    (
        "-t 1 -c 20 -n 10 --connrate 200 -C 1 --tls-resume 0",
        10,
        10,
        0,
        0,
    ),
];

#[test]
fn counts_agree_with_the_server() {
    let Some(peer) = Peer::start("counts_agree_with_the_server", 3) else {
        return;
    };
    let mut sums = [0; 4];
    for (options, requests, connections, resumed, early) in COUNTS {
        let (report, status) = load_json(&format!("--h3 -k {options} {}", peer.url()));
        assert_eq!(status, 0, "{options}: {report:#}");
        let counts = &report["connection_counts"];
        assert_eq!(report["requests"]["answered"], *requests, "{options}");
        assert_eq!(counts["opened"], *connections, "{options}");
        assert_eq!(counts["tls_resumed"], *resumed, "{options}");
        assert_eq!(counts["early_data"], *early, "{options}");
        assert_eq!(report["protocol"], "h3");
        let row = [*requests, *connections, *resumed, *early];
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, count)| *sum += count);
    }
    let seen = peer.end();
    let seen = ["requests", "connections", "resumed", "early"].map(|name| seen[name].as_u64());
    assert_eq!(seen, sums.map(Some));
}

#[test]
fn bodies_of_both_ways_come_whole_from_each_source() {
    const BODY_BYTES: usize = 300_000;
    let Some(peer) = Peer::start(
        "bodies_of_both_ways_come_whole_from_each_source",
        BODY_BYTES,
    ) else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("turnpike-load-h3-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (sent, expected) = (folder.join("sent"), folder.join("expected"));
    std::fs::write(&sent, vec![b'y'; 2 * BODY_BYTES]).unwrap();
    std::fs::write(&expected, vec![b'x'; BODY_BYTES]).unwrap();
    let (report, status) = load_json(&format!(
        "--h3 -k -t 1 -c 3 -n 6 -T 20s -S 127.0.1.1-127.0.1.3 --body {} --expect-body {} {}",
        sent.display(),
        expected.display(),
        peer.url()
    ));
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(status, 0, "{report:#}");
    let seen = peer.end();
    assert_eq!(seen["body_bytes"], 6 * 2 * BODY_BYTES);
    let mut sources: Vec<_> = seen["peers"].as_array().unwrap().clone();
    sources.sort_by_key(ToString::to_string);
    assert_eq!(sources, ["127.0.1.1", "127.0.1.2", "127.0.1.3"]);
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    // A port that is bound answers nothing; one that is free is answered for by the kernel.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let free = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (address, kind) in [
        (silent.local_addr().unwrap(), "connect_timeout"),
        (free, "refused"),
    ] {
        let (report, status) = load_json(&format!(
            "--h3 -k -t 1 -c 1 -d 300ms -T 100ms https://{address}/"
        ));
        assert_ne!(status, 0, "{report:#}");
        let errors = report["errors"][kind].as_u64();
        assert!(errors.is_some_and(|count| count > 0), "{kind}: {report:#}");
    }
}

#[test]
fn a_source_range_without_free_ports_is_the_clients_limit() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = "--h3 -k -t 1 -c 1 -d 300ms";
    let (report, status) = load_json(&format!(
        "{line} -S 127.0.0.1:{port}-{port} https://127.0.0.1:{port}/"
    ));
    assert_eq!(status, 3, "{report:#}");
    let errors = report["errors"]["no_ports"].as_u64();
    assert!(errors.is_some_and(|count| count > 0), "{report:#}");
    assert_eq!(report["client_limited"], true);
}

#[test]
fn options_that_do_not_go_with_it_are_refused() {
    let cases = [
        ("--h3 http://127.0.0.1:1/", "--h3 takes https URLs only"),
        ("--h3 --h2 https://127.0.0.1:1/", "cannot be used with"),
        (
            "--h3 --pipeline 2 https://127.0.0.1:1/",
            "cannot be used with",
        ),
        (
            "--h3 --fastopen https://127.0.0.1:1/",
            "cannot be used with",
        ),
        ("--early-data 10 https://127.0.0.1:1/", "--h3"),
        (
            "--h3 --early-data 101 https://127.0.0.1:1/",
            "--early-data takes 0 to 100",
        ),
    ];
    for (line, reason) in cases {
        let output = load(line);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        assert!(text.contains(reason), "{line}: {text}");
    }
}
