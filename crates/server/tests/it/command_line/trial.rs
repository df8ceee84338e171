//! Tests of what `-t` tries of a start: it fails where the start fails, leaves nothing behind, and
//! takes nothing from a server that runs.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{TURNPIKE, stderr, turnpike};
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
        let expected = format!("nginx: [emerg] {}\n", full(expected));
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

#[test]
fn an_ordinary_user_may_not_have_every_port_and_folder() {
    let folder = Folder::create().unwrap();
    let text = "pid /tmp/p; error_log stderr; events { } http { access_log off; \
        proxy_temp_path /temp; server { listen 127.0.0.1:99; } }";
    folder.write("nginx.conf", text).unwrap();
    let arguments = folder.arguments(&["-t", "-e", "stderr"]);
    let output = match nix::unistd::geteuid().is_root() {
        false => turnpike(&arguments),
        true => Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(TURNPIKE)
            .args(arguments)
            .output()
            .unwrap(),
    };
    let shown = stderr(&output);
    for message in [
        "bind() to 127.0.0.1:99 failed (13: Permission denied)",
        "mkdir() \"/temp\" failed (13: Permission denied)",
    ] {
        assert!(shown.contains(message), "{message}: {shown}");
    }
    assert_eq!(output.status.code(), Some(1));
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
