//! Temporary files, for bodies that do not fit into memory.
//!
//! A file is unlinked as soon as it is open, so that a crash leaves no file behind, unless its name
//! is needed. Reading and writing may wait for the disk, as in nginx.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_conf::{Complaint, ConfError, View};
use turnpike_lane::files::{LARGE_FILE_BYTES, close_on_thread, open_regular};
use turnpike_lane::sys::file::Links;

use crate::environment::{Environment, FolderKind};
use crate::relocate::relocate;

/// The attempts at a free name: others belong to another process, or an earlier one.
const NAMES_MAX: usize = 10_000;

/// The most levels of subfolders; nginx's limit.
const LEVELS_MAX: usize = 3;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A folder for temporary files, from a `*_temp_path` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// The number of characters of the file's name in each level of subfolders, from its end.
    levels: Vec<usize>,
}

/// An open temporary file.
#[derive(Debug)]
pub struct TemporaryFile {
    /// `None` only while it is dropped.
    file: Option<File>,
    path: PathBuf,
    size_bytes: u64,
    removal: Removal,
}

/// The removal of a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The name is removed as soon as the file is open.
    AtOnce,
    /// The file is removed when it is closed.
    AtEnd,
    /// The file stays.
    Never,
}

impl TemporaryFolder {
    /// Checks the words of a directive for such a folder: `path [level1 [level2 [level3]]]`.
    ///
    /// # Errors
    /// The first level that is not a number from 1 to 3.
    pub fn check(_: &str, words: &[&str]) -> Result<(), Complaint> {
        for text in words.iter().skip(1) {
            level(text)?;
        }
        Ok(())
    }

    /// Reads the directive `name`; if it is missing, the folder is the default place of `default`.
    ///
    /// # Errors
    /// nginx's message about levels that are not numbers, or too large.
    pub fn read(
        view: View<'_>,
        name: &str,
        default: &str,
        environment: &dyn Environment,
    ) -> Result<Self, ConfError> {
        let Some(entry) = view.nearest(name) else {
            return Ok(Self {
                path: environment.default_place(default),
                levels: Vec::new(),
            });
        };
        let mut levels = Vec::new();
        for word in entry.arguments.iter().skip(1) {
            levels.push(level(&word.text).map_err(|message| view.error(entry.span, message))?);
        }
        Ok(Self {
            path: environment.prefix().join(entry.argument(0)),
            levels,
        })
    }

