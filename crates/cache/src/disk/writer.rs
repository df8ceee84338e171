//! The writer of a file whose content comes in pieces.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Seek as _, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::format::{self, Sums};
use super::opening;
use super::{Closing, Description, Disk, FileNumber, HEADER_BYTES, Identity};

/// The suffix of unfinished files.
const UNFINISHED: &str = ".part";

/// The age at which an unfinished file counts as abandoned if its owner cannot be determined.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The prefix of this process's unfinished files: its number, and a part that differs from an
/// earlier process with that number, as happens in containers.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(0) as u32;
    format!("{}.{random:08x}.", std::process::id())
});

/// The counter of unfinished files, so that each has its own name.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The call that failed while a response was written, and its file.
#[derive(Debug)]
pub struct WriteFailure {
    /// The system call with its parentheses, as messages have it.
    pub call: &'static str,
    /// The file that it was about.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

impl WriteFailure {
    pub(crate) fn new(call: &'static str, path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self {
            call,
            path: path.into(),
            error,
        }
    }
}

/// An unfinished file; it is removed with the writer unless it is finished.
pub struct Writer {
    /// `None` only while it is dropped.
    file: Option<File>,
    closing: Closing,
    temporary: PathBuf,
    finished: bool,
    bytes: u64,
    hasher: crc32fast::Hasher,
}

impl Writer {
    /// Begins a file whose final path is `path`.
    ///
    /// # Errors
    /// The system's error: no space, no permission, no folder.
    pub fn begin(disk: &Disk, path: &Path) -> Result<Self, WriteFailure> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}{UNFINISHED}", *PROCESS);
        let temporary = match &disk.settings.temporary_folder {
            Some(folder) => folder.join(name),
            None => {
                let folder = path.parent().unwrap_or(&disk.settings.folder);
                make(folder)?;
                folder.join(name)
            }
        };
        let mut file = opening::create(&temporary)
            .map_err(|error| WriteFailure::new("open()", &temporary, error))?;
        let started = file.write_all(&[0; HEADER_BYTES as usize]);
        let writer = Self {
            file: Some(file),
            closing: disk.settings.closing,
            temporary,
            finished: false,
            bytes: 0,
            hasher: crc32fast::Hasher::new(),
        };
        match started {
            Ok(()) => Ok(writer),
            Err(error) => Err(writer.failure("write()", error)),
        }
    }

    /// Appends content.
    ///
    /// # Errors
    /// The system's error, usually no space. The writer is unusable then.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), WriteFailure> {
        let written = self.file().and_then(|file| file.write_all(piece));
        written.map_err(|error| self.failure("write()", error))?;
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// The bytes of content so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The checksum of the content so far.
    pub(crate) fn crc(&self) -> u32 {
        self.hasher.clone().finalize()
    }

    /// The number of the file.
    pub(crate) fn number(&mut self) -> Result<FileNumber, WriteFailure> {
        let number = self.file().and_then(|file| FileNumber::of_file(file));
        number.map_err(|error| self.failure("fstat()", error))
    }

    /// Writes the description of the content. The file is still under its temporary name.
    pub(crate) fn describe(&mut self, description: &Description) -> Result<(), WriteFailure> {
        let bytes = description.encode();
        let written = self.file().and_then(|file| file.write_all(&bytes));
        written.map_err(|error| self.failure("write()", error))?;
        let sums = Sums {
            body_bytes: self.bytes,
            body_crc: self.crc(),
            description_bytes: bytes.len() as u32,
            description_crc: crc32fast::hash(&bytes),
        };
        let header = format::header(&sums, &description.timing, description.for_head);
        let written = self.file().and_then(|file| file.write_all_at(&header, 0));
        written.map_err(|error| self.failure("pwrite()", error))
    }

    /// Moves the file to its final path, where it replaces an older one.
    ///
    /// # Errors
    /// [`io::ErrorKind::CrossesDevices`]: [`Writer::copy_beside`] helps. Others are the system's.
    pub(crate) fn place(&mut self, path: &Path) -> Result<Identity, WriteFailure> {
        if let Some(folder) = path.parent() {
            make(folder)?;
        }
        let replaced = self.closing.hold(path);
        fs::rename(&self.temporary, path)
            .map_err(|error| WriteFailure::new("rename()", path, error))?;
        self.finished = true;
        if let Some(file) = replaced {
            (self.closing.close)(file);
        }
        let identity = self.file().and_then(|file| Identity::of_file(file));
        identity.map_err(|error| self.failure("fstat()", error))
    }

    /// Copies the file, which is complete, to another temporary name beside its final path, since
    /// the temporary folder is on another file system. This takes as long as the disk needs.
    pub(crate) fn copy_beside(&mut self, path: &Path) -> Result<(), WriteFailure> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(
            ".{}{UNFINISHED}",
            NUMBERS.fetch_add(1, Ordering::Relaxed)
        ));
        let beside = PathBuf::from(beside);
        let copied = opening::create(&beside).and_then(|mut file| {
            let own = self.file()?;
            own.rewind()?;
            io::copy(own, &mut file).map(|_| file)
        });
        match copied {
            Ok(file) => {
                self.file = Some(file);
                let _ = fs::remove_file(&self.temporary);
                self.temporary = beside;
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_file(&beside);
                Err(WriteFailure::new("write()", beside, error))
            }
        }
    }
}

/// Makes the folder of a file.
fn make(folder: &Path) -> Result<(), WriteFailure> {
    fs::create_dir_all(folder).map_err(|error| WriteFailure::new("mkdir()", folder, error))
}

/// Whether a file is unfinished and abandoned.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| name.ends_with(UNFINISHED)) else {
        return false;
    };
    if name.starts_with(&**PROCESS) {
        return false;
    }
    let process = name.split('.').next().and_then(|word| word.parse().ok());
    if process.is_some_and(|process: u32| !is_another_alive(process)) {
        return true;
    }
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > ABANDONED)
}

/// Whether another process with this number exists, as far as can be seen.
fn is_another_alive(process: u32) -> bool {
    let processes = Path::new("/proc");
    process != std::process::id()
        && (processes.join(process.to_string()).exists() || !processes.join("self").exists())
}

impl Writer {
    fn failure(&self, call: &'static str, error: io::Error) -> WriteFailure {
        WriteFailure::new(call, &self.temporary, error)
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.file
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let _ = fs::remove_file(&self.temporary);
        let is_large = self.bytes >= self.closing.bytes_min;
        if let Some(file) = self.file.take_if(|_| is_large) {
            (self.closing.close)(file);
        }
    }
}
