//! The checks of the packages in `make test`, without building one: the list of files, and whether
//! shells, roff and the server can read them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turnpike_testkit::process::find_program;

use super::debian;
use super::files::{self, Places};
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Every file of the package but the pages of the documentation, so that one which appears or
/// vanishes is noticed.
const EXPECTED: &[&str] = &[
    "etc/logrotate.d/turnpike",
    "etc/turnpike/conf.d/default.conf",
    "etc/turnpike/fastcgi.conf",
    "etc/turnpike/fastcgi_params",
    "etc/turnpike/mime.types",
    "etc/turnpike/nginx.conf",
    "etc/turnpike/proxy_params",
    "etc/turnpike/scgi_params",
    "etc/turnpike/uwsgi_params",
    "lib/systemd/system/turnpike.service",
    "lib/systemd/system/turnpike.socket",
    "usr/lib/sysusers.d/turnpike.conf",
    "usr/lib/tmpfiles.d/turnpike.conf",
    "usr/sbin/turnpike",
    "usr/sbin/turnpike-tools",
    "usr/sbin/turnpike-view",
    "usr/share/bash-completion/completions/turnpike",
    "usr/share/doc/turnpike/CHANGELOG.md",
    "usr/share/doc/turnpike/ARCHITECTURE.md",
    "usr/share/doc/turnpike/LICENSE",
    "usr/share/doc/turnpike/README.md",
    "usr/share/doc/turnpike/SECURITY.md",
    "usr/share/doc/turnpike/examples/grafana-dashboard.json",
    "usr/share/doc/turnpike/examples/prometheus-alerts.yml",
    "usr/share/fish/vendor_completions.d/turnpike.fish",
    "usr/share/man/man1/turnpike-lab.1.gz",
    "usr/share/man/man1/turnpike-load.1.gz",
    "usr/share/man/man1/turnpike-tune.1.gz",
    "usr/share/man/man1/turnpike-view.1.gz",
    "usr/share/man/man5/turnpike.conf.5.gz",
    "usr/share/man/man8/turnpike.8.gz",
    "usr/share/turnpike/html/index.html",
    "usr/share/zsh/vendor-completions/_turnpike",
];

/// Programs that read a file and report its errors.
const READERS: &[(&str, &[&str], &str)] = &[
    (
        "bash",
        &["-n"],
        "usr/share/bash-completion/completions/turnpike",
    ),
    ("zsh", &["-n"], "usr/share/zsh/vendor-completions/_turnpike"),
    (
        "fish",
        &["-n"],
        "usr/share/fish/vendor_completions.d/turnpike.fish",
    ),
    ("groff", ROFF, "usr/share/man/man1/turnpike-lab.1"),
    ("groff", ROFF, "usr/share/man/man1/turnpike-load.1"),
    ("groff", ROFF, "usr/share/man/man1/turnpike-tune.1"),
    ("groff", ROFF, "usr/share/man/man1/turnpike-view.1"),
    ("groff", ROFF, "usr/share/man/man5/turnpike.conf.5"),
    ("groff", ROFF, "usr/share/man/man8/turnpike.8"),
];
const ROFF: &[&str] = &["-man", "-Tutf8", "-ww", "-z"];

/// Installs into a folder under target/, and checks the files.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    let root = workspace::target().join("package-check");
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    }
    let programs = workspace::target().join("debug");
    workspace::build_for_debugging()?;
    let places = Places::below(Path::new("/usr"));
    files::write(&root, &places, &programs, &programs)?;
    list(&root)?;
    for (reader, arguments, file) in READERS {
        if find_program(reader).is_none() && *reader != "bash" && *reader != "groff" {
            println!("package-check: {reader} is not installed; {file} is not read");
            continue;
        }
        let path = root.join(file);
        if !path.exists() {
            // The page is compressed, and groff reads it as it was.
            let packed = root.join(format!("{file}.gz"));
            must(Command::new("gzip").arg("--decompress").arg(&packed))?;
        }
        quietly(Command::new(reader).args(*arguments).arg(&path))?;
    }
    for script in ["postinst", "prerm", "postrm"] {
        let script = workspace::root().join("contrib/debian").join(script);
        quietly(Command::new("sh").arg("-n").arg(script))?;
    }
    for (name, text) in debian::nginx_scripts()? {
        let script = root.with_file_name(format!("package-check-{name}"));
        fs::write(&script, text).map_err(|error| format!("{name}: {error}"))?;
        quietly(Command::new("sh").arg("-n").arg(&script))?;
    }
    settings(&root, &programs)?;
    compose(&root, &programs)?;
    println!("package-check: {} files, all can be read", EXPECTED.len());
    Ok(())
}

