//! The pid file: who reads it takes its existence for "the server is up".
//!
//! The master holds a lock on it, so that another start can tell a living master from a file that
//! a dead one has left, whose number may be any process's by now.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::libc;
use turnpike_lane::files;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::file::Links;

use super::trial;

/// Longest pid file that is read: a number of 20 digits and a line feed.
const BYTES_MAX: usize = 21;
/// Attempts to lock the file, and the pause between them: somebody who looks whether it is locked
/// holds a lock for a moment.
const LOCK_ATTEMPTS_MAX: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// A pid file of this process's.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    /// Open for as long as the lock is to be held.
    file: File,
}

impl PidFile {
    /// Writes this process's number.
    ///
    /// # Errors
    /// Those of `open(2)` and `write(2)`.
    pub(super) fn create(path: &Path) -> io::Result<PidFile> {
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            // A master that drains would take it for its own. Where that is not permitted, the file
            // is written over, as nginx does.
            let _ = fs::remove_file(path);
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        for _ in 0..LOCK_ATTEMPTS_MAX {
            if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                break;
            }
            thread::sleep(LOCK_PAUSE);
        }
        Ok(PidFile {
            path: path.to_path_buf(),
            file,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it, for another master to take the place.
    ///
    /// # Errors
    /// Those of `rename(2)`.
    pub(super) fn rename(&mut self, path: PathBuf) -> io::Result<()> {
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    /// Lets another master start in this one's place: this one only finishes.
    pub(super) fn release(&self) {
        // Closing the file does it at the latest.
        let _ = self.file.unlock();
    }

    /// Whether the file is where it was put. Another master may have its own there.
    pub(super) fn is_in_place(&self) -> bool {
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let there = fs::symlink_metadata(&self.path).map(id);
        let own = self.file.metadata().map(id);
        matches!((there, own), (Ok(there), Ok(own)) if there == own)
    }

    /// Removes it, where it is still its own.
    pub(super) fn remove(&self, log: &ErrorLog) {
        if self.path.exists() && !self.is_in_place() {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            let (path, error) = (self.path.display(), Errno(&error));
            log.event(
                Level::Alert,
                format_args!("unlink() \"{path}\" failed {error}"),
            );
        }
    }
}

/// Whether [`PidFile::create`] will work, without a trace: a server may run with this file.
///
/// # Errors
/// Those of `open(2)`.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).custom_flags(libc::O_NONBLOCK);
    let Err(error) = options.open(path) else {
        return Ok(());
    };
    match fs::symlink_metadata(path) {
        // A start replaces a file, and may make one, in a folder that it may write to.
        Ok(there) if there.is_file() || there.is_symlink() => trial::create_beside(path),
        Ok(_) => Err(error),
        Err(_) => trial::create_beside(path),
    }
}

/// The living master whose pid file this is, if there is one.
pub(super) fn holder(path: &Path) -> Option<i32> {
    let file = files::open_regular(path, Links::Follow).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read(path).ok(),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The process number in a pid file.
///
/// # Errors
/// nginx's message.
pub(super) fn read(path: &Path) -> Result<i32, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    files::open_regular(path, Links::Follow)
        .and_then(|file| file.take(BYTES_MAX as u64).read_to_end(&mut bytes))
        .map_err(|error| format!("open() \"{name}\" failed {}", Errno(&error)))?;
    let text = String::from_utf8_lossy(&bytes);
    let number = text.trim_end_matches(['\r', '\n']);
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let process = number.parse().ok().filter(|process| digits && *process > 0);
    process.ok_or_else(|| format!("invalid PID number \"{number}\" in \"{name}\""))
}
