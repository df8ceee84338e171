//! Tests of `dav_ext_methods` with curl as the client: properties, locks, and what they keep out.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::Signal;
use turnpike_testkit::Server;

const CONFIGURATION: &str = "error_log %FOLDER%/error.log notice;
    events { }
    http {
        dav_ext_lock_zone zone=locks:64k timeout=1h;
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/files;
            merge_slashes off;
            client_body_temp_path %FOLDER%/bodies;
            dav_methods PUT DELETE MKCOL COPY MOVE;
            dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK;
            dav_ext_lock zone=locks;
            location /plain/ {
                alias %FOLDER%/files/;
                dav_methods off;
                dav_ext_methods PROPFIND OPTIONS;
            }
        }
    }";

const LOCK: &str = "<?xml version='1.0'?><D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/>\
    </D:lockscope><D:locktype><D:write/></D:locktype><D:owner>me</D:owner></D:lockinfo>";

fn server() -> Server {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("files/d/a & b.txt", "text")
        .file("files/d/e/.hidden", "")
        .start();
    for folder in ["files", "files/d", "files/d/e"] {
        let everyone = Permissions::from_mode(0o777);
        fs::set_permissions(server.folder().join(folder), everyone).unwrap();
    }
    server
}

/// What curl shows of the answer: head and body.
fn ask(server: &Server, method: &str, path: &str, arguments: &[&str]) -> String {
    let url = format!("http://127.0.0.1:{}{path}", server.port());
    let mut command = Command::new("curl");
    command
        .args(["-s", "-i", "-X", method, &url])
        .args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{method} {path}: {output:?}");
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn hrefs(answer: &str) -> Vec<&str> {
    let begin = "<D:response>\n<D:href>";
    let mut found: Vec<&str> = answer
        .split(begin)
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap())
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn folders_and_files_are_described() {
    let server = server();
    for (path, depth, expected) in [
        ("/d/", "1", &["/d/", "/d/a%20&amp;%20b.txt", "/d/e/"][..]),
        ("/d/", "0", &["/d/"]),
        ("/d", "0", &["/d/"]),
        ("/d/e/", "1", &["/d/e/", "/d/e/.hidden"]),
        ("/plain/d/e/", "1", &["/plain/d/e/", "/plain/d/e/.hidden"]),
        ("/d/a%20&%20b.txt", "1", &["/d/a%20&amp;%20b.txt"]),
    ] {
        let answer = ask(
            &server,
            "PROPFIND",
            path,
            &["-H", &format!("Depth: {depth}")],
        );
        assert_eq!(status(&answer), 207, "{path}: {answer}");
        assert_eq!(hrefs(&answer), expected, "{path} {depth}");
    }
    for (path, arguments, expected) in [
        ("/d/", &["-H", "Depth: infinity"][..], 403),
        ("/d/", &["-H", "Depth: 2"], 400),
        ("/none", &[], 404),
        ("/d/", &["-d", "<propfind xmlns='DAV:'>"], 400),
        (
            "/d/",
            &[
                "-d",
                "<!DOCTYPE a><propfind xmlns='DAV:'><prop/></propfind>",
            ],
            400,
        ),
    ] {
        let answer = ask(&server, "PROPFIND", path, arguments);
        assert_eq!(status(&answer), expected, "{path} {arguments:?}");
    }
    let large = "x".repeat(16 * 1024 + 1);
    assert_eq!(
        status(&ask(&server, "PROPFIND", "/d/", &["-d", &large])),
        413
    );
}

#[test]
fn properties_are_those_of_the_file() {
    let server = server();
    let body = "<p:propfind xmlns:p='DAV:'><p:prop><p:getcontentlength/><p:displayname/>\
        <p:getetag/><p:resourcetype/><x xmlns='of:others'/></p:prop></p:propfind>";
    let answer = ask(&server, "PROPFIND", "/d/a%20&%20b.txt", &["-d", body]);
    let (found, missing) = answer.split_once("HTTP/1.1 200 OK</D:status>").unwrap();
    let file = server.get("/d/a%20&%20b.txt");
    let tag = file.header("ETag").unwrap();
    for text in [
        "<D:getcontentlength>4</D:getcontentlength>",
        "<D:displayname>a &amp; b.txt</D:displayname>",
        &format!("<D:getetag>{tag}</D:getetag>"),
        "<D:resourcetype></D:resourcetype>",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
    assert!(missing.contains("<x xmlns=\"of:others\"/>") && missing.contains("404 Not Found"));
}

#[test]
fn options_name_what_is_there() {
    let server = server();
    for (path, classes, methods) in [
        (
            "/d/",
            "DAV: 1, 2",
            "Allow: GET, HEAD, PUT, DELETE, MKCOL, COPY, MOVE, PROPFIND, OPTIONS, LOCK, UNLOCK",
        ),
        ("/plain/", "DAV: 1", "Allow: GET, HEAD, PROPFIND, OPTIONS"),
    ] {
        let answer = ask(&server, "OPTIONS", path, &[]);
        let lines: Vec<&str> = answer.lines().collect();
        assert!(
            lines.contains(&classes) && lines.contains(&methods),
            "{answer}"
        );
    }
}

#[test]
fn locks_keep_out_who_does_not_show_them() {
    let server = server();
    let answer = ask(&server, "LOCK", "/d/new", &["-d", LOCK]);
    assert_eq!(status(&answer), 201, "{answer}");
    let line = answer.lines().find(|line| line.starts_with("Lock-Token: "));
    let token = line.unwrap().trim_start_matches("Lock-Token: ").to_owned();
    assert!(answer.contains("<D:timeout>Second-3600</D:timeout>") && answer.contains(">me<"));
    let shown = format!("If: ({token})");
    let named = format!("Lock-Token: {token}");
    let elsewhere = "Destination: /d/new";
    for (method, path, arguments, expected) in [
        ("LOCK", "/d/new", &["-d", LOCK][..], 423),
        ("LOCK", "/d/", &["-d", LOCK], 423),
        ("PUT", "/d/new", &["-d", "text"], 423),
        ("PUT", "/d/new", &["-d", "text", "-H", &shown], 204),
        ("DELETE", "/d/", &[], 423),
        ("MOVE", "/d/new", &["-H", "Destination: /moved"], 423),
        ("COPY", "/d/e/.hidden", &["-H", elsewhere], 423),
        ("COPY", "/d/e/.hidden", &["-H", "Destination: /d//new"], 423),
        (
            "MOVE",
            "/d/e/.hidden",
            &["-H", "Destination: /d/./new"],
            423,
        ),
        ("PUT", "/d//new", &["-d", "text"], 423),
        ("COPY", "/d/new", &["-H", "Destination: /copy"], 204),
        ("PUT", "/d/other", &["-d", "text"], 201),
        ("LOCK", "/d/new", &["-H", &shown], 200),
        ("LOCK", "/d/new", &["-H", "If: (<urn:none>)"], 412),
        (
            "PUT",
            "/d/other",
            &["-d", "text", "-H", "If: (<urn:none>)"],
            412,
        ),
        ("UNLOCK", "/d/other", &["-H", &named], 409),
        ("UNLOCK", "/d/new", &[], 400),
        ("UNLOCK", "/d/new", &["-H", &named], 204),
        ("PUT", "/d/new", &["-d", "text"], 204),
        ("LOCK", "/none/new", &["-d", LOCK], 409),
        (
            "LOCK",
            "/d/shared",
            &["-d", &LOCK.replace("exclusive", "shared")],
            403,
        ),
    ] {
        let answer = ask(&server, method, path, arguments);
        assert_eq!(status(&answer), expected, "{method} {path} {arguments:?}");
    }
    // The lock of a file that could not be made has gone, and so has that of a file that has.
    let folder = ask(&server, "MKCOL", "/none/", &[]);
    assert_eq!(status(&folder), 201);
    let answer = ask(&server, "LOCK", "/none/new", &["-d", LOCK]);
    assert_eq!(status(&answer), 201);
}

#[test]
fn locks_outlive_a_reload_and_end_with_their_file() {
    let server = server();
    let answer = ask(&server, "LOCK", "/d/", &["-d", LOCK]);
    assert_eq!(status(&answer), 200);
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 1 exited");
    assert_eq!(status(&ask(&server, "DELETE", "/d/", &[])), 423);
    let line = answer.lines().find(|line| line.starts_with("Lock-Token: "));
    let shown = format!("If: ({})", line.unwrap().trim_start_matches("Lock-Token: "));
    assert_eq!(status(&ask(&server, "DELETE", "/d/", &["-H", &shown])), 204);
    assert_eq!(status(&ask(&server, "MKCOL", "/d/", &[])), 201);
    assert_eq!(status(&ask(&server, "PUT", "/d/new", &["-d", "text"])), 201);
}

#[test]
fn locks_that_come_while_a_body_is_read_keep_it_out() {
    let server = server();
    let mut peer = server.connect();
    peer.send(
        "PUT /d/a%20&%20b.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
         Expect: 100-continue\r\nConnection: close\r\n\r\n",
    );
    // The body is asked for: whether it is locked was looked up.
    assert_eq!(peer.response().status, 100);
    let answer = ask(&server, "LOCK", "/d/a%20&%20b.txt", &["-d", LOCK]);
    assert_eq!(status(&answer), 200, "{answer}");
    peer.send("new");
    let answer = String::from_utf8(peer.rest()).unwrap();
    assert_eq!(status(&answer), 423, "{answer}");
    assert!(answer.contains("lock-token-submitted"), "{answer}");
    assert_eq!(server.get("/d/a%20&%20b.txt").text(), "text");
}

#[test]
fn nothing_appears_in_a_locked_folder() {
    let server = server();
    let answer = ask(&server, "LOCK", "/d/", &["-d", LOCK, "-H", "Depth: 0"]);
    assert_eq!(status(&answer), 200, "{answer}");
    let line = answer.lines().find(|line| line.starts_with("Lock-Token: "));
    let shown = format!("If: ({})", line.unwrap().trim_start_matches("Lock-Token: "));
    for (method, path, arguments, expected) in [
        ("PUT", "/d/new", &["-d", "text"][..], 423),
        ("LOCK", "/d/new", &["-d", LOCK], 423),
        // The lock of the file that was not made has gone.
        ("LOCK", "/d/new", &["-d", LOCK, "-H", &shown], 201),
        ("LOCK", "/d/a%20&%20b.txt", &["-d", LOCK], 200),
        ("PUT", "/d/put", &["-d", "text", "-H", &shown], 201),
    ] {
        let answer = ask(&server, method, path, arguments);
        assert_eq!(status(&answer), expected, "{method} {path} {arguments:?}");
    }
}
