//! The packages in a fresh Debian 12: install, start, reload, upgrade under load, removal; then
//! the other ways to install.
//!
//! The tree is made by debootstrap once. Each run works on a copy, in mount, process and network
//! namespaces of its own, so that port 80 is free and nothing outlives the run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{bootstrap, fresh, inside, remove};
use super::{Build, container, debian, files, output, over_nginx, rpm, tarball, target};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// The steps, run by a shell in the tree. The first that fails ends the run.
const STEPS: &str = r#"
set -eu
step() { echo "package-test: $*"; }
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /test \
        -o -path /var/lib/dpkg -o -path /var/log/dpkg.log -o -path /var/lib/logrotate \) -prune \
        -o ! -name '*-' -print | sort
}
page() { curl -sS --max-time 10 http://127.0.0.1/ | grep -q '<h1>Turnpike is running</h1>'; }
master() { cat /run/turnpike/turnpike.pid; }

files >/tmp/before
step install
dpkg -i /test/1/turnpike_*.deb
turnpike -t
test "$(stat -c %a:%U:%G /var/log/turnpike)" = 755:root:adm
test "$(stat -c %a:%U:%G /var/lib/turnpike)" = 755:root:root
dpkg --verify turnpike

step start
turnpike
page
curl -sS http://127.0.0.1/status >/dev/null
ps -o user= -C turnpike-serve | grep -q '^turnpike'

step reload
turnpike reload >/dev/null
page

step "logs are rotated"
logrotate -f /etc/logrotate.d/turnpike
test -s /var/log/turnpike/access.log.1
page
test -s /var/log/turnpike/access.log
for log in access.log access.log.1; do
    test "$(stat -c %a:%U:%G "/var/log/turnpike/$log")" = 640:turnpike:adm
done

step "upgrade under load"
old=$(master)
turnpike load -c 4 -t 1 -d 12s --max-errors 0 http://127.0.0.1/ >/tmp/kept 2>&1 &
kept=$!
turnpike load -c 4 -t 1 -d 12s --no-keepalive --max-errors 0 http://127.0.0.1/ >/tmp/short 2>&1 &
short=$!
sleep 2
dpkg -i /test/2/turnpike_*.deb
wait $kept || { cat /tmp/kept; exit 1; }
wait $short || { cat /tmp/short; exit 1; }
grep 'requests in' /tmp/kept /tmp/short
test "$(master)" != "$old"
page

step "the name nginx on a machine without nginx"
dpkg -i /test/2/turnpike-nginx_*.deb
nginx -t
nginx -s reload
page
nginx -v 2>&1 | grep -q '^nginx version: nginx/'
dpkg-divert --list | grep -q turnpike-nginx

step removal
dpkg --remove turnpike-nginx turnpike
test -z "$(ps -o pid= -C turnpike-master,turnpike-serve)"
test -f /etc/turnpike/nginx.conf
dpkg --purge turnpike-nginx turnpike
if getent passwd turnpike; then exit 1; fi
test -z "$(dpkg-divert --list | grep turnpike)"
files >/tmp/after
diff /tmp/before /tmp/after
step "nothing is left"
"#;

/// The packages' units.
const UNITS: &[(&str, &str)] = &[
    ("turnpike", "turnpike.service"),
    ("turnpike", "turnpike.socket"),
];

/// Runs the test; as root, since it changes its root folder.
pub(super) fn run(options: &Options) -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: package-test needs root (CAP_SYS_ADMIN)");
        return Ok(());
    }
    let folder = workspace::target().join("package-test");
    let base = folder.join("base");
    let tree = folder.join("tree");
    bootstrap(&base)?;
    fresh(&base, &tree)?;
    let mut build = Build::of(options)?;
    for revision in [1, 2] {
        build.revision = revision;
        let place = tree.join(format!("test/{revision}"));
        copy_packages(&debian::build(&build)?, &place)?;
    }
    lintian(&build)?;
    inside(&tree, STEPS)?;
    over_nginx::test(&tree, &base)?;
    units(&build)?;
    compare_rpm(&build)?;
    other_ways(&build, &base)?;
    container::test(&build)
}

/// Has Debian's own judge look at the packages: no error, and each override is one that is needed.
fn lintian(build: &Build) -> Outcome {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error"]);
    must(lintian.args(debian::build(build)?))
}

/// Copies packages into a folder, which is made.
fn copy_packages(packages: &[PathBuf], place: &Path) -> Outcome {
    super::make(place)?;
    must(Command::new("cp").args(packages).arg(place))
}

/// Compares the contents of the RPM package with those of the Debian package.
fn compare_rpm(build: &Build) -> Outcome {
    let package = rpm::build(build)?;
    let found: BTreeSet<PathBuf> = rpm::contents(&package)?.into_iter().collect();
    let staged = build.out.join("staging/turnpike");
    let mut staged_files = Vec::new();
    files::collect(&staged, &staged, &mut staged_files)?;
    let (from, to) = rpm::UNITS;
    // Debian has its own files for licence and changelog.
    staged_files.retain(|path| {
        debian::OWN_DOCUMENTS
            .iter()
            .all(|own| path != Path::new(own))
    });
    staged_files.push(PathBuf::from(debian::LICENSE));
    let expected: BTreeSet<PathBuf> = staged_files
        .iter()
        .filter(|path| !path.starts_with("DEBIAN"))
        .map(|path| match path.strip_prefix(from) {
            Ok(unit) => Path::new(to).join(unit),
            Err(_) => path.clone(),
        })
        .collect();
    let differing: Vec<_> = found.symmetric_difference(&expected).collect();
    if !differing.is_empty() {
        return Err(format!(
            "the RPM and the Debian package differ: {differing:?}"
        ));
    }
    println!(
        "package-test: {} has the same {} files",
        package.display(),
        found.len()
    );
    Ok(())
}

