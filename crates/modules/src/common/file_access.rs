//! Permissions of the files that requests make: `..._store_access` and `dav_access`.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use turnpike_conf::{Complaint, ConfError, Entry, View};

/// Mode of files unless the directive says otherwise.
const MODE: u32 = 0o600;

/// The mode of files that a directive asks for.
///
/// # Errors
/// nginx's words for access that is none.
pub(crate) fn read(view: View<'_>, entry: Option<&Entry>) -> Result<u32, ConfError> {
    let Some(entry) = entry else {
        return Ok(MODE);
    };
    let (mut mode, mut user) = (0, 0o6);
    for word in entry.arguments.iter() {
        let parsed = rights(&word.text);
        let Some((shift, rights)) = parsed else {
            let message = format!("invalid value \"{}\"", word.text);
            return Err(view.error(entry.span, message));
        };
        if shift == 6 {
            user = 0;
        }
        mode |= rights << shift;
    }
    Ok(mode | user << 6)
}

/// Mode of the folders of such files: who may read a file may look into its folder.
pub(crate) fn of_folder(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

/// Makes a folder for files of this mode, and those above it that are missing.
///
/// # Errors
/// What the file system says.
pub(crate) fn make_folders(folder: &Path, mode: u32) -> io::Result<()> {
    let mode = of_folder(mode);
    DirBuilder::new().recursive(true).mode(mode).create(folder)
}

/// `users:permissions ...`.
pub(crate) fn check_access(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let checked = words.iter().map(|word| match rights(word) {
        Some(_) => Ok(()),
        None => Err(format!("invalid value \"{word}\"").into()),
    });
    checked.collect()
}

/// Bits of a file's mode, and how far they are shifted.
fn rights(text: &str) -> Option<(u32, u32)> {
    let (who, rights) = text.split_once(':')?;
    let shift = match who {
        "user" => 6,
        "group" => 3,
        "all" => 0,
        _ => return None,
    };
    let rights = match rights {
        "r" => 0o4,
        "rw" => 0o6,
        _ => return None,
    };
    Some((shift, rights))
}
