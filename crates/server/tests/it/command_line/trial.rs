//! Tests of what `-t` tries of a start: it fails where the start fails, leaves nothing behind, and
//! takes nothing from a server that runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{TURNPIKE, stderr, turnpike};
use turnpike_lane::sys::signal;
use turnpike_testkit::{Folder, Server};

/// A configuration, and what `-t` and the start say of it. `@` is the folder, `PORT` a free port.
const FAILURES: &[(&str, &str)] = &[
    (
        "http { server { listen 192.0.2.7:PORT; } }",
        "bind() to 192.0.2.7:PORT failed (99: Cannot assign requested address)",
    ),
    (
        "http { server { listen [2001:db8::7]:PORT; } }",
        "bind() to [2001:db8::7]:PORT failed (99: Cannot assign requested address)",
    ),
    (
        "http { server { listen 192.0.2.7:PORT reuseport; } }",
        "bind() to 192.0.2.7:PORT failed (99: Cannot assign requested address)",
    ),
    (
        "stream { server { listen 192.0.2.7:PORT; return a; } }",
        "bind() to 192.0.2.7:PORT failed (99: Cannot assign requested address)",
    ),
    (
        "stream { server { listen 192.0.2.7:PORT udp; return a; } }",
        "bind() to 192.0.2.7:PORT failed (99: Cannot assign requested address)",
    ),
    (
        "http { server { listen unix:@/none/s; } }",
        "bind() to unix:@/none/s failed (2: No such file or directory)",
    ),
    (
        "stream { server { listen unix:@/none/s; return a; } }",
        "bind() to unix:@/none/s failed (2: No such file or directory)",
    ),
    (
        "http { proxy_cache_path none/c keys_zone=z:1m; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { fastcgi_cache_path none/c keys_zone=z:1m; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { client_body_temp_path none/c; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { server { location / { proxy_temp_path none/c 1 2; proxy_pass http://[::1]:1; } } }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { fastcgi_temp_path none/c; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { uwsgi_temp_path none/c; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { scgi_temp_path none/c; }",
        "mkdir() \"@/none/c\" failed (2: No such file or directory)",
    ),
    (
        "http { proxy_temp_path plain/c; }",
        "mkdir() \"@/plain/c\" failed (20: Not a directory)",
    ),
    (
        "http { access_log none/a; server { listen 127.0.0.1:PORT; } }",
        "open() \"@/none/a\" failed (2: No such file or directory)",
    ),
    (
        "error_log none/a;",
        "open() \"@/none/a\" failed (2: No such file or directory)",
    ),
    (
        "error_log folder;",
        "open() \"@/folder\" failed (21: Is a directory)",
    ),
];

/// As [`FAILURES`], for directives that stand in the file's first line in place of the pid file.
const PID_FILES: &[(&str, &str)] = &[
    ("pid /;", "open() \"/\" failed (21: Is a directory)"),
    (
        "pid folder;",
        "open() \"@/folder\" failed (21: Is a directory)",
    ),
    (
        "pid none/p;",
        "open() \"@/none/p\" failed (2: No such file or directory)",
    ),
];

fn free_port() -> u16 {
    turnpike_testkit::ports::reserve().unwrap()
}

fn folder() -> Folder {
    let folder = Folder::create().unwrap();
    folder.write("plain", "").unwrap();
    folder.write("error.log", "").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    folder
}

/// Every path below a folder, with what it is and its size.
fn paths(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let shown = format!("{:?} {}", metadata.file_type(), metadata.len());
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, shown);
        }
    }
    found
}

#[test]
fn a_test_fails_where_the_start_fails() {
    let folder = folder();
    let port = free_port().to_string();
    let log = "error_log error.log;";
    let cases = FAILURES
        .iter()
        .map(|case| (format!("pid nginx.pid; {log}"), case))
        .chain(PID_FILES.iter().map(|case| (log.to_owned(), case)));
    for (first, (text, expected)) in cases {
        let text = format!("daemon off; {first} events {{ }} {text}");
        let full = |text: &str| text.replace('@', folder.name()).replace("PORT", &port);
        folder.write("nginx.conf", full(&text)).unwrap();
        let expected = format!("turnpike: [emerg] {}\n", full(expected));
        let before = paths(folder.path());
        let tested = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&tested);
        assert_eq!(tested.status.code(), Some(1), "{text}: {shown}");
        assert!(shown.contains(&expected), "{text}: {shown}");
        assert!(shown.ends_with("test failed\n"), "{shown}");
        folder.write("error.log", "").unwrap();
        assert_eq!(paths(folder.path()), before, "{text}");
        let started = turnpike(&folder.arguments(&[]));
        let shown = stderr(&started);
        assert_eq!(started.status.code(), Some(1), "{text}: {shown}");
        assert!(shown.contains(expected.trim_end()), "{text}: {shown}");
        // What the start made before it failed.
        for made in ["nginx.pid", "a"] {
            let _ = fs::remove_file(folder.path().join(made));
        }
        folder.write("error.log", "").unwrap();
    }
}

