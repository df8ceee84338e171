//! Changes of files. They run on a thread that may block.

use std::fs::{self, DirBuilder, FileTimes, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use turnpike_lane::sys::file::Links;
use turnpike_plan::temporary::{Removal, TemporaryFile, TemporaryFolder};

use super::conditions::Conditions;
use super::failure::{Failure, quoted};
use super::handler::Depth;
use super::locks::{Change, LockZone};
use super::place::{Place, Reached};
use super::{tree, turns};
use crate::common::file_access;

/// A change.
pub(super) enum Job {
    Put(Upload),
    Delete {
        source: Source,
        depth: Depth,
    },
    MakeFolder {
        place: Place,
        mode: u32,
    },
    Transfer {
        source: Source,
        destination: Place,
        overwrites: bool,
        is_move: bool,
        /// Whether a folder goes with what is in it.
        is_whole: bool,
    },
}

/// What a request is for.
pub(super) struct Source {
    pub(super) place: Place,
    /// Whether the path ended with a slash.
    pub(super) is_folder: bool,
}

/// A file that is to be made.
pub(super) struct Upload {
    pub(super) place: Place,
    pub(super) makes_folders: bool,
    pub(super) mode: u32,
    /// When it was modified, in unix seconds.
    pub(super) modified: Option<u64>,
    /// Where an empty file is made.
    pub(super) folder: Arc<TemporaryFolder>,
    /// The body; `None` where it is empty.
    pub(super) file: Option<TemporaryFile>,
}

impl Job {
    /// What is changed, for the locks that may be on it. A PUT is taken for one that replaces a
    /// file: whether there is one is looked up off the lane ([`Job::run_unless_locked`]).
    pub(super) fn changes(&self) -> Vec<(PathBuf, Change)> {
        match self {
            Self::Put(upload) => vec![(upload.place.path.clone(), Change::Content)],
            Self::Delete { source, .. } => vec![(source.place.path.clone(), Change::Removed)],
            Self::MakeFolder { place, .. } => vec![(place.path.clone(), Change::Added)],
            // What stands at the destination is replaced.
            Self::Transfer {
                source,
                destination,
                is_move,
                ..
            } => {
                let source = is_move.then(|| (source.place.path.clone(), Change::Removed));
                let destination = (destination.path.clone(), Change::Removed);
                source.into_iter().chain([destination]).collect()
            }
        }
    }

    /// The files that the request is about.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Put(upload) => vec![upload.place.path.clone()],
            Self::Delete { source, .. } => vec![source.place.path.clone()],
            Self::MakeFolder { place, .. } => vec![place.path.clone()],
            Self::Transfer {
                source,
                destination,
                ..
            } => vec![source.place.path.clone(), destination.path.clone()],
        }
    }

    /// The files that no other request may change meanwhile. Those of a long change are left out:
    /// whoever waits for it occupies a thread.
    fn exclusive(&self) -> Vec<PathBuf> {
        match self {
            Self::Delete { source, .. } | Self::Transfer { source, .. } if source.is_folder => {
                Vec::new()
            }
            Self::Transfer { is_move: false, .. } | Self::MakeFolder { .. } => Vec::new(),
            _ => self.paths(),
        }
    }

    /// What is gone once the change is made.
    pub(super) fn removes(&self) -> Option<&Path> {
        match self {
            Self::Delete { source, .. }
            | Self::Transfer {
                source,
                is_move: true,
                ..
            } => Some(&source.place.path),
            Self::Put(_) | Self::MakeFolder { .. } | Self::Transfer { .. } => None,
        }
    }

    /// Makes the change, unless somebody has locked what it changes since the request came.
    pub(super) fn run_unless_locked(
        self,
        conditions: &Conditions,
        locks: &LockZone,
        tokens: &[Vec<u8>],
        now_ms: u64,
    ) -> Result<u16, Failure> {
        let changes = match &self {
            Self::Put(upload) if !upload.place.path.exists() => {
                vec![(upload.place.path.clone(), Change::Added)]
            }
            _ => self.changes(),
        };
        for (path, change) in changes {
            if !locks.allows(&path, change, tokens, now_ms) {
                return Err(Failure::locked(&path));
            }
        }
        self.run(conditions)
    }

    /// Makes the change if the conditions hold. Returns the status that answers it: 201 or 204.
    pub(super) fn run(self, conditions: &Conditions) -> Result<u16, Failure> {
        let exclusive = self.exclusive();
        let _turn = turns::take(exclusive.iter().map(PathBuf::as_path));
        let mut job = self;
        let reached = job.reach(conditions)?;
        job.change(conditions).map_err(|mut failure| {
            reached.iter().for_each(|place| place.restore(&mut failure));
            failure
        })
    }

    /// Has its places lead through open folders, where links are refused.
    fn reach(&mut self, conditions: &Conditions) -> Result<Vec<Reached>, Failure> {
        let reached = match self {
            Self::Put(upload) => vec![upload.reach(conditions)?],
            Self::Delete { source, .. } => vec![source.place.reach(None, 404)?],
            Self::MakeFolder { place, .. } => vec![place.reach(None, 409)?],
            Self::Transfer {
                source,
                destination,
                ..
            } => vec![
                source.place.reach(None, 404)?,
                destination.reach(None, 409)?,
            ],
        };
        Ok(reached.into_iter().flatten().collect())
    }

    fn change(self, conditions: &Conditions) -> Result<u16, Failure> {
        match self {
            Self::Put(upload) => upload.run(conditions),
            Self::Delete { source, depth } => delete(&source, depth, conditions),
            Self::MakeFolder { place, mode } => {
                let path = place.path;
                if fs::symlink_metadata(&path).is_err() {
                    conditions.check(&path)?;
                }
                let mode = file_access::of_folder(mode);
                let made = DirBuilder::new().mode(mode).create(&path);
                made.map_err(|error| Failure::of("mkdir()", &path, &error, 409))?;
                Ok(201)
            }
            Self::Transfer {
                source,
                destination,
                overwrites,
                is_move,
                is_whole,
            } => {
                let destination = destination.path;
                let replaced = replaced_folder(&source, &destination, overwrites)?;
                conditions.check(&source.place.path)?;
                if let Some(folder) = replaced {
                    tree::remove(&destination, &folder)?;
                }
                let links = source.place.last_link();
                match (source.is_folder, is_move) {
                    (true, true) => move_folder(&source.place.path, &destination),
                    (true, false) if is_whole => {
                        tree::copy_tree(&source.place.path, &destination).map(|()| 201)
                    }
                    (true, false) => {
                        tree::copy_folder(&source.place.path, &destination).map(|()| 201)
                    }
                    (false, true) => move_file(&source.place.path, &destination).map(|()| 204),
                    (false, false) => {
                        tree::copy_file(&source.place.path, &destination, links).map(|()| 204)
                    }
                }
            }
        }
    }
}

