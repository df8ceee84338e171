//! The sources of texts, and the table of those that were read.
//!
//! The master reads the disk and passes its texts on; the serving process parses the same texts
//! again from memory. A loader must not interpret the texts.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::text::text_of;
use crate::tree::FileId;
use crate::{environment, glob};

/// The largest file that is read: far larger than any real configuration, and still harmless.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const NO_SUCH_FILE: i32 = 2;

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

    /// The value of an environment variable; `None`: it is not set.
    fn environment(&self, name: &str) -> Option<Vec<u8>>;
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

    /// One that was handed on with the texts.
    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(&environment::path(name)).cloned()
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
