//! Counts must agree with what the server saw, to the last request.

#![allow(clippy::unwrap_used)]

mod peers;

use peers::{Peer, Script, answering, load_json, ok};

#[test]
fn requests_and_connections_agree_with_the_peer() {
    // (options, requests, connections where they are certain)
    let cases = [
        ("-t 1 -c 4 -n 400", 400, Some(4)),
        ("-t 2 -c 5 -n 401", 401, Some(5)),
        ("-t 1 -c 2 -n 30 -C 1", 30, Some(30)),
        ("-t 1 -c 1 -n 30 -C 4", 30, Some(8)),
        ("-t 1 -c 1 -n 64 --pipeline 8", 64, Some(1)),
        ("-t 1 -c 1 -n 10 --pipeline 8 -C 3", 10, Some(4)),
        ("-t 1 -c 3 -n 100 -C 1:35,4:40,14:25", 100, None),
        ("-t 1 -u 5 -s 200 -n 50", 50, Some(50)),
        ("-t 1 -c 50 --rate 1000 -n 200", 200, None),
        (
            "-t 2 -c 50 --connrate 500 -C 3 --arrival poisson -n 60",
            60,
            None,
        ),
    ];
    for (options, requests, connections) in cases {
        let peer = answering(ok("hello"));
        let (report, status) = load_json(&format!("{options} {}", peer.url()));
        assert_eq!(status, 0, "{options}: {report:#}");
        assert_eq!(report["requests"]["answered"], requests, "{options}");
        assert_eq!(peer.requests(), requests, "{options}");
        assert_eq!(report["latency_us"]["count"], requests, "{options}");
        assert_eq!(
            report["connection_counts"]["opened"],
            peer.connections(),
            "{options}"
        );
        if let Some(connections) = connections {
            assert_eq!(peer.connections(), connections, "{options}");
        }
        let bytes = requests * ok("hello").len() as u64;
        assert_eq!(report["bytes_read"], bytes, "{options}");
    }
}

#[test]
fn a_run_by_time_loses_no_request_either() {
    for options in [
        "-t 2 -c 8",
        "-t 1 -c 8 -C 1",
        "-t 1 -c 8 --rate 500",
        "-t 2 -c 8 --connrate 300",
    ] {
        let peer = answering(ok("hello"));
        let line = format!("{options} -d 400ms --warmup 100ms {}", peer.url());
        let (report, status) = load_json(&line);
        assert_eq!(status, 0, "{options}: {report:#}");
        let requests = &report["requests"];
        let (answered, warmup) = (requests["answered"].as_u64(), requests["warmup"].as_u64());
        assert!(
            answered.unwrap() > 0 && warmup.unwrap() > 0,
            "{options}: {report:#}"
        );
        assert_eq!(
            answered.unwrap() + warmup.unwrap(),
            peer.requests(),
            "{options}"
        );
        assert_eq!(requests["started"], peer.requests(), "{options}");
    }
}

#[test]
fn the_server_may_close_whenever_it_likes_between_answers() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_vec();
    let until_close = b"HTTP/1.0 200 OK\r\n\r\nok".to_vec();
    let interim =
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let cases = [
        (Script::AnswerAndClose(closing), 20),
        (Script::AnswerAndClose(until_close), 20),
        (
            Script::Answer {
                bytes: chunked,
                per_connection: u64::MAX,
            },
            2,
        ),
        (
            Script::Answer {
                bytes: interim,
                per_connection: u64::MAX,
            },
            2,
        ),
    ];
    for (script, connections) in cases {
        let peer = Peer::start(script.clone());
        let (report, status) = load_json(&format!("-t 1 -c 2 -n 20 {}", peer.url()));
        assert_eq!(status, 0, "{script:?}: {report:#}");
        assert_eq!(report["requests"]["answered"], 20, "{script:?}");
        assert_eq!(peer.connections(), connections, "{script:?}");
    }
}

#[test]
fn large_bodies_are_counted_whole() {
    let body = "x".repeat(3 * 1024 * 1024);
    let peer = answering(ok(&body));
    let (report, status) = load_json(&format!("-t 1 -c 2 -n 10 -T 10s {}", peer.url()));
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["bytes_read"], 10 * ok(&body).len() as u64);
}

#[test]
fn an_early_answer_ends_the_connection_and_not_the_run() {
    let body = std::env::temp_dir().join(format!("turnpike-load-{}-body", std::process::id()));
    std::fs::write(&body, "x".repeat(16 * 1024 * 1024)).unwrap();
    let early = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n".to_vec();
    let peer = Peer::start(Script::AnswerEarly(early));
    let line = format!(
        "-t 1 -c 2 -n 8 -T 4s --expect-status 413 --body {}",
        body.display()
    );
    let (report, status) = load_json(&format!("{line} {}", peer.url()));
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["requests"]["answered"], 8, "{report:#}");
    assert_eq!(peer.connections(), 8);
    std::fs::remove_file(body).unwrap();
}
