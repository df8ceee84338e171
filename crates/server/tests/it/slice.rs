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
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
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
    for held_back in [false, true] {
        for (name, first, second, expected, words) in BROKEN {
            let script = [first, second].map(|[range, etag, body]| {
                vec![Step::ReadHead, Step::send(part(range, etag, body))]
            });
            let origin = Origin::start(script.to_vec());
            let postponed = if held_back { "" } else { "postpone_output 0;" };
            let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
                .configuration(&format!(
                    "error_log %FOLDER%/error.log info;
                    events {{ }}
                    http {{
                        server {{
                            listen 127.0.0.1:%PORT%;
                            slice 4;
                            proxy_set_header Range $slice_range;
                            {postponed}
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
