//! Servers that misbehave: counted by kind, never a panic, never a hang.

#![allow(clippy::unwrap_used)]

mod peers;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peers::{Peer, Script, answering, load, load_json, ok, refused_port};

/// Every run here may last its duration, one time-out, and the machine's bad moments.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn errors_are_counted_by_kind() {
    let early = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_vec();
    let bad_chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec();
    let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
    let answer = |bytes: &[u8]| Script::AnswerAndClose(bytes.to_vec());
    let cases = [
        (answer(b"\x16\x03garbage\n\n\n\n"), "bad_bytes"),
        (answer(b"SSH-2.0-OpenSSH\r\n\r\n"), "bad_bytes"),
        (answer(&bad_chunk), "bad_bytes"),
        (answer(&early), "closed_early"),
        (answer(b""), "closed_early"),
        (answer(b"HTTP/1.1 200 O"), "closed_early"),
        (Script::ResetAtOnce, "reset_in_queue"),
        (Script::Silence, "timeout"),
        (Script::Stream, "timeout"),
        (
            Script::Answer {
                bytes: missing,
                per_connection: 9,
            },
            "bad_status",
        ),
    ];
    let name = format!("turnpike-load-failures-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    for (script, kind) in cases {
        let peer = Peer::start(script.clone());
        let start = Instant::now();
        let list = file.display();
        // Only where time runs out may it be short: on a busy machine it would run out elsewhere.
        let limit = if kind == "timeout" { "300ms" } else { "20s" };
        let line = format!(
            "-t 1 -c 2 -d 20s -n 6 -T {limit} --failures {list} {}",
            peer.url()
        );
        let (report, status) = load_json(&line);
        assert!(start.elapsed() < PATIENCE, "{script:?}");
        assert_eq!(status, 3, "{script:?}: {report:#}");
        let count = |kind: &str| report["errors"][kind].as_u64().unwrap();
        // A reset may also overtake the request it is to meet.
        let overtaking = if kind == "reset_in_queue" {
            count("reset_connecting")
        } else {
            0
        };
        let errors = &report["errors"];
        assert!(count(kind) + overtaking > 0, "{script:?}: {errors:#}");
        assert_eq!(
            report["errors_total"],
            count(kind) + overtaking,
            "{script:?}"
        );
        let lines = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            lines.lines().count() as u64,
            count(kind) + overtaking,
            "{lines}"
        );
        for line in lines.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let times_us: Vec<u64> = words[..2].iter().map(|us| us.parse().unwrap()).collect();
            assert!(times_us[0] <= times_us[1], "{line}");
            assert!(words[2] == kind || words[2] == "reset_connecting", "{line}");
        }
    }
    let _ = std::fs::remove_file(&file);
}

#[test]
fn data_that_is_no_http_is_shown() {
    let cases: &[(&[u8], &str)] = &[
        (
            b"\x15\x03\x03\x00\x02\x02\x0a",
            "\"\\x15\\x03\\x03\\x00\\x02\\x02\\n\" (TLS: use an https URL)",
        ),
        (b"SSH-2.0-OpenSSH\r\n", "\"SSH-2.0-OpenSSH\\r\\n\" (SSH)"),
        (b"220 mail ready\r\n\r\n", "\"220 mail ready\\r\\n\\r\\n\""),
    ];
    for (bytes, shown) in cases {
        let peer = Peer::start(Script::AnswerAndClose(bytes.to_vec()));
        let output = load(&format!("-t 1 -c 2 -n 4 {}", peer.url()));
        let text = String::from_utf8(output.stderr).unwrap();
        let line = format!("the server sent data that is not HTTP, beginning with {shown}\n");
        assert_eq!(text.matches(&line).count(), 1, "{text}");
    }
}

#[test]
fn resets_of_idle_connections_are_told_apart() {
    let peer = Peer::start(Script::ResetWhenIdle);
    let (report, _) = load_json(&format!("-t 1 -c 2 --rate 4 -d 1 {}", peer.url()));
    assert!(
        report["errors"]["reset_idle"].as_u64().unwrap() > 0,
        "{report:#}"
    );
    assert_eq!(
        report["errors_total"], report["errors"]["reset_idle"],
        "{report:#}"
    );
}

#[test]
fn a_refused_port_ends_the_run_at_once() {
    let (_socket, address) = refused_port();
    let start = Instant::now();
    let (report, status) = load_json(&format!("-t 1 -c 2 -d 1h http://{address}/"));
    assert!(start.elapsed() < PATIENCE);
    assert_eq!(status, 2);
    let refused = report["errors"]["refused"].as_u64().unwrap();
    // Pauses between attempts: an absent server is not hammered.
    assert!((1..100).contains(&refused), "{refused}");
}

