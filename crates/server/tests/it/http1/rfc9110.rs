//! Tests of RFC 9110 for origin servers and gateways, in addition to other tables.
//! `docs/conformance.md` names the section of each row.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::cache::Counting;
use crate::support::frames;
use turnpike_testkit::{Origin, Response, Server, Step, check};

/// Sun, 06 Nov 1994 08:49:37 GMT; 0x2ebc98a1 in entity tags.
const MODIFIED_S: u64 = 784_111_777;

const CONFIGURATION: &str = "
events { }
http {
    types { text/html html; text/plain txt; }
    server {
        listen 127.0.0.1:%PORT%;
        http2 on;
        root %FOLDER%/html;
        location /plain/ { alias %FOLDER%/html/; max_ranges 0; }
        location /fields/ {
            alias %FOLDER%/html/;
            expires 1h;
            add_header Vary X-A;
            add_header Content-Location /c;
        }
        location /secret/ {
            alias %FOLDER%/html/;
            auth_basic site;
            auth_basic_user_file users;
        }
        location /text { return 200 text; }
        location /101 { return 101; }
        location /204 { return 204; }
        location /205 { return 205 content; }
        location /301 { return 301 /to; }
        location /302 { return 302 /to; }
        location /303 { return 303 /to; }
        location /307 { return 307 /to; }
        location /308 { return 308 /to; }
        location /405 { return 405; }
        location /page/ { alias %FOLDER%/html/; error_page 405 /a.txt; }
        location /named/ { alias %FOLDER%/html/; add_header Allow PATCH always; }
        location /503 { return 503; }
        location /status { stub_status; }
        location /pixel { empty_gif; }
    }
}";

fn server() -> Server {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/a.txt", "0123456789")
        .file("html/future.txt", "0123456789")
        .file("html/folder/index.html", "index")
        .file("users", "me:{PLAIN}secret\n")
        .start();
    set_modified(&server, "html/a.txt", MODIFIED_S);
    server
}

fn set_modified(server: &Server, name: &str, seconds: u64) {
    let file = fs::File::open(server.folder().join(name)).unwrap();
    let modified = UNIX_EPOCH + Duration::from_secs(seconds);
    file.set_modified(modified).unwrap();
}

const WHOLE: &str = "HTTP/1.1 200 OK\n*\n\n0123456789\n(closed)";
const UNCHANGED: &str = "HTTP/1.1 304 Not Modified\n*\n\n\n(closed)";
const FAILED: &str = "HTTP/1.1 412 Precondition Failed\n*\n(closed)";
const TEXT: &str = "HTTP/1.1 200 OK\n*\n\ntext\n(closed)";

