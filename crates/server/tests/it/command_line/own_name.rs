//! Tests of the product name: the server's own, or nginx's if it is called so.

use std::path::Path;
use std::process::Command;

use nix::libc::SIGKILL;
use turnpike_lane::sys::signal;
use turnpike_testkit::{Folder, Server, Signal, wait_for};

use crate::support::{TURNPIKE, stderr};

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log notice;
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:%PORT%;
            location / { return 200 ok; }
            location /off { server_tokens off; return 403; }
            location /build { server_tokens build; return 200 ok; }
            location /number { return 200 $nginx_version; }
        }
    }";

/// Whether it uses its own name; directives of the main context; `Server` of `/`, `/off` and
/// `/build`.
const CASES: &[(bool, &str, [&str; 3])] = &[
    (
        true,
        "",
        [
            "turnpike/0.1.0",
            "turnpike",
            "turnpike/0.1.0 (nginx/1.31.6)",
        ],
    ),
    (
        true,
        "compatibility nginx;",
        ["nginx/1.31.6", "nginx", "nginx/1.31.6 (turnpike/0.1.0)"],
    ),
    (
        false,
        "",
        ["nginx/1.31.6", "nginx", "nginx/1.31.6 (turnpike/0.1.0)"],
    ),
    (
        false,
        "compatibility turnpike;",
        [
            "turnpike/0.1.0",
            "turnpike",
            "turnpike/0.1.0 (nginx/1.31.6)",
        ],
    ),
];

#[test]
fn server_fields_pages_and_the_log_carry_the_name() {
    for (own_name, main, [on, off, build]) in CASES {
        let builder = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&format!("{main} {CONFIGURATION}"));
        let server = match own_name {
            true => builder.own_name().start(),
            false => builder.start(),
        };
        for (path, name) in [("/", on), ("/off", off), ("/build", build)] {
            assert_eq!(
                server.get(path).header("Server"),
                Some(*name),
                "{main} {path}"
            );
        }
        let page = server.get("/off").text();
        // Under nginx's name the page is nginx's to the byte.
        let own_style = *off == "turnpike";
        let expected = if own_style {
            format!("<h1>403 Forbidden</h1>\n<p>{off}</p>\n</main></body>\n</html>\n")
        } else {
            format!("<hr><center>{off}</center>")
        };
        assert!(page.contains(&expected), "{page}");
        let charset = if own_style { "; charset=utf-8" } else { "" };
        let kind = format!("text/html{charset}");
        assert_eq!(server.get("/off").header("Content-Type"), Some(&*kind));
        assert_eq!(page.contains("prefers-color-scheme: dark"), own_style);
        assert_eq!(server.get("/number").text(), "1.31.6");
        server.wait_for_log("error.log", &format!(": {build}\n"));
    }
}

/// What begins a file without an `events` section, whether the program has its own name, and
/// whether the file loads.
const WITHOUT_EVENTS: &[(&str, bool, bool)] = &[
    ("http { server { listen unix:s; } }", true, true),
    (
        "stream { server { listen unix:s; proxy_pass unix:t; } }",
        true,
        true,
    ),
    (
        "compatibility nginx; http { server { listen unix:s; } }",
        true,
        false,
    ),
    ("http { server { listen unix:s; } }", false, false),
    (
        "compatibility turnpike; http { server { listen unix:s; } }",
        false,
        true,
    ),
    // What was cut off or emptied serves nothing.
    ("", true, false),
    ("worker_processes 2;", true, false),
];

#[test]
fn a_file_without_events_loads_under_the_own_name() {
    let folder = Folder::create().unwrap();
    let nginx = folder.path().join("nginx");
    std::os::unix::fs::symlink(TURNPIKE, &nginx).unwrap();
    for (text, own_name, loads) in WITHOUT_EVENTS {
        folder.write("nginx.conf", text).unwrap();
        let program = if *own_name {
            Path::new(TURNPIKE)
        } else {
            &nginx
        };
        let output = Command::new(program)
            .args(folder.arguments(&["-t"]))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let shown = stderr(&output);
        let message = "[emerg] no \"events\" section in configuration\n";
        assert_eq!(shown.contains(message), !loads, "{text:?}: {shown}");
        assert_eq!(output.status.success(), *loads, "{text:?}: {shown}");
    }
}

#[test]
fn reports_of_the_lab_name_the_server_by_its_own_name() {
    let programs = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/programs/programs.toml"
    ));
    let rows = programs
        .lines()
        .filter_map(|row| row.strip_prefix("version = [\"{turnpike}\""));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows, [", \"-v\"]"]);
    // The first line is the version in the report.
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .arg("-v")
        .output()
        .expect("the binary runs");
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let expected = concat!("turnpike version: turnpike/", env!("CARGO_PKG_VERSION"));
    assert_eq!(shown.lines().next(), Some(expected), "{shown}");
}

