//! Log files that can be reopened while threads write to them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::clock;
use crate::sys::{descriptor, file};

/// The mode of a new log file; nginx's.
const FILE_MODE: u32 = 0o644;

/// The mode of a new file with secrets: only its owner reads it.
const SECRET_FILE_MODE: u32 = 0o600;

/// The bits of a mode that let the group and others do something.
const FOREIGN_BITS: u32 = 0o077;

/// The paths of the standard streams of a process.
const OWN_STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];

/// An open log file. Its descriptor can be replaced (reopen) under running writers.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    open: RwLock<Open>,
    /// The second in which the disk was last full: writing pauses for that second, so that a full
    /// disk does not slow every request.
    full_second: AtomicI64,
}

#[derive(Clone, Debug)]
struct Open {
    file: Arc<File>,
    /// The mode of the file where it has to be created again.
    mode: u32,
}

impl LogFile {
    /// Opens or creates the file for appending.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open(path: &Path) -> io::Result<LogFile> {
        LogFile::open_with(path, FILE_MODE)
    }

    /// Opens or creates a file with secrets for appending: others cannot read one that is created.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open_secret(path: &Path) -> io::Result<LogFile> {
        LogFile::open_with(path, SECRET_FILE_MODE)
    }

    fn open_with(path: &Path, mode: u32) -> io::Result<LogFile> {
        let file = Arc::new(open_append(path, mode)?);
        Ok(LogFile::with_file(path, Open { file, mode }))
    }

    /// Uses a descriptor that was opened elsewhere. If only its owner can read the file, that stays
    /// so where it is created again.
    pub fn adopt(path: &Path, descriptor: OwnedFd) -> LogFile {
        LogFile::with_file(path, Open::adopted(descriptor))
    }

    fn with_file(path: &Path, open: Open) -> LogFile {
        LogFile {
            path: path.to_path_buf(),
            open: RwLock::new(open),
            full_second: AtomicI64::new(i64::MIN),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current descriptor.
    pub fn file(&self) -> Arc<File> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&open.file)
    }

    fn replace(&self, open: Open) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
    }

    /// Opens the path again.
    ///
    /// # Errors
    /// Those of `open(2)`; the old descriptor stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        let mode = {
            let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
            open.mode
        };
        let file = Arc::new(open_append(&self.path, mode)?);
        self.replace(Open { file, mode });
        Ok(())
    }

    /// Writes whole lines with one `write(2)`. Errors are dropped.
    pub fn write_line(&self, bytes: &[u8]) {
        // `try_write` has handled the error, and a log has no other place to report it.
        let _ = self.try_write(bytes);
    }

    /// Writes whole lines with one `write(2)`. A full disk pauses the file for a second.
    ///
    /// # Errors
    /// Those of `write(2)`; a short write is `WriteZero`.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<()> {
        let full_second = self.full_second.load(Ordering::Relaxed);
        if full_second != i64::MIN && full_second == clock::second_now() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match (&*self.file()).write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => {
                if error.kind() == io::ErrorKind::StorageFull {
                    self.full_second
                        .store(clock::second_now(), Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }
}

impl Open {
    /// A process that gets its files from another one is not told which have secrets.
    fn adopted(descriptor: OwnedFd) -> Open {
        let file = File::from(descriptor);
        let is_secret = file
            .metadata()
            .is_ok_and(|found| found.is_file() && found.mode() & FOREIGN_BITS == 0);
        Open {
            file: Arc::new(file),
            mode: if is_secret {
                SECRET_FILE_MODE
            } else {
                FILE_MODE
            },
        }
    }
}

/// The reader of a FIFO is never waited for, neither in opening nor in writing, except for our own
/// standard streams: a container's log is a pipe that is read in bursts, and its lines must not be
/// lost.
fn open_append(path: &Path, mode: u32) -> io::Result<File> {
    let file = file::open_append(path.as_os_str().as_bytes(), mode)?;
    if OWN_STREAMS.iter().any(|own| path.starts_with(own)) {
        descriptor::set_non_blocking(file.as_fd(), false)?;
    }
    Ok(file.into())
}

/// The log files of a process, each path once.
#[derive(Clone, Default, Debug)]
pub struct LogSet(BTreeMap<PathBuf, Arc<LogFile>>);

impl LogSet {
    /// An empty set.
    pub fn new() -> LogSet {
        LogSet::default()
    }

    /// The open file with this path.
    pub fn file(&self, path: &Path) -> Option<Arc<LogFile>> {
        self.0.get(path).cloned()
    }

    /// All files, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = &Arc<LogFile>> {
        self.0.values()
    }

    /// Adds an open file; a file that already has this path stays.
    pub fn insert(&mut self, file: Arc<LogFile>) {
        self.0.entry(file.path().to_path_buf()).or_insert(file);
    }

    /// Opens the path unless it is open.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        if let Some(file) = self.file(path) {
            return Ok(file);
        }
        let file = Arc::new(LogFile::open(path)?);
        self.insert(Arc::clone(&file));
        Ok(file)
    }

    /// Adopts a descriptor from the master: a new path is added, and the descriptor of a known one
    /// is replaced while it is in use.
    pub fn adopt(&mut self, path: &Path, descriptor: OwnedFd) {
        match self.0.get(path) {
            Some(file) => file.replace(Open::adopted(descriptor)),
            None => self.insert(Arc::new(LogFile::adopt(path, descriptor))),
        }
    }
}
