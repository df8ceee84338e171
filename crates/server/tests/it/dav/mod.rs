//! Tests of `dav_methods`: files are created, removed, copied and moved, one request per step.

mod ext;

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use turnpike_testkit::Server;

use crate::support::frames;

const CONFIGURATION: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        client_body_buffer_size 1k;
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/files;
            client_body_temp_path %FOLDER%/bodies;
            location / {
                dav_methods PUT DELETE MKCOL COPY MOVE;
                dav_access user:rw group:r all:r;
                create_full_put_path on;
                min_delete_depth 2;
            }
            location /less/ { dav_methods PUT; }
            location /alias/ { alias %FOLDER%/files/d/; dav_methods COPY; }
        }
    }";

/// A request's line, fields and body, and the status of the response.
const STEPS: &[(&str, &str, &str, u16)] = &[
    ("PUT /d/file", "", "0123456789", 201),
    ("PUT /d/file", "", "x", 204),
    ("PUT /d/empty", "", "", 201),
    ("PUT /d", "", "x", 409),
    ("PUT /d/file/below", "", "x", 409),
    ("PUT /d/part", "Content-Range: bytes 0-0/2\r\n", "x", 501),
    ("MKCOL /new/", "", "", 201),
    ("MKCOL /new/", "", "", 405),
    ("MKCOL /new/", "", "x", 415),
    ("MKCOL /none/new/", "", "", 409),
    ("COPY /d/", "Destination: /new/copy/\r\n", "", 201),
    ("COPY /d/", "Destination: /d/in/itself/\r\n", "", 409),
    (
        "COPY /d/file",
        "Destination: http://elsewhere/file\r\n",
        "",
        400,
    ),
    ("COPY /d/file", "Destination: /../file\r\n", "", 400),
    ("COPY /d/file", "Destination: /d/../file\r\n", "", 400),
    ("COPY /d/file", "Destination: /new/%zz\r\n", "", 400),
    ("COPY /d/file", "Destination: /new/./file?a\r\n", "", 204),
    (
        "COPY /d/file",
        "Destination: /new/file\r\nOverwrite: F\r\n",
        "",
        412,
    ),
    ("COPY /alias/file", "Destination: /d/other\r\n", "", 400),
    ("COPY /alias/file", "Destination: /alias/other\r\n", "", 204),
    ("MOVE /new/file", "Destination: /new/moved\r\n", "", 204),
    ("MOVE /new/file", "Destination: /new/moved\r\n", "", 404),
    (
        "MOVE /new/copy/",
        "Destination: http://host/moved/\r\n",
        "",
        201,
    ),
    (
        "COPY /moved/file",
        "Destination: http://host:x/d/ported\r\n",
        "",
        400,
    ),
    (
        "COPY /moved/file",
        "Destination: http://HOST:80/d/ported\r\n",
        "",
        204,
    ),
    (
        "COPY http://[::1]:80/moved/file",
        "Destination: http://[::1]:80/d/literal\r\n",
        "",
        204,
    ),
    (
        "COPY http://[::1]:80/moved/file",
        "Destination: http://[::2]:80/d/literal\r\n",
        "",
        400,
    ),
    ("DELETE /moved/", "", "", 409),
    ("DELETE /moved/file", "Depth: 1\r\n", "", 400),
    ("DELETE /moved/file", "", "", 204),
    ("DELETE /moved/file", "", "", 404),
    ("DELETE /less/file", "", "", 405),
    ("DELETE /d/empty", "", "x", 415),
    ("COPY /d/empty", "Destination: /d/other\r\n", "x", 415),
    ("MOVE /d/empty", "Destination: /d/other\r\n", "x", 415),
    (
        "PUT /d/named",
        "X-Other: 1\r\nContent-Location: /d/elsewhere\r\n",
        "x",
        201,
    ),
];

