//! `slice`: parts of what a server has, as exchanges with a client, with and without a cache.

use turnpike_testkit::{Origin, Server, Step, check};

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        server_tokens off;
        access_log off;
        log_format asked '$uri $http_range';
        proxy_http_version 1.1;
        proxy_cache_path %FOLDER%/cache keys_zone=parts:1m;
        server {
            listen unix:%FOLDER%/origin.sock;
            access_log %FOLDER%/origin.log asked;
            root %FOLDER%/html;
        }
        server {
            listen 127.0.0.1:%PORT%;
            slice 4;
            proxy_set_header Range $slice_range;
            add_header X-Cache $upstream_cache_status;
            location / { proxy_pass http://unix:%FOLDER%/origin.sock:/; }
            location /cached/ {
                proxy_cache parts;
                proxy_cache_key $uri$slice_range;
                proxy_cache_valid 200 206 1h;
                proxy_cache_purge PURGE;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
            location /compressed/ {
                gzip on; gzip_min_length 0; gzip_types *; gunzip on;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
            location /whole/ {
                proxy_set_header Range $http_range;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
        }
    }";

const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "the whole",
        "GET /digits HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 10\n*\n\n0123456789",
    ),
    (
        "only its head",
        "HEAD /digits HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 10\n*\n\n",
    ),
    (
        "a range within a part",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=5-6\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 5-6/10\n*\n\n56",
    ),
    (
        "a range over parts",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=3-8\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 3-8/10\n*\n\n345678",
    ),
    (
        "the last bytes, whose part is not known at first",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=-3\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 7-9/10\n*\n\n789",
    ),
    (
        "several ranges get the whole",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=5-5,7-7\n\n",
        "HTTP/1.1 200 OK\n*\n\n0123456789",
    ),
    (
        "a range behind the end",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=99-\n\n",
        "HTTP/1.1 416 *\n*",
    ),
    (
        "a range behind the end of everything",
        "GET /digits HTTP/1.1\nHost: a\nRange: bytes=9223372036854775806-\n\n",
        "HTTP/1.1 416 *\n*",
    ),
    (
        "a range of what is compressed: the whole, from its beginning",
        "GET /compressed/digits HTTP/1.1\nHost: a\nRange: bytes=5-6\n\n",
        "HTTP/1.1 206 Partial Content\n*\n\n56",
    ),
    (
        "nobody was told of parts",
        "GET /whole/digits HTTP/1.1\nHost: a\nRange: bytes=5-6\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 5-6/10\n*\n\n56",
    ),
    (
        "what is not there",
        "GET /cached/nothing HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 404 Not Found\n*",
    ),
    (
        "a part is stored",
        "GET /cached/digits HTTP/1.1\nHost: a\nRange: bytes=4-4\n\n",
        "HTTP/1.1 206 Partial Content\n*\nX-Cache: MISS\n*\n\n4",
    ),
    (
        "and answers for all of its bytes",
        "GET /cached/digits HTTP/1.1\nHost: a\nRange: bytes=7-7\n\n",
        "HTTP/1.1 206 Partial Content\n*\nX-Cache: HIT\n*\n\n7",
    ),
    (
        "and for the whole, of which the others are missing",
        "GET /cached/digits HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nX-Cache: MISS\n*\n\n0123456789",
    ),
    (
        "which are stored then",
        "GET /cached/digits HTTP/1.1\nHost: a\nIf-None-Match: \"other\"\n\n",
        "HTTP/1.1 200 OK\n*\nX-Cache: HIT\n*\n\n0123456789",
    ),
];

#[test]
fn parts_are_put_together() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/digits", "0123456789")
        .start();
    check(&server, ANSWERS);
    let log = server.log("origin.log");
    let asked = |range: &str| {
        let line = format!("/digits {range}");
        log.lines().filter(|asked| **asked == line).count()
    };
    assert_eq!(asked("bytes=5-6"), 1, "only where nobody was told: {log}");
    assert_eq!(asked("-"), 0, "the whole was asked for: {log}");
}

