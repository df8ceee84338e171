//! Heap allocations per request, row by row of what people configure: none once buffers have grown,
//! but where a row says so. Only builds with debug assertions count them.

use std::fmt::Write as _;
use std::time::Duration;

use turnpike_testkit::{Peer, Server};

/// Requests that are counted for each row.
const REQUESTS: usize = 50;

/// The requests before the count: connections are opened, buffers grow, files become hot.
const WARM_UP_REQUESTS: usize = 8;

/// Allocations of work beside the requests, such as a look at the clock's zone.
const OTHER_ALLOCATIONS_MAX: f64 = 0.3;

/// One configuration.
struct Row {
    name: &'static str,
    /// What stands in its server block.
    site: &'static str,
    target: &'static str,
    /// More lines of the request's head.
    fields: &'static str,
    body_bytes: usize,
    /// Allocations per request.
    allocations: f64,
}

const PLAIN: Row = Row {
    name: "",
    site: "root %FOLDER%/html;",
    target: "/600",
    fields: "",
    body_bytes: 600,
    allocations: 0.0,
};

const ROWS: &[Row] = &[
    Row {
        name: "a file",
        ..PLAIN
    },
    Row {
        name: "a file with no open_file_cache",
        site: "root %FOLDER%/html; open_file_cache off;",
        ..PLAIN
    },
    Row {
        name: "a file with sendfile on",
        site: "root %FOLDER%/html; sendfile on;",
        ..PLAIN
    },
    Row {
        name: "16 KB",
        target: "/16k",
        body_bytes: 16_384,
        ..PLAIN
    },
    Row {
        name: "64 KB with sendfile on",
        site: "root %FOLDER%/html; sendfile on;",
        target: "/64k",
        body_bytes: 65_536,
        ..PLAIN
    },
    Row {
        name: "a connection for each request",
        fields: "Connection: close\r\n",
        ..PLAIN
    },
    Row {
        name: "a prefix of many",
        site: "include %FOLDER%/prefixes.conf; include %FOLDER%/patterns.conf;",
        target: "/prefix-40/a",
        body_bytes: 7,
        ..PLAIN
    },
    Row {
        name: "a pattern of many",
        site: "include %FOLDER%/prefixes.conf; include %FOLDER%/patterns.conf;",
        target: "/x/pattern-40",
        body_bytes: 9,
        ..PLAIN
    },
    Row {
        name: "map",
        site: "location / { return 200 $mapped; }",
        target: "/?k=key-40",
        body_bytes: 8,
        ..PLAIN
    },
    Row {
        name: "geo",
        site: "location / { return 200 $place; }",
        target: "/?k=10.0.0.40",
        body_bytes: 8,
        ..PLAIN
    },
    Row {
        name: "gzip",
        site: "root %FOLDER%/html; gzip on; gzip_types *; default_type text/html;",
        target: "/64k",
        fields: "Accept-Encoding: gzip\r\n",
        body_bytes: 0,
        ..PLAIN
    },
    Row {
        name: "proxied",
        site: "location / { proxy_pass http://origin; }",
        ..PLAIN
    },
    Row {
        name: "proxied with fields set and added",
        site: "location / {
            proxy_pass http://origin;
            proxy_set_header Host $host;
            proxy_set_header X-Real-IP $remote_addr;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header Connection '';
            add_header X-Served by;
        }",
        ..PLAIN
    },
    Row {
        name: "proxied 16 KB",
        site: "location / { proxy_pass http://origin; }",
        target: "/16k",
        body_bytes: 16_384,
        ..PLAIN
    },
    Row {
        name: "a hit of a memory zone",
        site: "location / { proxy_pass http://origin; proxy_cache memory; }",
        ..PLAIN
    },
    Row {
        name: "a hit of a disk zone",
        site: "location / { proxy_pass http://origin; proxy_cache disk; }",
        ..PLAIN
    },
    Row {
        name: "a hit of 16 KB of a disk zone",
        site: "location / { proxy_pass http://origin; proxy_cache disk; }",
        target: "/16k",
        body_bytes: 16_384,
        ..PLAIN
    },
    Row {
        name: "a hit of 64 KB of a disk zone",
        site: "location / { proxy_pass http://origin; proxy_cache disk; }",
        target: "/64k",
        body_bytes: 65_536,
        ..PLAIN
    },
    Row {
        name: "limit_req and limit_conn",
        site: "root %FOLDER%/html; limit_req zone=r burst=1000 nodelay; limit_conn c 100;",
        ..PLAIN
    },
    Row {
        name: "rewrite",
        site: "rewrite ^/old/(.*)$ /$1 last; root %FOLDER%/html;",
        target: "/old/600",
        ..PLAIN
    },
    Row {
        name: "access log",
        site: "access_log %FOLDER%/access.log combined; root %FOLDER%/html;",
        ..PLAIN
    },
    Row {
        name: "access log with buffer",
        site: "access_log %FOLDER%/access.log combined buffer=64k; root %FOLDER%/html;",
        ..PLAIN
    },
    Row {
        name: "try_files",
        site: "root %FOLDER%/html; try_files $uri $uri/ /600;",
        target: "/some/view",
        ..PLAIN
    },
    Row {
        name: "auth_basic",
        site: "root %FOLDER%/html; auth_basic inside; auth_basic_user_file %FOLDER%/users;",
        fields: "Authorization: Basic dXNlcjpwYXNz\r\n",
        ..PLAIN
    },
    Row {
        name: "cookies",
        site: "root %FOLDER%/html; add_header X-Group $group;",
        fields: "Cookie: theme=dark; lang=en; session=abcdef0123456789\r\n",
        ..PLAIN
    },
    Row {
        name: "SSI with one part",
        site: "root %FOLDER%/html; ssi on; default_type text/html;",
        target: "/page",
        body_bytes: 607,
        ..PLAIN
    },
    Row {
        name: "SSI with variables and conditions",
        site: "root %FOLDER%/html; ssi on; default_type text/html;",
        target: "/commands?name=some",
        body_bytes: 25,
        ..PLAIN
    },
    Row {
        name: "header fields",
        site: "root %FOLDER%/html; add_header X-A a always; add_header X-B $host; expires 1h;",
        ..PLAIN
    },
];

