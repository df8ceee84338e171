//! The files of a configuration, from disk: what the parser, which opens nothing, is given.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_conf::{FILE_BYTES_MAX, Loader, glob};

const FILE_TOO_LARGE: i32 = 27;

/// `O_NONBLOCK`: opening a FIFO would wait for its writer, possibly without end.
const NON_BLOCKING: i32 = 0o4000;

/// The wait for the writer of a FIFO: the user who loads a configuration writes it then.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two checks of a FIFO.
const WRITER_PAUSE: Duration = Duration::from_millis(5);

/// The number of `/dev/null`: major 1, minor 3.
const NULL_DEVICE: u64 = 0x103;

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
        Ok(expand(pattern))
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        std::env::var_os(name).map(OsString::into_vec)
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

/// The existing paths that match, sorted; folders that cannot be read match nothing.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let pattern = pattern.as_os_str().as_bytes();
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (index, part) in pattern.split(|byte| *byte == b'/').enumerate() {
        let mut next = Vec::new();
        for base in found {
            let mut base = base;
            if index > 0 {
                base.push(b'/');
            }
            if glob::is_pattern(part) {
                list(&base, part, &mut next);
            } else {
                base.extend_from_slice(part);
                next.push(base);
            }
        }
        found = next;
    }
    found.sort();
    let paths = found
        .into_iter()
        .map(|path| PathBuf::from(OsStr::from_bytes(&path)));
    paths
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

/// Appends the entries of a folder that match one part of a pattern.
fn list(base: &[u8], part: &[u8], found: &mut Vec<Vec<u8>>) {
    let folder = if base.is_empty() {
        Path::new(".")
    } else {
        Path::new(OsStr::from_bytes(base))
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if glob::matches(part, name.as_bytes()) {
            found.push([base, name.as_bytes()].concat());
        }
    }
}

#[cfg(test)]
mod tests;
