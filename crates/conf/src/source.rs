//! The sources of texts, disk or memory, and the table of those that were read.
//!
//! The master reads the disk and passes its texts on; the serving process parses the same texts
//! again from memory. A loader must not interpret the texts.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::glob;
use crate::text::text_of;
use crate::tree::FileId;

/// The largest file that is read: far larger than any real configuration, and still harmless.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const NO_SUCH_FILE: i32 = 2;
const FILE_TOO_LARGE: i32 = 27;

/// `O_NONBLOCK`: opening a FIFO would wait for its writer, possibly without end.
const NON_BLOCKING: i32 = 0o4000;

/// The wait for the writer of a FIFO: the user who loads a configuration writes it then.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two checks of a FIFO.
const WRITER_PAUSE: Duration = Duration::from_millis(5);

/// The number of `/dev/null`: major 1, minor 3.
const NULL_DEVICE: u64 = 0x103;

/// Reads files for the parser.
pub trait Loader {
    /// The bytes of a file. An error should have its errno, which the message shows.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// As [`Loader::read`], but also reads a FIFO, and waits for its writer.
    ///
    /// # Errors
    /// As for [`Loader::read`]; `TimedOut` if nothing was written in time.
    fn read_fifo(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }

    /// The existing paths that match a shell pattern, sorted by bytes; no match is no error.
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;
}

/// The loader from disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskLoader;

impl Loader for DiskLoader {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::from_raw_os_error(FILE_TOO_LARGE));
        }
        Ok(bytes)
    }

    fn read_fifo(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).custom_flags(NON_BLOCKING).open(path)?;
        if file.metadata()?.file_type().is_fifo() {
            wait_for_writer(&mut file)
        } else {
            self.read(path)
        }
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(glob::expand(pattern))
    }
}

/// Reads a FIFO until its writer has closed it.
fn wait_for_writer(fifo: &mut File) -> io::Result<Vec<u8>> {
    let given_up = Instant::now() + WRITER_PATIENCE;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while Instant::now() < given_up {
        match fifo.read(&mut buffer) {
            // It also reads as empty before its writer has opened it.
            Ok(0) if !bytes.is_empty() => return Ok(bytes),
            Ok(0) => thread::sleep(WRITER_PAUSE),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(WRITER_PAUSE),
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::from_raw_os_error(FILE_TOO_LARGE));
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Opens a file that cannot block: a regular file, or the null device, which counts as empty.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(NON_BLOCKING).open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    // Reading a directory gives its own error.
    let is_null = kind.is_char_device() && metadata.rdev() == NULL_DEVICE;
    if kind.is_file() || kind.is_dir() || is_null {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// The loader from memory, by the exact paths under which texts were stored.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader(pub BTreeMap<PathBuf, Vec<u8>>);

impl Loader for MemoryLoader {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| io::Error::from_raw_os_error(NO_SUCH_FILE))
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let matching = self
            .0
            .keys()
            .filter(|path| glob::matches_path(pattern, path));
        let mut paths: Vec<PathBuf> = matching.cloned().collect();
        paths.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        Ok(paths)
    }
}

impl<P: Into<PathBuf>, B: Into<Vec<u8>>> FromIterator<(P, B)> for MemoryLoader {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> MemoryLoader {
        MemoryLoader(
            files
                .into_iter()
                .map(|(path, bytes)| (path.into(), bytes.into()))
                .collect(),
        )
    }
}

/// One file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was opened: absolute, or relative to the main file's folder.
    pub path: PathBuf,
    pub bytes: Arc<[u8]>,
    name: String,
}

/// The files that were read, each once, in the order of their first reading; a [`FileId`] is an
/// index.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
    by_path: HashMap<PathBuf, FileId>,
}

impl Sources {
    /// The files in the order of their first reading.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether even the main file could not be read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A file; `None` for the command line.
    pub fn file(&self, id: FileId) -> Option<&Source> {
        self.files.get(id.0 as usize)
    }

    /// A file's path in messages; `None` for the command line.
    pub fn name(&self, id: FileId) -> Option<&str> {
        self.file(id).map(|source| source.name.as_str())
    }

    /// All files in the format of `nginx -T`.
    pub fn dump(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for source in &self.files {
            out.extend_from_slice(b"# configuration file ");
            out.extend_from_slice(source.path.as_os_str().as_bytes());
            out.extend_from_slice(b":\n");
            out.extend_from_slice(&source.bytes);
            out.push(b'\n');
        }
        out
    }

    /// A loader with these files, to parse the same configuration in another process.
    pub fn to_memory(&self) -> MemoryLoader {
        self.files
            .iter()
            .map(|source| (source.path.clone(), source.bytes.to_vec()))
            .collect()
    }

    pub(crate) fn find(&self, path: &Path) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn add(&mut self, path: &Path, bytes: Vec<u8>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let name = text_of(path.as_os_str().as_bytes());
        self.files.push(Source {
            path: path.to_owned(),
            bytes: bytes.into(),
            name,
        });
        self.by_path.insert(path.to_owned(), id);
        id
    }
}
