//! A stranger's tour of the README in a fresh clone: its commands, one after the other, as they
//! stand there but for ports and the length of runs.

use crate::support;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
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

/// Sections with their longest text, in lines. The tables of benchmarks have a page of their own.
const SHORT: &[(&str, usize)] = &[("## Beside nginx", 80), ("## Quick start", 50)];

/// A reader sees at once what is claimed: one chart, five figures without their spread, the crash
/// beside its figures, two pictures of the server at work, and other servers beside it.
#[test]
fn the_readme_shows_one_chart_five_figures_a_crash_and_two_pictures() {
    let readme = page("README.md");
    for (section, lines) in SHORT {
        let (_, text) = readme.split_once(section).unwrap();
        let text = text.split("\n## ").next().unwrap();
        assert!(text.lines().count() <= *lines, "{section}");
    }
    let images: Vec<&str> = readme
        .split("](docs/images/")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert_eq!(images, ["cpu-per-request.svg", "top.png", "status.png"]);
    let (_, beside) = readme.split_once("\n## Beside nginx\n").unwrap();
    let (figures, rest) = beside.split_once("\n\nThe figures are ").unwrap();
    let rows = figures.lines().filter(|line| line.starts_with("| "));
    assert_eq!(rows.count(), 1 + 5, "{figures}");
    assert!(!figures.contains(".."), "a spread: {figures}");
    let (crash, rest) = rest.split_once("\n| |").unwrap();
    for part in [
        "kill -9",
        "turnpike reload",
        "turnpike upgrade",
        "requests in",
    ] {
        assert!(crash.contains(part), "{part}: {crash}");
    }
    let others = rest.lines().next().unwrap();
    assert_eq!(others, " Turnpike | nginx | Caddy | HAProxy | Varnish |");
}

/// A clone of this repository as the README makes it, with the program where a build puts it. The
/// commands are those of the file that may not be committed yet.
struct Clone(Folder);

impl Clone {
    fn new() -> Clone {
        let folder = Folder::create().unwrap();
        let script = commands(&page("README.md"), "\n## Two commands\n");
        let script: Vec<&str> = script.lines().collect();
        let [clone, enter, run, test] = script[..] else {
            panic!("{script:?}");
        };
        let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let address = format!("--quiet --shared '{}'", root.display());
        let clone = clone.replace("ADDRESS", &address);
        // What make would do is printed, since doing it takes an hour.
        let [run, test] = [run, test].map(|line| line.replace("make ", "make --dry-run "));
        let programs = "mkdir -p target/release && ln -s \"$TURNPIKE\" target/release/turnpike";
        // The repository may belong to another user than the one of the test.
        folder
            .write("gitconfig", "[safe]\ndirectory = *\n")
            .unwrap();
        let own = Clone(folder);
        own.run_in(
            own.0.path(),
            &[&clone, enter, &run, &test, programs].join("\n"),
        );
        own
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("turnpike")
    }

    /// Runs commands in the clone; returns what they print.
    fn run(&self, script: &str) -> (String, String) {
        self.run_in(&self.path(), script)
    }

    fn run_in(&self, folder: &Path, script: &str) -> (String, String) {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(folder)
            .env("TURNPIKE", env!("CARGO_BIN_EXE_turnpike"))
            .env("GIT_CONFIG_GLOBAL", self.0.path().join("gitconfig"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            // What was started is not to stay.
            let _ = Command::new(env!("CARGO_BIN_EXE_turnpike"))
                .args(["-c", "site.conf", "-s", "stop", "-p"])
                .arg(folder.join("site"))
                .output();
        }
        assert!(output.status.success(), "{script}\n{text}\n{errors}");
        (text, errors)
    }
}

#[test]
fn every_file_that_the_readme_names_is_in_a_clone() {
    let clone = Clone::new();
    let readme = page("README.md");
    let links = readme.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split([')', '#']).next());
    let mut count = 0;
    for link in links.filter(|link| !link.contains("://")) {
        count += 1;
        assert!(clone.path().join(link).exists(), "{link}");
    }
    assert!(count > 20, "{count}");
    let chores = clone.run("make help").0;
    let words = readme.split("`make ").skip(1);
    for chore in words.filter_map(|rest| rest.split('`').next()) {
        assert!(chores.contains(&format!("make {chore} ")), "make {chore}");
    }
}

#[test]
fn the_lab_command_of_the_readme_works() {
    let clone = Clone::new();
    let script = commands(&page("README.md"), "\n## The lab\n");
    let (command, comment) = script.split_once('#').unwrap();
    assert!(comment.contains("report.html"), "{comment}");
    // One case of fourteen, and a moment of it.
    let short =
        "--only turnpike --only reuseport --only 'full speed' --repetitions 1 --seconds 0.2";
    let (text, errors) = clone.run(&format!("{} {short}", command.trim_end()));
    // What an ordinary user may not set is said, and the run goes on.
    let is_left_out = |line: &str| {
        line.starts_with("turnpike lab: no network namespace: ")
            || line.starts_with("turnpike lab: not set: ")
    };
    assert!(errors.lines().all(is_left_out), "{errors}");
    assert!(
        text.contains("1 case, 1 repetition of 0.2 s (1 run)"),
        "{text}"
    );
    let report = clone.path().join(text.lines().last().unwrap());
    assert!(report.ends_with("report.html"), "{text}");
    let report = fs::read_to_string(report).unwrap();
    let version = concat!("turnpike/", env!("CARGO_PKG_VERSION"));
    assert!(
        report.contains("Environment") && report.contains(version),
        "{report}"
    );
}

#[test]
fn the_tuners_climb_of_the_readme_works() {
    let clone = Clone::new();
    let script = commands(&page("README.md"), "\n## The tuner\n");
    let climb = script.lines().nth(1).unwrap();
    let Some(climb) = climb.strip_prefix("sudo ") else {
        panic!("{climb}");
    };
    // A climb takes six minutes: one that was recorded is decided again.
    let (words, options) = climb.split_once(" --").unwrap();
    let record = "tools/tune/climbs/two-cpus-busy.json";
    let (shown, _) = clone.run(&format!("{words} --replay {record}"));
    assert!(shown.contains("3 of 9 steps kept"), "{shown}");
    let (help, _) = clone.run(&format!("{words} --{options} --help"));
    assert!(help.contains("--server <PROGRAM>"), "{help}");
}

/// A configuration for each thing that does not work yet, with the word that the README has.
const REFUSED: &[(&str, &str)] = &[
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
    let script = commands(&page("README.md"), "\n## Quick start\n");
    // The first three start the server with `make run` and ask it.
    let (before, script) = script.split_once("mkdir").unwrap();
    assert_eq!(before.lines().count(), 3, "{before}");
    // The port is asked for late: a clone takes seconds, in which others may be given it.
    let clone = Clone::new();
    let port = turnpike_testkit::ports::reserve().unwrap().to_string();
    let script = format!("mkdir{script}")
        .replace("8081", &port)
        .replace("-d 5", "-d 1")
        .replace("-c 100", "-c 4");
    // The first connection may come before the server listens.
    let script = script.replace("curl -i", "curl -isS --retry 9 --retry-connrefused");
    let (text, errors) = clone.run(&script);
    assert!(errors.contains("test is successful"), "{errors}");
    for part in [
        "It works.",
        "HTTP/1.1 301 ",
        "Latency Distribution",
        "requests in",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let pid = clone.path().join("site/logs/nginx.pid");
    support::wait_for("the end of the server", || !pid.exists());
}
