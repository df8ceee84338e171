//! A comparison of response heads with an installed nginx: status, and fields in their order with
//! their values. Except for dates, versions and boundaries, both must be the same.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use turnpike_testkit::{Origin, Server, Step};

const NGINX: &str = "/usr/sbin/nginx";

/// Fri, 14 Jul 2017 02:40:00 GMT.
const MODIFIED_S: u64 = 1_500_000_000;

/// Longer than any response takes; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);

const CONFIGURATION: &str = r#"
worker_processes 1;
events { }
http {
    access_log off;
    types { text/html html; text/plain txt; text/css css; application/json json; }
    default_type application/octet-stream;
    root %FOLDER%/html;
    server {
        listen 127.0.0.1:%PORT% default_server;
        server_name d;
        error_page 400 /bad.html;
        server_tokens off;
    }
    server {
        listen 127.0.0.1:%PORT%;
        server_name a;
        error_page 404 /404.html;
        error_page 403 =200 /403.txt;
        error_page 410 @gone;
        error_page 402 https://x/y;
        location @gone { return 200 "gone"; }
        location /hdr/ {
            alias %FOLDER%/html/;
            add_header X-A 1; add_header X-B 2 always; add_header Server x; expires 1h;
        }
        location /always/ { alias %FOLDER%/html/; add_header X-B 2 always; expires max; }
        location /exp/ {
            alias %FOLDER%/html/;
            expires epoch;
            add_header Last-Modified ""; add_header ETag "\"mine\"";
            add_header Cache-Control public;
        }
        location /date/ {
            alias %FOLDER%/html/;
            add_header Date x; add_header Content-Type y; add_header Vary Cookie;
            add_header Location /z; add_header Connection z;
        }
        location /auto/ { alias %FOLDER%/html/; autoindex on; add_header X-A 1; }
        location /autojson/ {
            alias %FOLDER%/html/; autoindex on; autoindex_format json; expires -1;
        }
        location /gz/ {
            alias %FOLDER%/html/;
            gzip on; gzip_min_length 1; gzip_types text/plain; gzip_vary on;
            add_header X-A 1; expires 5m;
        }
        location /gzs/ { alias %FOLDER%/html/; gzip_static on; gzip_vary on; }
        location /gzse/ {
            alias %FOLDER%/html/;
            gzip_static on; gzip on; gzip_types text/plain; gzip_proxied expired; expires -1;
        }
        location /gzm/ {
            alias %FOLDER%/html/; gzip on; gzip_types text/plain; gzip_proxied no_last_modified;
        }
        location /gze/ {
            alias %FOLDER%/html/; gzip on; gzip_types text/plain; gzip_proxied no_etag;
        }
        location /r301 { return 301 /new; }
        location /r302 { return 302 https://o/x; add_header X-A 1; }
        location /r307 { return 307 $scheme://$host/y; expires 1m; }
        location /rw { rewrite ^ /zz permanent; }
        location /rel { absolute_redirect off; return 301 /new; }
        location /ret200 { return 200 "hi"; add_header X-A 1; default_type text/plain; }
        location /ret204 { return 204; add_header X-A 1; }
        location /ret404 { return 404; add_header X-A 1; add_header X-B 2 always; }
        location /ret402 { return 402; }
        location /ret403 { return 403; }
        location /ret410 { return 410; }
        location /ret500 { return 500; expires 1h; add_header X-B 2 always; }
        location /auth { auth_basic r; auth_basic_user_file %FOLDER%/users; }
        location /gif { empty_gif; expires 1d; }
        location /gifif { empty_gif; if ($args) { add_header X-A 1; } }
        location /within/ { internal; location ~ txt$ { return 200 "not for all"; } }
        location /ka { keepalive_timeout 65 20; alias %FOLDER%/html/; }
        location /norange/ { max_ranges 0; alias %FOLDER%/html/; }
        location /etagoff/ { etag off; alias %FOLDER%/html/; }
        location /mod/ { alias %FOLDER%/html/; expires modified 1h; }
        location /proxy/ { proxy_pass http://127.0.0.1:ORIGIN/; }
        location /proxyh/ {
            proxy_pass http://127.0.0.1:ORIGIN/;
            add_header X-A 1; expires 1h;
            gzip on; gzip_vary on; gzip_min_length 1; gzip_types *; gzip_proxied no_last_modified;
        }
        location /proxyd/ {
            proxy_pass http://127.0.0.1:ORIGIN/;
            proxy_pass_header Server; proxy_pass_header Date; proxy_hide_header X-O;
        }
        location /missing/ { proxy_pass http://127.0.0.1:MISSING/; }
        location /moved/ { proxy_pass http://127.0.0.1:MOVED/; }
        location /movedoff/ { proxy_pass http://127.0.0.1:MOVED/; absolute_redirect off; }
    }
}
"#;

const PATHS: &[&str] = &[
    "/a.txt",
    "/none",
    "/sub",
    "/a.json",
    "/empty.txt",
    "/hdr/a.txt",
    "/hdr/none",
    "/always/a.txt",
    "/exp/a.txt",
    "/date/a.txt",
    "/auto/",
    "/autojson/",
    "/gz/big.txt",
    "/gzs/big.txt",
    "/gzse/big.txt",
    "/gzse/a.txt",
    "/gzm/big.txt",
    "/gze/big.txt",
    "/r301",
    "/r302",
    "/r307",
    "/rw",
    "/rel",
    "/ret200",
    "/ret204",
    "/ret404",
    "/ret402",
    "/ret403",
    "/ret410",
    "/ret500",
    "/auth",
    "/gif",
    "/gifif",
    "/gifif?1",
    "/within/a.txt",
    "/ka/a.txt",
    "/norange/a.txt",
    "/etagoff/a.txt",
    "/mod/a.txt",
    "/proxy/x",
    "/proxyh/x",
    "/proxyd/x",
    "/missing/x",
    "/moved/x",
    "/movedoff/x",
];

/// Method, version, and fields, each line with its end.
const ASKED: &[(&str, &str, &str)] = &[
    ("GET", "1.1", ""),
    ("GET", "1.0", ""),
    ("HEAD", "1.1", ""),
    ("DELETE", "1.1", ""),
    ("POST", "1.1", "Content-Length: 0\r\n"),
    ("GET", "1.1", "Connection: close\r\n"),
    ("GET", "1.1", "Accept-Encoding: gzip\r\n"),
    ("GET", "1.1", "Accept-Encoding: gzip\r\nVia: 1.1 x\r\n"),
    ("GET", "1.1", "Range: bytes=0-1\r\n"),
    ("GET", "1.1", "Range: bytes=0-1,3-4\r\n"),
    ("GET", "1.1", "Range: bytes=999999-\r\n"),
    ("GET", "1.1", "If-None-Match: *\r\n"),
    ("GET", "1.1", "If-Match: \"x\"\r\n"),
    (
        "GET",
        "1.1",
        "If-Modified-Since: Fri, 01 Jan 2038 00:00:00 GMT\r\n",
    ),
    (
        "GET",
        "1.1",
        "If-Unmodified-Since: Fri, 01 Jan 1999 00:00:00 GMT\r\n",
    ),
];

/// Complete requests with a malformed line or head.
const MALFORMED: &[&str] = &[
    "GET\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/3.0\r\nHost: a\r\n\r\n",
    "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /../.. HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
];

fn origin(status: &str, more: &str) -> Origin {
    let answer = format!(
        "HTTP/1.1 {status}\r\nX-First: 1\r\nETag: \"o1\"\r\nContent-Type: text/plain\r\n\
         Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n{more}Cache-Control: max-age=60\r\n\
         X-O: o\r\nVary: Accept\r\nDate: Thu, 01 Jan 2015 00:00:01 GMT\r\nServer: origin\r\n\
         Set-Cookie: a=b\r\nContent-Length: 12\r\nConnection: close\r\n\r\norigin body."
    );
    Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]])
}

fn start(program: &str, origins: &[(&str, Origin)]) -> Server {
    let mut configuration = CONFIGURATION.to_owned();
    for (name, origin) in origins {
        configuration = configuration.replace(name, &origin.port().to_string());
    }
    let files = [
        ("html/a.txt", "hello text\n"),
        ("html/a.json", "{}"),
        ("html/empty.txt", ""),
        ("html/404.html", "not found page"),
        ("html/403.txt", "forbidden page"),
        ("html/bad.html", "bad page"),
        ("html/big.txt.gz", "not really gzip, which nobody looks at"),
        ("html/sub/index.html", "index"),
        ("users", "u:{PLAIN}p\n"),
    ];
    let mut server = Server::builder(program).configuration(&configuration);
    for (name, text) in files {
        server = server.file(name, text);
    }
    let server = server.file("html/big.txt", "x".repeat(5000)).start();
    age(&server.folder().join("html"));
    server
}

/// Sets the modification time of every file below.
fn age(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            age(&path);
        }
        let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
        fs::File::open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
    }
}

/// The head of the response, without the parts that differ between servers or times.
fn head(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    while !received.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            length => received.extend_from_slice(&piece[..length]),
        }
    }
    let text = String::from_utf8_lossy(&received);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let port = format!(":{}", server.port());
    let lines = head.lines().map(|line| match line.split_once(": ") {
        Some((name @ ("Date" | "Expires"), value)) if value.ends_with(" GMT") => name.to_owned(),
        Some(("Server", value)) if value.starts_with("nginx/") => "Server: with version".to_owned(),
        Some(("Content-Type", value)) if value.contains("boundary=") => value
            .split("boundary=")
            .next()
            .unwrap_or_default()
            .to_owned(),
        _ => line.replace(&port, ":PORT"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether nginx departs from RFC 9110 where the two heads differ: a 405 names the methods (section
/// 15.5.6), a 304 has the Vary of its 200 (section 15.4.5), and a response without a modification
/// time is not compared with one (section 13.1.4).
fn differs_by_the_rfc(request: &str, theirs: &str, ours: &str) -> bool {
    let without = |field: &str| {
        let lines = ours.lines().filter(|line| *line != field);
        lines.collect::<Vec<_>>().join("\n")
    };
    let status = |status: &str| theirs.starts_with(&format!("HTTP/1.1 {status} "));
    let undated = !ours.contains("\nLast-Modified: ") && ours.starts_with("HTTP/1.1 200 ");
    (status("405") && without("Allow: GET, HEAD") == theirs)
        || (status("304") && without("Vary: Accept-Encoding") == theirs)
        || (status("412") && request.contains("If-Unmodified-Since: ") && undated)
}

#[test]
fn heads_are_those_of_nginx() {
    if !Path::new(NGINX).exists() {
        println!("skipped: heads_are_those_of_nginx (nginx is not installed)");
        return;
    }
    let origins = [
        ("ORIGIN", origin("200 OK", "Accept-Ranges: bytes\r\n")),
        ("MISSING", origin("404 Not Found", "")),
        ("MOVED", origin("302 Found", "Location: /back\r\n")),
    ];
    let nginx = start(NGINX, &origins);
    let turnpike = start(env!("CARGO_BIN_EXE_turnpike"), &origins);
    let asked = PATHS.iter().flat_map(|path| {
        ASKED.iter().map(move |(method, version, fields)| {
            format!("{method} {path} HTTP/{version}\r\nHost: a\r\n{fields}\r\n")
        })
    });
    let malformed = MALFORMED.iter().map(|request| (*request).to_owned());
    let (mut compared, mut differences) = (0, String::new());
    for request in asked.chain(malformed) {
        let (theirs, ours) = (head(&nginx, &request), head(&turnpike, &request));
        compared += 1;
        if theirs != ours && !differs_by_the_rfc(&request, &theirs, &ours) {
            let _ = writeln!(
                differences,
                "{request}--- nginx\n{theirs}\n--- here\n{ours}\n"
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert_eq!(compared, PATHS.len() * ASKED.len() + MALFORMED.len());
}
