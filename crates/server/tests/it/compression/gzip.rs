//! Tests of compressed responses: which are compressed, their heads, and foreign clients.

use std::io::{Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use turnpike_testkit::{Origin, Response, Server, Step, check, clients};

const CONFIGURATION: &str = "
    events { }
    http {
        types { text/html html; text/plain txt; image/png png; }
        log_format ratio '$uri $gzip_ratio';
        access_log %FOLDER%/access.log ratio;
        server {
            listen 127.0.0.1:%PORT%;
            server_tokens off;
            root %FOLDER%/html;
            gzip on;
            gzip_vary on;
            gzip_types text/plain;
            location /best/ { alias %FOLDER%/html/; gzip_comp_level 9; gzip_window 1k; }
            location /off/ { alias %FOLDER%/html/; gzip off; }
            location /plain/ { alias %FOLDER%/html/; gzip_vary off; }
            location /old/ { alias %FOLDER%/html/; gzip_http_version 1.0; gzip_disable msie6 ^Bad; }
            location /any/ { alias %FOLDER%/html/; gzip_types *; gzip_min_length 1000; }
            location /two/ { alias %FOLDER%/html/; gzip_types text/css; gzip_types image/png; }
            location /proxies/ {
                alias %FOLDER%/html/;
                gzip_proxied no-cache auth;
                add_header Cache-Control $arg_control;
            }
            location /static/ { alias %FOLDER%/html/; gzip_static on; }
            location /always/ { alias %FOLDER%/html/; gzip_static always; gunzip on; }
            location /vary/ { alias %FOLDER%/html/; add_header Vary 'Origin, accept-encoding'; }
            %LOCATIONS%
        }
    }";

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn page() -> String {
    "All happy families are alike. ".repeat(20_000)
}

fn server(locations: &str) -> Server {
    let two = [gzipped("first, "), gzipped("second")].concat();
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("%LOCATIONS%", locations))
        .file("html/page.html", page())
        .file("html/small.html", "small")
        .file(
            "html/note.txt",
            "a note that is long enough to be compressed",
        )
        .file("html/dot.png", page())
        .file(
            "html/both.html",
            "as it is, and long enough to be compressed",
        )
        .file("html/both.html.gz", gzipped("as it was compressed"))
        .file("html/only.html.gz", two)
        .start()
}

