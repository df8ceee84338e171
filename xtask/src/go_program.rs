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
    let folder = workspace::target().join(source);
    let name = package.rsplit('/').next().unwrap_or(package);
    let program = folder.join(name);
    if program.exists() {
        return Ok(program);
    }
    if find_program("go").is_none() {
        return Err(format!(
            "{name} needs Go to be built; please run: cargo xtask setup test"
        ));
    }
    must(
        Command::new("go")
            .current_dir(workspace::root().join("xtask").join(source))
            .env("GOFLAGS", "-mod=readonly -modcacherw")
            .env("GOCACHE", folder.join("cache"))
            .env("GOMODCACHE", folder.join("modules"))
            .args(["build", "-o"])
            .arg(&program)
            .arg(package),
    )?;
    Ok(program)
}