const CONDITIONS: &[(&str, &str, &str)] = &[
    (
        "a weak tag does not match If-Match",
        "GET /a.txt HTTP/1.0\nIf-Match: W/\"2ebc98a1-a\"\n\n",
        FAILED,
    ),
    (
        "If-Match stands over If-Unmodified-Since",
        "GET /a.txt HTTP/1.0\nIf-Match: \"2ebc98a1-a\"\n\
         If-Unmodified-Since: Sat, 06 Nov 1993 08:49:37 GMT\n\n",
        WHOLE,
    ),
    (
        "an If-Unmodified-Since that is no date",
        "GET /a.txt HTTP/1.0\nIf-Unmodified-Since: yesterday\n\n",
        WHOLE,
    ),
    (
        "a list of dates is no If-Unmodified-Since",
        "GET /a.txt HTTP/1.0\nIf-Unmodified-Since: Sat, 06 Nov 1993 08:49:37 GMT, \
         Sat, 06 Nov 1993 08:49:37 GMT\n\n",
        WHOLE,
    ),
    (
        "If-Unmodified-Since of what has no date",
        "GET /text HTTP/1.0\nIf-Unmodified-Since: Sat, 06 Nov 1993 08:49:37 GMT\n\n",
        TEXT,
    ),
    (
        "an If-Modified-Since that is no date",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: yesterday\n\n",
        WHOLE,
    ),
    (
        "a list of dates is no If-Modified-Since",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT, \
         Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        WHOLE,
    ),
    (
        "POST looks at no If-Modified-Since",
        "POST /text HTTP/1.0\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        TEXT,
    ),
    (
        "If-Modified-Since of what has no date",
        "GET /text HTTP/1.0\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        TEXT,
    ),
    (
        "If-None-Match stands over If-Modified-Since",
        "GET /a.txt HTTP/1.0\nIf-None-Match: \"x\"\n\
         If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        WHOLE,
    ),
    (
        "a date of RFC 850",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\n\n",
        UNCHANGED,
    ),
    (
        "a date of asctime",
        "GET /a.txt HTTP/1.0\nIf-Modified-Since: Sun Nov  6 08:49:37 1994\n\n",
        UNCHANGED,
    ),
    (
        "empty elements among tags",
        "GET /a.txt HTTP/1.0\nIf-None-Match: , \"x\" ,, \"2ebc98a1-a\",\n\n",
        UNCHANGED,
    ),
    (
        "a tag that matches is 412 for other methods",
        "POST /text HTTP/1.0\nIf-None-Match: *\n\n",
        FAILED,
    ),
    (
        "OPTIONS looks at no conditions",
        "OPTIONS /text HTTP/1.0\nIf-None-Match: *\nIf-Match: \"x\"\n\n",
        TEXT,
    ),
    (
        "TRACE looks at no conditions",
        "TRACE /a.txt HTTP/1.0\nIf-None-Match: *\nIf-Match: \"x\"\n\n",
        "HTTP/1.1 405 Not Allowed\n*\n(closed)",
    ),
    (
        "what is absent stays absent",
        "GET /absent HTTP/1.0\nIf-Match: \"x\"\nIf-None-Match: *\n\n",
        "HTTP/1.1 404 Not Found\n*\n(closed)",
    ),
    (
        "who may not see it learns nothing",
        "GET /secret/a.txt HTTP/1.0\nIf-None-Match: \"2ebc98a1-a\"\n\n",
        "HTTP/1.1 401 Unauthorized\n*\n(closed)",
    ),
    (
        "If-Match before If-None-Match",
        "GET /a.txt HTTP/1.0\nIf-Match: \"x\"\nIf-None-Match: \"2ebc98a1-a\"\n\n",
        FAILED,
    ),
    (
        "If-None-Match before Range",
        "GET /a.txt HTTP/1.0\nIf-None-Match: \"2ebc98a1-a\"\nRange: bytes=0-1\n\n",
        UNCHANGED,
    ),
];

#[test]
fn conditions_follow_the_rfc() {
    check(&server(), CONDITIONS);
}

#[test]
fn conditions_and_ranges_are_judged_alike_over_http2() {
    let server = server();
    for (name, request, answer) in [CONDITIONS, RANGES].concat() {
        let (line, fields) = request.split_once(" HTTP/1.0\n").unwrap();
        let status = answer.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse();
        assert_eq!(
            Ok(frames::ask(&server, line, fields.trim(), "")),
            status,
            "{name}"
        );
    }
}

const FIRST_TWO: &str = "HTTP/1.1 206 Partial Content\n*\nContent-Length: 2\n*\n\
                         Content-Range: bytes 0-1/10\n\n01\n(closed)";
const ALL_AS_PART: &str = "HTTP/1.1 206 Partial Content\n*\nContent-Length: 10\n*\n\
                           Content-Range: bytes 0-9/10\n\n0123456789\n(closed)";

