//! An ordinary user for test executables, without privileges and without the caller's environment.
//! The user can read the checkout in its place, even below a folder that is closed to it, such as
//! `/root` or one of mktemp(1).

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace;

/// Debian's "nobody": every machine has it, and it owns no files.
pub(super) const UID: u32 = 65534;

/// Debian's PATH for users who log in: no `sbin`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Shows the folders of `$1`, one a line, under their own names below `$2`, a closed folder that
/// is replaced in this mount namespace alone. `$3` is an empty folder elsewhere. The rest is the
/// command to run.
const OPEN: &str = r#"set -e
umask 022
folders=$1 closed=$2 stage=$3 here=$PWD
shift 3
mount -t tmpfs -o mode=755 none "$stage"
IFS='
'
number=0
for folder in $folders; do
  number=$((number + 1))
  mkdir "$stage/$number"
  mount --bind "$folder" "$stage/$number"
done
mount -t tmpfs -o mode=755 none "$closed"
number=0
for folder in $folders; do
  number=$((number + 1))
  mkdir -p "$folder"
  mount --bind "$stage/$number" "$folder"
done
cd "$here"
exec "$@"
"#;

/// The user with its own folder, which is removed with it.
pub(super) struct User {
    home: PathBuf,
    /// The prefix of a command that opens the way to it.
    way: Vec<String>,
}

impl User {
    /// The user, once it is known that it can read the checkout and these files.
    ///
    /// # Errors
    /// It cannot, or it gets no folder.
    pub(super) fn ordinary(files: &[&Path]) -> Result<User, String> {
        let home = std::env::temp_dir().join(format!("turnpike-user-{}", std::process::id()));
        // Root gives it away: what is there already is not ours to give.
        let made = std::fs::create_dir(&home)
            .and_then(|()| std::fs::create_dir(home.join("stage")))
            .and_then(|()| std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)))
            .and_then(|()| chown(&home, Some(UID), Some(UID)));
        made.map_err(|error| format!("{}: {error}", home.display()))?;
        let mut user = User {
            home,
            way: Vec::new(),
        };
        if user.can_read(files) {
            return Ok(user);
        }
        user.way = user.opened();
        if user.can_read(files) {
            return Ok(user);
        }
        Err(format!(
            "user {UID} cannot read {}, and it cannot be shown to that user elsewhere: put the \
             checkout where every user can read it, or run `cargo xtask unit --once`",
            workspace::root().display()
        ))
    }

    /// A command of this user.
    pub(super) fn command(&self, program: &Path) -> Command {
        let id = UID.to_string();
        let mut line = self.way.clone();
        line.extend(["setpriv", "--clear-groups", "--inh-caps=-all"].map(str::to_owned));
        line.extend([format!("--reuid={id}"), format!("--regid={id}")]);
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .arg("--")
            .arg(program)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home);
        command
    }

    fn can_read(&self, files: &[&Path]) -> bool {
        let manifest = workspace::root().join("Cargo.toml");
        let mut command = self.command(Path::new("sh"));
        command
            .args([
                "-c",
                "for file in \"$@\"; do test -r \"$file\" || exit 1; done",
                "sh",
            ])
            .arg(manifest)
            .args(files)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        // The caller's own place may be closed to the user.
        command.current_dir("/");
        command.status().is_ok_and(|status| status.success())
    }

    /// The way through a mount namespace in which the closed folder shows the checkout alone.
    fn opened(&self) -> Vec<String> {
        let mut folders = vec![workspace::root()];
        let target = workspace::target();
        if !target.starts_with(workspace::root()) {
            folders.push(target);
        }
        let Some(closed) = folders.iter().find_map(|folder| first_closed(folder)) else {
            return Vec::new();
        };
        // Others are left as they are: only one folder can be replaced.
        folders.retain(|folder| folder.starts_with(&closed));
        let names: Vec<String> = folders.iter().map(|at| at.display().to_string()).collect();
        let mut way: Vec<String> = ["unshare", "--mount", "sh", "-c", OPEN, "sh"]
            .map(str::to_owned)
            .to_vec();
        way.push(names.join("\n"));
        way.push(closed.display().to_string());
        way.push(self.home.join("stage").display().to_string());
        way
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home); // best effort, among temporary files
    }
}

/// The outermost folder on the way to a path that others may not pass through.
fn first_closed(path: &Path) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
    ancestors.reverse();
    let is_closed = |folder: &&&Path| {
        std::fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 == 0)
    };
    ancestors
        .iter()
        .find(is_closed)
        .map(|folder| folder.to_path_buf())
}

#[cfg(test)]
mod tests;
