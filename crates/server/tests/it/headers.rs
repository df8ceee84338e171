//! Tests of fields that the configuration adds to responses, before and after their bodies.

use turnpike_testkit::{Origin, Server, Step, check};

use crate::support::cache::{Counting, response};
use crate::support::curl::curl;

fn server(locations: &str) -> Server {
    let configuration = format!(
        "events {{ }}
        http {{
            log_format t '$uri $sent_trailer_x_sum';
            access_log %FOLDER%/access.log t;
            server {{
                listen 127.0.0.1:%PORT%;
                server_tokens off;
                root %FOLDER%/html;
                {locations}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("html/file.txt", "hello")
        .file("html/large.txt", "0123456789".repeat(20_000))
        .start()
}

const LOCATIONS: &str = "
    add_trailer X-Sum $arg_sum;
    add_trailer X-Always a always;
    location /file.txt { }
    location /large.txt { }
    location /text { return 200 text; }
    location /nothing { return 204; }
    location /own { add_trailer X-Own $sent_trailer_x_own; return 200 own; }
    location /merged {
        add_trailer_inherit merge;
        add_trailer X-Own $sent_http_connection;
        return 200 merged;
    }
    location /off { add_trailer_inherit off; return 200 off; }
    location /plain { chunked_transfer_encoding off; return 200 plain; }";

const TRAILERS: &[(&str, &str, &str)] = &[
    (
        "a file",
        "GET /file.txt?sum=7 HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nTransfer-Encoding: chunked\n*\n\n\
         5\nhello\n0\nX-Sum: 7\nX-Always: a\n\n",
    ),
    (
        "a part of it",
        "GET /file.txt?sum=7 HTTP/1.1\nHost: x\nRange: bytes=1-2\n\n",
        "HTTP/1.1 206 Partial Content\n*\nTransfer-Encoding: chunked\n*\n\
         Content-Range: bytes 1-2/5\n\n2\nel\n0\nX-Sum: 7\nX-Always: a\n\n",
    ),
    (
        "several parts",
        "GET /large.txt HTTP/1.1\nHost: x\nRange: bytes=0-1,100002-100003\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 0-1/200000\n*\n01\n*\n23\n*\n\
         0\nX-Always: a\n\n",
    ),
    (
        "an empty value is none",
        "GET /text HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\n\n4\ntext\n0\nX-Always: a\n\n",
    ),
    (
        "an error has those that always hold",
        "GET /missing?sum=7 HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 404 Not Found\n*\n0\nX-Always: a\n\n",
    ),
    (
        "no body, no trailers",
        "GET /nothing HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 204 No Content\n*\nConnection: keep-alive\n\n",
    ),
    (
        "nor for HEAD",
        "HEAD /text HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 4\n*\n\n",
    ),
    (
        "those of an outer level hold where none is given",
        "GET /own HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\n\n3\nown\n0\n\n",
    ),
    (
        "or are merged",
        "GET /merged?sum=1 HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\n\n6\nmerged\n0\nX-Own: keep-alive\nX-Sum: 1\nX-Always: a\n\n",
    ),
    (
        "or are not inherited",
        "GET /off HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 3\n*\n\noff",
    ),
    (
        "without chunks there are none",
        "GET /plain HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 5\n*\n\nplain",
    ),
    (
        "nor by HTTP/1.0",
        "GET /text HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 4\n*\n\ntext\n(closed)",
    ),
];

#[test]
fn trailers_are_added_after_bodies() {
    let server = server(LOCATIONS);
    check(&server, TRAILERS);
    let large = server.get("/large.txt?sum=9");
    assert_eq!(large.header("Content-Length"), None);
    assert_eq!(large.body.len(), 200_000);
    server.wait_for_log("access.log", "/large.txt 9");
}

#[test]
fn trailers_know_the_outcome_of_the_body() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        Step::send("2\r\nde\r\n0\r\nX-Theirs: t\r\n\r\n"),
    ]]);
    let server = server(&format!(
        "location / {{
            proxy_pass http://127.0.0.1:{};
            proxy_pass_trailers on;
            add_trailer X-Sum $upstream_response_length;
            add_trailer X-Copy $upstream_trailer_x_theirs;
        }}",
        origin.port()
    ));
    let came = server.exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let came = String::from_utf8(came).unwrap();
    let end = "0\r\nX-Theirs: t\r\nX-Sum: 5\r\nX-Copy: t\r\n\r\n";
    assert!(came.ends_with(end), "{came}");
}