const RANGES: &[(&str, &str, &str)] = &[
    (
        "an unknown unit",
        "GET /a.txt HTTP/1.0\nRange: lines=0-1\n\n",
        WHOLE,
    ),
    (
        "HEAD looks at no range",
        "HEAD /a.txt HTTP/1.0\nRange: bytes=0-1\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 10\n*\n\n\n(closed)",
    ),
    (
        "POST looks at no range",
        "POST /pixel HTTP/1.0\nRange: bytes=0-1\n\n",
        "HTTP/1.1 405 Not Allowed\n*\n(closed)",
    ),
    (
        "a last byte beyond 64 bits",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-99999999999999999999999\n\n",
        ALL_AS_PART,
    ),
    (
        "a suffix beyond 64 bits",
        "GET /a.txt HTTP/1.0\nRange: bytes=-99999999999999999999999\n\n",
        ALL_AS_PART,
    ),
    (
        "a first byte beyond 64 bits",
        "GET /a.txt HTTP/1.0\nRange: bytes=99999999999999999999999-\n\n",
        "HTTP/1.1 416 Requested Range Not Satisfiable\n*\nContent-Range: bytes */10\n*\n(closed)",
    ),
    (
        "empty elements are passed over",
        "GET /a.txt HTTP/1.0\nRange: bytes=,0-1, ,\n\n",
        FIRST_TWO,
    ),
    (
        "one of two can be had",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1,20-30\n\n",
        FIRST_TWO,
    ),
    (
        "parts come as they were asked for",
        "GET /a.txt HTTP/1.0\nRange: bytes=5-6,0-1\n\n",
        "HTTP/1.1 206 Partial Content\n*\nContent-Range: bytes 5-6/10\n\n56\n--*\n\
         Content-Type: text/plain\nContent-Range: bytes 0-1/10\n\n01\n--*--\n\n(closed)",
    ),
    (
        "If-Range without Range",
        "GET /a.txt HTTP/1.0\nIf-Range: \"x\"\n\n",
        WHOLE,
    ),
    (
        "If-Range where there are no ranges",
        "GET /plain/a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: \"2ebc98a1-a\"\n\n",
        WHOLE,
    ),
    (
        "a weak tag in If-Range",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: W/\"2ebc98a1-a\"\n\n",
        WHOLE,
    ),
    (
        "the same date in If-Range",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
        FIRST_TWO,
    ),
    (
        "a later date in If-Range",
        "GET /a.txt HTTP/1.0\nRange: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT\n\n",
        WHOLE,
    ),
    (
        "a Content-Range in a request",
        "GET /a.txt HTTP/1.0\nContent-Range: bytes 0-1/2\n\n",
        WHOLE,
    ),
];

#[test]
fn ranges_follow_the_rfc() {
    check(&server(), RANGES);
}

const STATUSES: &[(&str, &str, &str)] = &[
    (
        "unknown fields change nothing",
        "GET /a.txt HTTP/1.0\nX-Unknown: 1\nContent-Location: /b.txt\n\n",
        WHOLE,
    ),
    (
        "Server is a product and its version",
        "GET /text HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\nServer: nginx/1.*.*\n*\n(closed)",
    ),
    (
        "HEAD has the length of GET",
        "HEAD /text HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 4\n*\n\n\n(closed)",
    ),
    (
        "an error to HEAD has no content",
        "HEAD /absent HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\nConnection: close\n\n\n(closed)",
    ),
    (
        "101 has no length",
        "GET /101 HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 101 Switching Protocols\nServer: *\nDate: *\nContent-Type: text/plain\n\
         Connection: upgrade\n\n",
    ),
    (
        "204 has neither length nor chunks",
        "GET /204 HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HTTP/1.1 204 No Content\nServer: *\nDate: *\nConnection: close\n\n\n(closed)",
    ),
    (
        "205 has no content",
        "GET /205 HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HTTP/1.1 205 \n*\nContent-Length: 0\nConnection: close\n\n\n(closed)",
    ),
    (
        "an unknown method is 501",
        "FOO /a.txt HTTP/1.0\n\n",
        "HTTP/1.1 501 Not Implemented\n*\n(closed)",
    ),
    (
        "405 says what is allowed",
        "POST /a.txt HTTP/1.0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\nAllow: GET, HEAD\n\n*\n(closed)",
    ),
    (
        "so does that of a status page",
        "POST /status HTTP/1.0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\nAllow: GET, HEAD\n\n*\n(closed)",
    ),
    (
        "so does one of the configuration",
        "GET /405 HTTP/1.0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\nAllow: GET, HEAD\n\n*\n(closed)",
    ),
    (
        "so does a page in its place",
        "POST /page/a.txt HTTP/1.0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\nAllow: GET, HEAD\n\n0123456789\n(closed)",
    ),
    (
        "the configuration may say it",
        "POST /named/a.txt HTTP/1.0\n\n",
        "HTTP/1.1 405 Not Allowed\n*\nAllow: PATCH\n\n<html>\n*\n(closed)",
    ),
    (
        "404 explains itself",
        "GET /absent HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\n\n<html>\n<head><title>404 Not Found</title></head>\n*\n\
         (closed)",
    ),
    (
        "503 explains itself",
        "GET /503 HTTP/1.0\n\n",
        "HTTP/1.1 503 Service Temporarily Unavailable\n*\n\n<html>\n\
         <head><title>503 Service Temporarily Unavailable</title></head>\n*\n(closed)",
    ),
    (
        "https on a plain connection is refused",
        "GET https://x/a.txt HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 421 Misdirected Request\n*\nConnection: close\n\n*\n(closed)",
    ),
    (
        "From is no credential",
        "GET /secret/a.txt HTTP/1.0\nFrom: me\n\n",
        "HTTP/1.1 401 Unauthorized\n*\nWWW-Authenticate: Basic realm=\"site\"\n\n*\n(closed)",
    ),
];

