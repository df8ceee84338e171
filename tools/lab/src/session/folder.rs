//! A folder for one run's processes, removed afterwards.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::LabError;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one that servers may enter after they gave up root.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn make() -> Result<Folder, LabError> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnpike-lab-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new()
            .mode(0o755)
            .create(&path)
            .map_err(|error| LabError::file(&path, &error))?;
        Ok(Folder(path))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