impl Upload {
    /// As [`Place::reach`]. Conditions are judged before a folder is made.
    fn reach(&mut self, conditions: &Conditions) -> Result<Option<Reached>, Failure> {
        match self.place.reach(None, 409) {
            Err(failure) if self.makes_folders && failure.status == 409 => {
                conditions.check(&self.place.path)?;
                self.place.reach(Some(self.mode), 409)
            }
            reached => reached,
        }
    }

    fn run(self, conditions: &Conditions) -> Result<u16, Failure> {
        let status = match fs::metadata(&self.place.path) {
            Ok(there) if there.is_dir() => {
                let path = quoted(&self.place.path);
                return Err(Failure::new(
                    409,
                    format!("\"{path}\" could not be created: it is a directory"),
                ));
            }
            Ok(_) => 204,
            Err(_) => 201,
        };
        let parent = self.place.path.parent();
        // Without a folder the answer is 409, whatever the conditions (RFC 9110 section 13.2.1).
        if self.makes_folders || parent.is_some_and(Path::is_dir) {
            conditions.check(&self.place.path)?;
        }
        let folder = parent.filter(|_| self.makes_folders);
        if let Some(folder) = folder {
            let made = file_access::make_folders(folder, self.mode);
            made.map_err(|error| match error.kind() {
                // A file stands where a folder should be.
                ErrorKind::AlreadyExists => Failure::new(
                    409,
                    format!(
                        "\"{}\" could not be created: a file is in its way",
                        quoted(folder)
                    ),
                ),
                _ => Failure::of("mkdir()", folder, &error, 409),
            })?;
        }
        let file = match self.file {
            Some(file) => file,
            None => self
                .folder
                .create(Removal::AtEnd)
                .map_err(|(path, error)| Failure::of("open()", &path, &error, 500))?,
        };
        if let Some(seconds) = self.modified {
            let modified = UNIX_EPOCH + Duration::from_secs(seconds);
            let set = file
                .file()
                .set_times(FileTimes::new().set_modified(modified));
            set.map_err(|error| Failure::of("futimes()", file.path(), &error, 500))?;
        }
        let kept = file.keep_as(&self.place.path, self.mode);
        kept.map_err(|error| Failure::of("rename()", &self.place.path, &error, 409))?;
        Ok(status)
    }
}

