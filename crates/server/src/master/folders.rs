//! Folders that lanes write to: made at a start, tried by `-t`.
//!
//! One that can be neither made nor written fails both: the requests that need it would fail, each
//! for itself, and a cache would never store.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::unistd::{AccessFlags, access, geteuid};
use turnpike_plan::environment::{Folder, FolderKind};

use super::failure::StartFailure;
use super::trial;
use crate::checked::Checked;
use crate::paths::Places;
use crate::settings::Account;

/// The mode of a folder that is made: its files are for the serving user alone.
const FOLDER_MODE: u32 = 0o700;

/// Makes the folders of a configuration, for the user that serves.
///
/// # Errors
/// The first that cannot be made or written.
pub(super) fn make(checked: &Checked) -> Result<(), StartFailure> {
    let account = account(checked);
    let places = &checked.configuration.paths.places;
    for folder in own_folders(checked) {
        make_one(folder, places, account)
            .map_err(|(call, path, error)| StartFailure::of(call, &path, &error))?;
    }
    Ok(())
}

/// The folders that [`make`] could not make, or that cannot be written.
pub(super) fn failures(checked: &Checked) -> Vec<StartFailure> {
    let mut failures = Vec::new();
    // Those that the start makes first, and others in them.
    let mut makeable: BTreeSet<&Path> = BTreeSet::new();
    let places = &checked.configuration.paths.places;
    for folder in own_folders(checked) {
        let path = folder.path.as_path();
        let is_inside = path.parent().is_some_and(|above| makeable.contains(above));
        let tried = if is_inside {
            Ok(())
        } else {
            try_one(folder, places)
        };
        match tried {
            Ok(()) => {
                makeable.insert(path);
            }
            Err((call, path, error)) => failures.push(StartFailure::of(call, &path, &error)),
        }
    }
    failures
}

/// Folders and files that the serving user cannot reach, although root can make them: a sentence
/// for each.
pub(super) fn unreachable(checked: &Checked) -> Vec<String> {
    let Some(account) = account(checked) else {
        return Vec::new();
    };
    let hidden = own_folders(checked).filter_map(|folder| {
        let above = folder.path.ancestors().skip(1);
        let closed = above.filter(|above| is_closed(above, account)).last()?;
        let (path, closed, name) = (folder.path.display(), closed.display(), &account.name);
        Some(format!(
            "\"{path}\" cannot be written by user \"{name}\", who may not enter \"{closed}\""
        ))
    });
    let replaced = checked.needs.replaced_files.iter().filter_map(|path| {
        let folder = path.parent()?;
        let closed = || {
            path.ancestors()
                .skip(1)
                .any(|above| is_closed(above, account))
        };
        if !is_read_only(folder, account) && !closed() {
            return None;
        }
        let (path, folder, name) = (path.display(), folder.display(), &account.name);
        Some(format!(
            "\"{path}\" cannot be replaced by user \"{name}\", who may not write to \"{folder}\""
        ))
    });
    hidden.chain(replaced).collect()
}

fn account(checked: &Checked) -> Option<&Account> {
    checked.configuration.settings.process.account.as_ref()
}

/// The folders that are the server's to make. The built-in page needs no default ones: it writes
/// nothing, and is served wherever the program runs.
fn own_folders(checked: &Checked) -> impl Iterator<Item = &Folder> {
    let is_built_in = checked.configuration.paths.embedded;
    let folders = checked.needs.folders.iter();
    folders.filter(move |folder| match folder.kind {
        FolderKind::Named => true,
        FolderKind::Default => !is_built_in,
        FolderKind::Foreign => false,
    })
}

/// A failed call, its path, and its error.
type Failed = (&'static str, PathBuf, io::Error);

fn make_one(folder: &Folder, places: &Places, account: Option<&Account>) -> Result<(), Failed> {
    let path = folder.path.as_path();
    let failed = |call| move |error| (call, path.to_path_buf(), error);
    if folder.kind == FolderKind::Default {
        make_above(path, places)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("mkdir()")(error));
        }
        Ok(()) | Err(_) => {}
    }
    if let Some(account) = account {
        let found = fs::metadata(path).map_err(failed("stat()"))?;
        if found.uid() != account.user {
            chown(path, Some(account.user), None).map_err(failed("chown()"))?;
        }
        let mode = found.mode() & 0o7777;
        if mode & FOLDER_MODE != FOLDER_MODE {
            let permissions = Permissions::from_mode(mode | FOLDER_MODE);
            fs::set_permissions(path, permissions).map_err(failed("chmod()"))?;
        }
    }
    writable(path).map_err(failed("access()"))
}

/// Makes the folders above a default one, where an installation's may be missing.
fn make_above(path: &Path, places: &Places) -> Result<(), Failed> {
    let (Some(mode), Some(above)) = (places.mode_above(), path.parent()) else {
        return Ok(());
    };
    let made = if above.exists() {
        Ok(())
    } else {
        // The serving user must reach it, whatever the umask of who starts the server.
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(above)
            .and_then(|()| fs::set_permissions(above, Permissions::from_mode(mode)))
    };
    let owned = made.and_then(|()| match places {
        Places::Folder(_) => is_own(above),
        Places::Prefix | Places::Nginx | Places::Package | Places::Unpackaged => Ok(()),
    });
    owned.map_err(|error| ("mkdir()", above.to_path_buf(), error))
}

/// Whether a folder is this user's: one among temporary files could be anybody's.
fn is_own(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }
}

fn try_one(folder: &Folder, places: &Places) -> Result<(), Failed> {
    let path = folder.path.as_path();
    if fs::symlink_metadata(path).is_ok() {
        // Root gives it to the serving user.
        return writable(path).map_err(|error| ("access()", path.to_path_buf(), error));
    }
    let mut first = path;
    if folder.kind == FolderKind::Default && places.mode_above().is_some() {
        // The start makes what is missing above it.
        first = path
            .ancestors()
            .take_while(|above| !above.exists())
            .last()
            .unwrap_or(path);
    }
    trial::make_folder_beside(first).map_err(|error| ("mkdir()", path.to_path_buf(), error))
}

/// Whether files can be made in a folder by this process; for root only a file system that is
/// read-only prevents it.
fn writable(path: &Path) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    Ok(access(path, AccessFlags::W_OK | AccessFlags::X_OK)?)
}

/// Whether a user may certainly not make files in a folder. An access control list shows as rights
/// of the group.
fn is_read_only(folder: &Path, account: &Account) -> bool {
    let found = fs::metadata(folder);
    found.is_ok_and(|found| {
        let rights = if found.uid() == account.user {
            0o200
        } else {
            0o022
        };
        account.user != 0 && found.mode() & rights == 0
    })
}

/// Whether a user who is not its owner may certainly not enter a folder. An access control list
/// shows as rights of the group.
fn is_closed(folder: &Path, account: &Account) -> bool {
    let found = fs::metadata(folder);
    found.is_ok_and(|found| {
        account.user != 0 && found.uid() != account.user && found.mode() & 0o011 == 0
    })
}
