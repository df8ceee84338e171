//! Copies of files and of folders with all that is in them.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use turnpike_lane::files;
use turnpike_lane::sys::file::Links;
use turnpike_plan::relocate;

use super::failure::{Failure, quoted};

/// Entries of a folder that is copied, with those of its folders. More would occupy a thread for
/// minutes, and whoever asks can do it in parts.
const ENTRIES_MAX: usize = 100_000;

/// An entry of a tree.
struct Entry {
    /// Below the tree's folder.
    path: PathBuf,
    metadata: Metadata,
}

/// Copies a folder alone (`Depth: 0`, RFC 4918 section 9.8.3).
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    make_folder(to, &folder_metadata(from)?)
}

/// Copies a folder with everything in it.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    let metadata = folder_metadata(from)?;
    // The list is made first: a copied entry must not be found as something to copy.
    let entries = entries(from)?;
    make_folder(to, &metadata)?;
    for entry in entries {
        let (source, target) = (from.join(&entry.path), to.join(&entry.path));
        if entry.metadata.is_dir() {
            make_folder(&target, &entry.metadata)?;
        } else if entry.metadata.is_symlink() {
            let copied = fs::read_link(&source).and_then(|link| symlink(link, &target));
            copied.map_err(|error| Failure::of("symlink()", &target, &error, 409))?;
        } else if entry.metadata.is_file() {
            // It was no link when it was found.
            copy_file(&source, &target, Links::Refuse)?;
        }
    }
    Ok(())
}

fn folder_metadata(folder: &Path) -> Result<Metadata, Failure> {
    fs::metadata(folder).map_err(|error| Failure::of("stat()", folder, &error, 404))
}

/// Folders stand in front of what is in them.
fn entries(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut next = 0;
    let read = |below: &Path, entries: &mut Vec<Entry>| -> io::Result<()> {
        for entry in fs::read_dir(folder.join(below))? {
            let entry = entry?;
            entries.push(Entry {
                path: below.join(entry.file_name()),
                metadata: entry.metadata()?,
            });
            if entries.len() > ENTRIES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(())
    };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let folder = quoted(folder);
            Failure::new(
                507,
                format!("\"{folder}\" has more than {ENTRIES_MAX} entries"),
            )
        }
        _ => Failure::of("opendir()", folder, &error, 409),
    };
    read(Path::new(""), &mut entries).map_err(failed)?;
    while let Some(entry) = entries.get(next) {
        next += 1;
        if entry.metadata.is_dir() {
            let below = entry.path.clone();
            read(&below, &mut entries).map_err(failed)?;
        }
    }
    Ok(entries)
}

fn make_folder(path: &Path, like: &Metadata) -> Result<(), Failure> {
    let mode = like.permissions().mode() & 0o777;
    let made = DirBuilder::new().mode(mode).create(path);
    made.map_err(|error| Failure::of("mkdir()", path, &error, 409))
}

/// Copies a regular file with its mode and its time. The copy takes the place of what stands there
/// when it is complete.
pub(super) fn copy_file(from: &Path, to: &Path, links: Links) -> Result<(), Failure> {
    let mut source = files::open_regular(from, links).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Failure::no_file(from),
        _ => Failure::of("open()", from, &error, 404),
    })?;
    let copied = relocate::copy(&mut source, to);
    copied.map_err(|error| Failure::of("open()", to, &error, 409))
}

/// Removes a file, or a folder with everything in it. Links are not followed.
pub(super) fn remove(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    if metadata.is_dir() {
        remove_folder(path)
    } else {
        remove_file(path)
    }
}

/// Removes a folder with everything in it. Links are not followed.
pub(super) fn remove_folder(path: &Path) -> Result<(), Failure> {
    fs::remove_dir_all(path).map_err(|error| Failure::of("rmdir()", path, &error, 404))
}

/// Removes a file or a link.
pub(super) fn remove_file(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).map_err(|error| Failure::of("unlink()", path, &error, 404))
}
