//! The files of an issuer's `state_path`: the account, certificates with their keys, and a lock.
//!
//! The folder has the rights 0700 and its files 0600. A file is replaced as a whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_lane::files;
use turnpike_lane::sys::file::Links;

/// The rights of files.
const FILE_MODE: u32 = 0o600;

/// The account's key (PKCS#8, DER in PEM), and its address.
pub(super) const ACCOUNT_KEY: &str = "account.key";
pub(super) const ACCOUNT_URL: &str = "account.url";

/// The file that the process has locked that orders certificates.
const LOCK: &str = "lock";

/// The ends of the first lines of certificates, however they are labelled, and the beginnings; a
/// key stands before them in one file.
const CERTIFICATE: &str = "CERTIFICATE-----";
const BEGIN: &str = "-----BEGIN ";

/// Makes the names of temporary files differ within the process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A folder of state.
#[derive(Clone, Debug)]
pub(super) struct State(PathBuf);

impl State {
    /// The state in this folder. The master makes it, with the rights 0700.
    pub(super) fn new(path: &Path) -> State {
        State(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The text of a file; `None`: there is none.
    ///
    /// # Errors
    /// The error of reading it.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<String>> {
        let file = files::open_regular(&self.0.join(name), Links::Follow);
        match file.and_then(io::read_to_string) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file: whoever reads it sees the old text or the new one.
    ///
    /// # Errors
    /// The error of writing it.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let temporary = self.0.join(format!(".{name}.{process}.{number}"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&temporary)?;
        let written = write_all(file, text).and_then(|()| {
            // The new text is on the disk before it has the name.
            fs::rename(&temporary, self.0.join(name))
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Takes the lock of the folder, held while the file is open; `None`: another process has it.
    ///
    /// # Errors
    /// The error of opening or locking the file.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(self.0.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn write_all(mut file: File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The chain and the key of a file that has both.
pub(super) fn parts(text: &str) -> Option<(String, String)> {
    let (before, _) = text.split_at(text.find(CERTIFICATE)?);
    let (key, chain) = text.split_at(before.rfind(BEGIN)?);
    Some((chain.to_owned(), key.to_owned()))
}

#[cfg(test)]
mod tests {
    //! Tests of files and of the lock.

    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use turnpike_testkit::Folder;

    use super::{State, parts};

    #[test]
    fn files_are_for_their_owner_alone_and_replaced_as_a_whole() {
        let folder = Folder::create().unwrap();
        let state = State::new(folder.path());
        assert_eq!(state.read("a").unwrap(), None);
        for text in ["one", "two"] {
            state.write("a", text).unwrap();
            assert_eq!(state.read("a").unwrap().as_deref(), Some(text));
        }
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(state.path().join("a")), 0o600);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_lock_has_one_holder() {
        let folder = Folder::create().unwrap();
        let state = State::new(folder.path());
        let held = state.lock().unwrap();
        assert!(held.is_some());
        assert!(state.lock().unwrap().is_none());
        drop(held);
        assert!(state.lock().unwrap().is_some());
    }

    #[test]
    fn a_file_has_a_key_and_a_chain() {
        let chain = "-----BEGIN CERTIFICATE-----\na\n-----BEGIN CERTIFICATE-----\nb\n";
        let both = format!("key\n{chain}");
        let (found, key) = parts(&both).unwrap();
        assert_eq!((found.as_str(), key.as_str()), (chain, "key\n"));
        assert!(parts("key").is_none());
    }
}
