//! Trees of a fresh Debian, in which packages are tested.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::outcome::Outcome;
use crate::workspace::{must, output};

/// The release of Debian in the tree.
const RELEASE: &str = "bookworm";

/// What `unshare` gives steps: namespaces of their own, and an end with this program.
pub(super) const NAMESPACES: [&str; 6] = [
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
pub(super) fn bootstrap(base: &Path) -> Outcome {
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

/// Runs the steps in the tree, in namespaces of their own.
pub(super) fn inside(tree: &Path, steps: &str) -> Outcome {
    let script = tree.join("test/steps");
    fs::write(&script, steps).map_err(|error| format!("{}: {error}", script.display()))?;
    let enter = "ip link set lo up && mount -t proc proc proc && \
                 mount --rbind /dev dev && exec chroot . sh /test/steps";
    must(
        Command::new("unshare")
            .current_dir(tree)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(NAMESPACES)
            .args(["sh", "-c", enter]),
    )
}

/// A copy of the base tree, in the place of the one before.
pub(super) fn fresh(base: &Path, tree: &Path) -> Outcome {
    remove(tree)?;
    must(Command::new("cp").arg("-a").args([base, tree]))?;
    let place = tree.join("test");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))
}

/// Removes a tree, if there is one.
pub(super) fn remove(tree: &Path) -> Outcome {
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", tree.display()))
        }
        _ => Ok(()),
    }
}
