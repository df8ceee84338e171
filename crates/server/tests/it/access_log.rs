//! Tests of access logs as files: buffered, compressed and kept open.

use std::fs::Permissions;
use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use nix::sys::signal::Signal;
use turnpike_testkit::{Server, wait_for};

use crate::support::turnpike;

fn server(locations: &str) -> Server {
    server_with("", locations)
}

fn server_with(globals: &str, locations: &str) -> Server {
    let configuration = format!(
        "events {{ }}
        http {{
            log_format path '$uri';
            log_format code '$uri $status';
            access_log off;
            server {{ listen 127.0.0.1:%PORT%; root %FOLDER%; {locations} }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .globals(globals)
        .start()
}

#[test]
fn buffered_lines_are_written_when_the_server_ends() {
    for signal in [Signal::SIGQUIT, Signal::SIGTERM] {
        let mut server = server(
            "location / {
                access_log %FOLDER%/b.log path buffer=16k if=$arg_a;
                access_log %FOLDER%/b.log path buffer=16k if=$arg_b;
                return 200 text;
            }",
        );
        for target in ["/a?a=1", "/none", "/b?b=1"] {
            assert_eq!(server.get(target).text(), "text");
        }
        assert_eq!(server.log("b.log"), "");
        server.signal(signal);
        server.wait();
        assert_eq!(server.log("b.log"), "/a\n/b\n", "{signal}");
    }
}

#[test]
fn a_request_that_gets_no_answer_is_logged_with_the_status_that_says_so() {
    let locations: String = [444, 499]
        .map(|status| format!("location /{status} {{ return {status}; }}"))
        .concat();
    let server = server(&format!("access_log %FOLDER%/n.log code; {locations}"));
    for status in ["444", "499"] {
        let answer = server.exchange(format!("GET /{status} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(answer.is_empty(), "{status}");
        server.wait_for_log("n.log", &format!("/{status} {status}\n"));
    }
}

#[test]
fn the_format_json_is_there_unless_the_file_defines_it() {
    let block = "location / { access_log %FOLDER%/j.log json; return 200 text; }";
    let server = server(block);
    server.exchange("GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: \"x\\\r\nConnection: close\r\n\r\n");
    let first = |server: &Server| {
        let line = wait_for(|| server.log("j.log").lines().next().map(str::to_owned));
        line.unwrap()
    };
    let line: serde_json::Value = serde_json::from_str(&first(&server)).unwrap();
    assert_eq!((&line["status"], &line["host"]), (&200.into(), &"h".into()));
    assert_eq!(
        (&line["uri"], &line["agent"]),
        (&"/a".into(), &"\"x\\".into())
    );
    assert_eq!(line["upstream"], "");
    assert!(line["seconds"].is_number(), "{line}");
    let configuration = format!(
        "events {{ }} http {{ log_format json '$uri'; access_log off;
         server {{ listen 127.0.0.1:%PORT%; {block} }} }}"
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    assert_eq!(server.get("/own").text(), "text");
    assert_eq!(first(&server), "/own");
}

#[test]
fn access_logs_are_compressed_where_asked_for() {
    let server = server("access_log %FOLDER%/packed.log path gzip=9 flush=10ms; return 200 text;");
    for target in ["/a", "/b", "/c"] {
        assert_eq!(server.get(target).text(), "text");
    }
    let path = server.folder().join("packed.log");
    let lines = wait_for(|| {
        let mut lines = String::new();
        let packed = std::fs::read(&path).ok()?;
        MultiGzDecoder::new(&packed[..])
            .read_to_string(&mut lines)
            .ok()?;
        (lines.lines().count() == 3).then_some(lines)
    });
    assert_eq!(lines.as_deref(), Some("/a\n/b\n/c\n"));
}

#[test]
fn files_kept_open_are_written_to_after_they_were_moved() {
    // The folder is created later: a sandbox cannot allow writing to it.
    let server = server_with(
        "sandbox off;",
        "location / {
            open_log_file_cache max=2 inactive=60s valid=60s min_uses=2;
            access_log %FOLDER%/logs/$arg_to path;
            return 200 text;
        }",
    );
    let folder = server.folder().to_path_buf();
    std::fs::create_dir(folder.join("logs")).unwrap();
    // If root runs the test, the serving process has another user.
    std::fs::set_permissions(folder.join("logs"), Permissions::from_mode(0o777)).unwrap();
    let get = |path: &str, log: &str| {
        assert_eq!(server.get(&format!("{path}?to={log}")).text(), "text");
    };
    for path in ["/1", "/2"] {
        get(path, "often");
    }
    get("/1", "once");
    server.wait_for_log("logs/once", "/1\n");
    std::fs::rename(folder.join("logs"), folder.join("moved")).unwrap();
    // Logs that cannot be opened do not evict one that is kept open.
    for log in ["other", "another", "once"] {
        get("/3", log);
    }
    get("/3", "often");
    server.wait_for_log("moved/often", "/3\n");
    assert_eq!(server.log("moved/often"), "/1\n/2\n/3\n");
    assert_eq!(server.log("moved/once"), "/1\n");
}

#[test]
fn error_logs_are_json_where_asked_for() {
    let server = server(
        "location / {
            error_log %FOLDER%/e.json format=json;
            error_log %FOLDER%/e.log;
            proxy_pass http://127.0.0.1:1;
        }",
    );
    assert_eq!(server.get("/a\"b?x=\\").status, 502);
    let line = wait_for(|| server.log("e.json").lines().next().map(str::to_owned)).unwrap();
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    for (name, value) in [
        ("level", "error"),
        ("message", "connect() failed (111: Connection refused)"),
        ("action", "connecting to upstream"),
        ("client", "127.0.0.1"),
        ("request", "GET /a\"b?x=\\ HTTP/1.1"),
        ("upstream", "http://127.0.0.1:1/a\"b?x=\\"),
    ] {
        assert_eq!(object[name], value, "{line}");
    }
    assert!(object["connection"].is_number(), "{line}");
    assert_eq!(
        object["time"].as_str().unwrap().len(),
        "2026-11-23T04:00:00.000+00:00".len()
    );
    let plain = server.log("e.log");
    let end = ", upstream: \"http://127.0.0.1:1/a\"b?x=\\\", host: ";
    assert!(plain.contains(end), "{plain}");
}

#[test]
fn error_logs_take_the_lines_that_their_filters_let_pass() {
    let configuration =
        "error_log %FOLDER%/main.log error filter=message:refused filter=client:=127.0.0.2;
         events { }
         http {
             set_real_ip_from 127.0.0.1;
             real_ip_header X-From;
             server {
                 listen 127.0.0.1:%PORT%;
                 location / { proxy_pass http://127.0.0.1:1; }
                 location /own {
                     error_log %FOLDER%/own.log info filter=request:/own/b;
                     error_log %FOLDER%/own.log info filter=referrer:~shop;
                     proxy_pass http://127.0.0.1:1;
                 }
             }
         }
         stream {
             server {
                 listen 127.0.0.1:%PORT_2%;
                 error_log %FOLDER%/stream.log info filter=upstream:127.0.0.1:1 rate=1;
                 proxy_pass 127.0.0.1:1;
             }
         }";
    let builder = Server::builder(env!("CARGO_BIN_EXE_turnpike"));
    let server = builder.configuration(configuration).start();
    for (path, fields) in [
        ("/a", "X-From: 127.0.0.2\r\n"),
        ("/b", "X-From: 127.0.0.3\r\n"),
        ("/own/a", ""),
        ("/own/b", ""),
        ("/own/c", "Referer: http://shop/\r\n"),
    ] {
        let end = "Connection: close\r\n\r\n";
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}{end}");
        assert!(server.exchange(request).starts_with(b"HTTP/1.1 502 "));
    }
    // More sessions than a rate of one line a second lets pass, unless each took half a second.
    for _ in 0..40 {
        let mut session = TcpStream::connect(("127.0.0.1", server.port_named("2"))).unwrap();
        let _ = session.read(&mut [0]);
    }
    let requests = |name: &str| {
        let request = |line: &str| line.split('"').nth(1).unwrap().to_owned();
        server.log(name).lines().map(request).collect::<Vec<_>>()
    };
    assert_eq!(requests("main.log"), ["GET /a HTTP/1.1"]);
    let own = ["GET /own/b HTTP/1.1", "GET /own/c HTTP/1.1"];
    assert_eq!(requests("own.log"), own);
    let referrer = ", host: \"h\", referrer: \"http://shop/\"\n";
    assert!(server.log("own.log").ends_with(referrer));
    wait_for(|| server.log("stream.log").contains("limiting").then_some(())).unwrap();
    assert!(server.log("stream.log").lines().count() < 40);
}

const NGINX: &str = "/usr/sbin/nginx";

const LOGGED: &str = "worker_processes 1;
    error_log %FOLDER%/error.log crit;
    events { }
    http {
        STRICTNESS
        log_format f '$uri|$document_uri|$request_uri|$args|$query_string|$is_args|'
            '$server_protocol|$status|$request_method|$sent_http_location|$host|$server_name';
        access_log %FOLDER%/f.log f;
        client_header_buffer_size 512;
        large_client_header_buffers 2 1k;
        server {
            listen 127.0.0.1:%PORT%;
            server_name s;
            root %FOLDER%;
            location /file { }
            location /empty { set $args ''; return 204; }
            location /set { set $args z; return 204; }
            location /without { rewrite ^ /file? break; }
            location /kept { rewrite ^ /file break; }
            location /own { rewrite ^ /file?a=b break; }
            location /again { rewrite ^ /file last; }
            location /page { error_page 404 /file; return 404; }
            location /asked { error_page 404 /file?q=1; return 404; }
            location /tried { try_files /none /file; }
            location /moved { return 301 /x; }
            location /away { return 302 http://o/y; }
            location /path { absolute_redirect off; return 301 /x; }
            location /folder { }
        }
        server { listen 127.0.0.1:%PORT%; server_name named; root %FOLDER%; }
    }";

/// Requests whose lines in the log are those of nginx; the client ends its side behind them.
const LINES: &[&str] = &[
    // Queries: none, empty ones, and those that the configuration sets.
    "GET /file HTTP/1.0\r\n\r\n",
    "GET /file? HTTP/1.0\r\n\r\n",
    "GET /file?a HTTP/1.0\r\n\r\n",
    "GET /empty HTTP/1.0\r\n\r\n",
    "GET /empty?a HTTP/1.0\r\n\r\n",
    "GET /set HTTP/1.0\r\n\r\n",
    "GET /without HTTP/1.0\r\n\r\n",
    "GET /without?a HTTP/1.0\r\n\r\n",
    "GET /kept HTTP/1.0\r\n\r\n",
    "GET /kept?a HTTP/1.0\r\n\r\n",
    "GET /own HTTP/1.0\r\n\r\n",
    "GET /again?a HTTP/1.0\r\n\r\n",
    "GET /page?a HTTP/1.0\r\n\r\n",
    "GET /asked HTTP/1.0\r\n\r\n",
    "GET /tried?a HTTP/1.0\r\n\r\n",
    // Redirects, with the host as it is sent.
    "GET /moved HTTP/1.0\r\nHost: S.:81\r\n\r\n",
    "GET /away HTTP/1.0\r\n\r\n",
    "GET /path HTTP/1.0\r\n\r\n",
    "GET /folder HTTP/1.0\r\nHost: named\r\n\r\n",
    // HTTP/0.9 names no protocol.
    "GET /file\r\n",
    // Refused heads.
    "GET /file HTTP/1.1\r\n\r\n",
    "GET /file?q HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET /%7ex/./y?q HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "GET http://a/b..c/../y?z HTTP/1.1\r\n\r\n",
    "GET http://a..b/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: named\r\nContent-Length: z\r\n\r\n",
    "TRACE /x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
    // Refused request lines.
    "GET /%zz HTTP/1.1\r\nHost: s\r\n\r\n",
    "GET /../x HTTP/1.1\r\nHost: s\r\n\r\n",
    "garbage\r\n\r\n",
    "GET x HTTP/1.1\r\n\r\n",
    "GET /x HTTP/3.0\r\nHost: a\r\n\r\n",
    "POST /x\r\n",
    "get /x HTTP/1.1\r\nHost: a\r\n\r\n",
    // Heads that the client cuts.
    "GET /x HTTP/1.1",
    "GET /x HTTP/1.1\r\n",
    "GET /x HTTP/1.1\r\nHost: named\r\nFo",
    "GET /x",
    "GE",
    "\r\n",
];

/// The line that a server logs of a request, whatever it answers.
fn logged_line(server: &Server, request: &str) -> String {
    let before = server.log("f.log").len();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // A reset is as good as an end.
    let _ = stream.read_to_end(&mut Vec::new());
    let line = wait_for(|| {
        let log = server.log("f.log");
        log.get(before..)
            .filter(|line| line.ends_with('\n'))
            .map(str::to_owned)
    });
    let line = line.unwrap_or_else(|| panic!("{request:?} was not logged"));
    line.replace(&format!(":{}/", server.port()), ":PORT/")
}

#[test]
fn logs_are_summarised() {
    let mut server = server(
        "location / {
            access_log %FOLDER%/c.log combined;
            access_log %FOLDER%/j.log json;
            access_log %FOLDER%/g.log.gz combined buffer=4k gzip;
            if ($arg_bad) { return 500; }
            return 200 text;
        }",
    );
    for target in ["/a?x", "/a?y", "/b?bad=1"] {
        server.get(target);
    }
    let folder = server.folder().to_owned();
    server.end(Signal::SIGQUIT);
    for (name, more) in [
        ("c.log", "Clients"),
        ("j.log", "Hosts"),
        ("g.log.gz", "Clients"),
    ] {
        let path = folder.join(name);
        let output = turnpike(&["log", path.to_str().unwrap()]);
        let shown = String::from_utf8(output.stdout).unwrap();
        let head = shown.lines().next().unwrap();
        assert!(head.starts_with("3 requests from "), "{name}: {shown}");
        let line = |end: &str| shown.lines().find(|line| line.ends_with(end)).unwrap();
        assert!(line("  /a").contains(" 66.7 % "), "{name}: {shown}");
        assert!(
            shown.contains("\n         500           1  33.3 %"),
            "{name}: {shown}"
        );
        assert!(shown.contains(&format!("\n{more}\n")), "{name}: {shown}");
    }
}

#[test]
fn lines_are_those_of_nginx() {
    if !Path::new(NGINX).exists() {
        println!("skipped: no {NGINX}");
        return;
    }
    let start = |program: &str, strictness: &str| {
        Server::builder(program)
            .configuration(&LOGGED.replace("STRICTNESS", strictness))
            .file("file", "x")
            .file("folder/file", "x")
            .start()
    };
    let ours = start(env!("CARGO_BIN_EXE_turnpike"), "http_strictness nginx;");
    let nginx = start(NGINX, "");
    for request in LINES {
        let (got, expected) = (logged_line(&ours, request), logged_line(&nginx, request));
        assert_eq!(got, expected, "{request:?}");
    }
}
