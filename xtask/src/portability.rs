//! The workspace with the oldest Rust that it states, and the crates that do no input and output
//! where there is no system, and under Miri. A toolchain, target or tool that is missing is named,
//! and what needs it is skipped: none is installed.

use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must, output, text};

/// The crates that `xtask/src/tidy/sans_io.rs` holds sans-IO.
const SANS_IO: [&str; 4] = ["-p", "turnpike-wire", "-p", "turnpike-conf"];

/// A target without an operating system.
const BARE_TARGET: &str = "wasm32-unknown-unknown";

/// Builds and tests what the installed toolchains can.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    let Ok(toolchains) = rustup(&["toolchain", "list"]) else {
        return skip("everything", "rustup");
    };
    oldest_rust(&toolchains)?;
    bare_target()?;
    miri()
}

/// Checks the workspace with the version of `rust-version`.
fn oldest_rust(toolchains: &str) -> Outcome {
    let metadata = workspace::metadata(&["--no-deps", "--locked"])?;
    let packages = workspace::elements(&metadata, "packages");
    let stated = packages
        .first()
        .map_or("", |first| text(first, "rust_version"));
    if is_version(&output(Command::new("rustc").arg("--version"))?, stated) {
        println!(
            "portability: Rust {stated} is the oldest, and what everything else here is built with"
        );
        return Ok(());
    }
    let Some(toolchain) = toolchain_of(toolchains, stated) else {
        return skip("the oldest Rust", &format!("toolchain {stated}"));
    };
    println!("portability: the workspace with Rust {stated}");
    let mut command = cargo(toolchain);
    must(command.args(["check", "--workspace", "--locked", "--quiet"]))
}

/// Builds the crates for a target that has no files, sockets, threads or clocks.
fn bare_target() -> Outcome {
    let targets = rustup(&["target", "list", "--installed"])?;
    if !targets.lines().any(|target| target == BARE_TARGET) {
        return skip("crates without a system", &format!("target {BARE_TARGET}"));
    }
    println!("portability: crates without input and output for {BARE_TARGET}");
    let mut command = workspace::cargo();
    command.args(["build", "--locked", "--quiet", "--target", BARE_TARGET]);
    must(command.args(SANS_IO))
}

/// Runs the tests of the configuration's language, and those of HTTP/1's messages, under Miri. The
/// others take hours there, or call C code as an oracle.
fn miri() -> Outcome {
    let mut version = cargo("nightly");
    if output(version.args(["miri", "--version"])).is_err() {
        return skip("undefined behaviour", "Miri (of the nightly toolchain)");
    }
    println!("portability: crates without input and output under Miri");
    for tests in [&["turnpike-conf"][..], &["turnpike-wire", "h1::"]] {
        let mut command = cargo("nightly");
        must(
            command
                .args(["miri", "test", "--locked", "--lib", "-p"])
                .args(tests),
        )?;
    }
    Ok(())
}

/// Whether `rustc --version` printed this version.
fn is_version(printed: &str, version: &str) -> bool {
    let release = printed.split(' ').nth(1).unwrap_or_default();
    let rest = release.strip_prefix(version);
    !version.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The toolchain of a version among those that rustup lists, one a line.
fn toolchain_of<'a>(toolchains: &'a str, version: &str) -> Option<&'a str> {
    let names = toolchains.lines().filter_map(|line| line.split(' ').next());
    let mut names = names;
    names.find(|name| {
        let rest = name.strip_prefix(version).unwrap_or_default();
        !version.is_empty() && (rest.starts_with('-') || rest.starts_with(".0-"))
    })
}

fn cargo(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root());
    command.args(["run", toolchain, "cargo"]);
    command
}

fn rustup(arguments: &[&str]) -> Result<String, String> {
    output(Command::new("rustup").args(arguments))
}

fn skip(check: &str, missing: &str) -> Outcome {
    println!("portability: skipped: {check} needs {missing}, which is not installed");
    Ok(())
}

#[cfg(test)]
mod tests;
