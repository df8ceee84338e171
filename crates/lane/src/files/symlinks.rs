//! Opening under a rule for symbolic links: nginx's `disable_symlinks`.
//!
//! The walk begins at a trusted directory and opens each component below the one before, so that a
//! link that is created during the walk cannot lead out of it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{FileError, Operation};
use crate::sys::file::{self, Links, Purpose};

/// The symbolic links that a path may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SymlinkRule {
    /// All (`disable_symlinks off`).
    #[default]
    Off,
    /// None (`on`).
    On,
    /// Links whose owner also owns their target (`if_not_owner`).
    IfNotOwner,
}

/// The rule for one path, and its trusted part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Symlinks {
    /// The rule after the trusted part.
    pub rule: SymlinkRule,
    /// The length of the trusted part in bytes; the byte after it is a slash. 0: no part is
    /// trusted.
    pub trusted_bytes: usize,
}

impl Symlinks {
    /// All links are followed.
    pub const FOLLOWED: Symlinks = Symlinks {
        rule: SymlinkRule::Off,
        trusted_bytes: 0,
    };

    /// The rule for `path`, whose components in `from` (`from=`) are trusted. `from` is ignored if
    /// it is not the start of `path`, or ends inside a component.
    pub fn for_path(rule: SymlinkRule, from: &[u8], path: &[u8]) -> Symlinks {
        let whole = Symlinks {
            rule,
            trusted_bytes: 0,
        };
        if rule == SymlinkRule::Off || from.is_empty() || !path.starts_with(from) {
            return whole;
        }
        match path.get(from.len()) {
            None => Symlinks::FOLLOWED,
            Some(b'/') => Symlinks {
                rule,
                trusted_bytes: from.len(),
            },
            Some(_) if from.ends_with(b"/") => Symlinks {
                rule,
                trusted_bytes: from.len() - 1,
            },
            Some(_) => whole,
        }
    }
}

/// Opens `path` for this purpose, under the rule.
pub(super) fn open_under(
    path: &[u8],
    symlinks: Symlinks,
    purpose: Purpose,
) -> Result<OwnedFd, FileError> {
    if symlinks.rule == SymlinkRule::Off {
        return file::open(path, purpose, Links::Follow)
            .map_err(|error| FileError::new(Operation::Open, &error));
    }
    let trusted = symlinks.trusted_bytes.min(path.len());
    let (start, operation) = match trusted {
        0 if path.starts_with(b"/") => (Some(&b"/"[..]), Operation::OpenAt),
        0 => (None, Operation::OpenAt),
        _ => (Some(&path[..trusted]), Operation::Open),
    };
    let start = match start {
        None => None,
        Some(start) => Some(
            file::open(start, Purpose::LocateDirectory, Links::Follow)
                .map_err(|error| FileError::new(operation, &error))?,
        ),
    };
    walk(start, &path[trusted..], symlinks.rule, purpose)
        .map_err(|error| FileError::new(Operation::OpenAt, &error))
}

/// Opens the last component of `rest`, each component below the one before. A refused link is
/// `ELOOP` as the last component and `ENOTDIR` before it, as in nginx.
///
/// The kernel limits the length of a path, which limits the loop.
fn walk(
    start: Option<OwnedFd>,
    rest: &[u8],
    rule: SymlinkRule,
    purpose: Purpose,
) -> io::Result<OwnedFd> {
    let mut directory = start;
    let mut components = rest
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty());
    let mut name = components.next();
    let ends_in_slash = rest.ends_with(b"/");
    loop {
        let next = components.next();
        let Some(current) = name else {
            return open_below(&directory, b".", purpose, Links::Follow);
        };
        if next.is_none() && !ends_in_slash {
            return open_component(&directory, current, purpose, rule);
        }
        directory = Some(open_component(
            &directory,
            current,
            Purpose::LocateDirectory,
            rule,
        )?);
        name = next;
    }
}

fn open_component(
    directory: &Option<OwnedFd>,
    name: &[u8],
    purpose: Purpose,
    rule: SymlinkRule,
) -> io::Result<OwnedFd> {
    if rule != SymlinkRule::IfNotOwner {
        return open_below(directory, name, purpose, Links::Refuse);
    }
    let target = open_below(directory, name, purpose, Links::Follow)?;
    let name_itself = match below(directory) {
        Some(directory) => file::metadata_at(directory, name, Links::Refuse)?,
        None => file::metadata_of(name, Links::Refuse)?,
    };
    // The owners are compared even if the name is not a link now: it may have been one at opening.
    if file::metadata(target.as_fd())?.user_id != name_itself.user_id {
        return Err(io::Error::from_raw_os_error(libc::ELOOP));
    }
    Ok(target)
}

fn open_below(
    directory: &Option<OwnedFd>,
    name: &[u8],
    purpose: Purpose,
    links: Links,
) -> io::Result<OwnedFd> {
    match below(directory) {
        Some(directory) => file::open_at(directory, name, purpose, links),
        None => file::open(name, purpose, links),
    }
}

fn below(directory: &Option<OwnedFd>) -> Option<BorrowedFd<'_>> {
    directory.as_ref().map(|directory| directory.as_fd())
}
