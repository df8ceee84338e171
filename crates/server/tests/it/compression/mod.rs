//! brotli and zstd beside gzip: which coding a client gets, and that foreign clients read it.

mod gzip;

use std::io::Read;
use std::time::Duration;

use turnpike_testkit::{Origin, Server, Step, clients};

const CONFIGURATION: &str = "
    worker_processes 1;
    events { }
    http {
        types { text/html html; text/plain txt; }
        log_format ratio '$uri [$gzip_ratio $brotli_ratio $zstd_ratio]';
        access_log %FOLDER%/access.log ratio;
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/html;
            gzip_vary on;
            location / { gzip on; brotli on; zstd on; }
            location /br/ { alias %FOLDER%/html/; brotli on; brotli_types text/plain; }
            location /zstd/ { alias %FOLDER%/html/; zstd on; zstd_min_length 1000; }
            location /types/ {
                alias %FOLDER%/html/;
                gzip on; gzip_types text/plain;
                brotli on;
            }
            location /slow/ {
                alias %FOLDER%/html/;
                open_file_cache max=10;
                brotli on; brotli_comp_level 7; brotli_window 16m;
                zstd on; zstd_comp_level 20;
            }
            location /fast/ {
                alias %FOLDER%/html/;
                brotli on; brotli_comp_level 0; brotli_window 1k; brotli_buffers 4 4k;
                zstd on; zstd_comp_level 1; zstd_buffers 4 4k;
            }
            location /static/ {
                alias %FOLDER%/html/;
                gzip_static on; brotli_static on; zstd_static on;
            }
            location /always/ { alias %FOLDER%/html/; brotli_static always; }
            %LOCATIONS%
        }
    }";

fn page() -> String {
    (0..30_000)
        .map(|number| format!("line {number}\n"))
        .collect()
}

fn server(locations: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("%LOCATIONS%", locations))
        .file("html/page.html", page())
        .file(
            "html/note.txt",
            "a note that is long enough to be compressed",
        )
        .file("html/form.html", "as it is")
        .file("html/form.html.gz", "the file of gzip")
        .file("html/form.html.br", "the file of brotli")
        .file("html/form.html.zst", "the file of zstd")
        .file("html/one.html", "as it is")
        .file("html/one.html.zst", "the file of zstd")
        .start()
}

/// Path, Accept-Encoding, and the coding of the response.
const CASES: &[(&str, &str, Option<&str>)] = &[
    ("/page.html", "gzip, deflate, br, zstd", Some("br")),
    ("/page.html", "gzip, zstd", Some("zstd")),
    ("/page.html", "gzip", Some("gzip")),
    ("/page.html", "br;q=0.8, gzip", Some("gzip")),
    (
        "/page.html",
        "br;q=0.8, zstd;q=0.9, gzip;q=0.7",
        Some("zstd"),
    ),
    ("/page.html", "BR;q=0.001", Some("br")),
    ("/page.html", "br;q=0, zstd;q=0.0, deflate", None),
    ("/page.html", "*", None),
    ("/br/page.html", "gzip, zstd", None),
    ("/br/note.txt", "gzip, br", Some("br")),
    ("/zstd/note.txt", "zstd", None),
    ("/zstd/page.html", "zstd;q=0.5", Some("zstd")),
    ("/types/note.txt", "br, gzip;q=0.1", Some("gzip")),
    ("/types/page.html", "br;q=0.2, gzip;q=0.1", Some("br")),
    ("/static/form.html", "gzip, br, zstd", Some("br")),
    (
        "/static/form.html",
        "gzip, br;q=0.5, zstd;q=0.6",
        Some("gzip"),
    ),
    ("/static/form.html", "zstd", Some("zstd")),
    ("/static/form.html", "identity", None),
    ("/static/one.html", "gzip, br, zstd;q=0.1", Some("zstd")),
    ("/static/one.html", "gzip, br", None),
    ("/always/form.html", "identity", Some("br")),
    ("/always/one.html", "br", None),
];

#[test]
fn a_client_gets_the_coding_that_it_likes_best() {
    let server = server("");
    for (path, accepted, coding) in CASES {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {accepted}\r\n\r\n");
        let response = server.connect().round(&request);
        let what = format!("{path} {accepted}");
        assert_eq!(response.header("Content-Encoding"), *coding, "{what}");
        let is_long = !path.starts_with("/zstd/note") && *path != "/always/form.html";
        let is_concerned = is_long && *path != "/always/one.html";
        let vary = is_concerned.then_some("Accept-Encoding");
        assert_eq!(response.header("Vary"), vary, "{what}");
        if path.starts_with("/static/form") {
            let expected = match coding {
                Some("br") => "the file of brotli",
                Some("zstd") => "the file of zstd",
                Some(_) => "the file of gzip",
                None => "as it is",
            };
            assert_eq!(response.text(), expected, "{what}");
        }
    }
}

/// Whether the curl that is installed expands this coding.
fn curl_reads(coding: &str) -> bool {
    let name = if coding == "br" { "brotli/" } else { "zstd/" };
    clients::curl(&["--version"]).contains(name)
}

