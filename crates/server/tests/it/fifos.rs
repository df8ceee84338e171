//! Tests of FIFOs in place of files: opening one waits for the other side, possibly without end,
//! and no lane may wait for it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use turnpike_testkit::{Folder, Server, wait_for};

use crate::support::memory::anonymous_bytes;

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

/// WebDAV over the folder. A client is who it says to be.
const CHANGES: &str = "
worker_processes 1;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    dav_ext_lock_zone zone=locks:64k timeout=1h;
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Client;
    server {
        listen 127.0.0.1:%PORT%;
        root FIFOS;
        client_body_temp_path %FOLDER%/bodies;
        dav_methods PUT DELETE MKCOL COPY MOVE;
        dav_ext_methods PROPFIND LOCK UNLOCK;
        dav_ext_lock zone=locks;
    }
}";

/// Requests for what is no file, and the status of each.
const NO_FILES: &[(&str, &str, u16)] = &[
    ("COPY /fifo", "Destination: /copy\r\n", 403),
    ("MOVE /fifo", "Destination: /copy\r\n", 403),
    ("COPY /only/", "Destination: /copies/\r\n", 201),
    ("DELETE /copies/", "", 204),
    // What stands there is replaced, and not opened.
    ("COPY /plain", "Destination: /log\r\n", 204),
    ("PROPFIND /fifo", "Depth: 0\r\n", 207),
    ("PUT /fifo", "Content-Length: 0\r\nIf-Match: \"x\"\r\n", 412),
];

fn start_changes(folder: &Folder) -> Server {
    let path = folder.path();
    for (path, mode) in [(path.to_path_buf(), 0o777), (path.join("plain"), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let text = CHANGES.replace("FIFOS", &path.display().to_string());
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start()
}

/// The request of a client.
fn request_of(client: &str, line: &str, fields: &str, body: &str) -> String {
    let length = match body.len() {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    format!("{line} HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\n{fields}{length}\r\n{body}")
}

#[test]
fn fifos_hold_no_thread_that_changes_files() {
    let folder = fifos();
    let server = start_changes(&folder);
    // More than there are threads.
    for _ in 0..20 {
        let mut peer = server.connect();
        for (line, fields, status) in NO_FILES {
            let found = peer.round(request_of("10.0.0.1", line, fields, ""));
            assert_eq!(found.status, *status, "{line} {fields}");
        }
    }
    assert_eq!(folder.read("log"), "content");
    server.wait_for_log("error.log", "fifo\" is not a regular file");
}

/// A lock that a client asks for.
const LOCK: &str = "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockinfo>";

/// How long the long run goes on, unless `TURNPIKE_TEST_SECONDS` says otherwise.
const SECONDS: u64 = 180;
/// How long nginx is asked: nothing changes after its first FIFO.
const NGINX_SECONDS: u64 = 20;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes above what a server held before that may stay when all have gone.
const LEFT_BYTES_MAX: u64 = 10 << 20;

/// The status of the answer, if there is one in time.
fn status_of(port: u16, request: &str) -> Option<u16> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.write_all(request.as_bytes()).ok()?;
    let mut head = [0; 12];
    socket.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}

/// What an innocent client asks for all the while, and what it must get.
const INNOCENT: &[(&str, &str, &str, &[u16])] = &[
    ("PUT /mine", "", "text", &[201, 204]),
    ("GET /mine", "", "", &[200]),
    ("COPY /mine", "Destination: /mine-too\r\n", "", &[204, 201]),
];

/// What became of the innocent client's requests, and of the memory.
#[derive(Debug)]
struct Siege {
    answered: u32,
    failed: u32,
    left_bytes: u64,
}

/// Lets many clients copy FIFOs and fill the zone of locks, and one other client ask all the while.
fn besiege(server: &Server, seconds: u64) -> Siege {
    const ATTACKERS: usize = 32;
    let (port, process) = (server.port(), u64::from(server.serving_pids()[0]));
    let rest_bytes = anonymous_bytes(process);
    let end = Instant::now() + Duration::from_secs(seconds);
    let is_over = || Instant::now() >= end;
    let (mut answered, mut failed) = (0, 0);
    thread::scope(|scope| {
        for attacker in 0..ATTACKERS {
            scope.spawn(move || {
                let mut number = 0;
                while !is_over() {
                    for (line, fields, _) in NO_FILES {
                        status_of(port, &request_of("10.0.0.1", line, fields, ""));
                    }
                    number += 1;
                    let line = format!("LOCK /lock-{attacker}-{number}");
                    status_of(port, &request_of("10.0.0.1", &line, "", LOCK));
                }
            });
        }
        while !is_over() {
            for (line, fields, body, expected) in INNOCENT {
                let status = status_of(port, &request_of("10.0.0.2", line, fields, body));
                if status.is_some_and(|status| expected.contains(&status)) {
                    answered += 1;
                } else {
                    failed += 1;
                }
            }
        }
    });
    let left_bytes = || anonymous_bytes(process).saturating_sub(rest_bytes);
    wait_for(|| (left_bytes() <= LEFT_BYTES_MAX).then_some(()));
    Siege {
        answered,
        failed,
        left_bytes: left_bytes(),
    }
}

#[test]
#[ignore = "three minutes: in make test-long"]
fn clients_that_copy_fifos_and_fill_the_locks_disturb_nobody_beside_nginx() {
    let seconds = std::env::var("TURNPIKE_TEST_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let folder = fifos();
    let server = start_changes(&folder);
    let own = besiege(&server, seconds);
    println!("Turnpike, {seconds} s: {own:?}");
    // It has neither PROPFIND nor locks.
    let folder = fifos();
    let text = CHANGES.replace("FIFOS", &folder.path().display().to_string());
    let lines = text.lines().filter(|line| !line.contains("dav_ext"));
    let text = lines.collect::<Vec<_>>().join("\n");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let nginx = Server::builder("/usr/sbin/nginx")
        .configuration(&text)
        .start();
    println!(
        "nginx, {NGINX_SECONDS} s: {:?}",
        besiege(&nginx, NGINX_SECONDS)
    );
    assert!(own.answered > 0 && own.failed == 0, "{own:?}");
    assert!(own.left_bytes <= LEFT_BYTES_MAX, "{own:?}");
    // The innocent client has its share of the locks.
    let lock = request_of("10.0.0.2", "LOCK /own", "", LOCK);
    assert_eq!(status_of(server.port(), &lock), Some(201));
    server.wait_for_log(
        "error.log",
        "the client holds its share of the zone of locks",
    );
    server.wait_for_log("error.log", "fifo\" is not a regular file");
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
