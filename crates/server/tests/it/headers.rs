//! Tests of fields that the configuration adds to responses, before and after their bodies.

use turnpike_testkit::{Origin, Server, Step, check};

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
    events { }
    http {
        types { text/html html; text/css css; application/json json; }
        map $sent_http_content_type $lifetime { default 1h; text/html epoch; text/css max; }
        map $sent_http_content_type $vary { default ''; ~html Accept; ~json Cookie; }
        map $sent_http_content_length $place { default /long; 4 /short; }
        map $sent_http_content_encoding $coded { default ''; gzip /coded; }
        log_format t '$status $sent_http_content_type $sent_http_content_length';
        access_log off;
        expires $lifetime;
        add_header Vary $vary;
        add_header Content-Location $place$coded;
        more_set_headers -t text/css 'X-Sheet: $sent_http_content_type';
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
        .configuration(DEPENDENT)
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
        for name in ["Cache-Control", "Vary", "Content-Location", "X-Sheet"] {
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
