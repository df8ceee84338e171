//! The workspace and its packages; the chores' only use of cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the workspace's root manifest.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The one folder for everything that is built, `CARGO_TARGET_DIR` respected.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The cargo that runs this chore, to be started in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds the programs of the folder `debug`, with cargo's choice of features for the tests of the
/// whole workspace. A build of fewer packages has other features, and compiles most dependencies
/// once more.
///
/// # Errors
/// They do not build.
pub(crate) fn build_for_debugging() -> Result<(), String> {
    build_programs(&["turnpike", "turnpike-view", "turnpike-tools"])
}

/// Builds these programs of the folder `debug`, as [`build_for_debugging`].
///
/// # Errors
/// They do not build.
pub(crate) fn build_programs(names: &[&str]) -> Result<(), String> {
    must(
        cargo()
            .args(["build", "--workspace", "--locked", "--quiet"])
            .args(names.iter().flat_map(|name| ["--bin", name]))
            // Any test, this one is small: with one, cargo counts what only tests need.
            .args(["--test", "namespace"]),
    )
}

/// `cargo metadata`, read.
///
/// # Errors
/// Cargo does not run, fails, or prints something that is not JSON.
pub(crate) fn metadata(options: &[&str]) -> Result<Value, String> {
    let output = cargo()
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .output()
        .map_err(|error| format!("cargo metadata does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The elements of an array at `key`; none if there is no array.
pub(crate) fn elements<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The text at `key`; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Every file of the workspace that git knows or would take (new, not ignored), sorted.
///
/// # Errors
/// Git does not run, or this is no checkout.
pub(crate) fn files() -> Result<Vec<PathBuf>, String> {
    let listed = git(&[
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])?;
    let mut files: Vec<PathBuf> = listed
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// What git says of the checkout.
///
/// # Errors
/// Git does not run, or its own error.
pub(crate) fn git(arguments: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    // A checkout may belong to another user than the current one, as in a container.
    git.current_dir(root()).args(["-c", "safe.directory=*"]);
    output(git.args(arguments))
}

/// Runs a command to its end with our own output.
///
/// # Errors
/// It does not start or does not end well; the message names it.
pub(crate) fn must(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("{name} does not start: {error}")),
    }
}

/// The output of a command, without the line end.
///
/// # Errors
/// It does not start or does not end well; the message has its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {}", text.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