/// Locations, further lines of the request, and lines that the head must have or (after `!`) must
/// not have.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "/page.html",
        "Accept-Encoding: gzip",
        &[
            "Content-Encoding: gzip",
            "ETag: W/\"",
            "Vary: Accept-Encoding",
            "Transfer-Encoding: chunked",
            "!Content-Length",
            "!Accept-Ranges",
        ],
    ),
    (
        "/note.txt",
        "Accept-Encoding: gzip, br",
        &["Content-Encoding: gzip"],
    ),
    (
        "/page.html",
        "Accept-Encoding: br;q=1, GZIP ; q=0.5",
        &["Content-Encoding: gzip"],
    ),
    (
        "/page.html",
        "Accept-Encoding: gzip;q=0, br",
        &[
            "!Content-Encoding",
            "Vary: Accept-Encoding",
            "ETag: \"",
            "Accept-Ranges: bytes",
        ],
    ),
    (
        "/page.html",
        "Accept-Encoding: xgzip, *",
        &["!Content-Encoding"],
    ),
    (
        "/page.html",
        "X-None: x",
        &["!Content-Encoding", "Vary: Accept-Encoding"],
    ),
    (
        "/small.html",
        "Accept-Encoding: gzip",
        &["!Content-Encoding", "!Vary"],
    ),
    (
        "/dot.png",
        "Accept-Encoding: gzip",
        &["!Content-Encoding", "!Vary"],
    ),
    (
        "/any/dot.png",
        "Accept-Encoding: gzip",
        &["Content-Encoding: gzip"],
    ),
    (
        "/two/dot.png",
        "Accept-Encoding: gzip",
        &["Content-Encoding: gzip"],
    ),
    (
        "/any/note.txt",
        "Accept-Encoding: gzip",
        &["!Content-Encoding"],
    ),
    (
        "/off/page.html",
        "Accept-Encoding: gzip",
        &["!Content-Encoding", "!Vary"],
    ),
    (
        "/plain/page.html",
        "Accept-Encoding: gzip",
        &["Content-Encoding: gzip", "!Vary"],
    ),
    (
        "/vary/page.html",
        "Accept-Encoding: gzip",
        &["Vary: Origin", "!Vary: Accept-Encoding"],
    ),
    (
        "/page.html",
        "Accept-Encoding: gzip\nRange: bytes=0-9",
        &[
            "HTTP/1.1 200 OK",
            "Content-Encoding: gzip",
            "!Content-Range",
        ],
    ),
    (
        "/page.html",
        "Range: bytes=0-9",
        &["HTTP/1.1 206", "!Content-Encoding"],
    ),
    (
        "/old/page.html",
        "Accept-Encoding: gzip\nUser-Agent: Mozilla/4.0 (MSIE 6.0; x)",
        &["!Content-Encoding"],
    ),
    (
        "/old/page.html",
        "Accept-Encoding: gzip\nUser-Agent: badly",
        &["!Content-Encoding"],
    ),
    (
        "/old/page.html",
        "Accept-Encoding: gzip\nUser-Agent: well",
        &["Content-Encoding: gzip"],
    ),
    (
        "/page.html",
        "Accept-Encoding: gzip\nVia: 1.1 x",
        &["!Content-Encoding"],
    ),
    (
        "/proxies/page.html",
        "Accept-Encoding: gzip\nVia: 1.1 x",
        &["Content-Encoding: gzip"],
    ),
    (
        "/proxies/page.html?control=max-age=5",
        "Accept-Encoding: gzip\nVia: 1.1 x",
        &["!Content-Encoding"],
    ),
    (
        "/proxies/page.html?control=private,no-cache=x",
        "Accept-Encoding: gzip\nVia: 1.1 x",
        &["Content-Encoding: gzip"],
    ),
    (
        "/proxies/page.html?control=max-age=5",
        "Accept-Encoding: gzip\nVia: 1.1 x\nAuthorization: a",
        &["Content-Encoding: gzip"],
    ),
    (
        "/missing.html",
        "Accept-Encoding: gzip",
        &["HTTP/1.1 404", "Content-Encoding: gzip"],
    ),
    (
        "/static/both.html",
        "Accept-Encoding: gzip",
        &[
            "Content-Encoding: gzip",
            "Content-Type: text/html",
            "Content-Length: ",
            "ETag: \"",
        ],
    ),
    (
        "/static/both.html",
        "X-None: x",
        &["!Content-Encoding", "Vary: Accept-Encoding"],
    ),
    (
        "/static/page.html",
        "Accept-Encoding: gzip",
        &["Content-Encoding: gzip", "ETag: W/"],
    ),
    (
        "/always/only.html",
        "Accept-Encoding: gzip",
        &["Content-Encoding: gzip", "!Accept-Ranges"],
    ),
    (
        "/always/only.html",
        "X-None: x",
        &[
            "!Content-Encoding",
            "Vary: Accept-Encoding",
            "ETag: W/",
            "!Content-Length",
        ],
    ),
];

#[test]
fn heads_describe_the_compression() {
    let server = server("");
    for (target, lines, expected) in CASES {
        for method in ["GET", "HEAD"] {
            let lines = lines.replace('\n', "\r\n");
            let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n");
            let head = server.connect().round_without_body(request).head;
            for line in *expected {
                // The head of HEAD does not show the transfer coding of its body, nor its parts.
                let parts = lines.contains("Range:");
                if method == "HEAD" && (line.starts_with("Transfer-") || parts) {
                    continue;
                }
                let (line, wanted) = match line.strip_prefix('!') {
                    Some(line) => (line, false),
                    None => (*line, true),
                };
                let has = head.lines().any(|own| own.starts_with(line));
                assert_eq!(has, wanted, "{method} {target} {lines}: {line}\n{head}");
            }
        }
    }
}