/// Fields that depend on what a 304 does not say of its 200.
const DEPENDENT: &str = "
    map $sent_http_content_type $lifetime { default 1h; text/html epoch; text/css max; }
    map $sent_http_content_type $vary { default ''; ~html Accept; ~json Cookie; }
    map $sent_http_content_length $place { default /long; 4 /short; }
    map $sent_http_content_encoding $coded { default ''; gzip /coded; }
    expires $lifetime;
    add_header Vary $vary;
    add_header Content-Location $place$coded;
    more_set_headers -t text/css 'X-Sheet: $sent_http_content_type';";

const DEPENDENT_NAMES: [&str; 4] = ["Cache-Control", "Vary", "Content-Location", "X-Sheet"];

const OF_FILES: &str = "
    events { }
    http {
        types { text/html html; text/css css; application/json json; }
        log_format t '$status $sent_http_content_type $sent_http_content_length';
        access_log off;
        %DEPENDENT%
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/html;
            access_log %FOLDER%/access.log t;
            location /packed/ { alias %FOLDER%/html/; gzip_static on; }
        }
    }";

#[test]
fn a_304_has_the_fields_of_its_200_that_depend_on_type_or_length() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&OF_FILES.replace("%DEPENDENT%", DEPENDENT))
        .file("html/a.html", "html")
        .file("html/a.css", "long css")
        .file("html/a.json", "json")
        .file("html/a.html.gz", "packed")
        .start();
    let mut fields = Vec::new();
    for path in ["/a.html", "/a.css", "/a.json", "/packed/a.html"] {
        let begin = format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n");
        let whole = server.connect().round(format!("{begin}\r\n"));
        let etag = whole.header("ETag").unwrap();
        let request = format!("{begin}If-None-Match: {etag}\r\n\r\n");
        let unchanged = server.connect().round_without_body(request);
        assert_eq!((whole.status, unchanged.status), (200, 304), "{path}");
        for name in DEPENDENT_NAMES {
            assert_eq!(unchanged.header(name), whole.header(name), "{path} {name}");
            fields.extend(whole.header(name).map(str::to_owned));
        }
        assert_eq!(unchanged.header("Content-Type"), None, "{path}");
    }
    for value in [
        "no-cache",
        "max-age=3600",
        "/long",
        "/short",
        "/long/coded",
        "Accept",
        "text/css",
    ] {
        assert!(fields.iter().any(|own| own == value), "{value}: {fields:?}");
    }
    // In logs they are what was sent.
    server.wait_for_log("access.log", "304 - -\n");
}

