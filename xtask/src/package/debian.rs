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
    Ok(vec![server(build)?, nginx(build)?, symbols(build)?])
}

fn server(build: &Build) -> Result<PathBuf, String> {
    let root = build.staging("turnpike")?;
    let places = Places::below(Path::new("/usr"));
    let settings = build.write_files(&root, &places)?;
    own_documents(build, &root)?;
    for script in ["postinst", "prerm", "postrm"] {
        put_script(&root, script, &contrib(script)?)?;
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

/// A file of `contrib/debian`.
fn contrib(name: &str) -> Result<String, String> {
    let source = workspace::root().join("contrib/debian").join(name);
    fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))
}

fn put_script(root: &Path, name: &str, text: &str) -> Outcome {
    files::put(
        root,
        &Path::new("/DEBIAN").join(name),
        text.as_bytes(),
        0o755,
    )
}

/// The scripts of the package `turnpike-nginx`, which share the change of the server that runs.
///
/// # Errors
/// A file of `contrib/debian/nginx` cannot be read.
pub(super) fn nginx_scripts() -> Result<Vec<(&'static str, String)>, String> {
    let change = contrib("nginx/change")?;
    let script = |name: &'static str| {
        let text = contrib(&format!("nginx/{name}"))?;
        Ok((name, text.replace("@CHANGE@\n", &change)))
    };
    ["preinst", "postinst", "prerm", "postrm"]
        .map(script)
        .into_iter()
        .collect()
}

/// The package that takes the name nginx.
fn nginx(build: &Build) -> Result<PathBuf, String> {
    let root = build.staging("turnpike-nginx")?;
    let places = Places::below(Path::new("/usr"));
    let programs = files::below(&root, &places.programs());
    super::make(&programs)?;
    symlink("turnpike", programs.join("nginx")).map_err(|error| format!("nginx: {error}"))?;
    link_documents(&root, "turnpike-nginx")?;
    for (name, text) in nginx_scripts()? {
        put_script(&root, name, &text)?;
    }
    pack(build, "turnpike-nginx", "nginx/control", &root)
}

/// The files that Debian's policy wants in the place of those of an installation.
pub(super) const OWN_DOCUMENTS: &[&str] = &[
    "usr/share/doc/turnpike/changelog.Debian.gz",
    "usr/share/doc/turnpike/copyright",
    "usr/share/lintian/overrides/turnpike",
];

/// The licence's text, which Debian has in one place for all packages.
pub(super) const LICENSE: &str = "usr/share/doc/turnpike/LICENSE";

fn own_documents(build: &Build, root: &Path) -> Outcome {
    let license = root.join(LICENSE);
    fs::remove_file(&license).map_err(|error| format!("{}: {error}", license.display()))?;
    let date = output(
        Command::new("date")
            .args(["--utc", "--rfc-email", "--date"])
            .arg(format!("@{}", build.time_s)),
    )?;
    let changelog = contrib("changelog")?
        .replace(
            "@VERSION@",
            &format!("{}-{}", build.version, build.revision),
        )
        .replace("@DATE@", &date);
    let texts = [
        files::compressed(changelog.as_bytes())?,
        contrib("copyright")?.into_bytes(),
    ];
    for (path, bytes) in OWN_DOCUMENTS.iter().zip(texts) {
        files::put(root, &Path::new("/").join(path), &bytes, 0o644)?;
    }
    Ok(())
}

/// A package of the same source may have its documents in another one's folder.
fn link_documents(root: &Path, name: &str) -> Outcome {
    let folder = root.join("usr/share/doc");
    super::make(&folder)?;
    symlink("turnpike", folder.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// The debug information, where debuggers look for that of a program.
fn symbols(build: &Build) -> Result<PathBuf, String> {
    let root = build.staging("turnpike-dbgsym")?;
    let mut ids = Vec::new();
    for program in files::PROGRAMS {
        let program = build.programs.join(program);
        let notes = output(
            Command::new("readelf")
                .args(["--notes", "--wide"])
                .arg(&program),
        )?;
        let id = between(&notes, "Build ID: ", "\n").next().map(str::trim);
        let id = id.filter(|id| id.is_ascii() && id.len() > 2);
        let id = id.ok_or_else(|| format!("{} has no build ID", program.display()))?;
        let (folder, name) = id.split_at(2);
        let bytes = fs::read(program.with_extension("debug"));
        let bytes = bytes.map_err(|error| format!("{}: {error}", program.display()))?;
        let place = format!("/usr/lib/debug/.build-id/{folder}/{name}.debug");
        files::put(&root, Path::new(&place), &bytes, 0o644)?;
        ids.push(id.to_owned());
    }
    link_documents(&root, "turnpike-dbgsym")?;
    let control = root.with_file_name("control-dbgsym");
    let text = contrib("control-dbgsym")?.replace("@BUILD_IDS@", &ids.join(" "));
    fs::write(&control, text).map_err(|error| format!("{}: {error}", control.display()))?;
    pack(build, "turnpike-dbgsym", &control.to_string_lossy(), &root)
}

/// How the name of a package of debug symbols ends, which lintian wants to hold nothing else.
const DEBUG_PACKAGE_END: &str = "-dbgsym";

fn pack(build: &Build, name: &str, control: &str, root: &Path) -> Result<PathBuf, String> {
    let version = format!("{}-{}", build.version, build.revision);
    let mut overrides = contrib("lintian-overrides")?.replace("@PACKAGE@", name);
    if name.ends_with(DEBUG_PACKAGE_END) {
        overrides.push_str(&format!(
            "# This file itself, which holds what is above.\n\
             {name}: non-debug-file-in-debug-package [usr/share/lintian/overrides/{name}]\n"
        ));
    }
    let place = Path::new("/usr/share/lintian/overrides").join(name);
    files::put(root, &place, overrides.as_bytes(), 0o644)?;
    let text = contrib(control)?;
    let machine = if text.contains("Architecture: all") {
        "all".to_owned()
    } else {
        target::debian(build.target)?
    };
    let size = output(
        Command::new("du")
            .args(["-sk", "--exclude=DEBIAN"])
            .arg(root),
    )?;
    let kilobytes = size.split_whitespace().next().unwrap_or("0");
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