#[test]
fn a_rate_that_the_server_cannot_reach_is_not_the_clients_fault() {
    let peer = Peer::start(Script::Silence);
    let line = format!("-t 1 -c 2 -d 300ms -T 300ms --rate 1000 {}", peer.url());
    let (report, _) = load_json(&line);
    assert!(report["requests"]["unsent"].as_u64().unwrap() > 0);
    // A busy machine may be a reason too.
    let limits = report["client_limits"].as_array().unwrap();
    let mut waits = limits
        .iter()
        .filter(|limit| limit["reason"] == "connections");
    let text = waits.next().and_then(|limit| limit["text"].as_str());
    let text = text.unwrap_or_else(|| panic!("{report:#}"));
    assert!(text.contains("all 2 connections waited"), "{text}");
    assert_eq!(report["client_limited"], limits.len() > 1, "{report:#}");
    let text = String::from_utf8(load(&line).stdout).unwrap();
    assert!(text.contains("\nRate not reached: "), "{text}");
}

#[test]
fn max_errors_and_expectations_decide_the_exit_status() {
    let peer = answering(ok("hello"));
    let folder = std::env::temp_dir();
    let file = |name: &str, text: &str| {
        let path = folder.join(format!("turnpike-load-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    };
    let (same, other) = (file("same", "hello"), file("other", "hullo"));
    let longer = file("longer", "hello!");
    let cases = [
        (format!("--expect-body {}", same.display()), 0, ""),
        (
            format!("--expect-body {}", other.display()),
            3,
            "unexpected_body",
        ),
        (
            format!("--expect-body {}", longer.display()),
            3,
            "unexpected_body",
        ),
        ("--expect-status 200".to_owned(), 0, ""),
        ("--expect-status 304".to_owned(), 3, "unexpected_status"),
        (
            "--expect-status 304 --max-errors 10".to_owned(),
            0,
            "unexpected_status",
        ),
        (
            "--expect-status 304 --max-errors 9".to_owned(),
            3,
            "unexpected_status",
        ),
    ];
    for (options, expected, kind) in cases {
        let (report, status) = load_json(&format!("-t 1 -c 1 -n 10 {options} {}", peer.url()));
        assert_eq!(status, expected, "{options}: {report:#}");
        assert_eq!(report["requests"]["answered"], 10, "{options}");
        if !kind.is_empty() {
            assert_eq!(report["errors"][kind], 10, "{options}");
        }
    }
    for path in [same, other, longer] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn wrong_usage_ends_with_a_message_and_status_1() {
    let cases = [
        ("", "Usage:"),
        ("not-a-url", "invalid URL: not-a-url"),
        (
            "http://127.0.0.1:99999/",
            "(\"99999\" is not a port: 1 to 65535)",
        ),
        (
            "-c 0 http://127.0.0.1/",
            "number of connections out of range: it is 1 to 10000000",
        ),
        (
            "--threads 0 http://127.0.0.1/",
            "number of threads out of range: it is 1 to 1024",
        ),
        (
            "--duraton 3 http://127.0.0.1/",
            "turnpike load: unknown option \"--duraton\", did you mean \"--duration\"?\n\
             turnpike load --help lists them\n",
        ),
        ("-Y http://127.0.0.1/", "unknown option \"-Y\"\n"),
        (
            "--rate 5 --pipeline 2 http://127.0.0.1/",
            "cannot be used with",
        ),
        (
            "-t 4 -c 2 http://127.0.0.1/",
            "number of connections must be >= threads",
        ),
        (
            "http://name.invalid/",
            "unable to connect to name.invalid:80",
        ),
        ("-H broken http://127.0.0.1/", "not fit for a request"),
        ("--urls-from /nonexistent", "cannot read /nonexistent"),
        (
            "--rate 5 --connrate 5 http://127.0.0.1/",
            "cannot be used with",
        ),
        (
            "--alpn http/1.1,h2 https://127.0.0.1/",
            "add --h2, or leave h2 out",
        ),
        (
            "--connect-only http://127.0.0.1/",
            "--connect-only takes https URLs only",
        ),
        ("-C 0 http://127.0.0.1/", "expected N, FIRST-LAST"),
        ("-d 0 http://127.0.0.1/", "it must be longer than 0"),
        ("-n 0 http://127.0.0.1/", "it must be at least 1"),
        (
            "-T text/plain http://127.0.0.1/",
            "-H 'Content-Type: text/plain'",
        ),
        (
            "-p /nonexistent http://127.0.0.1/",
            "cannot read /nonexistent",
        ),
    ];
    for (line, message) in cases {
        let output = load(line);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains(message), "{line}: {text}");
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
}

#[test]
fn an_interrupt_prints_the_figures_so_far() {
    let peer = answering(ok("hello"));
    let child = Command::new(env!("CARGO_BIN_EXE_turnpike-load"))
        .args(["-t", "2", "-c", "4", "-d", "60", &peer.url()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("requests in") && text.contains("Interrupted"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(0), "{text}");
    std::io::stdout().flush().unwrap();
}

#[test]
fn failures_to_connect_have_a_reason() {
    let (_socket, address) = refused_port();
    let output = load(&format!("-t 1 -c 2 -d 1h http://{address}/"));
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "unable to connect to {address} Connection refused\n\
         no request was sent: is the server running, and is the port right?\n"
    );
    assert!(text.contains(&expected), "{text}");
}
