//! Tests of `dav_methods`: files are created, removed, copied and moved, one request per step.

mod ext;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use turnpike_testkit::Server;

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
    ("PUT /d/named", "X-Other: 1\r\n", "x", 201),
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
    assert_eq!(fs::read_to_string(files.join("new/moved")).unwrap(), "x");
    let left = fs::read_dir(server.folder().join("bodies")).unwrap();
    assert_eq!(left.count(), 0, "no body is left behind");
    server.wait_for_log("error.log", "insufficient URI depth:1 to DELETE");
}