/// A configuration whose start makes files, folders and sockets everywhere.
const EVERYWHERE: &str = "worker_processes 2;
    pid run.pid;
    error_log logs/error.log;
    events { }
    http {
        access_log logs/access.log;
        proxy_cache_path cache keys_zone=z:1m;
        proxy_temp_path cache/temp 1 2;
        client_body_temp_path bodies;
        server { listen unix:@/s; listen unix:@/stale; listen 127.0.0.1:PORT; }
        server { listen [::1]:PORT reuseport; listen 127.0.0.1:TAKEN; }
    }
    stream {
        server { listen 127.0.0.1:PORT udp reuseport; return a; }
        server { listen 127.0.0.1:DATAGRAMS udp; return a; }
    }";

#[test]
fn a_test_leaves_nothing_and_removes_nothing() {
    let folder = Folder::create().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Nobody listens there any more.
    drop(UnixListener::bind(folder.path().join("stale")).unwrap());
    let port = |address: std::net::SocketAddr| address.port().to_string();
    let text = EVERYWHERE
        .replace('@', folder.name())
        .replace("PORT", &free_port().to_string())
        .replace("TAKEN", &port(taken.local_addr().unwrap()))
        .replace("DATAGRAMS", &port(datagrams.local_addr().unwrap()));
    folder.write("nginx.conf", text).unwrap();
    for made in [&[][..], &["logs", "cache", "bodies"]] {
        for name in made {
            fs::create_dir(folder.path().join(name)).unwrap();
            folder.write(format!("{name}/file"), "").unwrap();
        }
        let before = paths(folder.path());
        let tested = turnpike(&["-t", "-p", folder.name(), "-c", "nginx.conf"]);
        assert!(tested.status.success(), "{}", stderr(&tested));
        assert_eq!(paths(folder.path()), before);
    }
    assert!(!folder.has("logs/error.log"));
}