/// A page that is changed for each request.
const COMMANDS: &str = "<!--# set var=\"own\" value=\"<${arg_name}>\" -->\
    <!--# if expr=\"$own = /(some)/\" --><p><!--# echo var=\"own\" --> <!--# echo var=\"1\" -->\
    <!--# elif expr=\"$own = other\" -->other<!--# else -->none<!--# endif -->\
    <!--# echo var=\"missing\" default=\"-\" --></p>";

/// What all rows share.
fn configuration(origin_port: u16) -> String {
    let mut text = format!(
        "worker_processes 1;
        events {{ }}
        http {{
            access_log off;
            open_file_cache max=100;
            upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 8; }}
            proxy_http_version 1.1;
            proxy_set_header Connection '';
            proxy_cache_path memory keys_zone=memory:1m memory;
            proxy_cache_path %FOLDER%/cache keys_zone=disk:1m;
            proxy_cache_valid 200 1h;
            limit_req_zone $binary_remote_addr zone=r:1m rate=1000000r/s;
            limit_conn_zone $binary_remote_addr zone=c:1m;
            map $arg_k $mapped {{ include %FOLDER%/map.conf; }}
            geo $arg_k $place {{ include %FOLDER%/geo.conf; }}
            map $cookie_session $group {{ default none; ~^a first; }}
            server {{
                listen 127.0.0.1:%PORT%;
                server_name status.test;
                location / {{ stub_status; }}
            }}"
    );
    for (number, row) in ROWS.iter().enumerate() {
        let site = row.site;
        writeln!(
            text,
            "server {{ listen 127.0.0.1:%PORT%; server_name row-{number}.test; {site} }}"
        )
        .unwrap();
    }
    text + "}"
}

const ORIGIN: &str = "worker_processes 1;
    events { }
    http {
        access_log off;
        keepalive_requests 1000000;
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/html;
        }
    }";

fn lines(text: impl Fn(usize) -> String) -> String {
    (1..=50).map(text).collect()
}

/// The count of allocations that the server's page shows.
fn count(asking: &mut Peer) -> u64 {
    let page = asking.round("GET / HTTP/1.1\r\nHost: status.test\r\n\r\n");
    let page = page.text();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("allocations "));
    line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

/// Allocations per request of a row.
fn measure(server: &Server, asking: &mut Peer, number: usize, row: &Row) -> f64 {
    let Row { target, fields, .. } = row;
    let request = format!("GET {target} HTTP/1.1\r\nHost: row-{number}.test\r\n{fields}\r\n");
    let mut peer = server.connect();
    let mut round = || {
        if fields.starts_with("Connection: close") {
            peer = server.connect();
        }
        let response = peer.round(&request);
        let is_as_expected = response.body.len() == row.body_bytes || row.body_bytes == 0;
        assert!(
            response.status == 200 && is_as_expected,
            "{}: {}",
            row.name,
            response.head
        );
    };
    (0..WARM_UP_REQUESTS).for_each(|_| round());
    let first = count(asking);
    let before = count(asking);
    (0..REQUESTS).for_each(|_| round());
    let made = count(asking) - before;
    // What the page itself takes is none of the row's.
    made.saturating_sub(before - first) as f64 / REQUESTS as f64
}

#[test]
fn requests_take_no_allocations_but_where_a_row_says_so() {
    let pattern =
        |line| format!("location ~ ^/[a-z]+/pattern-{line}$ {{ return 200 \"pattern{line}\"; }}\n");
    let prefix = |line| format!("location /prefix-{line}/ {{ return 200 \"place{line}\"; }}\n");
    let files = |builder: turnpike_testkit::Builder| {
        builder
            .file("html/600", "x".repeat(600))
            .file("html/page", "<p><!--# include virtual=\"/600\" --></p>")
            .file("html/commands", COMMANDS)
            .file("html/16k", "x".repeat(16_384))
            .file("html/64k", "words ".repeat(11_000).split_at(65_536).0)
    };
    let origin = files(Server::builder(env!("CARGO_BIN_EXE_turnpike")))
        .configuration(ORIGIN)
        .start();
    let server = files(Server::builder(env!("CARGO_BIN_EXE_turnpike")))
        .file("prefixes.conf", lines(prefix))
        .file("patterns.conf", lines(pattern))
        .file(
            "map.conf",
            lines(|line| format!("key-{line} value-{line};\n")),
        )
        .file(
            "geo.conf",
            lines(|line| format!("10.0.0.{line} value-{line};\n")),
        )
        .file("users", "user:{PLAIN}pass\n")
        .configuration(&configuration(origin.port()))
        .start();
    // A file that has changed just now is opened for every request without open_file_cache.
    std::thread::sleep(Duration::from_secs(4));
    let mut asking = server.connect();
    let mut failed = String::new();
    for (number, row) in ROWS.iter().enumerate() {
        let made = measure(&server, &mut asking, number, row);
        if (made - row.allocations).abs() > OTHER_ALLOCATIONS_MAX {
            let Row {
                name, allocations, ..
            } = row;
            writeln!(failed, "{name}: {made} allocations, {allocations} expected").unwrap();
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}