#[test]
fn files_are_changed_by_requests() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("files/index.html", "")
        .start();
    let files = server.folder().join("files");
    fs::set_permissions(&files, Permissions::from_mode(0o777)).unwrap();
    for (line, fields, body, expected) in STEPS {
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let request = format!(
            "{line} HTTP/1.1\r\nHost: host\r\nConnection: close\r\n{fields}{length}\r\n{body}"
        );
        let head = String::from_utf8_lossy(&server.exchange(&request)).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse::<u16>().unwrap();
        assert_eq!(status, *expected, "{line} {fields}: {head}");
        let names_it = line.starts_with("PUT") || line.starts_with("MKCOL");
        assert_eq!(
            head.contains("Location:"),
            status == 201 && names_it,
            "{head}"
        );
        if line.starts_with("PUT") {
            let has_validator = head.contains("ETag") || head.contains("Last-Modified");
            assert!(!has_validator, "{line}: {head}");
        }
        assert!(!head.contains("Accept-Encoding"), "{line}: {head}");
        if line.starts_with("MKCOL") && status == 405 {
            assert!(
                head.contains("Allow: GET, HEAD, PUT, DELETE, MKCOL"),
                "{head}"
            );
        }
    }
    let large = "PUT /d/large HTTP/1.1\r\nHost: host\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("1000\r\n{}\r\n", "y".repeat(4096));
    let body = [chunk.repeat(64), "0\r\n\r\n".to_owned()].concat();
    let head = server.exchange(format!("{large}{body}"));
    assert!(head.starts_with(b"HTTP/1.1 201 "), "{head:?}");
    let metadata = fs::metadata(files.join("d/large")).unwrap();
    assert_eq!(
        (metadata.len(), metadata.permissions().mode() & 0o777),
        (64 * 4096, 0o644)
    );
    assert!(files.join("d/named").exists() && !files.join("d/elsewhere").exists());
    assert_eq!(fs::read_to_string(files.join("new/moved")).unwrap(), "x");
    let left = fs::read_dir(server.folder().join("bodies")).unwrap();
    assert_eq!(left.count(), 0, "no body is left behind");
    server.wait_for_log("error.log", "insufficient URI depth:1 to DELETE");
}

/// A file's entity tag, its date and dates around it.
const TAG: &str = "\"2ebc98a1-3\"";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sat, 06 Nov 1993 08:49:37 GMT";

/// Conditions, and whether they hold for the file (`old`), for what is not there (`none`), and for
/// the folder (`d/`).
const CONDITIONS: &[(&str, bool, bool, bool)] = &[
    ("If-Match: TAG", true, false, false),
    ("If-Match: \"x\", TAG", true, false, false),
    ("If-Match: \"other\"", false, false, false),
    ("If-Match: W/TAG", false, false, false),
    ("If-Match: *", true, false, true),
    ("If-None-Match: *", false, true, false),
    ("If-None-Match: TAG", false, true, true),
    ("If-None-Match: W/TAG", false, true, true),
    ("If-None-Match: \"other\"", true, true, true),
    ("If-Unmodified-Since: DATE", true, true, true),
    ("If-Unmodified-Since: EARLIER", false, true, false),
    ("If-Unmodified-Since: yesterday", true, true, true),
    (
        "If-Match: TAG\r\nIf-Unmodified-Since: EARLIER",
        true,
        false,
        false,
    ),
    (
        "If-Match: TAG\r\nIf-None-Match: \"other\"",
        true,
        false,
        false,
    ),
    ("If-Match: TAG\r\nIf-None-Match: TAG", false, false, false),
    // Dates count for reading only.
    ("If-Modified-Since: DATE", true, true, true),
    ("If: ([TAG])", true, false, false),
    ("If: ([\"other\"])", false, false, false),
    ("If: ([\"other\"])\r\nIf: ([TAG])", true, false, false),
    ("If: ([\"other\"] [TAG])", false, false, false),
    ("If: (Not [\"other\"])", true, true, true),
    ("If: (Not [TAG])", false, true, true),
    ("If: </old> ([TAG])", true, true, true),
    ("If: <http://host/old> ([TAG])", true, true, true),
    (
        "If: <http://host/none> ([TAG]) </old> (Not [TAG])",
        false,
        false,
        false,
    ),
    ("If: <http://elsewhere/old> ([TAG])", false, false, false),
    ("If: (<urn:uuid:none>)", false, false, false),
    (
        "If: (<urn:uuid:none>) (Not <DAV:no-lock>)",
        true,
        true,
        true,
    ),
];

/// Requests, and what they are for; `-`: nothing.
const CHANGES: &[(&str, &str, &str)] = &[
    ("PUT /old", "", "old"),
    ("PUT /none", "", "-"),
    ("PUT /none/new", "", "-"),
    ("DELETE /old", "", "old"),
    ("DELETE /d/", "", "d"),
    ("MKCOL /none/", "", "-"),
    ("COPY /old", "Destination: /to\r\n", "old"),
    ("COPY /d/", "Destination: /to/\r\n", "d"),
    ("COPY /d/", "Destination: /e/\r\n", "d"),
    ("MOVE /old", "Destination: /d/in\r\n", "old"),
    ("MOVE /d/", "Destination: /e/\r\n", "d"),
];

const CONDITIONAL: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            root %FOLDER%/files;
            client_body_temp_path %FOLDER%/bodies;
            dav_methods PUT DELETE MKCOL COPY MOVE;
            create_full_put_path on;
        }
    }";

/// How a request is sent; returns the status of its answer. A request is a method and a path, lines
/// of fields, and a body.
type Ask = fn(&Server, &str, &str, &str) -> u16;

const PROTOCOLS: &[(&str, Ask)] = &[("HTTP/1.1", ask_http1), ("HTTP/2", frames::ask)];

