//! The files of an installation: the one list for the Debian package, the tarball and `make
//! install`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::workspace;

/// The names in contrib's unit files, which an installation replaces by its own places.
const UNIT_PROGRAM: &str = "/usr/local/bin/turnpike";
const UNIT_SETTINGS: &str = "/etc/turnpike/";

/// Where the files of an installation go.
#[derive(Clone, Debug)]
pub(super) struct Places {
    prefix: PathBuf,
}

/// One file.
struct File {
    /// The path in the checkout.
    source: &'static str,
    place: Place,
    name: &'static str,
}

/// A folder of an installation.
#[derive(Clone, Copy)]
enum Place {
    Programs,
    Settings,
    Share,
    Units,
    Documents,
    /// Files outside of the prefix: other programs look for them in `/etc` and `/usr/lib`.
    System(&'static str),
}

const fn file(source: &'static str, place: Place, name: &'static str) -> File {
    File {
        source,
        place,
        name,
    }
}

/// The files that are in the checkout.
const FILES: &[File] = &[
    file("contrib/etc/nginx.conf", Place::Settings, "nginx.conf"),
    file(
        "contrib/etc/conf.d/default.conf",
        Place::Settings,
        "conf.d/default.conf",
    ),
    file("conf/mime.types", Place::Settings, "mime.types"),
    file("contrib/etc/fastcgi.conf", Place::Settings, "fastcgi.conf"),
    file(
        "contrib/etc/fastcgi_params",
        Place::Settings,
        "fastcgi_params",
    ),
    file("contrib/etc/uwsgi_params", Place::Settings, "uwsgi_params"),
    file("contrib/etc/scgi_params", Place::Settings, "scgi_params"),
    file("contrib/etc/proxy_params", Place::Settings, "proxy_params"),
    file("contrib/html/index.html", Place::Share, "html/index.html"),
    file(
        "contrib/systemd/turnpike.service",
        Place::Units,
        "turnpike.service",
    ),
    file(
        "contrib/systemd/turnpike.socket",
        Place::Units,
        "turnpike.socket",
    ),
    file(
        "contrib/logrotate/turnpike",
        Place::System("etc/logrotate.d"),
        "turnpike",
    ),
    file(
        "contrib/tmpfiles.d/turnpike.conf",
        Place::System("usr/lib/tmpfiles.d"),
        "turnpike.conf",
    ),
    file(
        "contrib/sysusers.d/turnpike.conf",
        Place::System("usr/lib/sysusers.d"),
        "turnpike.conf",
    ),
    file("LICENSE", Place::Documents, "LICENSE"),
    file("SECURITY.md", Place::Documents, "SECURITY.md"),
    file("ARCHITECTURE.md", Place::Documents, "ARCHITECTURE.md"),
    file("CHANGELOG.md", Place::Documents, "CHANGELOG.md"),
    file("README.md", Place::Documents, "README.md"),
    file(
        "contrib/grafana/turnpike.json",
        Place::Documents,
        "examples/grafana-dashboard.json",
    ),
    file(
        "contrib/prometheus/alerts.yml",
        Place::Documents,
        "examples/prometheus-alerts.yml",
    ),
];

/// The folders of the documentation, in the checkout and below that of the documents.
const DOCUMENTS: &[&str] = &["docs", "docs/directives", "docs/images"];

/// Pages of the documentation that only include files which are installed beside them, or are made
/// for the site.
const LEFT_OUT: &[&str] = &[
    "SUMMARY.md",
    "changelog.md",
    "security.md",
    "site.css",
    "site.js",
];

/// The pages and completions that the program prints: its arguments, and the path under `share`.
/// Those whose name ends in `.gz` are compressed.
const GENERATED: &[([&str; 2], &str)] = &[
    (["manual", "turnpike.8"], "man/man8/turnpike.8.gz"),
    (["manual", "turnpike.conf.5"], "man/man5/turnpike.conf.5.gz"),
    (["manual", "turnpike-load.1"], "man/man1/turnpike-load.1.gz"),
    (["manual", "turnpike-lab.1"], "man/man1/turnpike-lab.1.gz"),
    (["manual", "turnpike-tune.1"], "man/man1/turnpike-tune.1.gz"),
    (["manual", "turnpike-view.1"], "man/man1/turnpike-view.1.gz"),
    (
        ["completions", "bash"],
        "bash-completion/completions/turnpike",
    ),
    (["completions", "zsh"], "zsh/vendor-completions/_turnpike"),
    (
        ["completions", "fish"],
        "fish/vendor_completions.d/turnpike.fish",
    ),
];

/// The programs.
pub(super) const PROGRAMS: &[&str] = &["turnpike", "turnpike-tools", "turnpike-view"];

impl Places {
    pub(super) fn below(prefix: &Path) -> Places {
        Places {
            prefix: prefix.to_path_buf(),
        }
    }

