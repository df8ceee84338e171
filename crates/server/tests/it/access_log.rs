//! Tests of access logs as files: buffered, compressed and kept open.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use flate2::read::MultiGzDecoder;
use nix::sys::signal::Signal;
use turnpike_testkit::{Server, wait_for};

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