fn ask_http1(server: &Server, line: &str, fields: &str, body: &str) -> u16 {
    let length = match body.len() {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    let answer = server.exchange(format!(
        "{line} HTTP/1.1\r\nHost: host\r\nConnection: close\r\n{fields}{length}\r\n{body}"
    ));
    let head = String::from_utf8_lossy(&answer);
    let status = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Makes the files anew.
fn lay_out(files: &Path) {
    for entry in fs::read_dir(files).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for folder in ["d", "e"] {
        fs::create_dir(files.join(folder)).unwrap();
    }
    for file in ["old", "d/in", "e/in"] {
        fs::write(files.join(file), &file[..3]).unwrap();
    }
    for path in ["old", "d", "e"] {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(0x2ebc_98a1);
        let opened = File::open(files.join(path)).unwrap();
        opened
            .set_times(FileTimes::new().set_modified(modified))
            .unwrap();
    }
    for path in ["", "old", "d", "d/in", "e", "e/in"] {
        let mode = if path.ends_with("in") { 0o666 } else { 0o777 };
        fs::set_permissions(files.join(path), Permissions::from_mode(mode)).unwrap();
    }
}

/// Every path with the content of files.
fn contents(files: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![files.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.push(format!("{}: {text}", path.display()));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_condition_that_does_not_hold_changes_nothing() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONDITIONAL)
        .file("files/old", "old")
        .start();
    let files = server.folder().join("files");
    let (mut is_changed, mut before) = (true, Vec::new());
    for (line, fields, subject) in CHANGES {
        for (condition, for_file, for_nothing, for_folder) in CONDITIONS {
            let holds = match *subject {
                "old" => for_file,
                "d" => for_folder,
                _ => for_nothing,
            };
            let condition = condition
                .replace("TAG", TAG)
                .replace("EARLIER", EARLIER)
                .replace("DATE", DATE);
            let body = if line.starts_with("PUT") { "new" } else { "" };
            for (protocol, ask) in PROTOCOLS {
                // What changed nothing leaves the files to the next.
                if is_changed {
                    lay_out(&files);
                    before = contents(&files);
                }
                is_changed = *holds;
                let status = ask(&server, line, &format!("{fields}{condition}\r\n"), body);
                let case = format!("{protocol} {line} {fields}{condition}: {status}");
                match holds {
                    true => assert!([201, 204].contains(&status), "{case}"),
                    false => {
                        assert_eq!(status, 412, "{case}");
                        assert_eq!(contents(&files), before, "{case}");
                    }
                }
            }
        }
    }
}

/// Requests that are refused for another reason, whatever their conditions (RFC 9110 section
/// 13.2.1), or for a field that cannot be read.
const REFUSED: &[(&str, &str, u16)] = &[
    ("DELETE /none", "If-Match: *\r\n", 404),
    ("DELETE /d", "If-Match: *\r\n", 409),
    ("MKCOL /d/", "If-None-Match: *\r\n", 405),
    ("COPY /none", "Destination: /to\r\nIf-Match: *\r\n", 404),
    ("MOVE /none", "Destination: /to\r\nIf-Match: *\r\n", 404),
    (
        "COPY /old",
        "Destination: /none/to\r\nIf-None-Match: *\r\n",
        409,
    ),
    (
        "MOVE /old",
        "Destination: /none/to\r\nIf-None-Match: *\r\n",
        409,
    ),
    (
        "MOVE /old",
        "Destination: /d/in\r\nOverwrite: F\r\nIf-Match: *\r\n",
        412,
    ),
    ("DELETE /old", "If: [\"x\"]\r\n", 400),
    ("DELETE /old", "If: (\r\n", 400),
    ("DELETE /old", "If: \r\n", 400),
];

#[test]
fn conditions_do_not_change_other_refusals() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONDITIONAL)
        .file("files/old", "old")
        .start();
    let files = server.folder().join("files");
    lay_out(&files);
    let before = contents(&files);
    for (line, fields, status) in REFUSED {
        for (protocol, ask) in PROTOCOLS {
            let case = format!("{protocol} {line} {fields}");
            assert_eq!(ask(&server, line, fields, ""), *status, "{case}");
            assert_eq!(contents(&files), before, "{case}");
        }
    }
}

#[test]
fn of_clients_that_have_read_the_same_state_one_replaces_it() {
    const CLIENTS: usize = 16;
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONDITIONAL)
        .file("files/old", "old")
        .start();
    let files = server.folder().join("files");
    lay_out(&files);
    for (target, condition, won) in [
        ("/new", "If-None-Match: *".to_owned(), 201),
        ("/old", format!("If-Match: {TAG}"), 204),
    ] {
        // All heads are sent before any body, so that the changes come together.
        let mut peers: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        for peer in &mut peers {
            peer.send(format!(
                "PUT {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n{condition}\r\n\
                 Expect: 100-continue\r\nConnection: close\r\n\r\n"
            ));
            assert_eq!(peer.response().status, 100);
        }
        for peer in &mut peers {
            peer.send("new");
        }
        let statuses: Vec<u16> = peers
            .iter_mut()
            .map(|peer| peer.response().status)
            .collect();
        let count = |status| statuses.iter().filter(|own| **own == status).count();
        assert_eq!((count(won), count(412)), (1, CLIENTS - 1), "{statuses:?}");
    }
}

