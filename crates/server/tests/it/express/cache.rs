//! Tests of the express lane with what changes: responses of a cache, and files. A pair of virtual
//! interfaces joins two network namespaces, the server's and the client's; the origin is in the
//! server's.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::cache::{Counting, DISK, MEMORY, command, response};
use crate::support::express::{join, metric, tested};
use crate::support::wait_for;
use turnpike_testkit::network::{Network, SERVER_V4};
use turnpike_testkit::{Peer, Server};

/// Asks on a connection of its own, with more fields; the response's body.
fn ask(network: &Network, server: &Server, target: &str, fields: &str) -> String {
    let port = server.port();
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
    exchange(network, port, &request)
}

fn exchange(network: &Network, port: u16, request: &str) -> String {
    let bytes = network.on_client(|| {
        let stream = std::net::TcpStream::connect((SERVER_V4, port)).unwrap();
        let mut peer = Peer::over(stream);
        peer.send(request);
        peer.rest()
    });
    String::from_utf8(bytes).unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap_or_default().1
}

fn hits(server: &Server) -> u64 {
    metric(server, "turnpike_express_requests")
}

fn unpublished(server: &Server, reason: &str) -> u64 {
    let start = format!("turnpike_express_unpublished_total{{reason=\"{reason}\"}}");
    metric(server, &start)
}

