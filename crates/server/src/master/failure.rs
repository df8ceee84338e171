//! A call on a path that a start cannot do without: nginx's sentence, and what is missing.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::libc;
use nix::unistd::{AccessFlags, Uid, User, access, geteuid};
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_plan::product::Product;

/// A failure of a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StartFailure {
    /// In nginx's words.
    pub(crate) sentence: String,
    /// The right that is missing, where it is known. A folder that is missing needs no other words.
    pub(crate) advice: Option<String>,
}

impl StartFailure {
    /// The failure of a call, whose name has its parentheses, on a path.
    pub(super) fn of(call: &str, path: &Path, error: &io::Error) -> StartFailure {
        let shown = path.display();
        StartFailure {
            sentence: format!("{call} \"{shown}\" failed {}", Errno(error)),
            advice: advice(path, error),
        }
    }

    /// Logs it. Under nginx's name there is only nginx's line.
    pub(super) fn log(&self, log: &ErrorLog, product: Product) {
        log.event(Level::Emerg, format_args!("{}", self.sentence));
        let advice = self.advice.as_ref();
        if let Some(advice) = advice.filter(|_| product == Product::Turnpike) {
            log.event(Level::Emerg, format_args!("{advice}"));
        }
    }
}

impl From<String> for StartFailure {
    fn from(sentence: String) -> StartFailure {
        StartFailure {
            sentence,
            advice: None,
        }
    }
}

fn advice(path: &Path, error: &io::Error) -> Option<String> {
    let there = path.ancestors().find(|above| above.exists())?;
    match error.raw_os_error()? {
        libc::EACCES | libc::EPERM => missing_right(path),
        libc::EROFS => Some(format!(
            "\"{}\" is read-only for this process: a unit of systemd permits writing by \
             ReadWritePaths",
            there.display()
        )),
        _ => None,
    }
}

/// The first folder on the way to a path that this user may not enter, or the last, if it may not
/// be written.
fn missing_right(path: &Path) -> Option<String> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let lacks = |path: &Path, right| access(path, right) == Err(nix::errno::Errno::EACCES);
    let entered = above.iter().find(|path| lacks(path, AccessFlags::X_OK));
    let (right, place) = match entered {
        Some(place) => ("enter", *place),
        None if lacks(path, AccessFlags::W_OK) => ("write to", path),
        None => {
            let last = path.parent()?;
            lacks(last, AccessFlags::W_OK).then_some(("make anything in", last))?
        }
    };
    let found = std::fs::metadata(place).ok()?;
    let (owner, mode) = (name_of(found.uid()), found.mode() & 0o7777);
    let (user, place) = (name_of(geteuid().as_raw()), place.display());
    Some(format!(
        "user {user} may not {right} \"{place}\", which belongs to {owner} (mode {mode:04o})"
    ))
}

/// A user's name in quotes, or the number of one without a name.
fn name_of(number: u32) -> String {
    match User::from_uid(Uid::from_raw(number)) {
        Ok(Some(user)) => format!("\"{}\"", user.name),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let read_only = "\"/\" is read-only for this process: a unit of systemd permits writing by \
                         ReadWritePaths";
        let cases = [
            (libc::ENOENT, "/nowhere/a/b", None),
            (libc::EROFS, "/nowhere/a", Some(read_only)),
            (libc::ENOSPC, "/nowhere/a", None),
        ];
        for (number, path, expected) in cases {
            let error = io::Error::from_raw_os_error(number);
            let failure = StartFailure::of("mkdir()", Path::new(path), &error);
            assert!(
                failure
                    .sentence
                    .starts_with(&format!("mkdir() \"{path}\" failed ({number}: "))
            );
            assert_eq!(failure.advice.as_deref(), expected, "{path}");
        }
    }
}
