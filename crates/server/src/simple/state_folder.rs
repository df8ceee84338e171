//! Where a server of the command line keeps what it needs: its certificates, the state of the
//! authority, temporary files.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use turnpike_lane::log::Errno;

use super::self_signed;
use crate::paths::absolute_variable;

/// Root's folder: its serving process is another user, who has to come through.
const OF_ROOT: &str = "/var/lib/turnpike";
const MODE_OF_ROOT: u32 = 0o711;
const MODE: u32 = 0o700;

/// The rights of a key.
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// A folder of state.
#[derive(Clone, Debug)]
pub(super) struct StateFolder {
    folder: PathBuf,
}

impl StateFolder {
    /// The folder of the current user: as the XDG base directory specification has it, or for root
    /// where system services have theirs.
    pub(super) fn of_user() -> StateFolder {
        let user = geteuid();
        let state = absolute_variable("XDG_STATE_HOME");
        if state.is_none() && user.is_root() {
            let folder = PathBuf::from(OF_ROOT);
            return StateFolder { folder };
        }
        let own = state.or_else(|| Some(absolute_variable("HOME")?.join(".local/state")));
        let folder = match own {
            Some(own) => own.join("turnpike"),
            None => env::temp_dir().join(format!("turnpike-{user}")),
        };
        StateFolder { folder }
    }

    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> StateFolder {
        StateFolder {
            folder: folder.to_path_buf(),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a host's own certificate.
    pub(super) fn certificate(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{host}.pem"))
    }

    /// The file of its key.
    pub(super) fn key(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{host}.key"))
    }

    /// Makes the folder where it is missing.
    ///
    /// # Errors
    /// It cannot be made, or somebody else's is there.
    pub(super) fn prepare(&self) -> Result<(), String> {
        let shown = self.folder.display();
        let failed = |error: io::Error| format!("mkdir() \"{shown}\" failed {}", Errno(&error));
        let user = geteuid();
        let mode = if user.is_root() { MODE_OF_ROOT } else { MODE };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(mode);
        builder.create(&self.folder).map_err(failed)?;
        // In a folder for everybody it may be a trap.
        let owner = fs::symlink_metadata(&self.folder).map_err(failed)?.uid();
        if owner == user.as_raw() || owner == 0 {
            Ok(())
        } else {
            Err(format!(
                "\"{shown}\" belongs to somebody else: set XDG_STATE_HOME"
            ))
        }
    }

    /// Makes a certificate for a host where there is none that is good for another month.
    ///
    /// # Errors
    /// What cannot be made or written.
    pub(super) fn prepare_certificate(&self, host: &str) -> Result<(), String> {
        let (certificate, key) = (self.certificate(host), self.key(host));
        let made_at = fs::metadata(&certificate).and_then(|metadata| metadata.modified());
        if made_at.is_ok_and(self_signed::is_fit) && key.exists() {
            return Ok(());
        }
        let made = self_signed::make(host)
            .map_err(|error| format!("no certificate for \"{host}\": {error}"))?;
        replace(&key, &made.key, KEY_MODE)?;
        replace(&certificate, &made.certificate, CERTIFICATE_MODE)
    }
}

/// Replaces a file as a whole.
fn replace(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&new);
        format!("\"{}\" cannot be written {}", path.display(), Errno(&error))
    })
}