/// A part, as servers send it.
fn part(range: &str, etag: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {range}\r\nETag: {etag}\r\n\
         Content-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A name, what a server sends for the first two parts (range, tag and body), what the client gets,
/// and what the log says.
type Broken = (
    &'static str,
    [&'static str; 3],
    [&'static str; 3],
    &'static str,
    &'static str,
);

const BROKEN: &[Broken] = &[
    (
        "another file",
        ["0-3/8", "\"a\"", "0123"],
        ["4-7/8", "\"b\"", "4567"],
        "HTTP/1.1 200 OK\n*\n\n0123\n(closed)",
        "etag mismatch in slice response",
    ),
    (
        "another length",
        ["0-3/8", "\"a\"", "0123"],
        ["4-7/9", "\"a\"", "4567"],
        "HTTP/1.1 200 OK\n*\n\n0123\n(closed)",
        "length mismatch in slice response",
    ),
    (
        "another part",
        ["0-3/8", "\"a\"", "0123"],
        ["5-7/8", "\"a\"", "567"],
        "HTTP/1.1 200 OK\n*\n\n0123\n(closed)",
        "unexpected range in slice response: 5-8",
    ),
    (
        "another first part",
        ["1-4/8", "\"a\"", "1234"],
        ["4-7/8", "\"a\"", "4567"],
        "(closed)",
        "unexpected range in slice response: 1-5",
    ),
    (
        "no length",
        ["0-3/*", "\"a\"", "0123"],
        ["4-7/8", "\"a\"", "4567"],
        "(closed)",
        "no complete length in slice response",
    ),
    (
        "no range",
        ["first", "\"a\"", "0123"],
        ["4-7/8", "\"a\"", "4567"],
        "(closed)",
        "invalid range in slice response",
    ),
    (
        "more than a part",
        ["0-3/8", "\"a\"", "0123456"],
        ["4-7/8", "\"a\"", "4567"],
        "HTTP/1.1 200 OK\n*\nETag: \"a\"\n\n\n(closed)",
        "upstream sent a slice response longer than its Content-Range",
    ),
];

#[test]
fn parts_that_do_not_fit_end_the_response() {
    // What is held back has no head when it fails.
    let recoded = "source_charset a; charset b; charset_types text/plain;";
    for (directives, held_back) in [("postpone_output 0;", false), ("", true), (recoded, true)] {
        for (name, first, second, expected, words) in BROKEN {
            let script = [first, second].map(|[range, etag, body]| {
                vec![Step::ReadHead, Step::send(part(range, etag, body))]
            });
            let origin = Origin::start(script.to_vec());
            let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
                .configuration(&format!(
                    "error_log %FOLDER%/error.log info;
                    events {{ }}
                    http {{
                        charset_map a b {{ 41 42; }}
                        server {{
                            listen 127.0.0.1:%PORT%;
                            slice 4;
                            proxy_set_header Range $slice_range;
                            {directives}
                            location / {{ proxy_pass http://127.0.0.1:{}; }}
                        }}
                    }}",
                    origin.port()
                ))
                .start();
            let expected = if held_back { "(closed)" } else { *expected };
            check(&server, &[(*name, "GET / HTTP/1.1\nHost: a\n\n", expected)]);
            server.wait_for_log("error.log", words);
        }
    }
}

/// A server before an origin whose answers are stale when they come. It answers 503 where the file
/// `broken` is, and closes the connection where `gone` is.
const STALE: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        log_format asked '$uri $http_range $http_if_none_match $status';
        proxy_http_version 1.1;
        %ZONE%
        server {
            listen unix:%FOLDER%/origin.sock;
            access_log %FOLDER%/origin.log asked;
            root %FOLDER%/html;
            add_header X-Accel-Expires @1;
            location /directives/ {
                add_header Cache-Control 'max-age=0, stale-if-error=600';
                alias %FOLDER%/html/;
            }
            if (-f %FOLDER%/broken) { return 503; }
            if (-f %FOLDER%/gone) { return 444; }
        }
        server {
            listen 127.0.0.1:%PORT%;
            slice 4;
            proxy_set_header Range $slice_range;
            proxy_cache parts;
            proxy_cache_key $request_uri$slice_range;
            proxy_cache_use_stale error http_503;
            add_header X-Cache $upstream_cache_status;
            location / { proxy_pass http://unix:%FOLDER%/origin.sock:/; }
            location /directives/ {
                proxy_cache_use_stale off;
                proxy_pass http://unix:%FOLDER%/origin.sock;
            }
            location /revalidated/ {
                proxy_cache_revalidate on;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
            location /background/ {
                proxy_cache_use_stale updating;
                proxy_cache_background_update on;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
            location /ranges/ {
                proxy_cache_key $uri;
                proxy_set_header Range $http_range;
                proxy_force_ranges on;
                proxy_pass http://unix:%FOLDER%/origin.sock:/;
            }
        }
    }";

/// What a client asks for, and the status of the cache while the origin works, while it is broken
/// and while it is gone.
const STALE_PARTS: &[(&str, &str, [&str; 3])] = &[
    ("/digits", "", ["EXPIRED", "STALE", "STALE"]),
    ("/digits", "3-8", ["EXPIRED", "STALE", "STALE"]),
    ("/directives/digits", "", ["EXPIRED", "STALE", "STALE"]),
    ("/directives/digits", "3-8", ["EXPIRED", "STALE", "STALE"]),
    ("/revalidated/digits", "", ["REVALIDATED", "STALE", "STALE"]),
    (
        "/revalidated/digits",
        "9-9",
        ["REVALIDATED", "STALE", "STALE"],
    ),
    ("/ranges/digits", "2-6", ["EXPIRED", "STALE", "STALE"]),
    ("/ranges/digits", "4-5", ["EXPIRED", "STALE", "STALE"]),
];

/// The zone `parts`, in memory and in files.
const ZONES: [&str; 2] = [
    "proxy_cache_path parts keys_zone=parts:1m memory;",
    "proxy_cache_path %FOLDER%/cache keys_zone=parts:1m use_temp_path=off;",
];

fn stale_server(zone: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&STALE.replace("%ZONE%", zone))
        .file("html/digits", "0123456789")
        .start()
}

/// Asks for a range of the digits, or for all; returns the status of the cache.
fn digits(server: &Server, path: &str, range: &str) -> String {
    let (fields, expected) = match range.split_once('-') {
        None => (String::new(), "0123456789"),
        Some((first, last)) => {
            let [first, last] = [first, last].map(|text| text.parse::<usize>().unwrap());
            (
                format!("Range: bytes={range}\r\n"),
                &"0123456789"[first..=last],
            )
        }
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let got = server.connect().round(request);
    assert_eq!(got.text(), expected, "{path} {range}: {}", got.head);
    let whole = if range.is_empty() { 200 } else { 206 };
    assert_eq!(got.status, whole, "{path} {range}");
    got.header("X-Cache").unwrap_or_default().to_owned()
}

#[test]
fn stale_parts_are_sent_where_stale_responses_may_be() {
    for zone in ZONES {
        let server = stale_server(zone);
        // The widest ranges are stored first.
        for (path, range, _) in STALE_PARTS {
            digits(&server, path, range);
        }
        for (number, obstacle) in ["", "broken", "gone"].into_iter().enumerate() {
            if !obstacle.is_empty() {
                server.write(obstacle, "");
            }
            for (path, range, expected) in STALE_PARTS {
                let found = digits(&server, path, range);
                assert_eq!(found, expected[number], "{path} {range} {obstacle} {zone}");
            }
            let _ = std::fs::remove_file(server.folder().join(obstacle)); // there is none at first
        }
    }
}

#[test]
fn stale_parts_are_asked_for_with_conditions() {
    let server = stale_server(ZONES[0]);
    let path = "/revalidated/digits";
    assert_eq!(digits(&server, path, ""), "MISS");
    assert_eq!(digits(&server, path, ""), "REVALIDATED");
    let log = server.log("origin.log");
    let renewed: Vec<&str> = log.lines().skip(3).collect();
    assert_eq!(renewed.len(), 3, "{log}");
    for line in renewed {
        assert!(
            line.contains("bytes=") && line.ends_with("\\x22 304"),
            "{line}"
        );
    }
    server.write("html/digits", "98765432109");
    let got = server.get(path);
    assert_eq!(
        (got.text().as_str(), got.header("X-Cache")),
        ("98765432109", Some("EXPIRED"))
    );
}

#[test]
fn stale_parts_are_renewed_in_the_background() {
    let server = stale_server(ZONES[0]);
    assert_eq!(digits(&server, "/background/digits", ""), "MISS");
    assert_eq!(digits(&server, "/background/digits", ""), "STALE");
    let asked = || (server.log("origin.log").lines().count() == 6).then_some(());
    assert!(
        turnpike_testkit::wait_for(asked).is_some(),
        "{}",
        server.log("origin.log")
    );
    server.write("broken", "");
    assert_eq!(digits(&server, "/background/digits", ""), "STALE");
}

#[test]
fn a_purge_of_a_file_purges_its_slices_and_no_others() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/digits", "0123456789")
        .file("html/digits2", "0123456789")
        .start();
    let expect = |name: &str, cached: &str| {
        let response = server.get(&format!("/cached/{name}"));
        assert_eq!(response.header("X-Cache"), Some(cached), "{name}");
    };
    let purge = || {
        let request = "PURGE /cached/digits HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        String::from_utf8(server.exchange(request)).unwrap()
    };
    for name in ["digits", "digits2"] {
        expect(name, "MISS");
        expect(name, "HIT");
    }
    let first = purge();
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let again = purge();
    assert!(again.starts_with("HTTP/1.1 404 "), "{again}");
    expect("digits2", "HIT");
    let before = server.log("origin.log").lines().count();
    expect("digits", "MISS");
    server.wait_for_log("origin.log", "/digits bytes=8-11\n");
    assert_eq!(server.log("origin.log").lines().count(), before + 3);
}
