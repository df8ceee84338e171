//! Tests of FIFOs in place of files: opening one waits for the other side, possibly without end,
//! and no lane may wait for it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use turnpike_testkit::{Folder, Server, wait_for};

const CONFIGURATION: &str = "
worker_processes 1;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    server {
        listen 127.0.0.1:%PORT%;
        root FIFOS;
        location /cached/ { open_file_cache max=10; open_file_cache_min_uses 1; alias FIFOS/; }
        location /links/ { disable_symlinks on; alias FIFOS/; }
        location /packed { gzip_static always; }
        location /tried { try_files /fifo /plain; }
        location /index/ { index fifo plain; alias FIFOS/; }
        location /random/ { random_index on; alias FIFOS/only/; }
        location /list/ { autoindex on; alias FIFOS/; }
        location /users { auth_basic on; auth_basic_user_file FIFOS/fifo; try_files /plain =404; }
        location /logged { access_log FIFOS/$arg_log; try_files /plain =404; }
        location /kept {
            access_log FIFOS/$arg_log;
            open_log_file_cache max=4;
            try_files /plain =404;
        }
    }
}";

fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o666)).unwrap();
    // If root runs the tests, the server has another user.
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
}

/// A folder with a file and FIFOs.
fn fifos() -> Folder {
    let folder = Folder::create().unwrap();
    folder.write("plain", "content").unwrap();
    fs::create_dir(folder.path().join("only")).unwrap();
    for name in ["fifo", "packed.gz", "only/fifo", "log"] {
        make_fifo(&folder.path().join(name));
    }
    folder
}

fn start(folder: &Folder) -> Server {
    let text = CONFIGURATION.replace("FIFOS", &folder.path().display().to_string());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start()
}

#[test]
fn a_request_for_a_fifo_is_answered() {
    let folder = fifos();
    let server = start(&folder);
    let credentials = "Authorization: Basic YTpi\r\n";
    for (target, field, status) in [
        ("/fifo", "", 404),
        ("/cached/fifo", "", 404),
        ("/cached/fifo", "", 404),
        ("/links/fifo", "", 404),
        ("/packed", "", 404),
        ("/tried", "", 404),
        ("/index/", "", 404),
        ("/random/", "", 403),
        ("/list/", "", 200),
        ("/users", credentials, 500),
        ("/logged?log=log", "", 200),
        ("/kept?log=log", "", 200),
        ("/kept?log=log", "", 200),
        ("/plain", "", 200),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        let response = server.connect().round(request);
        assert_eq!(response.status, status, "{target}");
    }
    let log = server.log("error.log");
    let has_line = |name: &str, text: &str| {
        let path = folder.path().join(name);
        log.contains(&format!("open() \"{}\" failed ({text})", path.display()))
    };
    assert!(has_line("fifo", "not a regular file"), "{log}");
    assert!(has_line("log", "6: No such device or address"), "{log}");
}

#[test]
fn a_log_that_is_a_fifo_is_written_while_it_is_read() {
    let folder = fifos();
    let server = start(&folder);
    let mut options = fs::OpenOptions::new();
    let reader = options.read(true).custom_flags(O_NONBLOCK);
    let mut reader = reader.open(folder.path().join("log")).unwrap();
    assert_eq!(server.get("/logged?log=log").status, 200);
    let mut text = vec![0; 4096];
    let count = wait_for(|| reader.read(&mut text).ok().filter(|count| *count > 0));
    let line = String::from_utf8_lossy(&text[..count.unwrap()]).into_owned();
    assert!(line.contains("GET /logged?log=log"), "{line}");
    // The FIFO is no longer read: it fills up, and requests are still answered.
    let target = format!("/logged?log=log&{}", "x".repeat(3000));
    for _ in 0..64 {
        assert_eq!(server.get(&target).status, 200);
    }
    let path = folder.path().join("log");
    let line = format!(
        "write() to \"{}\" failed (11: Resource temporarily unavailable)",
        path.display()
    );
    server.wait_for_log("error.log", &line);
}

fn check(folder: &Folder, text: &str) -> Output {
    let text = text.replace("FIFOS", &folder.path().display().to_string());
    folder.write("nginx.conf", text).unwrap();
    let configuration = folder.path().join("nginx.conf");
    Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(["-t", "-e", "stderr", "-p"])
        .arg(folder.path())
        .arg("-c")
        .arg(configuration)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_configuration_with_a_fifo_is_refused() {
    let folder = fifos();
    let tls = |directive: &str| {
        format!(
            "events {{ }} http {{ server {{ location / {{ proxy_pass https://127.0.0.1;
             proxy_ssl_verify on; {directive} FIFOS/fifo; }} }} }}"
        )
    };
    for (text, expected) in [
        (
            "include FIFOS/fifo; events { }".to_owned(),
            "(not a regular file)",
        ),
        (tls("proxy_ssl_trusted_certificate"), "timed out"),
        ("pid FIFOS/fifo; events { }".to_owned(), ""),
    ] {
        let output = check(&folder, &text);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(expected), "{text}\n{message}");
        assert!(
            expected.is_empty() || !output.status.success(),
            "{text}\n{message}"
        );
    }
    let log = format!("access_log {}/log;", folder.path().display());
    let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "events {{ }} http {{ {log} server {{ listen 127.0.0.1:%PORT%; }} }}"
        ))
        .try_start();
    let message = started.expect_err("nobody reads the log").to_string();
    assert!(
        message.contains("(6: No such device or address)"),
        "{message}"
    );
    let null = "include /dev/null; events { } http { access_log /dev/null; \
        server { access_log /dev/stdout; error_log /dev/stderr; } }";
    let output = check(&folder, null);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
}