/// The binary as an ordinary user runs it.
fn ordinary(arguments: &[&str]) -> Command {
    if !nix::unistd::geteuid().is_root() {
        let mut command = Command::new(TURNPIKE);
        command.args(arguments);
        return command;
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(TURNPIKE)
        .args(arguments);
    command
}

#[test]
fn an_ordinary_user_may_not_have_every_port_and_folder() {
    let folder = Folder::create().unwrap();
    let text = "pid /tmp/p; error_log stderr; events { } http { access_log off; \
        proxy_temp_path /temp; server { listen 127.0.0.1:99; } }";
    folder.write("nginx.conf", text).unwrap();
    let arguments = folder.arguments(&["-t", "-e", "stderr"]);
    let output = ordinary(&arguments).output().unwrap();
    let shown = stderr(&output);
    for message in [
        "bind() to 127.0.0.1:99 failed (13: Permission denied)",
        "mkdir() \"/temp\" failed (13: Permission denied)\n",
        " may not make anything in \"/\", which belongs to \"root\" (mode 0755)\n",
    ] {
        assert!(shown.contains(message), "{message}: {shown}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn folders_that_are_there_must_be_writable() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.path().join("closed")).unwrap();
    let closed = folder.path().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    for (directive, path) in [
        ("client_body_temp_path closed;", "closed"),
        ("proxy_cache_path closed keys_zone=z:1m;", "closed"),
        ("proxy_temp_path closed/below;", "closed/below"),
    ] {
        let text = format!(
            "pid /tmp/p; error_log stderr; events {{ }} http {{ access_log off; {directive} }}"
        );
        folder.write("nginx.conf", text).unwrap();
        let output = ordinary(&folder.arguments(&["-t", "-e", "stderr"]))
            .output()
            .unwrap();
        let shown = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{directive}: {shown}");
        let call = if path == "closed" { "access" } else { "mkdir" };
        let sentence = format!("{call}() \"{}/{path}\" failed (13: ", folder.name());
        assert!(shown.contains(&sentence), "{directive}: {shown}");
        let (right, place) = match call {
            "access" => ("write to", "closed"),
            _ => ("make anything in", "closed"),
        };
        let advice = format!(" may not {right} \"{}/{place}\", which ", folder.name());
        assert!(shown.contains(&advice), "{directive}: {shown}");
    }
}

#[test]
fn the_folder_of_a_state_file_must_be_writable() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("u"), "server 127.0.0.1:1;").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    for block in ["http", "stream"] {
        for (state, error) in [
            ("closed/u", "(13: Permission denied)"),
            ("closed/v", "(13: Permission denied)"),
            ("missing/u", "(2: No such file or directory)"),
        ] {
            let text = format!(
                "pid /tmp/p; error_log stderr; events {{ }} {block} {{ upstream u {{ zone u 64k; \
                 state {state}; }} }}"
            );
            folder.write("nginx.conf", text).unwrap();
            let command = folder.arguments(&["-t", "-e", "stderr"]);
            let output = ordinary(&command).output().unwrap();
            let shown = stderr(&output);
            let sentence = format!(
                "[emerg] open() \"{}/{state}\" failed {error}",
                folder.name()
            );
            assert!(shown.contains(&sentence), "{block} {state}: {shown}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 1, "nothing is left");
}

/// Without `-p`, as a build in a checkout is tried with the file of a server that is installed.
#[test]
fn temporary_folders_that_are_not_named_can_be_written() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let port = free_port();
    let text = format!(
        "daemon off; pid {0}/nginx.pid; error_log {0}/error.log; events {{ }} http {{
            access_log off;
            server {{
                listen 127.0.0.1:{port};
                client_body_in_file_only on;
                location / {{ proxy_pass http://127.0.0.1:{port}/kept; }}
                location /kept {{ return 200 kept; }}
            }}
        }}",
        folder.name()
    );
    folder.write("nginx.conf", text).unwrap();
    let file = format!("{}/nginx.conf", folder.name());
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let surroundings = |mut command: Command| {
        command
            .env("HOME", &home)
            .env_remove("XDG_CACHE_HOME")
            .current_dir("/");
        command
    };
    let tested = surroundings(ordinary(&["-t", "-e", "stderr", "-c", &file])).output();
    let tested = tested.unwrap();
    assert!(tested.status.success(), "{}", stderr(&tested));
    assert!(!home.join(".cache").exists());
    let mut server = surroundings(ordinary(&["-e", "stderr", "-c", &file]))
        .spawn()
        .unwrap();
    crate::support::wait_for("the start", || folder.has("nginx.pid"));
    let answer = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("{head}body").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    let kept = fs::read_dir(home.join(".cache/turnpike/client_body_temp"));
    let pid = i32::try_from(server.id()).unwrap();
    signal::send(pid, nix::libc::SIGTERM).unwrap();
    server.wait().unwrap();
    let answer = answer.unwrap();
    assert!(answer.ends_with("kept"), "{answer}");
    assert_eq!(kept.unwrap().count(), 1);
}

const BUSY: &str = "worker_processes 2;
    error_log %FOLDER%/error.log;
    events { }
    http {
        access_log off;
        server { listen 127.0.0.1:%PORT% reuseport; return 200 answer; }
    }
    stream {
        server { listen 127.0.0.1:%PORT_UDP% udp reuseport; return answer; }
    }";

/// Runs `-t` so many times while clients ask over TCP and UDP: each has to be answered.
fn test_under_load(tests: usize) {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(BUSY)
        .start();
    let udp = ("127.0.0.1", server.port_named("UDP"));
    let is_over = AtomicBool::new(false);
    let (requests, datagrams) = thread::scope(|scope| {
        let by_tcp = scope.spawn(|| {
            let mut requests = 0;
            while !is_over.load(Ordering::Relaxed) {
                let got = server.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                assert!(got.ends_with(b"answer"), "{got:?}");
                requests += 1;
            }
            requests
        });
        let by_udp = scope.spawn(|| {
            let mut datagrams = 0;
            while !is_over.load(Ordering::Relaxed) {
                // Another port each time, so that the kernel chooses anew.
                let client = UdpSocket::bind("127.0.0.1:0").unwrap();
                client
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
                client.connect(udp).unwrap();
                client.send(b"ask").unwrap();
                let mut answer = [0; 16];
                let length = client.recv(&mut answer).expect("an answer");
                assert_eq!(&answer[..length], b"answer");
                datagrams += 1;
            }
            datagrams
        });
        for _ in 0..tests {
            let folder = server.files();
            let tested = turnpike(&["-tq", "-p", folder.name(), "-c", "turnpike.conf"]);
            assert!(tested.status.success(), "{}", stderr(&tested));
        }
        is_over.store(true, Ordering::Relaxed);
        (by_tcp.join().unwrap(), by_udp.join().unwrap())
    });
    println!("{requests} requests and {datagrams} datagrams during {tests} tests");
    assert!(requests > 0 && datagrams > 0);
}

#[test]
fn tests_take_nothing_from_a_server_that_runs() {
    test_under_load(20);
}

#[test]
#[ignore = "about a minute: in make test-long"]
fn a_thousand_tests_take_nothing_from_a_server_that_runs() {
    test_under_load(1000);
}