#[test]
fn statuses_follow_the_rfc() {
    check(&server(), STATUSES);
}

const LOCATIONS: &[(&str, &str, &str)] = &[
    (
        "a redirect without a Host",
        "GET /folder HTTP/1.0\n\n",
        "HTTP/1.1 301 Moved Permanently\n*\nLocation: http://127.0.0.1:*/folder/\n*\n(closed)",
    ),
    (
        "every redirect says where to",
        "GET /301 HTTP/1.1\nHost: x\n\nGET /302 HTTP/1.1\nHost: x\n\n\
         GET /303 HTTP/1.1\nHost: x\n\nGET /307 HTTP/1.1\nHost: x\n\n\
         GET /308 HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HTTP/1.1 301 *\n*\nLocation: http://x:*/to\n*\nHTTP/1.1 302 *\n*\n\
         Location: http://x:*/to\n*\nHTTP/1.1 303 *\n*\nLocation: http://x:*/to\n*\n\
         HTTP/1.1 307 *\n*\nLocation: http://x:*/to\n*\nHTTP/1.1 308 *\n*\n\
         Location: http://x:*/to\n*\n(closed)",
    ),
];

#[test]
fn redirects_have_a_location() {
    check(&server(), LOCATIONS);
}

fn asked(server: &Server, request: &str) -> Response {
    let mut peer = server.connect();
    if request.starts_with("HEAD ") {
        peer.round_without_body(request.replace('\n', "\r\n"))
    } else {
        peer.round(request.replace('\n', "\r\n"))
    }
}

#[test]
fn a_304_and_a_part_have_the_fields_of_the_200() {
    let server = server();
    let whole = asked(&server, "GET /fields/a.txt HTTP/1.1\nHost: x\n\n");
    for (field, status) in [
        ("If-None-Match: \"2ebc98a1-a\"", 304),
        ("Range: bytes=0-1", 206),
    ] {
        let request = format!("GET /fields/a.txt HTTP/1.1\nHost: x\n{field}\n\n");
        let got = match status {
            304 => server
                .connect()
                .round_without_body(request.replace('\n', "\r\n")),
            _ => asked(&server, &request),
        };
        assert_eq!(got.status, status);
        assert!(got.header("Date").is_some() && got.header("Expires").is_some());
        for name in ["Cache-Control", "Content-Location", "ETag", "Vary"] {
            assert!(got.header(name).is_some(), "{status} {name}");
            assert_eq!(got.header(name), whole.header(name), "{status} {name}");
        }
    }
    let part = asked(
        &server,
        "GET /fields/a.txt HTTP/1.1\nHost: x\nRange: bytes=0-1\n\n",
    );
    for name in ["Content-Type", "Last-Modified"] {
        assert_eq!(part.header(name), whole.header(name), "{name}");
    }
}

