//! Tests of passwords under slow schemes: access, and that a check delays no other request.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use turnpike_testkit::{Peer, Server, check, wait_for};

const CONFIGURATION: &str = "
worker_processes 1;
events { }
http {
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        location /open/ { alias %FOLDER%/html/; }
        location /password/ {
            auth_basic 'the site';
            auth_basic_user_file users;
            alias %FOLDER%/html/;
        }
        location /nobody/ {
            auth_basic 'the site';
            auth_basic_user_file /dev/null;
            alias %FOLDER%/html/;
        }
        location /any/ {
            satisfy any;
            deny all;
            auth_basic site;
            auth_basic_user_file users;
            alias %FOLDER%/html/;
        }
    }
}";

/// Users whose password is "secret", except the first, whose check takes days. Passwords from other
/// projects' tools are added in the tests.
const USERS: &str = "\
heavy:$2b$31$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2
yescrypt:$y$j9T$abcdefghijklmnop$3dL1LkYnZM.OVXuVdnnaKVDlLYT92dRwOzDZ5XiVCe.
locked:!$y$j9T$abcdefghijklmnop$3dL1LkYnZM.OVXuVdnnaKVDlLYT92dRwOzDZ5XiVCe.
never:*
failed:*0
unknown:$99$salt$hash
";

/// The checks that wait in addition to the two that run.
const QUEUED: usize = 128;

fn server(users: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/a", "content")
        .file("users", users)
        .start()
}

fn request(target: &str, user: &str, password: &str) -> String {
    let credentials = base64(format!("{user}:{password}").as_bytes());
    format!("GET {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {credentials}\r\n\r\n")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit =
        |group: u32, place: u32| char::from(DIGITS[(group >> (18 - 6 * place)) as usize & 63]);
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        text.extend((0..=chunk.len() as u32).map(|place| digit(group, place)));
        text.extend((chunk.len()..3).map(|_| '='));
    }
    text
}

/// The output of a program, without its line end.
fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits until a password is being checked.
fn wait_for_a_check(server: &Server) {
    let serving = server.serving_pids()[0];
    let found = wait_for(|| {
        let tasks = fs::read_dir(format!("/proc/{serving}/task")).unwrap();
        let mut names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
        names
            .any(|name| name.is_ok_and(|name| name.trim() == "passwords"))
            .then_some(())
    });
    assert!(found.is_some(), "no thread checks passwords");
}