#[test]
fn foreign_clients_read_what_was_compressed() {
    let server = server("");
    let page = page();
    for target in ["/page.html", "/best/page.html", "/old/page.html"] {
        let url = format!("http://127.0.0.1:{}{target}", server.port());
        for version in ["--http1.1", "--http1.0"] {
            let came = clients::curl(&["-sS", "--compressed", version, &url]);
            assert!(came == page, "{target} {version}: {} bytes", came.len());
        }
    }
    let url = format!("http://127.0.0.1:{}/static/both.html", server.port());
    let came = clients::curl(&["-sS", "--compressed", &url]);
    assert_eq!(came, "as it was compressed");
    assert_eq!(server.get("/always/only.html").text(), "first, second");
    assert_eq!(server.get("/off/small.html").text(), "small");
    server.wait_for_log("access.log", "/off/small.html -");
}

#[test]
fn extremely_compressible_texts_arrive_complete() {
    let server = server("");
    let zeros = "0".repeat(20 << 20);
    server.write("html/zeros.html", &zeros);
    let url = format!("http://127.0.0.1:{}/zeros.html", server.port());
    assert!(clients::curl(&["-sS", "--compressed", &url]) == zeros);
}

#[test]
fn a_connection_continues_after_a_compressed_response() {
    let server = server("");
    let mut peer = server.connect();
    let request = "GET /note.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
    for _ in 0..3 {
        let response = peer.round(request);
        let mut text = String::new();
        let mut decoder = GzDecoder::new(&response.body[..]);
        decoder.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a note that is long enough to be compressed");
    }
    let ratio = 43.0 / peer.round(request).body.len() as f64;
    server.wait_for_log("access.log", &format!("/note.txt {ratio:.2}"));
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\n\
                       Accept-Ranges: bytes\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_malformed_body_is_refused_before_anything_is_compressed() {
    let server = server("location /slow/ { alias %FOLDER%/html/; limit_rate 1m; }");
    for (target, field) in [
        ("/page.html", "Accept-Encoding: gzip"),
        ("/slow/page.html", "A: b"),
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n{field}\n\nno chunk\n"
        );
        check(
            &server,
            &[(target, &request, "HTTP/1.1 400 Bad Request\n*\n(closed)")],
        );
    }
}

#[test]
fn parts_from_a_slow_server_are_sent_at_once() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(format!("{CHUNKED}6\r\nfirst \r\n")),
        // Only the client, after it has read the first part, ends this connection.
        Step::ReadToEnd,
    ]]);
    let port = origin.port();
    let server = server(&format!(
        "location /slow {{ proxy_pass http://127.0.0.1:{port}; }}"
    ));
    let mut peer = server.connect();
    peer.send("GET /slow HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut came = Vec::new();
    let chunk = loop {
        let mut bytes = [0; 4096];
        let count = peer.stream().read(&mut bytes).unwrap();
        assert!(count > 0, "closed");
        came.extend_from_slice(&bytes[..count]);
        if let Some(chunk) = chunks_so_far(&came).filter(|chunk| chunk == "first ") {
            break chunk;
        }
    };
    assert_eq!(chunk, "first ");
    let head = String::from_utf8_lossy(&came).into_owned();
    assert!(head.contains("\r\nETag: W/\"a\"\r\n"), "{head}");
    assert!(!head.contains("Accept-Ranges"), "{head}");
}

/// The expanded text of the chunks so far.
fn chunks_so_far(came: &[u8]) -> Option<String> {
    let end = came.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let mut rest = &came[end..];
    let mut packed = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        packed.extend_from_slice(rest.get(line + 2..line + 2 + size)?);
        rest = rest.get(line + 2 + size + 2..)?;
    }
    let mut expanded = Vec::new();
    // The stream has not ended yet, which is an error for the decoder.
    let _ = GzDecoder::new(&packed[..]).read_to_end(&mut expanded);
    String::from_utf8(expanded).ok()
}