#[test]
fn head_has_the_fields_of_get() {
    let server = server();
    for path in ["/a.txt", "/fields/a.txt", "/text", "/absent", "/301"] {
        let heads = ["GET", "HEAD"].map(|method| {
            let request = format!("{method} {path} HTTP/1.1\nHost: x\n\n");
            let head = asked(&server, &request).head;
            let steady = |line: &&str| !line.starts_with("Date:") && !line.starts_with("Expires:");
            head.lines().filter(steady).collect::<Vec<_>>().join("\n")
        });
        assert_eq!(heads[0], heads[1], "{path}");
    }
}

#[test]
fn parts_are_divided_by_crlf() {
    let request = "GET /a.txt HTTP/1.1\nHost: x\nRange: bytes=0-0,9-9\n\n";
    let got = asked(&server(), request);
    assert_eq!(got.header("Content-Range"), None);
    let kind = got.header("Content-Type").unwrap();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let part = |range: &str, body: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\n\
             Content-Range: bytes {range}/10\r\n\r\n{body}"
        )
    };
    let expected = part("0-0", "0") + &part("9-9", "9") + &format!("\r\n--{boundary}--\r\n");
    assert_eq!(got.text(), expected);
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// The Unix seconds of an HTTP date, by date(1).
fn seconds(date: &str) -> i64 {
    assert_eq!((date.len(), date.get(25..)), (29, Some(" GMT")), "{date}");
    let output = Command::new("date").args(["-d", date, "+%s"]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn dates_are_now() {
    let server = server();
    for path in ["/text", "/204", "/301", "/absent"] {
        let before = now_s();
        let request = format!("GET {path} HTTP/1.1\nHost: x\n\n");
        let got = asked(&server, &request);
        let date = seconds(got.header("Date").unwrap());
        assert!((before..=now_s()).contains(&date), "{path} {date} {before}");
    }
}

#[test]
fn a_future_modification_time_becomes_now() {
    let server = server();
    set_modified(&server, "html/future.txt", 4_000_000_000);
    let got = asked(&server, "GET /future.txt HTTP/1.1\nHost: x\n\n");
    assert!(got.header("Date").is_some());
    assert_eq!(got.header("Last-Modified"), got.header("Date"));
}

#[test]
fn credentials_apply_to_one_request() {
    let server = server();
    let mut peer = server.connect();
    let secret = "GET /secret/a.txt HTTP/1.1\r\nHost: x\r\n";
    // me:secret
    let first = peer.round(format!("{secret}Authorization: Basic bWU6c2VjcmV0\r\n\r\n"));
    assert_eq!(first.status, 200);
    assert_eq!(peer.round(format!("{secret}\r\n")).status, 401);
}

/// A gateway in front of an origin.
fn gateway(port: u16, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            upstream u {{ server 127.0.0.1:{port}; keepalive 4; }}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://u; {directives} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// Checks that each line is in a head, or (after `!`) is not.
fn has_lines(name: &str, head: &str, lines: &[&str]) {
    for line in lines {
        let (wanted, line) = match line.strip_prefix('!') {
            Some(line) => (false, line),
            None => (true, *line),
        };
        let found = format!("\n{}", head.replace("\r\n", "\n")).contains(&format!("\n{line}"));
        assert_eq!(found, wanted, "{name}: {line}\n{head}");
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Lines of a request, and those that the origin gets (or, after `!`, does not).
const PASSED: &[(&str, &str, &[&str])] = &[
    ("unknown fields", "X-Unknown: a;b\n", &["X-Unknown: a;b\n"]),
    (
        "lines of one name",
        "X-A: 1\nX-B: 2\nx-a: 3\n",
        &["X-A: 1\nX-B: 2\nx-a: 3\n"],
    ),
    (
        "fields that need not be named",
        "Keep-Alive: a\nProxy-Connection: keep-alive\nTE: trailers\nUpgrade: h2c\nX-A: 1\n",
        &["!Keep-Alive", "!Proxy-Connection", "!TE", "!Upgrade", "X-A"],
    ),
    (
        "conditions",
        "If-Match: \"a\"\nIf-None-Match: \"b\"\n\
         If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n\
         If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\nIf-Range: \"a\"\nRange: bytes=0-1\n",
        &[
            "If-Match: \"a\"\n",
            "If-None-Match: \"b\"\n",
            "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
            "If-Range: \"a\"\n",
            "Range: bytes=0-1\n",
        ],
    ),
    (
        "fields about the client",
        "Authorization: Own  a=\"b\"\nReferer: http://x/y\nUser-Agent: z\n",
        &[
            "Authorization: Own  a=\"b\"\n",
            "Referer: http://x/y\n",
            "User-Agent: z\n",
        ],
    ),
];

#[test]
fn requests_are_passed_on_by_the_rfc() {
    let origin = Counting::start(OK);
    let server = gateway(origin.port(), "");
    for (name, lines, expected) in PASSED {
        let request = format!("GET / HTTP/1.1\nHost: x\n{lines}\n");
        assert_eq!(asked(&server, &request).status, 200, "{name}");
        has_lines(name, origin.heads().last().unwrap(), expected);
    }
}

/// Lines of the origin's response, and those that the client gets (or, after `!`, does not).
const RETURNED: &[(&str, &str, &[&str])] = &[
    (
        "lines of one name",
        "X-A: 1\nX-B: 2\nx-a: 3\nSet-Cookie: a\nSet-Cookie: b\n",
        &["X-A: 1\nX-B: 2\nx-a: 3\nSet-Cookie: a\nSet-Cookie: b\n"],
    ),
    (
        "fields that are sent once",
        "Content-Type: a/b\nContent-Type: c/d\nETag: \"a\"\nETag: \"b\"\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nLast-Modified: x\n\
         Location: /a\nLocation: /b\nExpires: 0\nExpires: 1\nServer: a\nServer: b\n",
        &[
            "Content-Type: a/b\n",
            "!Content-Type: c/d",
            "ETag: \"a\"\n",
            "!ETag: \"b\"",
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n",
            "!Last-Modified: x",
            "Location: /a\n",
            "!Location: /b",
            "Expires: 0\n",
            "!Expires: 1",
            "Server: nginx",
            "!Server: b",
        ],
    ),
    (
        "fields that need not be named",
        "Keep-Alive: timeout=5\nProxy-Connection: keep-alive\nTE: trailers\nUpgrade: h2c\nX-A: 1\n",
        &["!Keep-Alive", "!Proxy-Connection", "!TE", "!Upgrade", "X-A"],
    ),
    (
        "protocols that the origin would speak",
        "Connection: upgrade\nUpgrade: h2c\n",
        &["Connection: upgrade\n", "Upgrade: h2c\n"],
    ),
    (
        "fields that are the origin's",
        "Allow: GET,  OWN\nWWW-Authenticate: Own  a=\"b\"\n",
        &["Allow: GET,  OWN\n", "WWW-Authenticate: Own  a=\"b\"\n"],
    ),
    ("a Date is added where there is none", "", &["Date: "]),
    (
        "no Vary is made up",
        "Vary: X-A\n",
        &["Vary: X-A\n", "!Vary: *"],
    ),
    (
        "parts of an unknown unit",
        "Content-Range: lines 1-2/3\n",
        &["Content-Range: lines 1-2/3\n"],
    ),
];

#[test]
fn responses_are_returned_by_the_rfc() {
    let origin = Counting::start(OK);
    let server = gateway(origin.port(), "");
    for (name, lines, expected) in RETURNED {
        let status = if lines.starts_with("Content-Range") {
            "206 Partial"
        } else {
            "200 OK"
        };
        let lines = lines.replace('\n', "\r\n");
        origin.answer_with(&format!(
            "HTTP/1.1 {status}\r\nContent-Length: 2\r\n{lines}\r\nok"
        ));
        let got = asked(&server, "GET / HTTP/1.1\nHost: x\n\n");
        assert_eq!(got.text(), "ok", "{name}");
        has_lines(name, &got.head, expected);
    }
}

#[test]
fn conditions_are_left_to_the_origin() {
    let origin = Counting::start(
        "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\nContent-Length: 2\r\n\r\nok",
    );
    let server = gateway(origin.port(), "");
    let request = "GET / HTTP/1.1\nHost: x\nIf-None-Match: \"a\"\nRange: bytes=0-0\n\n";
    assert_eq!(asked(&server, request).text(), "ok");
    let post = "POST / HTTP/1.1\nHost: x\nIf-Match: \"b\"\nContent-Length: 0\n\n";
    assert_eq!(asked(&server, post).text(), "ok");
    origin.answer_with("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
    let mut peer = server.connect();
    let got = peer.round_without_body(request.replace('\n', "\r\n"));
    assert_eq!((got.status, got.header("ETag")), (304, Some("\"a\"")));
}

#[test]
fn a_405_with_an_error_page_keeps_its_methods() {
    let origin =
        Counting::start("HTTP/1.1 405 No\r\nAllow: PUT, DELETE\r\nContent-Length: 2\r\n\r\nno");
    let directives = "proxy_intercept_errors on; error_page 405 /405;";
    let server = gateway(origin.port(), directives);
    let got = asked(&server, "GET / HTTP/1.1\nHost: x\n\n");
    assert_eq!(
        (got.status, got.header("Allow")),
        (405, Some("PUT, DELETE"))
    );
}

#[test]
fn a_205_of_the_origin_has_no_content() {
    for framing in [
        "Content-Length: 2\r\n\r\nok",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let origin = Counting::start(&format!("HTTP/1.1 205 Reset\r\n{framing}"));
        let server = gateway(origin.port(), "");
        let expected = "HTTP/1.1 205 Reset\n*\nContent-Length: 0\n*\n\n\n(closed)";
        let request = "GET / HTTP/1.1\nHost: x\nConnection: close\n\n";
        check(&server, &[(framing, request, expected)]);
    }
}

/// The client's version and line, the protocol that the origin switches to, and the status.
const PROTOCOLS: &[(&str, &str, &str, &str, u16)] = &[
    ("the protocol", "1.1", "Upgrade: echo\n", "echo", 101),
    (
        "the protocol in another case",
        "1.1",
        "Upgrade: other, Echo\n",
        "echo",
        101,
    ),
    (
        "a protocol that was not asked for",
        "1.1",
        "Upgrade: echo\n",
        "h2c",
        502,
    ),
    ("no protocol was asked for", "1.1", "", "echo", 502),
    (
        "HTTP/1.0 does not upgrade",
        "1.0",
        "Upgrade: echo\n",
        "echo",
        502,
    ),
];

const TUNNEL: &str = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";

#[test]
fn protocols_are_switched_on_request() {
    for (name, version, line, protocol, status) in PROTOCOLS {
        let answer =
            format!("HTTP/1.1 101 S\r\nUpgrade: {protocol}\r\nConnection: upgrade\r\n\r\n");
        let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(&answer)]]);
        let server = gateway(origin.port(), TUNNEL);
        let request = format!("GET / HTTP/{version}\nHost: x\n{line}Connection: upgrade\n\n");
        assert_eq!(asked(&server, &request).status, *status, "{name}");
        let came = String::from_utf8(origin.received()[0].clone()).unwrap();
        let passed = came.contains("Upgrade: ");
        assert_eq!(passed, !line.is_empty() && *version == "1.1", "{name}");
    }
}

#[test]
fn continue_comes_before_switching() {
    let answer = "HTTP/1.1 101 S\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n";
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::ReadBytes(4),
        Step::send(answer),
    ]]);
    let server = gateway(origin.port(), TUNNEL);
    let mut peer = server.connect();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade\r\n\
                Expect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    assert_eq!(peer.round(head).status, 100);
    assert_eq!(peer.round("body").status, 101);
}