    /// Declares the folder of the directive `name` in this block itself and, at the http level, the
    /// default one if the directive is missing. It must be called for every block.
    pub fn declare(view: View<'_>, name: &str, default: &str, environment: &mut dyn Environment) {
        let is_outermost = view.parent().is_none_or(|outer| outer.parent().is_none());
        match view.own(name) {
            Some(entry) => environment.folder(Path::new(entry.argument(0)), FolderKind::Named),
            None if is_outermost => {
                let place = environment.default_place(default);
                environment.folder(&place, FolderKind::Default);
            }
            None => {}
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a new file in it, readable and writable for its owner.
    ///
    /// # Errors
    /// The file system's error, and the path.
    pub fn create(&self, removal: Removal) -> Result<TemporaryFile, (PathBuf, io::Error)> {
        let mut path = self.next_path();
        for _ in 0..NAMES_MAX {
            match open_new(&path) {
                Ok(file) => {
                    if removal == Removal::AtOnce {
                        // If this fails, a leftover file does no harm.
                        let _ = std::fs::remove_file(&path);
                    }
                    return Ok(TemporaryFile {
                        file: Some(file),
                        path,
                        size_bytes: 0,
                        removal,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = self.next_path();
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.make_folders(&path)
                        .map_err(|error| (path.clone(), error))?;
                }
                Err(error) => return Err((path, error)),
            }
        }
        Err((path, io::ErrorKind::AlreadyExists.into()))
    }

    /// nginx's names: ten digits, in subfolders named by the last of them.
    fn next_path(&self) -> PathBuf {
        let name = format!("{:010}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut path = self.path.clone();
        let mut end = name.len();
        for level in &self.levels {
            let start = end.saturating_sub(*level);
            path.push(name.get(start..end).unwrap_or_default());
            end = start;
        }
        path.push(name);
        path
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        DirBuilder::new().recursive(true).mode(0o700).create(parent)
    }
}

impl TemporaryFile {
    /// The bytes written.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The name at its creation; it may be unlinked.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same as bytes.
    pub fn path_bytes(&self) -> &[u8] {
        self.path.as_os_str().as_bytes()
    }

    /// Whether its name is meant to be used.
    pub fn is_named(&self) -> bool {
        self.removal != Removal::AtOnce
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("it is open until it is dropped"),
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The file system's error; none of these bytes count then.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file().write_all_at(bytes, self.size_bytes)?;
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Appends up to `bytes_max` bytes from `offset` on to `out`; returns their number.
    ///
    /// # Errors
    /// The file system's error; `UnexpectedEof` if written bytes are missing.
    pub fn read(&self, offset: u64, bytes_max: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        let left = self.size_bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max);
        let start = out.len();
        out.resize(start + wanted, 0);
        let read = self.file().read_exact_at(&mut out[start..], offset);
        if read.is_err() {
            out.truncate(start);
        }
        read.map(|()| wanted)
    }

    /// Gives the file its final name and mode.
    ///
    /// # Errors
    /// The file system's error; that name is unchanged then.
    pub fn keep_as(mut self, path: &Path, mode: u32) -> io::Result<()> {
        let permissions = std::fs::Permissions::from_mode(mode);
        self.file().set_permissions(permissions)?;
        let replaced = hold(path);
        relocate(&self.path, path)?;
        if let Some(file) = replaced {
            close_on_thread(file);
        }
        self.removal = Removal::Never;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.removal == Removal::AtEnd {
            // The error can no longer be reported.
            let _ = std::fs::remove_file(&self.path);
        }
        let is_freed = self.removal != Removal::Never && self.size_bytes >= LARGE_FILE_BYTES;
        if let Some(file) = self.file.take_if(|_| is_freed) {
            close_on_thread(file);
        }
    }
}

/// Opens a large file that is about to be replaced, so that its blocks are not freed by that.
fn hold(path: &Path) -> Option<File> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let is_large = metadata.is_file() && metadata.len() >= LARGE_FILE_BYTES;
    is_large.then(|| open_regular(path, Links::Refuse).ok())?
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// One level of folders: the number of characters in their names.
fn level(text: &str) -> Result<usize, Complaint> {
    let level = text.parse().ok();
    let level = level.filter(|level| (1..=LEVELS_MAX).contains(level));
    level.ok_or_else(|| format!("invalid value \"{text}\"").into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_are_below_their_levels_and_are_removed() {
        let folder =
            std::env::temp_dir().join(format!("turnpike-temporary-{}", std::process::id()));
        let levels = TemporaryFolder {
            path: folder.clone(),
            levels: vec![1, 2],
        };
        let mut file = levels.create(Removal::AtEnd).unwrap();
        file.append(b"hello, ").unwrap();
        file.append(b"world").unwrap();
        let mut read = Vec::new();
        assert_eq!(file.read(7, 100, &mut read).unwrap(), 5);
        assert_eq!(read, b"world");
        let path = file.path().to_path_buf();
        assert_eq!(path.strip_prefix(&folder).unwrap().iter().count(), 3);
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
        let unnamed = levels.create(Removal::AtOnce).unwrap();
        assert!(!unnamed.path().exists());
        let kept = levels.create(Removal::AtEnd).unwrap();
        let name = folder.join("kept");
        kept.keep_as(&name, 0o640).unwrap();
        assert!(name.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
