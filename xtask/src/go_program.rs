//! Programs in Go that judge our server. Each has a folder below `xtask` that pins the versions and
//! checksums of it and of all that it needs; it is built into the workspace's target folder.

use std::path::PathBuf;
use std::process::Command;

use turnpike_testkit::process::find_program;

use crate::workspace::{self, must};

/// Builds the program of a package where that was not done; returns it. `source` is the folder
/// below `xtask`.
///
/// # Errors
/// Go is not installed, or it cannot build the program.
pub(crate) fn build(source: &str, package: &str) -> Result<PathBuf, String> {
    let program = program(source, package);
    if program.exists() {
        Ok(program)
    } else {
        rebuild(source, package)
    }
}

fn program(source: &str, package: &str) -> PathBuf {
    let name = package.rsplit('/').next().unwrap_or(package);
    workspace::target().join(source).join(name)
}

/// Builds the tests of a package as a program, where that was not done; returns it.
///
/// # Errors
/// Those of `build`.
pub(crate) fn build_test(source: &str, package: &str) -> Result<PathBuf, String> {
    let program = program(source, package).with_extension("test");
    if !program.exists() {
        let mut go = go(source)?;
        must(go.args(["test", "-c", "-o"]).arg(&program).arg(package))?;
    }
    Ok(program)
}

/// The folder of the modules that a program is made of.
pub(crate) fn modules(source: &str) -> PathBuf {
    workspace::target().join(source).join("modules")
}

/// Fetches all that a program needs, as its checksums say.
///
/// # Errors
/// Go is not installed, or a module cannot be had.
pub(crate) fn download(source: &str) -> Result<(), String> {
    must(go(source)?.args(["mod", "download"]))
}

/// Builds a program whose source is in this workspace, and so may have changed; returns it.
///
/// # Errors
/// Those of `build`.
pub(crate) fn rebuild(source: &str, package: &str) -> Result<PathBuf, String> {
    let program = program(source, package);
    must(go(source)?.args(["build", "-o"]).arg(&program).arg(package))?;
    Ok(program)
}

/// Go, in the folder of a program's source.
fn go(source: &str) -> Result<Command, String> {
    if find_program("go").is_none() {
        return Err(format!(
            "{source} needs Go to be built; please run: cargo xtask setup test"
        ));
    }
    let folder = workspace::target().join(source);
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join("xtask").join(source))
        .env("GOFLAGS", "-mod=readonly -modcacherw")
        .env("GOCACHE", folder.join("cache"))
        .env("GOMODCACHE", modules(source));
    Ok(go)
}
