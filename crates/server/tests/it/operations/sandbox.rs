//! Tests of the sandbox: forbidden actions fail, and serving continues.
//!
//! Every action runs in a process of its own: this test program starts itself, enters the sandbox
//! and tries the one action that its environment names.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use std::io::{Read as _, Write as _};

use crate::support::{configuration, serving_of, start, stderr, turnpike, wait_for};
use turnpike_lane::sys::refused_calls;
use turnpike_server::sandbox;
use turnpike_testkit::{Folder, Signal};

const ACT: &str = "SANDBOX_ACT";
const FOLDER: &str = "SANDBOX_FOLDER";

/// An action, and whether it is permitted.
type Act = (&'static str, fn(&Path) -> io::Result<()>, bool);

const ACTS: &[Act] = &[
    ("execute a program", execute, false),
    (
        "write a file elsewhere",
        |folder| fs::write(folder.join("elsewhere/x"), ""),
        false,
    ),
    (
        "remove a file elsewhere",
        |folder| fs::remove_file(folder.join("kept")),
        false,
    ),
    ("rename the machine", rename_machine, false),
    (
        "change the root",
        |folder| Ok(nix::unistd::chroot(folder)?),
        false,
    ),
    (
        "give a file away",
        |folder| std::os::unix::fs::chown(folder.join("own"), Some(1), Some(1)),
        false,
    ),
    ("trace", |_| Ok(nix::sys::ptrace::traceme()?), false),
    ("leave the network", leave_network, false),
    ("make a file of memory", make_file_of_memory, false),
    #[cfg(target_arch = "x86_64")]
    (
        "call by x32",
        |_| refused_calls::process_number_by_x32().map(|_| ()),
        false,
    ),
    (
        "write a file in its folder",
        |folder| fs::write(folder.join("own/x"), ""),
        true,
    ),
    (
        "read a file elsewhere",
        |folder| fs::read(folder.join("kept")).map(|_| ()),
        true,
    ),
    (
        "start a thread",
        |_| std::thread::Builder::new().spawn(|| ()).map(|_| ()),
        true,
    ),
    (
        "listen",
        |_| TcpListener::bind("127.0.0.1:0").map(|_| ()),
        true,
    ),
];

fn execute(_: &Path) -> io::Result<()> {
    Command::new("/bin/true").status().map(|_| ())
}

/// Sets the name that the machine already has.
fn rename_machine(_: &Path) -> io::Result<()> {
    Ok(nix::unistd::sethostname(nix::unistd::gethostname()?)?)
}

/// An action that no rule forbids by name.
fn make_file_of_memory(_: &Path) -> io::Result<()> {
    let flags = nix::sys::memfd::MFdFlags::empty();
    Ok(nix::sys::memfd::memfd_create("test", flags).map(|_| ())?)
}

fn leave_network(_: &Path) -> io::Result<()> {
    Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?)
}

#[test]
fn inside() {
    let Ok(name) = std::env::var(ACT) else {
        return; // not started by `forbidden_acts_are_refused`
    };
    let folder = std::env::var_os(FOLDER).unwrap();
    let folder = Path::new(&folder);
    sandbox::prepare();
    let missing = sandbox::enter(&[folder.join("own")]);
    let (_, act, _) = ACTS.iter().find(|(known, ..)| *known == name).unwrap();
    match act(folder) {
        Ok(()) => println!("RESULT permitted, missing {missing:?}"),
        Err(error) => println!("RESULT {:?}, missing {missing:?}", error.kind()),
    }
}

#[test]
fn forbidden_acts_are_refused() {
    for (name, _, is_permitted) in ACTS {
        let folder = Folder::create().unwrap();
        for inner in ["own", "elsewhere"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        folder.write("kept", "").unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "operations::sandbox::inside", "--nocapture"])
            .env(ACT, name)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let start = text.find("RESULT ").expect(&text);
        let result = text[start + 7..].lines().next().unwrap();
        let (result, missing) = result.split_once(", missing ").unwrap();
        // If this kernel lacks a part of it, the part is reported.
        if missing != "[]" {
            continue;
        }
        let expected = if *is_permitted {
            "permitted"
        } else {
            "PermissionDenied"
        };
        assert_eq!(result, expected, "{name}");
    }
}