/// Has systemd look at the units of the packages.
fn units(build: &Build) -> Outcome {
    // The programs are not installed on this machine: the ones that were built take their place.
    let folder = build.staging("units")?;
    let program = build.programs.join("turnpike");
    let mut copies = Vec::new();
    for (package, unit) in UNITS {
        let root = build.out.join("staging").join(package);
        let file = root.join("lib/systemd/system").join(unit);
        let text = fs::read_to_string(&file).map_err(|error| format!("{unit}: {error}"))?;
        let text = text.replace("/usr/sbin/turnpike", &program.to_string_lossy());
        let copy = folder.join(unit);
        fs::write(&copy, text).map_err(|error| format!("{unit}: {error}"))?;
        copies.push(copy);
    }
    must(Command::new("systemd-analyze").arg("verify").args(&copies))
}

/// The steps of the other ways to install: the tarball, `make install` and the RPM package. What
/// systemd's tools make of `sysusers.d` and `tmpfiles.d` is made by hand where it is missing, since
/// the tree has no systemd.
const OTHER_STEPS: &str = r#"
set -eu
PATH=/usr/local/sbin:$PATH
page() { curl -sS --max-time 10 http://127.0.0.1/ | grep -q '<h1>Turnpike is running</h1>'; }
getent passwd turnpike >/dev/null || useradd --system --user-group --no-create-home turnpike
mkdir -p /run/turnpike /var/log/turnpike /var/cache/turnpike
program=$(command -v turnpike)
"$program" -t
"$program"
page
"$program" reload >/dev/null
page
"$program" drain --wait >/dev/null
test ! -e /run/turnpike/turnpike.pid
echo "package-test: served by $program"
"#;

/// Installs in each of the other ways into a copy of the fresh Debian, where the server starts,
/// serves a page, reloads and ends.
fn other_ways(build: &Build, base: &Path) -> Outcome {
    let tree = base.with_file_name("other");
    fresh(base, &tree)?;
    let tarballs = tarball::build(build)?;
    let tarball = tarballs.first().ok_or("no tarball was built")?;
    must(
        Command::new("sha256sum")
            .current_dir(&build.out)
            .args(["--check", "--quiet"])
            .args(tarballs.get(1)),
    )?;
    must(
        Command::new("tar")
            .arg("-C")
            .arg(&tree)
            .args(["--strip-components", "1", "-xzf"])
            .arg(tarball),
    )?;
    inside(&tree, OTHER_STEPS)?;

    fresh(base, &tree)?;
    let text = |path: &Path| path.display().to_string();
    let (root, programs) = (text(&tree), text(&build.programs));
    let options = [
        "--destdir",
        &root,
        "--prefix",
        "/usr/local",
        "--programs",
        &programs,
    ];
    super::install(&options.map(str::to_owned))?;
    inside(&tree, OTHER_STEPS)?;

    fresh(base, &tree)?;
    let package = rpm::build(build)?;
    must(rpm_in(&tree).args(["--install", "--nodeps"]).arg(&package))?;
    inside(&tree, OTHER_STEPS)?;
    must(rpm_in(&tree).args(["--erase", "turnpike"]))?;
    if tree.join("usr/sbin/turnpike").exists() {
        return Err("the RPM package leaves its program behind".to_owned());
    }
    remove(&tree)
}

/// rpm with a database in the tree, where its scripts run too.
fn rpm_in(tree: &Path) -> Command {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(tree);
    rpm
}

/// Builds the package for `--target` and looks at it: its programs and its description must be for
/// that machine. Nothing is run, since this machine cannot.
pub(super) fn cross(options: &Options) -> Outcome {
    let build = Build::of(options)?;
    let Some(machine) = build.target else {
        return Err("name the machine with --target".to_owned());
    };
    let packages = debian::build(&build)?;
    let package = packages.first().ok_or("no package was built")?;
    let architecture = field(package, "Architecture")?;
    if architecture != target::debian(Some(machine))? {
        return Err(format!("the package is for {architecture}"));
    }
    let root = build.staging("unpacked")?;
    must(
        Command::new("dpkg-deb")
            .arg("--extract")
            .args([package, &root]),
    )?;
    for program in files::PROGRAMS {
        let program = root.join("usr/sbin").join(program);
        let header = output(Command::new("readelf").arg("--file-header").arg(&program))?;
        if !header.to_lowercase().contains(build.machine()) {
            return Err(format!("{}: {header}", program.display()));
        }
    }
    let page = root.join("usr/share/man/man8/turnpike.8.gz");
    let is_page = fs::metadata(&page).is_ok_and(|metadata| metadata.len() > 0);
    if !is_page {
        return Err(format!("{} is missing", page.display()));
    }
    println!(
        "package-cross-test: {} for {architecture}, which needs {}",
        package.display(),
        field(package, "Depends")?
    );
    Ok(())
}

/// A field of a package's description.
fn field(package: &Path, name: &str) -> Result<String, String> {
    output(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(package)
            .arg(name),
    )
}