/// Tools find nginx by these: pgrep, `start-stop-daemon --name`, monit, and people with `ps`.
#[test]
fn processes_carry_the_name_that_the_program_is_called() {
    for (own_name, names, titles) in [
        (
            true,
            ["turnpike-master", "turnpike-serve"],
            ["turnpike: master process ", "turnpike: serving process"],
        ),
        (
            false,
            ["nginx", "nginx"],
            ["nginx: master process ", "nginx: worker process"],
        ),
    ] {
        let builder = Server::builder(env!("CARGO_BIN_EXE_turnpike")).configuration(CONFIGURATION);
        let server = if own_name {
            builder.own_name().start()
        } else {
            builder.start()
        };
        let processes = [server.pid(), server.serving_pids()[0]];
        for ((process, name), title) in processes.into_iter().zip(names).zip(titles) {
            let read = |file: &str| {
                std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default()
            };
            assert_eq!(read("comm"), format!("{name}\n"));
            assert!(read("cmdline").starts_with(title), "{}", read("cmdline"));
        }
    }
}

/// Whether the program has its own name, text that uses a variable, and what the test says.
const SUBSTITUTED: &[(bool, &str, &str)] = &[
    (
        true,
        "env_subst T_ROOT; http { server { root ${T_ROOT}; } }",
        "test is successful",
    ),
    (
        true,
        "env_subst T_ROOT; http { server { listen ${T_ROOT}; } }",
        "host not found in \"${T_ROOT}\" of the \"listen\" directive",
    ),
    (
        true,
        "env_subst T_ROOT; http { client_body_temp_path ${T_ROOT}/none/a; }",
        "mkdir() \"${T_ROOT}/none/a\" failed",
    ),
    (
        true,
        "env_subst T_ROOT; http { server { listen 127.0.0.1:8080; server_name ${T_ROOT},; } }",
        "\"${T_ROOT},\"",
    ),
    (
        true,
        "env_subst T_NONE; http { }",
        "environment variable \"T_NONE\" is not set",
    ),
    (
        true,
        "env_subst HOST; http { }",
        "\"HOST\" is also a variable: give the environment variable another name",
    ),
    (
        true,
        "env_subst HTTP_PROXY; http { }",
        "\"HTTP_PROXY\" is also a variable: give the environment variable another name",
    ),
    (
        false,
        "env_subst T_ROOT; events { } http { }",
        "unknown directive \"env_subst\"",
    ),
];

#[test]
fn environment_variables_stand_for_parts_of_words_and_are_not_shown() {
    let folder = Folder::create().unwrap();
    let nginx = folder.path().join("nginx");
    std::os::unix::fs::symlink(TURNPIKE, &nginx).unwrap();
    for (own_name, text, expected) in SUBSTITUTED {
        folder.write("nginx.conf", text).unwrap();
        let program = match own_name {
            true => Path::new(TURNPIKE),
            false => &nginx,
        };
        let output = Command::new(program)
            .args(folder.arguments(&["-T"]))
            .env("T_ROOT", "/a secret")
            .env("HOST", "h")
            .env("HTTP_PROXY", "p")
            .output()
            .unwrap();
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains(expected), "{text}: {shown}");
        assert!(!shown.contains("secret"), "{text}: {shown}");
    }
}

const FROM_ENVIRONMENT: &str = "
    error_log %FOLDER%/error.log notice;
    env_subst T_WORD;
    events { }
    http {
        access_log off;
        server { listen 127.0.0.1:%PORT%; location / { return 200 \"first ${T_WORD}\"; } }
    }";

#[test]
fn values_of_environment_variables_outlive_reloads_and_crashes() {
    let word = "a; } server { \"b";
    let mut server = Server::builder(TURNPIKE)
        .configuration(FROM_ENVIRONMENT)
        .own_name()
        .environment("T_WORD", word)
        .start();
    assert_eq!(server.get("/").text(), format!("first {word}"));
    server.write_configuration(&FROM_ENVIRONMENT.replace("first", "second"));
    server.signal(Signal::SIGHUP);
    // A process that ends before it has said so takes the new configuration with it.
    server.wait_for_log("error.log", "serving with configuration 2");
    let second = format!("second {word}");
    assert_eq!(server.get("/").text(), second);
    let serving = server.serving_pids()[0];
    signal::send(serving as i32, SIGKILL).unwrap();
    let replaced = wait_for(|| {
        let processes = server.serving_pids();
        (!processes.is_empty() && !processes.contains(&serving)).then_some(())
    });
    assert!(replaced.is_some());
    assert_eq!(server.get("/").text(), second);
    assert!(!server.log("error.log").contains(word));
}
