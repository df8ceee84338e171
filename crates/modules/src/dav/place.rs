//! Where a change is made. Under `disable_symlinks` the folder of a path is opened link by link,
//! and the change is made below the open folder: a link that somebody makes meanwhile leads it
//! nowhere else.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use turnpike_lane::files::{self, SymlinkRule, Symlinks};
use turnpike_lane::sys::file::Links;

use super::failure::Failure;
use crate::common::file_access;

/// A path, and the links on it that are refused.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) symlinks: Symlinks,
    /// The rule for what is in the folder that this is, which may be trusted itself.
    pub(super) inside: SymlinkRule,
}

/// The open folder of a place. The place leads through it as long as it is held.
#[derive(Debug)]
pub(super) struct Reached {
    /// The folder as the place had it, and as it has it now.
    folder: PathBuf,
    open: String,
    _descriptor: OwnedFd,
}

impl Place {
    /// A path with any links.
    #[cfg(test)]
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            symlinks: Symlinks::FOLLOWED,
            inside: SymlinkRule::Off,
        }
    }

    /// Has the path lead through the open folder, if links are refused. Folders that are missing
    /// are made where `mode` is the one of their files.
    ///
    /// # Errors
    /// The folder cannot be opened, or the path is a refused link; `absent` is the status where
    /// there is no folder.
    pub(super) fn reach(
        &mut self,
        mode: Option<u32>,
        absent: u16,
    ) -> Result<Option<Reached>, Failure> {
        if self.symlinks.rule == SymlinkRule::Off {
            return Ok(None);
        }
        let failed = |error: &io::Error| Failure::of("openat()", &self.path, error, absent);
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(failed(&io::Error::from_raw_os_error(libc::ELOOP)));
        };
        let (descriptor, open) =
            open_folder(folder, self.symlinks, mode).map_err(|error| failed(&error))?;
        let path = Path::new(&open).join(name);
        if let Err(error) = metadata(&path, self.symlinks.rule)
            && error.raw_os_error() == Some(libc::ELOOP)
        {
            return Err(failed(&error));
        }
        let reached = Reached {
            folder: folder.to_path_buf(),
            open,
            _descriptor: descriptor,
        };
        self.path = path;
        Ok(Some(reached))
    }
}

impl Place {
    /// Whether a link may be followed in the end: one that is made after it was looked at is not.
    pub(super) fn last_link(&self) -> Links {
        match self.symlinks.rule {
            SymlinkRule::On => Links::Refuse,
            SymlinkRule::Off | SymlinkRule::IfNotOwner => Links::Follow,
        }
    }
}

impl Reached {
    /// The failure of a change, with the path that the place had.
    pub(super) fn restore(&self, failure: &mut Failure) {
        let folder = super::failure::quoted(&self.folder);
        failure.text = failure.text.replace(&self.open, &folder);
    }
}

/// The metadata of what a path stands for, unless it is a link that the rule refuses (`ELOOP`).
///
/// # Errors
/// Those of `stat(2)`, and `ELOOP`.
pub(super) fn metadata(path: &Path, rule: SymlinkRule) -> io::Result<Metadata> {
    let own = fs::symlink_metadata(path)?;
    if !own.is_symlink() {
        return Ok(own);
    }
    let refused = || io::Error::from_raw_os_error(libc::ELOOP);
    match rule {
        SymlinkRule::Off => fs::metadata(path),
        SymlinkRule::On => Err(refused()),
        SymlinkRule::IfNotOwner => {
            let target = fs::metadata(path);
            let is_owners = |target: &Metadata| target.uid() == own.uid();
            // What leads nowhere belongs to nobody.
            target.ok().filter(is_owners).ok_or_else(refused)
        }
    }
}

/// Opens a folder under the rule; returns the path of the descriptor, too. The length of the path
/// limits the recursion.
fn open_folder(
    folder: &Path,
    symlinks: Symlinks,
    mode: Option<u32>,
) -> io::Result<(OwnedFd, String)> {
    let opened = match (open(folder.as_os_str(), symlinks), mode) {
        (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
                return Err(error);
            };
            let (_held, above) = open_folder(above, symlinks, Some(mode))?;
            let made = Path::new(&above).join(name);
            let mode = file_access::of_folder(mode);
            match DirBuilder::new().mode(mode).create(&made) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let below = Symlinks {
                trusted_bytes: above.len(),
                ..symlinks
            };
            open(made.as_os_str(), below)?
        }
        (opened, _) => opened?,
    };
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok((opened, path))
}

fn open(folder: &OsStr, symlinks: Symlinks) -> io::Result<OwnedFd> {
    let opened = files::open_directory(folder.as_bytes(), symlinks);
    opened.map_err(|error| io::Error::from_raw_os_error(error.errno))
}
