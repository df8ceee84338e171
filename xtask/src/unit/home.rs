//! The surroundings of tests that run as the current user: a home folder of their own, and of the
//! caller's environment only what they need to find programs and their toolchain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables that tests are given. The others could change a server under test, as
/// `NOTIFY_SOCKET` of systemd and `http_proxy` do.
const KEPT: &[&str] = &["PATH", "TMPDIR", "USER", "LOGNAME", "RUST_BACKTRACE"];

/// Folders of the toolchain, which are below the caller's home unless they are named.
const TOOLCHAIN: &[(&str, &str)] = &[("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")];

/// An empty home folder, which is removed with it.
pub(super) struct Home {
    folder: PathBuf,
}

impl Home {
    /// Makes the folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create() -> Result<Home, String> {
        let name = format!("turnpike-home-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // What is there already is not ours.
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Home { folder })
    }

    /// A command in these surroundings.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.folder);
        let kept = KEPT.iter().map(|name| (*name, std::env::var_os(name)));
        let toolchain = TOOLCHAIN
            .iter()
            .map(|(name, folder)| (*name, place(name, folder)));
        for (name, value) in kept.chain(toolchain) {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder); // best effort, among temporary files
    }
}

/// A folder of the toolchain.
fn place(name: &str, folder: &str) -> Option<OsString> {
    std::env::var_os(name).or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        Some(home.join(folder).into_os_string())
    })
}