const LINKS: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        dav_ext_lock_zone zone=locks:64k;
        server {
            listen 127.0.0.1:%PORT%;
            root %FOLDER%/files;
            client_body_temp_path %FOLDER%/bodies;
            dav_methods PUT DELETE MKCOL COPY MOVE;
            dav_ext_methods PROPFIND LOCK;
            dav_ext_lock zone=locks;
            create_full_put_path on;
            location / { disable_symlinks on from=$document_root; }
            location /owner/ { disable_symlinks if_not_owner; }
        }
    }";

/// Requests under `disable_symlinks`: `out` leads to a folder outside, `link` to a file in it.
const LINKED: &[(&str, &str, u16)] = &[
    ("PUT /out/new", "", 409),
    ("PUT /out/deep/new", "", 409),
    ("PUT /link", "", 403),
    ("PUT /inner/deep/new", "", 201),
    ("PUT /inner/deep/new", "", 204),
    ("PUT /owner/new", "", 201),
    ("DELETE /out/file", "", 404),
    ("DELETE /link", "", 403),
    ("DELETE /out/", "", 403),
    ("MKCOL /out/new/", "", 409),
    ("COPY /link", "Destination: /stolen\r\n", 403),
    ("COPY /out/file", "Destination: /stolen\r\n", 404),
    ("COPY /out/", "Destination: /stolen/\r\n", 403),
    ("COPY /plain", "Destination: /out/put\r\n", 409),
    ("COPY /plain", "Destination: /link\r\n", 403),
    ("COPY /plain", "Destination: /inner/copy\r\n", 204),
    ("MOVE /out/file", "Destination: /stolen\r\n", 404),
    ("MOVE /inner/copy", "Destination: /out/put\r\n", 409),
    ("MOVE /inner/copy", "Destination: /inner/moved\r\n", 204),
    // Links in a folder stay links.
    ("COPY /inner/", "Destination: /copies/\r\n", 201),
    ("PROPFIND /out/", "Depth: 1\r\n", 403),
    ("PROPFIND /out/file", "Depth: 0\r\n", 404),
    ("PROPFIND /link", "Depth: 0\r\n", 403),
    ("PROPFIND /none", "Depth: 0\r\n", 404),
    ("DELETE /inner/moved", "", 204),
];

#[test]
fn refused_links_are_followed_by_no_method() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(LINKS)
        .file("files/plain", "plain")
        .file("files/inner/file", "inner")
        .file("files/owner/file", "own")
        .file("outside/file", "secret")
        .start();
    let (files, outside) = (
        server.folder().join("files"),
        server.folder().join("outside"),
    );
    for (target, link) in [
        ("../outside", "out"),
        ("../outside/file", "link"),
        ("../../outside/file", "inner/link"),
    ] {
        symlink(target, files.join(link)).unwrap();
    }
    for folder in [&files, &files.join("inner"), &files.join("owner"), &outside] {
        fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    }
    for file in [files.join("plain"), outside.join("file")] {
        fs::set_permissions(file, Permissions::from_mode(0o666)).unwrap();
    }
    let before = contents(&outside);
    let ask = |line: &str, fields: &str| {
        let (length, body) = if line.starts_with("PUT") {
            ("Content-Length: 3\r\n", "new")
        } else {
            ("", "")
        };
        let request = format!(
            "{line} HTTP/1.1\r\nHost: host\r\nConnection: close\r\n{fields}{length}\r\n{body}"
        );
        String::from_utf8_lossy(&server.exchange(&request)).into_owned()
    };
    for (line, fields, status) in LINKED {
        let head = ask(line, fields);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line} {fields}: {head}"
        );
        assert_eq!(contents(&outside), before, "{line} {fields}");
        assert!(!files.join("stolen").exists(), "{line} {fields}");
    }
    assert!(files.join("copies/link").is_symlink());
    let listed = ask("PROPFIND /", "Depth: 1\r\n");
    assert!(listed.contains("<D:href>/plain</D:href>"), "{listed}");
    assert!(
        !listed.contains("/out") && !listed.contains("/link"),
        "{listed}"
    );
    // The log names the path, not the descriptor that it was reached by.
    let path = files.join("none").display().to_string();
    server.wait_for_log("error.log", &format!("stat() \"{path}\" failed (2: "));
}