fn status(process: i32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

fn ask(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_serving_process_is_in_it_and_serves() {
    let port = turnpike_testkit::ports::reserve().unwrap();
    let http = format!("http {{ server {{ listen 127.0.0.1:{port}; return 200 ok; }} }}");
    let text = |lanes: u32| format!("sandbox on; worker_processes {lanes}; {http}");
    let mut server = start(&text(1));
    let serving = serving_of(&server)[0];
    assert!(
        server
            .log("error.log")
            .contains("the serving process is in a sandbox"),
        "{}",
        server.log("error.log")
    );
    assert_eq!(status(serving, "NoNewPrivs:"), "1");
    assert_eq!(status(serving, "CapEff:"), "0000000000000000");
    assert_eq!(status(serving, "Seccomp:"), "2");
    assert!(ask(port).ends_with("ok"));
    // Lanes can still be started, and another configuration applied.
    server
        .files()
        .write("nginx.conf", configuration(&text(3)))
        .unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "serving with configuration 2");
    assert_eq!(serving_of(&server), [serving]);
    assert!(ask(port).ends_with("ok"));
    // Without a sandbox, another process is needed.
    let without = configuration(&format!("sandbox off; {http}"));
    server.files().write("nginx.conf", &without).unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log(
        "error.log",
        &format!("worker process {serving} exited with code 0"),
    );
    assert_eq!(status(serving_of(&server)[0], "NoNewPrivs:"), "0");
    assert!(ask(port).ends_with("ok"));
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
}

#[test]
fn it_writes_to_configured_places() {
    let folder = Folder::create().unwrap();
    let name = folder.name();
    let own = |inner: &str| format!("{name}/{inner}");
    // If root runs the tests, the server has another user.
    let mode = fs::Permissions::from_mode;
    fs::set_permissions(folder.path(), mode(0o755)).unwrap();
    for inner in ["log", "stored"] {
        let inner = folder.path().join(inner);
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(inner, mode(0o777)).unwrap();
    }
    let port = turnpike_testkit::ports::reserve().unwrap();
    let server = start(&format!(
        "sandbox on; http {{ server {{ listen 127.0.0.1:{port}; root {name};
        access_log {log}/$request_method.log; client_body_temp_path {body};
        location /upload {{ client_body_in_file_only on; proxy_pass http://127.0.0.1:{port}/; }}
        location /store {{ root {stored}; proxy_store on; proxy_temp_path {temp};
            proxy_pass http://127.0.0.1:{port}/; }}
        location / {{ return 200 ok; }} }} }}",
        log = own("log"),
        body = own("body"),
        stored = own("stored"),
        temp = own("temp"),
    ));
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.ends_with("ok"),
            "{answer}{}",
            server.log("error.log")
        );
        assert!(
            !server.log("error.log").contains("[crit]"),
            "{}",
            server.log("error.log")
        );
    };
    ask("POST /upload HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody");
    ask("GET /store HTTP/1.0\r\n\r\n");
    wait_for("the stored response", || folder.has("stored/store"));
    wait_for("the logs", || {
        folder.has("log/POST.log") && folder.has("log/GET.log")
    });
    let bodies = fs::read_dir(folder.path().join("body")).unwrap();
    assert_eq!(bodies.count(), 1);
    assert!(
        !server.log("error.log").contains("[crit]"),
        "{}",
        server.log("error.log")
    );
}

#[test]
fn a_name_without_a_folder_is_refused() {
    let folder = Folder::create().unwrap();
    for (sandbox, path, is_right) in [
        ("on", "$host.log", false),
        ("required", "/$host/a.log", false),
        ("off", "$host.log", true),
        ("on", "logs/$host.log", true),
    ] {
        let http = format!("sandbox {sandbox}; http {{ server {{ access_log {path}; }} }}");
        folder.write("nginx.conf", configuration(&http)).unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let message = stderr(&output);
        assert_eq!(output.status.success(), is_right, "{message}");
        assert_eq!(
            message.contains("cannot be written in a sandbox"),
            !is_right
        );
    }
}

#[test]
fn it_is_on_off_or_required() {
    let folder = Folder::create().unwrap();
    for (value, is_right) in [
        ("on", true),
        ("off", true),
        ("required", true),
        ("maybe", false),
    ] {
        folder
            .write("nginx.conf", configuration(&format!("sandbox {value};")))
            .unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        assert_eq!(output.status.success(), is_right, "{}", stderr(&output));
    }
}
