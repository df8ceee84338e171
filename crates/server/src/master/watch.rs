//! Files that the configuration in force names, looked at for changes: certificates, keys, lists of
//! revoked certificates. Whoever renews a certificate need not know that the server is there.
//!
//! Only what has changed is read. It counts once it has stayed the same from one look to the next,
//! so that a file is not taken while it is written.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use turnpike_conf::{Loader, MemoryLoader};
use turnpike_host::DiskLoader;

use crate::configuration::Configuration;

/// Between two looks. A change is in force after two of them, and the time of a reload.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// What changes when a file is written or replaced: its number, size, and times in seconds and
/// nanoseconds. `None`: there is none, or it is no regular file.
type Stamp = Option<(u64, u64, [i64; 4])>;

/// What was seen of the files.
#[derive(Default, Debug)]
pub(super) struct FileWatch {
    /// The stamp of each file, and whether its content was looked at since.
    seen: HashMap<PathBuf, (Stamp, bool)>,
    /// When to look next; `None`: there is nothing to look at.
    pub(super) next_at: Option<Instant>,
}

/// What a look has found.
#[derive(Default, Debug)]
pub(super) struct Seen {
    pub(super) changed: Vec<PathBuf>,
    pub(super) gone: Vec<PathBuf>,
}

/// The texts of a configuration, and files as they are on the disk now.
struct Reread(MemoryLoader);

impl FileWatch {
    /// Looks at the files of another configuration from now on.
    pub(super) fn begin(&mut self, configuration: &Configuration) {
        let is_needed = !configuration.watched_files().is_empty();
        self.seen.clear();
        self.next_at = is_needed.then(|| Instant::now() + LOOK_PAUSE);
    }

    /// The files whose content is another one than that in force, and those that are gone, each
    /// told once a change.
    pub(super) fn look(&mut self, configuration: &Configuration) -> Seen {
        self.next_at = Some(Instant::now() + LOOK_PAUSE);
        let mut found = Seen::default();
        for (path, bytes) in configuration.watched_files() {
            let stamp = stamp(&path);
            let Some(seen) = self.seen.get_mut(&path) else {
                self.seen.insert(path, (stamp, false));
                continue;
            };
            if seen.0 == stamp && seen.1 {
                continue;
            }
            // Settled where it is what it was at the last look.
            let is_settled = seen.0 == stamp;
            *seen = (stamp, is_settled);
            if !is_settled {
                continue;
            }
            match stamp {
                Some(_) if fs::read(&path).is_ok_and(|read| *read != *bytes) => {
                    found.changed.push(path);
                }
                // A FIFO has no stamp, and is there.
                None if !path.exists() => found.gone.push(path),
                _ => {}
            }
        }
        found
    }
}

/// What reads a configuration again: its texts as they are in force, its files from the disk. Who
/// wrote a FIFO does not write it again.
pub(super) fn rereading(configuration: &Configuration) -> Box<dyn Loader> {
    let texts = configuration.tree.texts();
    let files = configuration.files().into_iter();
    let kept = files.filter(|(path, _)| stamp(path).is_none() && path.exists());
    Box::new(Reread(texts.chain(kept).collect()))
}

impl Loader for Reread {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if self.0.0.contains_key(path) {
            self.0.read(path)
        } else {
            DiskLoader.read(path)
        }
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.glob(pattern)
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        self.0.environment(name)
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
    let written = [metadata.mtime(), metadata.mtime_nsec()];
    let changed = [metadata.ctime(), metadata.ctime_nsec()];
    let times = [written[0], written[1], changed[0], changed[1]];
    Some((metadata.ino(), metadata.size(), times))
}
