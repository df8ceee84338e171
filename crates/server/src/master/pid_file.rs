//! The pid file: who reads it takes its existence for "the server is up".

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use turnpike_lane::log::{Errno, ErrorLog, Level};

/// Longest pid file that is read: a number of 20 digits and a line feed.
const BYTES_MAX: usize = 21;

/// A pid file of this process's.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes this process's number.
    ///
    /// # Errors
    /// Those of `open(2)` and `write(2)`.
    pub(super) fn create(path: &Path) -> io::Result<PidFile> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .open(path)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        Ok(PidFile {
            path: path.to_path_buf(),
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

    /// Removes it.
    pub(super) fn remove(&self, log: &ErrorLog) {
        if let Err(error) = fs::remove_file(&self.path) {
            let (path, error) = (self.path.display(), Errno(&error));
            log.event(
                Level::Alert,
                format_args!("unlink() \"{path}\" failed {error}"),
            );
        }
    }
}

/// The process number in a pid file.
///
/// # Errors
/// nginx's message.
pub(super) fn read(path: &Path) -> Result<i32, String> {
    let name = path.display();
    let bytes =
        fs::read(path).map_err(|error| format!("open() \"{name}\" failed {}", Errno(&error)))?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]);
    let number = text.trim_end_matches(['\r', '\n']);
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let process = number.parse().ok().filter(|process| digits && *process > 0);
    process.ok_or_else(|| format!("invalid PID number \"{number}\" in \"{name}\""))
}
