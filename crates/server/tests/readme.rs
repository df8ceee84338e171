//! A stranger's tour of the README: the commands of its quick start, one after the other, as they
//! stand there but for the program's place, the port and the length of runs.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use turnpike_testkit::Folder;

/// The lines of a section that begin with `$`, with what follows them: whole commands.
fn commands(page: &str, section: &str) -> String {
    let (_, text) = page.split_once(section).unwrap();
    let text = text.split("\n## ").next().unwrap();
    let mut script = String::new();
    let mut is_document = false;
    for line in text.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            continue;
        };
        match line.strip_prefix("$ ") {
            Some(command) => {
                is_document = command.ends_with("<<END");
                script += command;
            }
            // The rest of a document.
            None if is_document => script += line,
            None => continue,
        }
        script.push('\n');
    }
    script
}

fn page(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_readme_states_what_a_build_needs() {
    let readme = page("README.md");
    let needs = readme.split("\n## Two commands").nth(1).unwrap();
    let version = env!("CARGO_PKG_RUST_VERSION");
    for part in [&format!("Rust {version} or later"), "minutes", "GB of disk"] {
        assert!(needs.contains(part), "{part}");
    }
}

/// A configuration for each thing that does not work yet, with the word that the README has.
const REFUSED: &[(&str, &str)] = &[
    ("HTTP/3", "http { server { listen 127.0.0.1:1 quic; } }"),
    ("`image_filter`", "http { server { image_filter size; } }"),
    (
        "`xslt_stylesheet`",
        "http { server { location / { xslt_stylesheet a; } } }",
    ),
    ("mail proxying", "mail { }"),
];

#[test]
fn what_does_not_work_is_in_the_readme_and_refused_by_name() {
    let readme = page("README.md");
    let (_, list) = readme.split_once("**What does not work yet:** ").unwrap();
    let list = list.split(".\n").next().unwrap();
    for (word, _) in REFUSED {
        assert!(list.contains(word), "{word}: {list}");
    }
    assert_eq!(list.split(',').count(), REFUSED.len() - 1, "{list}");
    let folder = Folder::create().unwrap();
    for (word, text) in REFUSED {
        folder
            .write("nginx.conf", &(support::configuration("") + text))
            .unwrap();
        let output = support::turnpike(&folder.arguments(&["-t"]));
        let shown = support::stderr(&output);
        assert!(shown.contains(" is not supported yet"), "{word}: {shown}");
    }
}

/// What a command may need in its place here: the built-in configuration on a free port instead of
/// `make run`, and the server that it starts named to the others.
fn first_commands(script: &str, port: u16) -> String {
    let turnpike = format!("{} -p . -c first.conf", env!("CARGO_BIN_EXE_turnpike"));
    script
        .replace("make run", &turnpike)
        .replace("curl -s ", "curl -sS --retry 9 --retry-connrefused ")
        .replace("8080", &port.to_string())
        .replace("target/release/turnpike", &turnpike)
}

#[test]
fn the_first_commands_of_the_readme_work() {
    let port = turnpike_testkit::ports::reserve().unwrap();
    let script = commands(&page("README.md"), "\n## Quick start\n");
    let (script, _) = script.split_once("mkdir").unwrap();
    assert_eq!(script.lines().count(), 3, "{script}");
    let folder = Folder::create().unwrap();
    let built_in = page("crates/server/src/embedded/default.conf");
    let text = built_in
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"))
        .replace("daemon off;", "daemon on; pid first.pid;")
        .replace("error_log stderr", "error_log error.log");
    folder.write("first.conf", text).unwrap();
    let script = first_commands(script, port);
    let run = |script: &str| {
        let mut bash = Command::new("bash");
        let bash = bash.args(["-euo", "pipefail", "-c", script]);
        bash.current_dir(folder.path()).output().unwrap()
    };
    let output = run(&script);
    let stopped = run(&first_commands("target/release/turnpike -s quit", port));
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{text}\n{errors}");
    assert!(stopped.status.success(), "{stopped:?}");
    for part in ["turnpike", "generation"] {
        assert!(text.to_lowercase().contains(part), "{part}: {text}");
    }
    let pid = folder.path().join("first.pid");
    support::wait_for("the end of the server", || !pid.exists());
}

#[test]
fn the_tuners_check_of_the_readme_works() {
    let script = commands(&page("README.md"), "\n## The tuner\n");
    let check = script.lines().next().unwrap();
    let words: Vec<&str> = check.split(' ').collect();
    let [
        "target/release/turnpike",
        words @ ..,
        "/etc/nginx/nginx.conf",
    ] = &words[..]
    else {
        panic!("{check}");
    };
    let folder = Folder::create().unwrap();
    folder
        .write("nginx.conf", support::configuration("http { server { } }"))
        .unwrap();
    let file = folder.path().join("nginx.conf");
    let output = support::turnpike(&[words, &[file.to_str().unwrap()]].concat());
    // The status is that of the worst finding: none, a warning or a problem.
    let status = output.status.code().unwrap();
    assert!([0, 3, 4].contains(&status), "{output:?}");
    assert!(output.stdout.len() > 200, "{output:?}");
}

#[test]
fn the_quick_start_of_the_readme_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = fs::canonicalize(root).unwrap();
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let script = commands(&page, "\n## Quick start\n");
    // The first three start the server with `make run` and ask it.
    let (before, script) = script.split_once("mkdir").unwrap();
    assert_eq!(before.lines().count(), 3, "{before}");
    let port = turnpike_testkit::ports::reserve().unwrap().to_string();
    let script = format!("mkdir{script}")
        .replace("target/release/turnpike", env!("CARGO_BIN_EXE_turnpike"))
        .replace("$PWD/conf", &format!("{}/conf", root.display()))
        .replace("8081", &port)
        .replace("-d 5", "-d 1")
        .replace("-c 100", "-c 4")
        .replace("events {}", "daemon on; events {}");
    let folder = Folder::create().unwrap();
    // The first connection may come before the server listens.
    let script = script.replace("curl -i", "curl -isS --retry 9 --retry-connrefused");
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let site = folder.path().join("site");
    if !output.status.success() {
        // What was started is not to stay.
        let _ = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(["-c", "site.conf", "-s", "stop", "-p"])
            .arg(&site)
            .output();
    }
    assert!(output.status.success(), "{script}\n{text}\n{errors}");
    assert!(errors.contains("test is successful"), "{errors}");
    for part in [
        "It works.",
        "HTTP/1.1 301 ",
        "Latency Distribution",
        "requests in",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let pid = site.join("logs/nginx.pid");
    support::wait_for("the end of the server", || !pid.exists());
}
