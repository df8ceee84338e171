//! The Debian packages `turnpike` and `turnpike-nginx`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{self, Places};
use super::{Build, output, target};
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// The packages of Debian 12 that libraries come from. The C library needs a version too.
const LIBRARIES: &[(&str, &str)] = &[
    ("libelf.so.1", "libelf1"),
    ("libz.so.1", "zlib1g"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libgcc_s.so.1", "libgcc-s1"),
];
/// The C library's own files.
const C_LIBRARY: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Builds both packages.
pub(super) fn build(build: &Build) -> Result<Vec<PathBuf>, String> {
    Ok(vec![server(build)?, nginx(build)?])
}

fn server(build: &Build) -> Result<PathBuf, String> {
    let root = build.staging("turnpike")?;
    let places = Places::below(Path::new("/usr"));
    let settings = build.write_files(&root, &places)?;
    for script in ["postinst", "prerm", "postrm"] {
        let source = workspace::root().join("contrib/debian").join(script);
        let bytes = fs::read(&source).map_err(|error| format!("{script}: {error}"))?;
        files::put(&root, &Path::new("/DEBIAN").join(script), &bytes, 0o755)?;
    }
    let settings: String = settings
        .iter()
        .map(|path| format!("{}\n", path.display()))
        .collect();
    files::put(
        &root,
        Path::new("/DEBIAN/conffiles"),
        settings.as_bytes(),
        0o644,
    )?;
    pack(build, "turnpike", "control", &root)
}

/// The package that owns the name nginx.
fn nginx(build: &Build) -> Result<PathBuf, String> {
    let root = build.staging("turnpike-nginx")?;
    let places = Places::below(Path::new("/usr"));
    let programs = files::below(&root, &places.programs());
    super::make(&programs)?;
    symlink("turnpike", programs.join("nginx")).map_err(|error| format!("nginx: {error}"))?;
    let source = workspace::root().join("contrib/systemd/turnpike.service");
    let unit = fs::read_to_string(&source).map_err(|error| format!("unit: {error}"))?;
    files::put(
        &root,
        &places.units().join("nginx.service"),
        nginx_unit(&places.unit(&unit)).as_bytes(),
        0o644,
    )?;
    pack(build, "turnpike-nginx", "control-nginx", &root)
}

/// The unit of the server as nginx: its program, settings and folders have nginx's names.
fn nginx_unit(unit: &str) -> String {
    unit.replace("/usr/sbin/turnpike", "/usr/sbin/nginx")
        .replace("/etc/turnpike/", "/etc/nginx/")
        .replace("Directory=turnpike", "Directory=nginx")
        .replace("/log/turnpike", "/log/nginx")
        .replace("/cache/turnpike", "/cache/nginx")
        // nginx's own files have the pid file in /run itself, and data in /var/lib.
        .replace("/run/turnpike", "/run -/var/lib/nginx")
        .replace("Turnpike HTTP server", "Turnpike HTTP server as nginx")
        .replace(
            "StartLimitIntervalSec=0",
            "StartLimitIntervalSec=0\nConditionPathExists=/etc/nginx/nginx.conf",
        )
}

fn pack(build: &Build, name: &str, control: &str, root: &Path) -> Result<PathBuf, String> {
    let version = format!("{}-{}", build.version, build.revision);
    let machine = target::debian(build.target)?;
    let size = output(
        Command::new("du")
            .args(["-sk", "--exclude=DEBIAN"])
            .arg(root),
    )?;
    let kilobytes = size.split_whitespace().next().unwrap_or("0");
    let source = workspace::root().join("contrib/debian").join(control);
    let text = fs::read_to_string(&source).map_err(|error| format!("{control}: {error}"))?;
    let text = text
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", &machine)
        .replace("@SIZE@", kilobytes)
        .replace("@DEPENDS@", &dependencies(&build.programs)?);
    files::put(root, Path::new("/DEBIAN/control"), text.as_bytes(), 0o644)?;
    checksums(root)?;
    let package = build.out.join(format!("{name}_{version}_{machine}.deb"));
    must(
        Command::new("dpkg-deb")
            .env("SOURCE_DATE_EPOCH", &build.time_s)
            .args(["--root-owner-group", "-Zxz", "--build"])
            .args([root, &package]),
    )?;
    Ok(package)
}

/// The sums by which `dpkg --verify` finds changed files.
fn checksums(root: &Path) -> Outcome {
    let script = "find . -path ./DEBIAN -prune -o -type f -printf '%P\\0' | sort -z | \
                  xargs -0 --no-run-if-empty md5sum";
    let sums = output(Command::new("sh").current_dir(root).args(["-c", script]))?;
    files::put(
        root,
        Path::new("/DEBIAN/md5sums"),
        format!("{sums}\n").as_bytes(),
        0o644,
    )
}

/// The packages with the libraries that the programs are linked with.
fn dependencies(programs: &Path) -> Result<String, String> {
    let mut names: Vec<String> = Vec::new();
    let mut versions: Vec<(u32, u32)> = Vec::new();
    for program in files::PROGRAMS {
        let text = output(
            Command::new("readelf")
                .args(["--wide", "--dynamic", "--version-info"])
                .arg(programs.join(program)),
        )?;
        for library in between(&text, "Shared library: [", "]") {
            let known = LIBRARIES.iter().find(|(file, _)| *file == library);
            match known {
                Some((_, package)) => names.push((*package).to_owned()),
                None if C_LIBRARY.contains(&library) => {}
                None => return Err(format!("which package has {library}? Add it to LIBRARIES")),
            }
        }
        versions.extend(between(&text, "Name: GLIBC_", " ").filter_map(|version| {
            let mut parts = version.split('.').map(str::parse);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        }));
    }
    let (major, minor) = versions.iter().max().ok_or("no version of the C library")?;
    names.sort();
    names.dedup();
    names.insert(0, format!("libc6 (>= {major}.{minor})"));
    Ok(names.join(", "))
}

/// The texts between two others.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    let rest = text.split(start).skip(1);
    rest.filter_map(move |rest| rest.split(end).next())
}
