//! Tests of `turnpike serve`, `proxy`, `php` and `password`: what somebody types who has never seen
//! a configuration. curl and Debian's nginx judge.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use turnpike_testkit::{Folder, ports, process};

use crate::support::{TURNPIKE, output_of, stderr, wait_for};

/// A server of the command line, which ends with the test.
struct Simple {
    child: Child,
    folder: Folder,
}

impl Simple {
    /// Starts one in a folder with a page, and waits for its first line.
    fn start(words: &str) -> Simple {
        let folder = Folder::create().unwrap();
        // The serving process of root is another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder.write("site/index.html", "It works.").unwrap();
        folder.write("site/.secret", "no").unwrap();
        folder.write("site/.well-known/a", "yes").unwrap();
        folder.write("site/list/b.txt", "b").unwrap();
        let output = fs::File::create(folder.path().join("output")).unwrap();
        let child = command(folder.path(), words)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut server = Simple { child, folder };
        wait_for("the first line", || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{words}: {}", server.output());
            server.output().contains("(Ctrl+C stops)")
        });
        server
    }

    fn output(&self) -> String {
        self.folder.read("output")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state/turnpike")
    }
}

impl Drop for Simple {
    fn drop(&mut self) {
        process::signal(self.child.id(), turnpike_testkit::Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// The program with words that are split at spaces.
fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(TURNPIKE);
    command
        .args(words.split(' '))
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn curl(words: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error"])
        .args(words)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn status(url: &str) -> String {
    curl(&["--output", "/dev/null", "--write-out", "%{http_code}", url])
}

#[test]
fn a_folder_is_served_with_one_line() {
    let port = ports::reserve().unwrap();
    let server = Simple::start(&format!("serve site --listen {port}"));
    let url = format!("http://127.0.0.1:{port}");
    let page = curl(&["--include", &format!("{url}/")]);
    for part in [
        "HTTP/1.1 200 OK",
        "Content-Type: text/html; charset=utf-8",
        "X-Content-Type-Options: nosniff",
        "It works.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (path, expected) in [
        ("/.secret", "404"),
        ("/.well-known/a", "200"),
        ("/list/", "403"),
        ("/list/b.txt", "200"),
        ("/none", "404"),
    ] {
        assert_eq!(status(&format!("{url}{path}")), expected, "{path}");
    }
    let line = format!("turnpike: serving {}", server.folder.name());
    let shown = server.output();
    assert!(shown.contains(&line), "{shown}");
    assert!(
        shown.contains("\"GET /list/b.txt HTTP/1.1\" 200 1 "),
        "{shown}"
    );
}

#[test]
fn localhost_has_a_certificate_of_its_own_and_lists_on_demand() {
    let port = ports::reserve().unwrap();
    let server = Simple::start(&format!(
        "serve site --list --https localhost --listen {port}"
    ));
    let certificate = server.state().join("localhost.pem");
    let to = format!("localhost:{port}:127.0.0.1");
    let trusted = ["--cacert", certificate.to_str().unwrap(), "--resolve", &to];
    let url = format!("https://localhost:{port}");
    let page = curl(&[&trusted[..], &["--http2", &format!("{url}/")]].concat());
    assert_eq!(page, "It works.");
    let list = curl(&[&trusted[..], &[&format!("{url}/list/")]].concat());
    assert!(list.contains("b.txt"), "{list}");
    let mode = |name: &str| {
        let path = server.state().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("localhost.key"), 0o600);
    // It is used again.
    let before = fs::read(&certificate).unwrap();
    let other = ports::reserve().unwrap();
    let words = format!("serve site --https localhost --listen {other}");
    let child = command(server.folder.path(), &words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the second server", || {
        status(&format!("http://127.0.0.1:{other}/")) == "400"
    });
    process::signal(child.id(), turnpike_testkit::Signal::SIGTERM);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(fs::read(&certificate).unwrap(), before);
}

#[test]
fn an_application_is_reached_with_another_line() {
    let origin = turnpike_testkit::Server::builder(TURNPIKE)
        .configuration(
            "events { } http { server { listen 127.0.0.1:%PORT%; location / {
                return 200 '$http_host $http_x_forwarded_for $http_x_forwarded_proto \
                $http_upgrade/$http_connection'; } } }",
        )
        .start();
    let port = ports::reserve().unwrap();
    let server = Simple::start(&format!("proxy {port} {}", origin.port()));
    let url = format!("http://127.0.0.1:{port}/");
    let answer = curl(&["--header", "X-Forwarded-For: 1.2.3.4", &url]);
    assert_eq!(answer, format!("127.0.0.1:{port} 127.0.0.1 http /"));
    let upgrade = [
        "--header",
        "Upgrade: websocket",
        "--header",
        "Connection: Upgrade",
    ];
    let answer = curl(&[&upgrade[..], &[&url]].concat());
    assert_eq!(
        answer,
        format!("127.0.0.1:{port} 127.0.0.1 http websocket/upgrade")
    );
    let shown = server.output();
    assert!(
        shown.contains("turnpike: passing requests on to"),
        "{shown}"
    );
}