#[test]
fn a_cut_response_is_not_made_to_look_whole() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(format!("{CHUNKED}6\r\nfirst \r\n")),
    ]]);
    let port = origin.port();
    let server = server(&format!(
        "location /cut {{ proxy_pass http://127.0.0.1:{port}; }}"
    ));
    let request = "GET /cut HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
    let came = server.exchange(request);
    assert!(
        !came.ends_with(b"0\r\n\r\n"),
        "{}",
        String::from_utf8_lossy(&came)
    );
}

#[test]
fn responses_are_expanded_for_clients_without_gzip() {
    let page = page();
    let (whole, packed) = (gzipped(&page), gzipped("a"));
    let answer = |body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::ReadHead, Step::send([head.as_bytes(), body].concat())]
    };
    let cut = &whole[..whole.len() - 9];
    let origin = Origin::start(vec![
        answer(&whole),
        answer(&packed),
        answer(b""),
        answer(cut),
        answer(b"no gzip"),
    ]);
    let port = origin.port();
    let server = server(&format!(
        "location /p {{ gunzip on; gunzip_buffers 2 4k; proxy_pass http://127.0.0.1:{port}; }}"
    ));
    let request = "GET /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut texts = Vec::new();
    for _ in 0..3 {
        let response = server.connect().round(request);
        assert_eq!(response.header("Content-Encoding"), None);
        texts.push(response.text());
    }
    assert!(texts[0] == page);
    assert_eq!(texts[1..], ["a", ""]);
    for _ in 0..2 {
        let came = server.exchange(request);
        assert!(!came.ends_with(b"0\r\n\r\n"));
    }
}