    /// The folder of the settings: `/etc` for an installation under `/usr`.
    fn settings(&self) -> PathBuf {
        if self.prefix == Path::new("/usr") {
            PathBuf::from("/etc/turnpike")
        } else {
            self.prefix.join("etc/turnpike")
        }
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.prefix.join("sbin")
    }

    /// Debian 12 looks for the units of packages in `/lib`.
    pub(super) fn units(&self) -> PathBuf {
        if self.prefix == Path::new("/usr") {
            PathBuf::from("/lib/systemd/system")
        } else {
            self.prefix.join("lib/systemd/system")
        }
    }

    fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Programs => self.programs(),
            Place::Settings => self.settings(),
            Place::Share => self.prefix.join("share/turnpike"),
            Place::Units => self.units(),
            Place::Documents => self.prefix.join("share/doc/turnpike"),
            Place::System(folder) => Path::new("/").join(folder),
        }
    }

    /// A unit file with the places of this installation.
    pub(super) fn unit(&self, text: &str) -> String {
        let program = self.programs().join("turnpike");
        let settings = format!("{}/", self.settings().display());
        text.replace(UNIT_PROGRAM, &program.to_string_lossy())
            .replace(UNIT_SETTINGS, &settings)
    }
}

/// Installs everything below `root`, with the programs from a folder. Those of another folder print
/// the pages and completions: they run on this machine. Existing settings are kept. Returns the
/// paths of the settings.
pub(super) fn write(
    root: &Path,
    places: &Places,
    programs: &Path,
    printers: &Path,
) -> Result<Vec<PathBuf>, String> {
    for name in PROGRAMS {
        let bytes = read(&programs.join(name))?;
        put(
            root,
            &places.folder(Place::Programs).join(name),
            &bytes,
            0o755,
        )?;
    }
    let mut settings = Vec::new();
    for file in FILES {
        let path = places.folder(file.place).join(file.name);
        let mut bytes = read(&workspace::root().join(file.source))?;
        if matches!(file.place, Place::Units) {
            bytes = places.unit(&String::from_utf8_lossy(&bytes)).into_bytes();
        }
        if path.starts_with("/etc") || matches!(file.place, Place::Settings) {
            settings.push(path.clone());
            if below(root, &path).exists() {
                println!("package: {} is left as it is", path.display());
                continue;
            }
        }
        put(root, &path, &bytes, 0o644)?;
    }
    for (words, name) in GENERATED {
        let mut bytes = printed(&printers.join("turnpike"), words)?;
        if name.ends_with(".gz") {
            bytes = compressed(&bytes)?;
        }
        put(root, &places.prefix.join("share").join(name), &bytes, 0o644)?;
    }
    for (source, name) in documents()? {
        let path = places.folder(Place::Documents).join(name);
        put(root, &path, &read(&source)?, 0o644)?;
    }
    Ok(settings)
}

/// The pages of the documentation and their pictures, with their paths below the folder of the
/// documents.
pub(super) fn documents() -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let mut found = Vec::new();
    for folder in DOCUMENTS {
        let place = workspace::root().join(folder);
        let entries = fs::read_dir(&place).map_err(|error| format!("{folder}: {error}"))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default();
            let is_left_out = LEFT_OUT.iter().any(|left_out| name == *left_out);
            if path.is_file() && !is_left_out {
                found.push((path.clone(), Path::new(folder).join(name)));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Bytes as gzip compresses them, without a name and a time.
pub(super) fn compressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut gzip = Command::new("gzip")
        .args(["-9", "--no-name", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = gzip.stdin.take().ok_or("gzip has no input")?;
    let bytes = bytes.to_vec();
    // gzip may print before it has read everything.
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = gzip.wait_with_output().map_err(failed)?;
    let written = writer.join().map_err(|_| "gzip: the writer failed")?;
    written.map_err(failed)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("gzip: {}", output.status))
    }
}

/// The files below a folder, as paths from `root` on.
pub(super) fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Outcome {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            collect(root, &path, found)?;
        } else {
            found.push(path.strip_prefix(root).unwrap_or(&path).to_path_buf());
        }
    }
    Ok(())
}

/// The output of a program.
fn printed(program: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(program)
        .args(words)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{} {} failed", program.display(), words.join(" ")))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// An absolute path of an installation below another root.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Writes a file with its folders. A program that runs is replaced, not written over.
pub(super) fn put(root: &Path, path: &Path, bytes: &[u8], mode: u32) -> Outcome {
    let path = below(root, path);
    let written = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut new = path.clone().into_os_string();
        new.push(".new");
        fs::write(&new, bytes)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(mode))?;
        fs::rename(&new, &path)
    };
    written().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