#[test]
fn what_is_printed_is_a_configuration() {
    for words in [
        "serve site --print",
        "serve site --https localhost --print",
        "proxy 8080 3000 --print",
        "php --fpm 127.0.0.1:9000 site --print",
    ] {
        let folder = Folder::create().unwrap();
        folder.write("site/index.html", "").unwrap();
        let output = command(folder.path(), words).output().unwrap();
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        let mut text = String::from_utf8(output.stdout).unwrap();
        // Packages have these beside it.
        for (name, file) in [
            ("mime.types", "conf/mime.types"),
            ("fastcgi.conf", "contrib/etc/fastcgi.conf"),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../..")
                .join(file);
            folder.write(name, fs::read(path).unwrap()).unwrap();
        }
        if text.contains("localhost.pem") {
            let kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
            crate::support::tls::certificate(folder.path(), "own", "localhost", &kind);
            let state = format!("{}/state/turnpike/localhost", folder.name());
            text = text.replace(&state, "own");
        }
        folder.write("nginx.conf", &text).unwrap();
        folder.write("logs/empty", "").unwrap();
        let tested = crate::support::turnpike(&folder.arguments(&["-t"]));
        assert!(
            tested.status.success(),
            "{words}: {text}{}",
            stderr(&tested)
        );
        assert!(!folder.path().join("state").exists(), "{words}");
    }
}

#[test]
fn a_password_makes_a_line_that_nginx_reads() {
    let folder = Folder::create().unwrap();
    let mut asking = command(folder.path(), "password alice");
    let output = output_of(&mut asking, "open sesame\n");
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(
        line.starts_with("alice:$6$") && line.ends_with('\n'),
        "{line}"
    );
    let text = "events { } http { access_log off; client_body_temp_path %FOLDER%/b;
        proxy_temp_path %FOLDER%/p; fastcgi_temp_path %FOLDER%/f; uwsgi_temp_path %FOLDER%/u;
        scgi_temp_path %FOLDER%/s; server { listen 127.0.0.1:%PORT%; auth_basic a;
        auth_basic_user_file %FOLDER%/users; location / { return 200 in; } } }";
    for program in [TURNPIKE, "nginx"] {
        let server = turnpike_testkit::Server::builder(program)
            .configuration(&text.replace("return 200 in;", "try_files /users =404;"))
            .file("users", &line)
            .start();
        let url = format!("http://127.0.0.1:{}/", server.port());
        for (user, expected) in [("alice:open sesame", true), ("alice:other", false)] {
            let refused = curl(&["--user", user, "--include", &url]).contains(" 401 ");
            assert_eq!(!refused, expected, "{program} {user}");
        }
    }
    // It is never taken from the command line.
    let refused = command(folder.path(), "password alice secret")
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

#[test]
fn words_of_other_programs_get_the_right_words() {
    let cases = [
        ("--version", "turnpike version: turnpike/"),
        ("version", "turnpike version: turnpike/"),
        ("start", "turnpike -c FILE starts a server"),
        ("run", "turnpike -c FILE starts a server"),
        ("restart", "turnpike reload"),
        ("test", "turnpike -t -c FILE"),
        ("validate", "turnpike -t -c FILE"),
        (
            "--config x",
            "there is no option \"--config\": write -c FILE",
        ),
        ("--port=80", "write turnpike serve --listen PORT"),
        ("serve --lsit", "did you mean \"--list\"?"),
    ];
    let folder = Folder::create().unwrap();
    for (words, expected) in cases {
        let output = command(folder.path(), words).output().unwrap();
        let shown = [&output.stdout[..], &output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains(expected), "{words}: {shown}");
        assert_eq!(
            output.status.success(),
            expected.contains("version"),
            "{words}"
        );
    }
}

/// Runs the program to its end with a text on standard input.
fn with_input(folder: &Folder, arguments: &[&str], text: &str) -> Output {
    let mut command = Command::new(TURNPIKE);
    command
        .args(["-p", folder.name(), "-c", "-", "-e", "error.log"])
        .args(arguments);
    output_of(&mut command, text)
}

#[test]
fn a_configuration_from_standard_input_is_kept_by_the_master() {
    let folder = Folder::create().unwrap();
    let port = ports::reserve().unwrap();
    let text = format!(
        "pid nginx.pid; error_log error.log notice; http {{ access_log off;
        server {{ listen 127.0.0.1:{port}; return 200 one; }} }}"
    );
    let tested = with_input(&folder, &["-t"], &text);
    assert!(
        stderr(&tested).contains("/- test is successful"),
        "{tested:?}"
    );
    let wrong = with_input(&folder, &["-t"], "http {\nlsiten 1;\n}");
    assert!(stderr(&wrong).contains("/-:2\n"), "{}", stderr(&wrong));
    let started = with_input(&folder, &[], &text);
    assert!(started.status.success(), "{}", stderr(&started));
    let url = format!("http://127.0.0.1:{port}/");
    let master = || {
        folder
            .read("nginx.pid")
            .trim()
            .parse::<u32>()
            .unwrap_or_default()
    };
    wait_for("the pid file", || master() > 0);
    let answers = || curl(&["--retry", "9", "--retry-connrefused", &url]) == "one";
    assert!(answers());
    // Another serving process gets the text again.
    let first = process::children(master());
    process::signal(first[0], turnpike_testkit::Signal::SIGKILL);
    wait_for("another serving process", || {
        let children = process::children(master());
        !children.is_empty() && children != first
    });
    assert!(answers());
    process::signal(master(), turnpike_testkit::Signal::SIGHUP);
    let said = "there is no file to read again: the configuration came from standard input";
    wait_for("the refusal", || folder.read("error.log").contains(said));
    // So does another binary.
    let old = master();
    process::signal(old, turnpike_testkit::Signal::SIGUSR2);
    wait_for("the other master", || master() != old && master() > 0);
    process::signal(old, turnpike_testkit::Signal::SIGQUIT);
    wait_for("the end of the old master", || {
        !folder.has("nginx.pid.oldbin")
    });
    assert!(answers());
    process::signal(master(), turnpike_testkit::Signal::SIGTERM);
    wait_for("the end", || !folder.has("nginx.pid"));
}