fn list(root: &Path) -> Outcome {
    let mut found = Vec::new();
    files::collect(root, root, &mut found)?;
    let found: BTreeSet<PathBuf> = found.into_iter().collect();
    let mut expected: BTreeSet<PathBuf> = EXPECTED.iter().map(PathBuf::from).collect();
    let documents = files::documents()?.into_iter();
    expected.extend(documents.map(|(_, name)| Path::new("usr/share/doc/turnpike").join(name)));
    let name = |path: &PathBuf| path.display().to_string();
    let more: Vec<String> = found.difference(&expected).map(name).collect();
    let missing: Vec<String> = expected.difference(&found).map(name).collect();
    if more.is_empty() && missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the list of files differs: not expected: {}; missing: {}",
            more.join(" "),
            missing.join(" ")
        ))
    }
}

/// Has the server check the settings, as the current user: the package's user does not exist here.
fn settings(root: &Path, programs: &Path) -> Outcome {
    let file = root.join("etc/turnpike/nginx.conf");
    let text = fs::read_to_string(&file).map_err(|error| format!("nginx.conf: {error}"))?;
    let here = root.to_string_lossy();
    let text = text
        .replace("user turnpike;", "")
        .replace("/var/log/turnpike", &here)
        .replace("/var/cache/turnpike", &here)
        .replace("/run/turnpike", &here);
    fs::write(&file, text).map_err(|error| format!("nginx.conf: {error}"))?;
    let prefix = root.join("usr/share/turnpike");
    quietly(
        Command::new(programs.join("turnpike"))
            .args(["-t", "-q", "-e", "stderr", "-p"])
            .args([&prefix, Path::new("-c"), &file]),
    )
}

/// Has the server check the configurations that the compose file mounts, each in the place of the
/// image's own site.
fn compose(root: &Path, programs: &Path) -> Outcome {
    let folder = workspace::root().join("contrib/container/compose");
    let path = folder.join("compose.yaml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut count = 0;
    for mounted in text.lines().filter_map(|line| {
        let (source, _) = line
            .trim()
            .strip_prefix("- ./")?
            .split_once(":/etc/turnpike/conf.d:ro")?;
        Some(source)
    }) {
        let site = folder.join(mounted).join("default.conf");
        let file = root.join("etc/turnpike/compose.conf");
        let here = root.to_string_lossy();
        let text = fs::read_to_string(&site).map_err(|error| format!("{mounted}: {error}"))?;
        let text = text.replace("/var/lib/turnpike", &here);
        let image = fs::read_to_string(workspace::root().join("contrib/container/nginx.conf"))
            .map_err(|error| format!("nginx.conf: {error}"))?
            .replace("include conf.d/*.conf;", &text)
            .replace("/var/cache/turnpike", &here)
            .replace("/run/turnpike", &here);
        fs::write(&file, image).map_err(|error| format!("{}: {error}", file.display()))?;
        let prefix = root.join("usr/share/turnpike");
        quietly(
            Command::new(programs.join("turnpike"))
                .args(["-t", "-q", "-e", "stderr", "-p"])
                .args([&prefix, Path::new("-c"), &file]),
        )?;
        count += 1;
    }
    match count {
        2 => Ok(()),
        _ => Err(format!("{} mounts {count} configurations", path.display())),
    }
}

/// Runs a command that prints nothing on success.
fn quietly(command: &mut Command) -> Outcome {
    let line = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{line}: {error}"))?;
    let output_bytes = [output.stdout, output.stderr].concat();
    if output.status.success() && output_bytes.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{line}: {}",
            String::from_utf8_lossy(&output_bytes).trim()
        ))
    }
}
