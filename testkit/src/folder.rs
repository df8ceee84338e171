//! A folder for one test, removed at its end unless the test failed.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Folders that processes with our number may have left: far more than tests of one process make.
const LEFT_MAX: u32 = 100_000;

/// A new folder that everyone may read, since serving processes drop their privileges.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates the folder.
    ///
    /// # Errors
    /// It cannot be created among the system's temporary files.
    pub fn create() -> io::Result<Folder> {
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("turnpike-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                // Left by a process that had our number before, or another user's.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if count > LEFT_MAX {
                        return Err(error);
                    }
                }
                made => {
                    made?;
                    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
                    return Ok(Folder { path });
                }
            }
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as text, without a slash at the end.
    ///
    /// # Panics
    /// The system's folder for temporary files is not named in UTF-8.
    pub fn name(&self) -> &str {
        self.path.to_str().expect("a path in UTF-8")
    }

    /// Whether there is a file or a folder of this name.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.path.join(name).exists()
    }

    /// The text of a file; empty if there is none.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let bytes = std::fs::read(self.path.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Arguments with which a server uses the folder as an installation: its configuration is
    /// `nginx.conf` here, its log `error.log`.
    pub fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let common = ["-p", self.name(), "-c", "nginx.conf", "-e", "error.log"];
        common.iter().chain(more).copied().collect()
    }

    /// Writes a file, and creates the folders above it.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.path.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.path); // best effort, among temporary files
        }
    }
}
