//! The tarball: the tree of an installation under /usr/local, and its checksum.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Build, files, output};
use crate::workspace::must;
use files::Places;

/// Builds the tarball and the file with its checksum.
pub(super) fn build(build: &Build) -> Result<Vec<PathBuf>, String> {
    let name = format!("turnpike-{}-linux-{}", build.version, build.machine());
    let staging = build.staging("tarball")?;
    let root = staging.join(&name);
    build.write_files(&root, &Places::below("/usr/local".as_ref()))?;
    let tarball = build.out.join(format!("{name}.tar.gz"));
    must(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", build.time_s))
            .arg("-C")
            .arg(&staging)
            .arg("-czf")
            .args([tarball.as_os_str(), name.as_ref()]),
    )?;
    let sum = output(
        Command::new("sha256sum")
            .current_dir(&build.out)
            .arg(tarball.file_name().unwrap_or_default()),
    )?;
    let checksum = build.out.join(format!("{name}.tar.gz.sha256"));
    fs::write(&checksum, format!("{sum}\n"))
        .map_err(|error| format!("{}: {error}", checksum.display()))?;
    Ok(vec![tarball, checksum])
}