fn has_answer(peer: &Peer) -> bool {
    peer.stream().set_nonblocking(true).unwrap();
    let peeked = peer.stream().peek(&mut [0]);
    peer.stream().set_nonblocking(false).unwrap();
    !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn the_right_password_opens_under_every_tool_s_scheme() {
    let mut users = USERS.to_owned();
    for (user, option) in [
        ("bcrypt", "-nbB"),
        ("apr1", "-nbm"),
        ("sha", "-nbs"),
        ("des", "-nbd"),
    ] {
        users += &format!("{}\n", output("htpasswd", &[option, user, "secret"]));
    }
    for (user, option) in [("sha512", "-6"), ("sha256", "-5"), ("md5", "-1")] {
        users += &format!(
            "{user}:{}\n",
            output("openssl", &["passwd", option, "secret"])
        );
    }
    let server = server(&users);
    let right = [
        "yescrypt", "bcrypt", "apr1", "sha", "des", "sha512", "sha256", "md5",
    ];
    let cases = right.map(|user| {
        [
            (user, "secret", 200),
            (user, "wrong", 401),
            (user, "secret", 200),
        ]
    });
    let refused = [
        ("locked", "secret", 401),
        ("never", "*", 401),
        ("failed", "*0", 401),
        ("failed", "*1", 401),
        ("nobody", "secret", 401),
        ("unknown", "secret", 500),
    ];
    for target in ["/password/a", "/any/a"] {
        for (user, password, status) in cases.iter().flatten().chain(&refused) {
            let response = server.connect().round(request(target, user, password));
            assert_eq!(response.status, *status, "{target} {user} {password}");
            let is_asked = response.header("WWW-Authenticate").is_some();
            assert_eq!(is_asked, *status == 401, "{target} {user} {password}");
        }
    }
    assert!(
        server
            .log("error.log")
            .contains("user \"bcrypt\": password mismatch")
    );
    assert!(
        server
            .log("error.log")
            .contains("scheme of the stored password is not supported")
    );
}

#[test]
fn a_heavy_check_delays_no_other_request() {
    let server = server(USERS);
    let mut heavy = server.connect();
    heavy.send(request("/password/a", "heavy", "secret"));
    wait_for_a_check(&server);
    let table = [
        (
            "a file",
            "GET /open/a HTTP/1.1\nHost: a\n\n",
            "HTTP/1.1 200 OK\n*\n\ncontent",
        ),
        (
            "no password",
            "GET /password/a HTTP/1.1\nHost: a\n\n",
            "HTTP/1.1 401 Unauthorized\n*",
        ),
    ];
    check(&server, &table);
    let other = server
        .connect()
        .round(request("/password/a", "yescrypt", "secret"));
    assert_eq!(other.status, 200, "there is a second thread");
    assert!(!has_answer(&heavy), "the check is not done");
}

#[test]
fn a_check_beyond_the_queue_is_refused_and_logged() {
    let server = server(USERS);
    let known = request("/password/a", "yescrypt", "secret");
    assert_eq!(server.connect().round(&known).status, 200);
    let heavy = |_| {
        let mut peer = server.connect();
        peer.send(request("/password/a", "heavy", "secret"));
        peer
    };
    let mut peers: Vec<Peer> = (0..2 + QUEUED + 1).map(heavy).collect();
    let refused = wait_for(|| peers.iter().position(has_answer));
    let response = peers.remove(refused.expect("one too many")).response();
    assert_eq!(response.status, 503);
    assert!(!peers.iter().any(has_answer), "all others wait");
    server.wait_for_log(
        "error.log",
        "user \"heavy\": the password was not checked: 128 other checks are already waiting",
    );
    assert_eq!(
        server.connect().round(&known).status,
        200,
        "it is remembered"
    );
    let unknown = request("/password/a", "yescrypt", "wrong");
    assert_eq!(server.connect().round(&unknown).status, 503);
    assert_eq!(server.get("/open/a").status, 200);
}

#[test]
fn another_stored_password_counts_at_once() {
    let server = server(USERS);
    let status = |password: &str| {
        let request = request("/password/a", "yescrypt", password);
        server.connect().round(request).status
    };
    assert_eq!((status("secret"), status("other")), (200, 401));
    let stored = output("openssl", &["passwd", "-6", "other"]);
    server.write("users", format!("yescrypt:{stored}\n"));
    assert_eq!((status("secret"), status("other")), (401, 200));
    server.write("users", "# nobody\n");
    assert_eq!((status("secret"), status("other")), (401, 401));
}

#[test]
fn a_user_file_that_is_too_large_lets_nobody_in() {
    // The last line that would fit is one with half a password.
    for (size_bytes, status) in [(16 << 20, 401), ((16 << 20) + 1, 500)] {
        let server = server("");
        let end = "\nuser:{PLAIN}secret";
        let users = fs::File::create(server.folder().join("users")).unwrap();
        let place = size_bytes - end.len() as u64;
        users.write_all_at(end.as_bytes(), place).unwrap();
        for password in ["", "secre"] {
            let mut peer = server.connect();
            let got = peer.round(request("/password/a", "user", password));
            assert_eq!(got.status, status, "{size_bytes} {password}");
        }
        if status == 500 {
            server.wait_for_log("error.log", "\" is larger than 16777216 bytes");
        }
    }
}

#[test]
fn the_null_device_has_no_users() {
    let server = server("");
    for _ in 0..3 {
        let got = server
            .connect()
            .round(request("/nobody/a", "user", "secret"));
        assert_eq!(got.status, 401);
        assert_eq!(
            got.header("WWW-Authenticate"),
            Some("Basic realm=\"the site\"")
        );
    }
    server.wait_for_log("error.log", "user \"user\" was not found in \"/dev/null\"");
}
