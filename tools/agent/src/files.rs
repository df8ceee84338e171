//! Files for a server: each is whole at any moment, and readable by its owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown, fchown};
use std::path::Path;

/// The serving process' user if root starts the server and no `user` is written.
const NOBODY: u32 = 65534;

/// The owner of a file that root writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The writer's: the master reads it.
    Own,
    /// The serving process', which reads it itself, or writes it.
    Server,
}

/// Makes a folder if it is missing; one for files of the serving process is that process' too.
///
/// # Errors
/// The system's.
pub fn make_folder(folder: &Path, ownership: Ownership) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(folder)?;
    if ownership == Ownership::Server && folder.metadata()?.uid() == 0 {
        chown(folder, Some(NOBODY), None)?;
    }
    Ok(())
}

/// Writes a file by a rename; one that is the same already is left alone. Its folder is made if it
/// is missing.
///
/// # Errors
/// The system's.
pub fn write_file(path: &Path, content: &[u8], ownership: Ownership) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    make_folder(folder, ownership)?;
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let draft = path.with_extension("new");
    let _ = std::fs::remove_file(&draft); // of a run that was ended
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(content)?;
    if ownership == Ownership::Server && file.metadata()?.uid() == 0 {
        fchown(&file, Some(NOBODY), None)?;
    }
    std::fs::rename(&draft, path)
}