#[test]
fn cached_responses_are_compressed_for_each_client() {
    let page = page();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=1000\r\n\
         Content-Length: {}\r\n\r\n",
        page.len()
    );
    let answer = vec![Step::ReadHead, Step::send(format!("{head}{page}"))];
    let origin = Origin::start(vec![answer]);
    let configuration = format!(
        "events {{ }}
        http {{
            proxy_cache_path %FOLDER%/cache keys_zone=c:1m;
            server {{
                listen 127.0.0.1:%PORT%;
                gzip on;
                proxy_cache c;
                location / {{ proxy_pass http://127.0.0.1:{}; }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    let url = format!("http://127.0.0.1:{}/", server.port());
    for _ in 0..3 {
        assert!(clients::curl(&["-sS", "--compressed", &url]) == page);
        assert!(clients::curl(&["-sS", &url]) == page);
    }
    assert_eq!(origin.received().len(), 1);
}

/// The response to a request with gzip, and its expanded text.
fn compressed(server: &Server, path: &str) -> (Response, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
    let response = server.connect().round(&request);
    assert_eq!(response.header("Content-Encoding"), Some("gzip"), "{path}");
    let mut text = String::new();
    let mut decoder = GzDecoder::new(&response.body[..]);
    decoder.read_to_string(&mut text).unwrap();
    (response, text)
}

/// A response that is compressed while it is sent has no length; a kept one has.
#[test]
fn repeated_responses_are_compressed_once() {
    let page = "All happy families are alike. ".repeat(4_000);
    let cached = "Every unhappy family is unhappy in its own way. ".repeat(100);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=1000\r\n";
    let length = format!("Content-Length: {}\r\n\r\n", cached.len());
    let answer = Step::send(format!("{head}{length}{cached}"));
    let origin = Origin::start(vec![vec![Step::ReadHead, answer]]);
    let configuration = format!(
        "worker_processes 1;
        events {{ }}
        http {{
            proxy_cache_path hot keys_zone=hot:1m memory;
            types {{ text/html html; }}
            log_format ratio '$uri $gzip_ratio';
            access_log %FOLDER%/access.log ratio;
            server {{
                listen 127.0.0.1:%PORT%;
                root %FOLDER%/html;
                gzip on;
                location /open/ {{ open_file_cache max=10; }}
                location /hot/ {{ proxy_cache hot; proxy_pass http://127.0.0.1:{}; }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("html/page.html", &page)
        .file("html/open/page.html", &page)
        .start();
    // A recently changed file is not kept: its times could still hide another change.
    std::thread::sleep(Duration::from_secs(4));
    for (path, text) in [
        ("/page.html", &page),
        ("/open/page.html", &page),
        ("/hot/", &cached),
    ] {
        for _ in 0..3 {
            assert!(compressed(&server, path).1 == *text, "{path}");
        }
        let mut bodies = Vec::new();
        for _ in 0..5 {
            let (response, came) = compressed(&server, path);
            assert!(came == *text, "{path}");
            let length = response.header("Content-Length").expect(path);
            assert_eq!(length, response.body.len().to_string());
            bodies.push(response.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{path}");
        let ratio = text.len() as f64 / bodies[0].len() as f64;
        server.wait_for_log("access.log", &format!("{path} {ratio:.2}"));
        let plain = server
            .connect()
            .round(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(plain.text() == *text, "{path}");
    }
    server.write("html/page.html", "a new page that is long enough");
    let (response, text) = compressed(&server, "/page.html");
    assert_eq!(text, "a new page that is long enough");
    assert_eq!(response.header("Content-Length"), None);
}

/// RFC 9110 section 15.4.5: a 304 has the Vary and the ETag of its 200.
#[test]
fn a_304_has_the_fields_of_its_200() {
    let server = server("");
    let ask = |name: &str, fields: &str| {
        let text = format!("GET /{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
        server.connect().round_without_body(text)
    };
    let gzip = "Accept-Encoding: gzip\r\n";
    for (name, coding, weak) in [
        ("page.html", gzip, true),
        ("page.html", "", false),
        ("dot.png", gzip, false),
    ] {
        let whole = ask(name, coding);
        let (tag, vary) = (whole.header("ETag").unwrap(), whole.header("Vary"));
        assert_eq!((whole.status, tag.starts_with("W/")), (200, weak), "{name}");
        let unchanged = ask(name, &format!("{coding}If-None-Match: {tag}\r\n"));
        assert_eq!(unchanged.status, 304, "{name} {coding}");
        assert_eq!(unchanged.header("ETag"), Some(tag), "{name} {coding}");
        assert_eq!(unchanged.header("Vary"), vary, "{name} {coding}");
        for absent in ["Content-Encoding", "Content-Type", "Content-Length"] {
            assert_eq!(unchanged.header(absent), None, "{name} {absent}");
        }
    }
}

#[test]
fn wrong_settings_are_refused_with_nginxs_messages() {
    for (directive, message) in [
        ("gzip_comp_level 10;", "value must be between 1 and 9"),
        (
            "gzip_window 3k;",
            "must be 512, 1k, 2k, 4k, 8k, 16k, or 32k",
        ),
        ("gzip_disable (;", "pcre2_compile() failed"),
        ("gzip_proxied most;", "invalid value \"most\""),
    ] {
        let configuration =
            format!("events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%; {directive} }} }}");
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .try_start();
        let error = started.err().unwrap().to_string();
        assert!(error.contains(message), "{directive}: {error}");
    }
}

#[test]
fn responses_without_compression_are_unchanged() {
    check(
        &server(""),
        &[(
            "off",
            "GET /off/small.html HTTP/1.1\nHost: x\nAccept-Encoding: gzip\n\n",
            "HTTP/1.1 200 OK\nServer: nginx\nDate: *\nContent-Type: text/html\n\
             Content-Length: 5\nLast-Modified: *\nConnection: keep-alive\nETag: \"*\"\n\
             Accept-Ranges: bytes\n\nsmall",
        )],
    );
}