#[test]
fn curl_reads_every_level() {
    let (server, page) = (server(""), page());
    for coding in ["br", "zstd"] {
        if !curl_reads(coding) {
            println!("skipped: curl reads no {coding}");
            continue;
        }
        let field = format!("Accept-Encoding: {coding}");
        for path in ["/page.html", "/fast/page.html", "/slow/page.html"] {
            let url = format!("http://127.0.0.1:{}{path}", server.port());
            let text = clients::curl(&["-sS", "--compressed", "-H", &field, &url]);
            assert!(text == page, "{coding} {path}");
        }
    }
}

/// A body that a thread compresses is shown as far as it has come, too.
#[test]
fn what_a_slow_server_has_said_is_seen_at_once() {
    for coding in ["br", "zstd"] {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
        let origin = Origin::start(vec![vec![
            Step::ReadHead,
            Step::send(format!("{head}6\r\nfirst \r\n")),
            // Only what has read the first part ends this connection.
            Step::ReadToEnd,
        ]]);
        let server = server(&format!(
            "location /p {{
                brotli on; brotli_comp_level 9; zstd on; zstd_comp_level 19;
                proxy_pass http://127.0.0.1:{};
            }}",
            origin.port()
        ));
        let mut peer = server.connect();
        let request = format!("GET /p HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\n\r\n");
        peer.send(&request);
        let mut came = Vec::new();
        // A first chunk comes only of what was flushed: six bytes fill no buffer.
        while !has_chunk(&came) {
            let mut bytes = [0; 4096];
            let count = peer.stream().read(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&came).into_owned();
            assert!(count > 0, "closed after {text}");
            came.extend_from_slice(&bytes[..count]);
        }
    }
}

/// Whether something has come behind the head.
fn has_chunk(came: &[u8]) -> bool {
    let end = came.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| came.len() > end + 4)
}

/// A response that is compressed while it is sent has no length; one that was kept has.
#[test]
fn what_is_asked_for_again_is_compressed_once() {
    let server = server("");
    // A file that has just been changed is not kept: its times could still hide another change.
    std::thread::sleep(Duration::from_secs(4));
    for (path, coding) in [
        ("/page.html", "br"),
        ("/page.html", "zstd"),
        ("/page.html", "gzip"),
        ("/slow/page.html", "br"),
        ("/slow/page.html", "zstd"),
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\n\r\n");
        let ask = || server.connect().round(&request);
        let kept = (0..10).map(|_| ask()).find(|response| {
            assert_eq!(response.header("Content-Encoding"), Some(coding), "{path}");
            response.header("Content-Length").is_some()
        });
        let kept = kept.unwrap_or_else(|| panic!("{path} {coding} is not kept"));
        let ratio = page().len() as f64 / kept.body.len() as f64;
        let line = match coding {
            "gzip" => format!("{path} [{ratio:.2} - -]"),
            "br" => format!("{path} [- {ratio:.2} -]"),
            _ => format!("{path} [- - {ratio:.2}]"),
        };
        server.wait_for_log("access.log", &line);
        assert!(ask().body == kept.body, "{path} {coding}");
    }
}

#[test]
fn a_text_that_is_the_same_for_all_is_compressed_once() {
    let text = "a text of the configuration ".repeat(100);
    let server = server(&format!(
        "location = /same {{ gzip on; default_type text/html; return 200 '{text}'; }}
         location = /own {{ gzip on; default_type text/html; return 200 '{text}$uri'; }}"
    ));
    for (path, is_kept) in [("/same", true), ("/own", false)] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
        let mut peer = server.connect();
        let first = peer.round(&request);
        assert_eq!(first.header("Content-Length"), None, "{path}");
        let second = peer.round(&request);
        assert_eq!(second.header("Content-Length").is_some(), is_kept, "{path}");
        for response in [first, second] {
            assert_eq!(response.header("Content-Encoding"), Some("gzip"), "{path}");
            let mut plain = String::new();
            let mut decoder = flate2::read::GzDecoder::new(&*response.body);
            decoder.read_to_string(&mut plain).unwrap();
            let own = if is_kept { "" } else { path };
            assert_eq!(plain, format!("{text}{own}"), "{path}");
        }
    }
}

#[test]
fn wrong_settings_are_refused() {
    for (directive, message) in [
        ("brotli_comp_level 12;", "value must be between 0 and 11"),
        ("zstd_comp_level 23;", "value must be between 1 and 22"),
        ("zstd_comp_level 0;", "value must be between 1 and 22"),
        ("brotli_window 512;", "value must be 1k, 2k"),
        ("brotli_window 32m;", "value must be 1k, 2k"),
        ("brotli_static maybe;", "invalid value \"maybe\""),
        ("zstd_dict_file /x;", "unknown directive \"zstd_dict_file\""),
    ] {
        let configuration =
            format!("events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%; {directive} }} }}");
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .try_start();
        let said = started.err().unwrap().to_string();
        assert!(said.contains(message), "{directive}: {said}");
    }
}
