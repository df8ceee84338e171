//! The README's commands, typed in a fresh Debian 12, with the time that they take.
//!
//! The commands are read from the README, so that it cannot say something else than was tried.
//! Downloads are made beforehand, where there is a network: Debian's packages, the sources of
//! crates, and Rust, which is this machine's instead of one that rustup has just fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Outcome;
use crate::package::tree::{Mounted, bootstrap, fresh, inside_with, remove};
use crate::setup;
use crate::workspace::{self, must, output};

/// The sections whose commands are run.
const SECTIONS: [&str; 2] = ["## Two commands", "## Quick start"];

/// What the README asks for, apart from Rust, and curl, which it uses.
const NEEDED: &str = "git make gcc libc6-dev curl";

/// The most space that a build may take, in megabytes.
const TARGET_MB_MAX: u32 = 1_600;

/// What the commands must print: the beginning of a command, and a part of its output.
const PRINTED: &[(&str, &str)] = &[
    ("curl -s http://127.0.0.1:8080/status", "requests "),
    ("target/release/turnpike status", ", running"),
    (
        "target/release/turnpike -p site -c site.conf -t",
        "test is successful",
    ),
    ("curl -i http://127.0.0.1:8081/old", "301 Moved Permanently"),
    ("curl -i http://127.0.0.1:8081/", "It works."),
    ("target/release/turnpike load -c 100 -d 5 --latency", "99%"),
    (
        "target/release/turnpike load -c 100 -d 5 --connreqs",
        "Requests/sec:",
    ),
];

/// What the commands need around them.
const PRELUDE: &str = r#"
set -eu
export HOME=/root
rust=/opt/rust/bin
say() { echo "readme-test: $*"; }
fail() {
    say "$*"
    tail -n 30 /test/output /test/run || true
    exit 1
}
# Runs until the page answers, and says what that took. CPU time is that of ended children.
make_run() {
    if test -n "${make:-}"; then return; fi
    if make run >/test/run 2>&1; then fail "make run needs no Rust"; fi
    grep -q 'install Rust 1[.][0-9]* or later with rustup' /test/run || fail "no word about rustup"
    PATH=$rust:$PATH
    began=$(date +%s)
    make run >/test/run 2>&1 &
    make=$!
    until curl -s -o /dev/null http://127.0.0.1:8080/; do
        kill -0 $make 2>/dev/null || fail "make run has ended"
        sleep 0.2
    done
    took=$(($(date +%s) - began))
    curl -s http://127.0.0.1:8080/ | grep -q '<h1>Turnpike is running</h1>' || fail "another page"
    ticks=$(awk '{ print $16 + $17 }' /proc/$make/stat)
    cpu=$((ticks / $(getconf CLK_TCK)))
    space=$(du -s --block-size=1M target | cut -f 1)
    say "make run: the first page after $((took / 60)) min $((took % 60)) s," \
        "$((cpu / 60)) min $((cpu % 60)) s of CPU time, $space MB in target/"
    test "$space" -le SPACE || fail "more than SPACE MB"
}
printed() { grep -q -F -- "$1" /test/output || fail "it does not print \"$1\""; }
cd /srv
"#;

/// Follows the README in a fresh Debian; as root, since it changes its root folder.
pub(crate) fn test(_: &[String]) -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: readme-test needs root (CAP_SYS_ADMIN)");
        return Ok(());
    }
    let readme = workspace::root().join("README.md");
    let readme =
        fs::read_to_string(&readme).map_err(|error| format!("{}: {error}", readme.display()))?;
    let steps = steps(&commands(&readme))?;
    let folder = workspace::target().join("package-test");
    let base = folder.join("base");
    let tree = folder.join("readme");
    bootstrap(&base)?;
    fresh(&base, &tree)?;
    fetch(&tree)?;
    let rust = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let rust = Mounted {
        from: Path::new(&rust),
        to: "opt/rust",
    };
    inside_with(&tree, &[rust], &steps)?;
    remove(&tree)
}

/// Fetches what the steps, which have no network, would download.
fn fetch(tree: &Path) -> Outcome {
    let install = "apt-get install --yes --quiet=2 --no-install-recommends";
    let packages = setup::packages("build").join(" ");
    let script = format!(
        "apt-get --quiet=2 update && {install} {NEEDED} && {install} --download-only {packages}"
    );
    must(
        Command::new("chroot")
            .arg(tree)
            .args(["sh", "-c", &script])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    must(workspace::cargo().args(["fetch", "--locked", "--quiet"]))?;
    let home = tree.join("root/.cargo/registry");
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let registry = cargo_home()?.join("registry");
    must(
        Command::new("cp")
            .arg("-a")
            .args(["index", "cache"].map(|part| registry.join(part)))
            .arg(home),
    )?;
    must(
        Command::new("git")
            .args(["clone", "--quiet", "--bare"])
            .arg(workspace::root())
            .arg(tree.join("test/turnpike.git")),
    )
}

/// The folder in which cargo keeps what it has downloaded.
fn cargo_home() -> Result<PathBuf, String> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").ok_or("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}

/// The commands of the sections, each with the lines that belong to it.
fn commands(readme: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut wanted = false;
    for line in readme.lines() {
        if line.starts_with("## ") {
            wanted = SECTIONS.contains(&line);
        }
        let Some(code) = line.strip_prefix("    ").filter(|_| wanted) else {
            continue;
        };
        match (code.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push(command.to_owned()),
            (None, Some(command)) => {
                command.push('\n');
                command.push_str(code);
            }
            (None, None) => {}
        }
    }
    commands
}

/// The script that runs the commands.
///
/// # Errors
/// A command of `PRINTED` is in none of the sections.
fn steps(commands: &[String]) -> Result<String, String> {
    let missing = PRINTED
        .iter()
        .find(|(command, _)| !commands.iter().any(|other| other.starts_with(command)));
    if let Some((command, _)) = missing {
        return Err(format!("README.md does not have the command \"{command}\""));
    }
    let mut script = PRELUDE.replace("SPACE", &TARGET_MB_MAX.to_string());
    for command in commands {
        let first = command.lines().next().unwrap_or_default();
        // The suites are chores of their own.
        if first.starts_with("make test") {
            continue;
        }
        script.push_str(&format!("say {}\n", quoted(first)));
        if first.starts_with("make run") {
            script.push_str("make_run\n");
            continue;
        }
        let command = command.replace("ADDRESS", "/test/turnpike.git");
        script.push_str(&format!(
            "{{\n{command}\n}} >/test/output 2>&1 || fail \"it fails\"\n"
        ));
        let printed = PRINTED.iter().find(|(other, _)| first.starts_with(other));
        if let Some((_, part)) = printed {
            script.push_str(&format!("printed {}\n", quoted(part)));
        }
    }
    Ok(script)
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
