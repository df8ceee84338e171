//! Trees of a fresh Debian, in which packages are tested.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::outcome::Outcome;
use crate::workspace::{must, output};

/// The release of Debian in the tree.
const RELEASE: &str = "bookworm";

/// What `unshare` gives steps: namespaces of their own, and an end with this program.
pub(crate) const NAMESPACES: [&str; 6] = [
    "--mount",
    "--pid",
    "--net",
    "--ipc",
    "--fork",
    "--kill-child",
];

/// The contents of the tree beyond Debian's smallest system: the packages' libraries, and the
/// programs that the steps below use.
const INCLUDED: &str = "libelf1,zlib1g,logrotate,curl,procps";

/// Creates the tree if there is none. One that debootstrap has not finished stands elsewhere.
pub(crate) fn bootstrap(base: &Path) -> Outcome {
    if base.exists() {
        return Ok(());
    }
    println!("package-test: debootstrap makes {}", base.display());
    let unfinished = base.with_file_name("unfinished");
    remove(&unfinished)?;
    let made = must(
        Command::new("debootstrap")
            .args([
                "--variant=minbase",
                &format!("--include={INCLUDED}"),
                RELEASE,
            ])
            .arg(&unfinished)
            .args(mirror()),
    );
    made.map_err(|error| format!("{error}; it needs a mirror of Debian's packages"))?;
    fs::rename(&unfinished, base).map_err(|error| format!("{}: {error}", base.display()))
}

/// The mirror from which apt has this machine's packages, since another one may be out of reach;
/// `None` on a machine of another release, where debootstrap takes its own.
fn mirror() -> Option<String> {
    let targets = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
        "Component: main",
        &format!("Codename: {RELEASE}"),
    ]));
    targets.ok()?.lines().next().map(str::to_owned)
}

/// A folder of this machine that a tree has too, and where.
pub(crate) struct Mounted<'a> {
    pub(crate) from: &'a Path,
    /// From the tree's root.
    pub(crate) to: &'static str,
}

/// Runs the steps in the tree, in namespaces of their own.
pub(crate) fn inside(tree: &Path, steps: &str) -> Outcome {
    inside_with(tree, &[], steps)
}

/// Runs the steps as [`inside`] does, in a tree that has folders of this machine, read-only.
pub(crate) fn inside_with(tree: &Path, mounted: &[Mounted<'_>], steps: &str) -> Outcome {
    let script = tree.join("test/steps");
    fs::write(&script, steps).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut enter = String::from("ip link set lo up && mount -t proc proc proc && ");
    let mut folders = Vec::new();
    for (place, Mounted { from, to }) in (1..).zip(mounted) {
        fs::create_dir_all(tree.join(to)).map_err(|error| format!("{to}: {error}"))?;
        enter.push_str(&format!("mount --bind -o ro \"${place}\" {to} && "));
        folders.push(from);
    }
    enter.push_str("mount --rbind /dev dev && exec chroot . sh /test/steps");
    must(
        Command::new("unshare")
            .current_dir(tree)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(NAMESPACES)
            .args(["sh", "-c", &enter, "sh"])
            .args(folders),
    )
}

/// A copy of the base tree, in the place of the one before.
pub(crate) fn fresh(base: &Path, tree: &Path) -> Outcome {
    remove(tree)?;
    must(Command::new("cp").arg("-a").args([base, tree]))?;
    let place = tree.join("test");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))
}

/// Removes a tree, if there is one.
pub(crate) fn remove(tree: &Path) -> Outcome {
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", tree.display()))
        }
        _ => Ok(()),
    }
}
