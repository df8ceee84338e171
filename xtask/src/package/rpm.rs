//! The RPM package: the tree and the scripts of the Debian package, written down as a spec.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{self, Places};
use super::{Build, output};
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Where Debian 12 and RPM distributions look for the units of packages.
pub(super) const UNITS: (&str, &str) = ("lib/systemd/system", "usr/lib/systemd/system");

/// Builds the package with rpmbuild.
pub(super) fn build(build: &Build) -> Result<PathBuf, String> {
    let tree = build.staging("rpm-tree")?;
    let settings = build.write_files(&tree, &Places::below(Path::new("/usr")))?;
    move_units(&tree)?;
    let spec = build.out.join("turnpike.spec");
    let text = spec_text(build, &tree, &settings)?;
    fs::write(&spec, text).map_err(|error| format!("{}: {error}", spec.display()))?;
    let top = build.staging("rpm")?;
    must(
        Command::new("rpmbuild")
            .args(["-bb", "--quiet", "--define"])
            .arg(format!("_topdir {}", top.display()))
            .arg("--target")
            .arg(build.machine())
            .arg(&spec)
            .env("SOURCE_DATE_EPOCH", &build.time_s),
    )?;
    let name = format!(
        "turnpike-{}-{}.{}.rpm",
        build.version,
        build.revision,
        build.machine()
    );
    let made = top.join("RPMS").join(build.machine()).join(&name);
    let package = build.out.join(name);
    fs::rename(&made, &package).map_err(|error| format!("{}: {error}", made.display()))?;
    Ok(package)
}

/// The files in the package, without the leading slash.
pub(super) fn contents(package: &Path) -> Result<Vec<PathBuf>, String> {
    let list = output(
        Command::new("rpm")
            .args(["--query", "--list", "--package"])
            .arg(package),
    )?;
    let paths = list.lines().map(|line| line.trim_start_matches('/'));
    Ok(paths.map(PathBuf::from).collect())
}

fn move_units(tree: &Path) -> Outcome {
    let (from, to) = UNITS;
    let (from, to) = (tree.join(from), tree.join(to));
    let moved = || {
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::rename(&from, &to)?;
        fs::remove_dir_all(tree.join("lib"))
    };
    moved().map_err(|error: std::io::Error| format!("{}: {error}", from.display()))
}

fn spec_text(build: &Build, tree: &Path, settings: &[PathBuf]) -> Result<String, String> {
    let root = workspace::root();
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let mut text = read("contrib/rpm/turnpike.spec")?;
    for (name, script) in [
        ("@POSTINST@", "postinst"),
        ("@PRERM@", "prerm"),
        ("@POSTRM@", "postrm"),
    ] {
        // In a spec a percent sign begins a macro.
        let script = read(&format!("contrib/debian/{script}"))?.replace('%', "%%");
        text = text.replace(name, script.trim_start_matches("#!/bin/sh\n").trim_end());
    }
    let mut files = Vec::new();
    files::collect(tree, tree, &mut files)?;
    files.sort();
    let line = |path: &PathBuf| {
        let path = Path::new("/").join(path);
        let kind = match () {
            () if settings.contains(&path) => "%config(noreplace) ",
            () if path.ends_with("LICENSE") => "%license ",
            () if path.starts_with("/usr/share/doc") => "%doc ",
            () => "",
        };
        format!("{kind}{}", path.display())
    };
    let files: Vec<String> = files.iter().map(line).collect();
    Ok(text
        .replace("@VERSION@", &build.version)
        .replace("@RELEASE@", &build.revision.to_string())
        .replace("@TREE@", &tree.to_string_lossy())
        .replace("@FILES@", &files.join("\n")))
}
