//! Giving a file that was written elsewhere its final name.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the ends of names of files in the making are.
const UNFINISHED: &str = ".part";

/// Numbers of copies, so that two never have the same name.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Moves a file to its place, where it takes that of an older one and appears whole, on whatever
/// file system.
///
/// # Errors
/// What the file system says. The file is where it was then, and its place as it was.
pub(crate) fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(from, to),
        moved => moved,
    }
}

/// Copies beside the place first: half a file must not be found there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
            let mut source = File::open(from)?;
            io::copy(&mut source, &mut file)?;
            let metadata = source.metadata()?;
            file.set_permissions(metadata.permissions())?;
            file.set_times(FileTimes::new().set_modified(metadata.modified()?))
        });
    let placed = copied.and_then(|()| fs::rename(&beside, to));
    let rid_of = if placed.is_ok() { from } else { &beside };
    // A file that is left behind serves no worse.
    let _ = fs::remove_file(rid_of);
    placed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_file_arrives_whole_or_not_at_all() {
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
        for (way, moves) in [("moved", relocate as Moves), ("copied", copy)] {
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
        assert!(copy(&from, &folder.join("none/to")).is_err());
        fs::create_dir(folder.join("folder")).unwrap();
        assert!(copy(&from, &folder.join("folder")).is_err());
        assert_eq!(names(), ["folder", "from", "to"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
