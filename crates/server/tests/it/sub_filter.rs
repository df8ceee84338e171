//! Tests of filters that change texts: `sub_filter` and `addition`, one request per case.

use turnpike_testkit::{Origin, Server, Step};

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

const CONFIGURATION: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        types { text/html html; text/plain txt; }
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%;
            location /once/ { sub_filter <b> '<i>'; alias %FOLDER%/; }
            location /kept/ {
                sub_filter <b> $arg_a; sub_filter_last_modified on; alias %FOLDER%/;
            }
            location /all/ {
                sub_filter_once off; sub_filter_types *;
                sub_filter A$arg_a x; sub_filter <b> '<i>'; alias %FOLDER%/;
            }
            location /before/ { add_before_body /all/head.txt; alias %FOLDER%/; }
            location /both/ {
                add_before_body /all/head.txt; add_after_body /tail; alias %FOLDER%/;
                location /both/not/ { add_before_body ''; add_after_body ''; alias %FOLDER%/; }
            }
            location /down/ { add_after_body /nobody; alias %FOLDER%/; }
            location /list/ {
                fancyindex on; fancyindex_header /all/head.txt; fancyindex_footer /tail;
            }
            location /plain/ { fancyindex on; fancyindex_css_href /a.css; }
            location /loop/ { fancyindex on; fancyindex_header /loop/; }
            location /tail { return 200 '</html>'; }
            location /nobody { proxy_pass http://127.0.0.1:1; error_page 502 /sorry.txt; }
            location /origin/ {
                sub_filter_once off; sub_filter_types *; sub_filter ab AB;
                add_after_body /tail; addition_types *;
                proxy_pass http://127.0.0.1:ORIGIN; proxy_buffering off;
            }
        }
    }";

const LISTING: &str = "<i>top<pre><a href=\"../\">../</a>\r\n</pre></html>";

const LOOP: &str = "<pre><a href=\"../\">../</a>\r\n</pre><hr></body>\r\n</html>\r\n\
    <pre><a href=\"../\">../</a>\r\n</pre><hr></body>\r\n</html>\r\n";

/// A request's target, lines that the head has (or, after `!`, does not have), and the body.
const CASES: &[(&str, &[&str], &str)] = &[
    (
        "/once/page.html",
        &["!Last-Modified", "!ETag", "!Content-Length"],
        "<i>A-<b>",
    ),
    (
        "/once/head.txt",
        &["Last-Modified", "ETag: \"", "Content-Length"],
        "<B>top",
    ),
    (
        "/kept/page.html?a=1",
        &["Last-Modified", "ETag: W/\"", "!Accept-Ranges"],
        "1A-<b>",
    ),
    ("/all/page.html?a=-", &["!ETag"], "<i>x<i>"),
    ("/all/page.html", &[], "<i>x-<i>"),
    (
        "/before/page.html",
        &["Last-Modified", "ETag: W/\""],
        "<i>top<b>A-<b>",
    ),
    ("/before/head.txt", &["Content-Length"], "<B>top"),
    ("/both/page.html", &[], "<i>top<b>A-<b></html>"),
    ("/both/not/page.html", &["Content-Length"], "<b>A-<b>"),
    ("/list/", &["Content-Type: text/html"], LISTING),
    ("/loop/", &[], LOOP),
    ("/down/page.html", &[], "<b>A-<b>SORRY"),
];

#[test]
fn texts_are_changed_as_configured() {
    let answer = |step: &str| {
        vec![
            Step::ReadHead,
            Step::send(OK),
            Step::send("xa"),
            Step::send(step),
        ]
    };
    let origin = Origin::start(vec![answer("bAb"), answer("")]);
    let configuration = CONFIGURATION.replace("ORIGIN", &origin.port().to_string());
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("page.html", "<b>A-<b>")
        .file("head.txt", "<B>top")
        .file("sorry.txt", "SORRY")
        .start();
    for folder in ["list", "plain", "loop"] {
        std::fs::create_dir(server.folder().join(folder)).unwrap();
    }
    assert!(
        server
            .get("/plain/")
            .text()
            .contains("<link rel=\"stylesheet\" href=\"/a.css\">")
    );
    for (target, lines, expected) in CASES {
        let response = server.get(target);
        assert_eq!(response.text(), *expected, "{target}");
        for line in *lines {
            let (line, stands) = match line.strip_prefix('!') {
                Some(line) => (line, false),
                None => (*line, true),
            };
            let found = response.head.contains(line);
            assert_eq!(found, stands, "{target}: {line} in {}", response.head);
        }
    }
    // A string that comes in two pieces, and one that never ends.
    assert_eq!(server.get("/origin/").text(), "xABAB</html>");
    assert_eq!(server.get("/origin/").text(), "xa</html>");
    let head = "HEAD /both/page.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let head = String::from_utf8_lossy(&server.exchange(head)).into_owned();
    assert!(
        head.ends_with("\r\n\r\n") && !head.contains("Content-Length"),
        "{head}"
    );
}