/// A server with a location with this zone, and more locations.
fn start(origin: &Counting, zone: &str, locations: &str) -> Server {
    let text = format!(
        "control %FOLDER%/control.sock;
         events {{ }}
         http {{
             access_log off;
             express_interface s0;
             express_mode generic;
             {zone}
             server {{
                 listen %PORT%;
                 location / {{
                     express on;
                     proxy_pass http://127.0.0.1:{port};
                     proxy_cache Z;
                     proxy_cache_key k$request_uri;
                     proxy_cache_purge PURGE;
                 }}
                 {locations}
                 location /metrics {{ metrics; }}
                 location /files/ {{ express on; root %FOLDER%; }}
             }}
         }}",
        port = origin.port(),
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .file("files/a.txt", "first")
        .start()
}

/// Asks until the driver answers.
fn wait_for_hit(network: &Network, server: &Server, target: &str, expected: &str) {
    let before = hits(server);
    wait_for("an answer of the driver", || {
        assert_eq!(body(&ask(network, server, target, "")), expected);
        hits(server) > before
    });
}

/// How what is stored ends: the request that does it, or the command.
#[derive(Debug)]
enum End {
    Request(&'static str),
    Command(&'static str),
}

const ENDS: &[End] = &[
    End::Request("PURGE /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    End::Request("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    End::Command(r#"{"id":1,"verb":"cache.purge","all":"on"}"#),
    End::Command(r#"{"id":1,"verb":"cache.purge","tag":"t"}"#),
    End::Command(r#"{"id":1,"verb":"cache.purge","key":"k/a"}"#),
    End::Command(r#"{"id":1,"verb":"cache.purge","key":"k/a","soft":"on"}"#),
];

#[test]
fn hits_of_a_cache_come_from_the_driver_until_they_are_purged() {
    let test = "hits_of_a_cache_come_from_the_driver_until_they_are_purged";
    let Some(network) = join(test) else {
        return;
    };
    let origin = Counting::start("");
    let fields = "Cache-Control: max-age=600\r\nSurrogate-Key: t\r\n";
    for zone in [MEMORY, DISK] {
        let server = start(&origin, zone, "");
        for (number, end) in ENDS.iter().enumerate() {
            command(&server, r#"{"id":1,"verb":"cache.purge","all":"on"}"#);
            let text = format!("answer {number}");
            origin.answer_with(&response(fields, &text));
            wait_for_hit(&network, &server, "/a", &text);
            let asked = origin.requests();
            wait_for_hit(&network, &server, "/a", &text);
            assert_eq!(origin.requests(), asked, "{zone} {end:?}");
            let answer = ask(&network, &server, "/a", "");
            assert!(answer.contains("\r\nAge: "), "{answer}");
            origin.answer_with(&response(fields, "changed"));
            match end {
                End::Request(request) => {
                    let answer = exchange(&network, server.port(), request);
                    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
                }
                End::Command(line) => {
                    let answer = command(&server, line);
                    assert_eq!(answer["result"]["keys"], 1, "{answer}");
                }
            }
            // Not one of those that are withdrawn is sent.
            let answer = ask(&network, &server, "/a", "");
            assert_eq!(body(&answer), "changed", "{zone} {end:?}");
        }
    }
}

#[test]
fn hits_of_a_cache_come_from_the_driver_at_any_age() {
    let Some(network) = join("hits_of_a_cache_come_from_the_driver_at_any_age") else {
        return;
    };
    let origin = Counting::start(&response("Cache-Control: max-age=600\r\n", "old"));
    let server = start(&origin, MEMORY, "");
    let age = |answer: &str| {
        let mut lines = answer.lines();
        let age = lines.find_map(|line| line.strip_prefix("Age: "));
        age.and_then(|age| age.parse::<u64>().ok())
    };
    wait_for("an answer of the driver with an age", || {
        let before = hits(&server);
        let answer = ask(&network, &server, "/a", "");
        hits(&server) > before && age(&answer).is_some_and(|seconds| seconds > 0)
    });
    assert_eq!(origin.requests(), 1);
}

#[test]
fn hits_of_a_cache_end_with_their_freshness() {
    let Some(network) = join("hits_of_a_cache_end_with_their_freshness") else {
        return;
    };
    let origin = Counting::start(&response("Cache-Control: max-age=1\r\n", "first"));
    let server = start(&origin, MEMORY, "");
    let before = hits(&server);
    wait_for("an answer of the driver", || {
        ask(&network, &server, "/a", "");
        hits(&server) > before
    });
    origin.answer_with(&response("Cache-Control: max-age=1\r\n", "second"));
    wait_for("the new answer", || {
        body(&ask(&network, &server, "/a", "")) == "second"
    });
}

/// Fields of the origin, directives of the location, fields of each request, and the reason for
/// which the hits are not published.
const INELIGIBLE: &[(&str, &str, &str, &str)] = &[
    ("Vary: X\r\n", "", "X: y\r\n", "uncached"),
    (
        "Set-Cookie: a=b\r\n",
        "proxy_ignore_headers Set-Cookie;",
        "",
        "field",
    ),
    ("", "proxy_cache_key $remote_addr$uri;", "", "cache_rules"),
    ("", "proxy_cache_bypass $http_x;", "", "cache_rules"),
    ("", "proxy_cache_purge $http_x;", "", "cache_rules"),
    ("", "proxy_cache_honor_request on;", "", "cache_rules"),
    ("", "proxy_cache_status on;", "", "filter"),
    ("", "deny 192.0.2.1;", "", "access"),
];

#[test]
fn hits_that_may_differ_come_from_the_lanes() {
    let Some(network) = join("hits_that_may_differ_come_from_the_lanes") else {
        return;
    };
    let origin = Counting::start("");
    let location = |(number, case): (usize, &(&str, &str, &str, &str))| {
        let (port, directives) = (origin.port(), case.1);
        format!(
            "location /{number} {{
                 express on; proxy_pass http://127.0.0.1:{port}; proxy_cache Z; {directives}
             }}"
        )
    };
    let locations: String = INELIGIBLE.iter().enumerate().map(location).collect();
    let server = start(&origin, MEMORY, &locations);
    for (number, case) in INELIGIBLE.iter().enumerate() {
        let (sent, _, fields, reason) = case;
        let sent = format!("Cache-Control: max-age=600\r\n{sent}");
        origin.answer_with(&response(&sent, "same"));
        let (asked, before) = (origin.requests(), unpublished(&server, reason));
        for _ in 0..4 {
            let answer = ask(&network, &server, &format!("/{number}"), fields);
            assert_eq!(body(&answer), "same", "{case:?}");
        }
        assert_eq!(origin.requests() - asked, 1, "{case:?}");
        assert!(unpublished(&server, reason) - before >= 3, "{case:?}");
    }
    assert_eq!(hits(&server), 0);
}

/// How a file gets another text.
type Change = fn(&Server, &str);

const CHANGES: &[(&str, Change)] = &[
    ("written", |server, text| server.write("files/a.txt", text)),
    ("replaced", |server, text| {
        server.write("files/new.txt", text);
        let path = |name: &str| server.folder().join("files").join(name);
        fs::rename(path("new.txt"), path("a.txt")).unwrap();
    }),
    ("removed and made anew", |server, text| {
        fs::remove_file(server.folder().join("files/a.txt")).unwrap();
        server.write("files/a.txt", text);
    }),
    ("in a folder that was replaced", |server, text| {
        server.write("new/a.txt", text);
        let path = |name: &str| server.folder().join(name);
        fs::rename(path("files"), path("old")).unwrap();
        fs::rename(path("new"), path("files")).unwrap();
    }),
    ("behind a link", |server, text| {
        server.write("releases/1/a.txt", text);
        let path = |name: &str| server.folder().join(name);
        fs::rename(path("files"), path("older")).unwrap();
        symlink("releases/1", path("files")).unwrap();
    }),
    ("behind a link that was replaced", |server, text| {
        server.write("releases/2/a.txt", text);
        let path = |name: &str| server.folder().join(name);
        symlink("releases/2", path("link")).unwrap();
        fs::rename(path("link"), path("files")).unwrap();
    }),
    ("in a replaced folder behind a link", |server, text| {
        server.write("releases/3/a.txt", text);
        let path = |name: &str| server.folder().join("releases").join(name);
        fs::rename(path("2"), path("4")).unwrap();
        fs::rename(path("3"), path("2")).unwrap();
    }),
];

#[test]
fn a_file_that_changes_is_withdrawn_when_the_kernel_tells_of_it() {
    let test = "a_file_that_changes_is_withdrawn_when_the_kernel_tells_of_it";
    let Some(network) = join(test) else {
        return;
    };
    let origin = Counting::start("");
    let server = start(&origin, MEMORY, "");
    let withdrawals = || metric(&server, "turnpike_express_withdrawals_total");
    let mut text = "first".to_owned();
    for (case, change) in CHANGES {
        wait_for_hit(&network, &server, "/files/a.txt", &text);
        assert_eq!(
            metric(&server, "turnpike_express_watched_files"),
            1,
            "{case}"
        );
        let before = withdrawals();
        text = format!("it was {case}");
        change(&server, &text);
        wait_for("a withdrawal", || withdrawals() > before);
        let answer = ask(&network, &server, "/files/a.txt", "");
        assert_eq!(body(&answer), text, "{case}");
    }
}

/// Directives, and what a test of the configuration says of them.
const SIZES: &[(&str, &str)] = &[
    ("express_memory 8k;", "successful"),
    ("express_memory 8m;", "successful"),
    ("express_memory 2m; express_objects 1024;", "successful"),
    (
        "express_memory 7k;",
        "\"express_memory\" must be between 8k and 8m in ",
    ),
    (
        "express_memory 16m;",
        "\"express_memory\" must be between 8k and 8m in ",
    ),
    (
        "express_memory 2m; express_objects 1025;",
        "\"express_objects 1025\" needs 4096k, more than \"express_memory 2m\" in ",
    ),
    (
        "express_objects 4097;",
        "\"express_objects\" must be between 1 and 4096 in ",
    ),
];

#[test]
fn the_memory_of_answers_is_bounded() {
    for (directives, expected) in SIZES {
        let said = tested(&format!(
            "express_interface none0; express on; {directives}"
        ));
        assert!(said.contains(expected), "{directives}: {said}");
    }
    let Some(network) = join("the_memory_of_answers_is_bounded") else {
        return;
    };
    let origin = Counting::start(&response("Cache-Control: max-age=600\r\n", "x"));
    let zone = format!("express_memory 9k; {MEMORY}");
    let server = start(&origin, &zone, "");
    let memory = |state: &str| {
        metric(
            &server,
            &format!("turnpike_express_memory_bytes{{state=\"{state}\"}}"),
        )
    };
    assert_eq!([memory("used"), memory("free")], [0, 8192]);
    wait_for("an answer in memory", || {
        ask(&network, &server, "/a", "");
        [memory("used"), memory("free")] == [2048, 6144]
    });
}
