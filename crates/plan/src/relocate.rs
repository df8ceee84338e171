//! Moving a file to its final name from any file system.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The suffix of unfinished files.
const UNFINISHED: &str = ".part";

/// The counter of copies, so that each has its own name.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Moves a file to its final path, where it replaces an older one and appears complete, from any
/// file system.
///
/// # Errors
/// The file system's error. The file and the final path are unchanged then.
pub(crate) fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(&mut File::open(from)?, to)?;
            // A leftover file does no harm.
            let _ = fs::remove_file(from);
            Ok(())
        }
        moved => moved,
    }
}

/// Copies a file with its mode and its time. The copy takes the place of what stands at its path
/// once it is complete: nothing that stands there is opened, as a FIFO or a device may be.
///
/// # Errors
/// The file system's error. The final path is unchanged then.
pub fn copy(source: &mut File, to: &Path) -> io::Result<()> {
    let mut beside = to.as_os_str().to_owned();
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    beside.push(format!(".{}.{number}{UNFINISHED}", std::process::id()));
    let beside = PathBuf::from(beside);
    let copied = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            io::copy(source, &mut file)?;
            let metadata = source.metadata()?;
            file.set_permissions(metadata.permissions())?;
            file.set_times(FileTimes::new().set_modified(metadata.modified()?))
        });
    let placed = copied.and_then(|()| fs::rename(&beside, to));
    if placed.is_err() {
        // A leftover file does no harm.
        let _ = fs::remove_file(&beside);
    }
    placed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_file_arrives_complete_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("turnpike-relocate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let names = || -> Vec<_> {
            let entries = fs::read_dir(&folder).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let (from, to) = (folder.join("from"), folder.join("to"));
        let modified = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        type Moves = fn(&Path, &Path) -> io::Result<()>;
        let copies: Moves = |from, to| {
            copy(&mut File::open(from)?, to)?;
            fs::remove_file(from)
        };
        for (way, moves) in [("moved", relocate as Moves), ("copied", copies)] {
            fs::write(&to, "old").unwrap();
            fs::write(&from, way).unwrap();
            let file = OpenOptions::new().write(true).open(&from).unwrap();
            file.set_permissions(fs::Permissions::from_mode(0o640))
                .unwrap();
            file.set_times(FileTimes::new().set_modified(modified))
                .unwrap();
            moves(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), way);
            let metadata = fs::metadata(&to).unwrap();
            assert_eq!(metadata.modified().unwrap(), modified, "{way}");
            assert_eq!(metadata.permissions().mode() & 0o777, 0o640, "{way}");
            assert_eq!(names(), ["to"], "{way}");
        }
        fs::write(&from, "new").unwrap();
        assert!(copies(&from, &folder.join("none/to")).is_err());
        fs::create_dir(folder.join("folder")).unwrap();
        assert!(copies(&from, &folder.join("folder")).is_err());
        assert_eq!(names(), ["folder", "from", "to"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