fn delete(source: &Source, depth: Depth, conditions: &Conditions) -> Result<u16, Failure> {
    let path = &source.place.path;
    let there = fs::symlink_metadata(path);
    let there = there.map_err(|error| Failure::of("lstat()", path, &error, 404))?;
    match (there.is_dir(), source.is_folder) {
        (true, false) => {
            let path = quoted(path);
            return Err(Failure::new(
                409,
                format!("DELETE \"{path}\" failed: it is a directory"),
            ));
        }
        (false, true) => {
            let path = quoted(path);
            return Err(Failure::new(
                409,
                format!("DELETE \"{path}\" failed: it is not a directory"),
            ));
        }
        (true, true) if depth != Depth::Infinity => {
            return Err(Failure::new(400, "\"Depth\" header must be infinity"));
        }
        (false, false) if depth == Depth::One => {
            return Err(Failure::new(400, "\"Depth\" header must be 0 or infinity"));
        }
        _ => {}
    }
    conditions.check(path)?;
    tree::remove(path, &there)?;
    Ok(204)
}

/// Looks at what stands at both places before anything is changed. Returns what is to be removed:
/// it stands where a folder goes.
fn replaced_folder(
    source: &Source,
    destination: &Path,
    overwrites: bool,
) -> Result<Option<Metadata>, Failure> {
    let from = fs::metadata(&source.place.path);
    let from = from.map_err(|error| Failure::of("stat()", &source.place.path, &error, 404))?;
    if !from.is_dir() && !from.is_file() {
        return Err(Failure::no_file(&source.place.path));
    }
    if from.is_dir() != source.is_folder {
        let path = quoted(&source.place.path);
        let text =
            format!("\"{path}\" must be a directory if and only if its URI ends with a slash");
        return Err(Failure::new(409, text));
    }
    if destination.starts_with(&source.place.path) {
        let path = quoted(destination);
        return Err(Failure::new(
            409,
            format!("the destination \"{path}\" is inside the source"),
        ));
    }
    let to = match fs::symlink_metadata(destination) {
        Ok(to) => to,
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && destination.parent().is_some_and(Path::is_dir) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(Failure::of("lstat()", destination, &error, 409)),
    };
    if to.is_dir() && !source.is_folder {
        let path = quoted(destination);
        return Err(Failure::new(
            409,
            format!("\"{path}\" could not be replaced: it is a directory"),
        ));
    }
    if !overwrites {
        let path = quoted(destination);
        return Err(Failure::new(
            412,
            format!("the destination \"{path}\" exists already"),
        ));
    }
    if source.place.path.starts_with(destination) {
        let path = quoted(&source.place.path);
        return Err(Failure::new(
            409,
            format!("the source \"{path}\" is inside the destination"),
        ));
    }
    Ok(source.is_folder.then_some(to))
}

fn move_folder(from: &Path, to: &Path) -> Result<u16, Failure> {
    match fs::rename(from, to) {
        Ok(()) => {}
        // On another file system it is copied.
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            tree::copy_tree(from, to)?;
            tree::remove_folder(from)?;
        }
        Err(error) => return Err(Failure::of("rename()", to, &error, 409)),
    }
    Ok(201)
}

fn move_file(from: &Path, to: &Path) -> Result<(), Failure> {
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            tree::copy_file(from, to, Links::Refuse)?;
            tree::remove_file(from)
        }
        Err(error) => Err(Failure::of("rename()", to, &error, 409)),
    }
}