/// The same of answers that come from other servers: those of a cache, in memory, in files and of
/// an application, fresh and revalidated, and those that are only passed on.
const OF_OTHERS: &str = "
    events { }
    http {
        access_log off;
        proxy_cache_path mem keys_zone=memory:16m memory;
        proxy_cache_path %FOLDER%/cache keys_zone=files:1m;
        fastcgi_cache_path %FOLDER%/fastcgi keys_zone=application:1m;
        proxy_cache_revalidate on;
        %DEPENDENT%
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            location /passed { proxy_pass http://127.0.0.1:%ORIGIN%; }
            location /memory { proxy_pass http://127.0.0.1:%ORIGIN%; proxy_cache memory; }
            location /files { proxy_pass http://127.0.0.1:%ORIGIN%; proxy_cache files; }
            location /fastcgi {
                fastcgi_pass 127.0.0.1:%APPLICATION%;
                fastcgi_pass_request_headers off;
                fastcgi_param A b;
                fastcgi_param HTTP_HOST '';
                fastcgi_cache application;
            }
        }
    }";

/// The bytes of the application's request.
const FASTCGI_REQUEST_BYTES: usize = 16 + 16 + 8 + 8;

/// How a client speaks, as curl is told.
const PROTOCOLS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

/// The fields of the origin's answer: what the others depend on, and how long it may be stored.
const FRESH: &str = "Content-Type: text/css\r\nETag: \"a\"\r\nX-Accel-Expires: 600\r\n";
const EXPIRED: &str = "Content-Type: text/css\r\nETag: \"a\"\r\nX-Accel-Expires: @1\r\n";

/// The status of an answer, and the fields that depend on its type or length.
fn dependent(server: &Server, path: &str, protocol: &str, more: &[&str]) -> (String, Vec<String>) {
    let said = curl(server, path, &[&["-i", protocol], more].concat());
    let said = String::from_utf8(said).unwrap();
    let status = said.split(' ').nth(1).unwrap_or(&said).to_owned();
    let names = DEPENDENT_NAMES.map(|name| format!("{}:", name.to_lowercase()));
    let lines = said.lines().map(str::to_lowercase);
    let own = lines.filter(|line| names.iter().any(|name| line.starts_with(name)));
    let mut fields: Vec<String> = own.collect();
    fields.sort();
    (status, fields)
}

fn server_of_others(origin: u16, application: u16) -> Server {
    let configuration = OF_OTHERS
        .replace("%DEPENDENT%", DEPENDENT)
        .replace("%ORIGIN%", &origin.to_string())
        .replace("%APPLICATION%", &application.to_string());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

#[test]
fn a_304_from_a_cache_has_the_fields_of_its_200() {
    let origin = Counting::start(&response(FRESH, "body"));
    let head = format!("{FRESH}Content-Length: 4\r\n\r\nbody");
    let length = u8::try_from(head.len()).unwrap();
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let records = [&[1, 6, 0, 1, 0, length, 0, 0], head.as_bytes(), &end].concat();
    let answer = vec![Step::ReadBytes(FASTCGI_REQUEST_BYTES), Step::Send(records)];
    let application = Origin::start(vec![answer.clone(), answer]);
    let server = server_of_others(origin.port(), application.port());
    let is_same = ["-H", "If-None-Match: \"a\""];
    let expected = [
        "cache-control: max-age=315360000",
        "content-location: /short",
        "x-sheet: text/css",
    ];
    for path in ["/memory", "/files", "/fastcgi"] {
        for (number, protocol) in (1..).zip(PROTOCOLS) {
            // What was not stored yet, and what was.
            let path = format!("{path}?{number}");
            for round in ["miss", "hit"] {
                let (status, fields) = dependent(&server, &path, protocol, &is_same);
                assert_eq!(status, "304", "{path} {protocol} {round}");
                assert_eq!(fields, expected, "{path} {protocol} {round}");
            }
            for (more, wanted) in [(&[][..], "200"), (&["-I"], "200"), (&["-r", "0-1"], "206")] {
                let (status, fields) = dependent(&server, &path, protocol, more);
                assert_eq!(status, wanted, "{path} {protocol} {more:?}");
                assert_eq!(fields, expected, "{path} {protocol} {more:?}");
            }
        }
    }
    assert_eq!(origin.requests(), 4);
}

#[test]
fn a_304_that_the_origin_has_a_part_in_has_the_fields_of_its_200() {
    let origin = Counting::start(&response(EXPIRED, "body"));
    let server = server_of_others(origin.port(), 1);
    let is_same = ["-H", "If-None-Match: \"a\""];
    let mut before = Vec::new();
    for path in ["/memory", "/files", "/passed"] {
        let (status, fields) = dependent(&server, path, PROTOCOLS[0], &[]);
        assert_eq!(status, "200", "{path}");
        before.push((path, fields));
    }
    // Of what is not stored nothing is known but what this answer says.
    let fields = EXPIRED.trim_end();
    origin.answer_with(&format!(
        "HTTP/1.1 304 Not Modified\r\n{fields}\r\nContent-Length: 4\r\n\r\n"
    ));
    for (path, expected) in before {
        for protocol in PROTOCOLS {
            let (status, fields) = dependent(&server, path, protocol, &is_same);
            assert_eq!(status, "304", "{path} {protocol}");
            assert_eq!(fields, expected, "{path} {protocol}");
        }
    }
    // Each was asked for again.
    assert_eq!(origin.requests(), 9);
}
