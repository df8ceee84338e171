//! Trust in the program of a process, before root runs it: the process has to be root's, and nobody
//! else may be able to change the program. A pid file may be written by others than root, and a
//! process calls itself what it likes. Nothing is run here.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::stat::Mode;

/// The user and the group of the machine's owner.
const ROOT: u32 = 0;

/// What decides about who can change a file, or what is in a folder.
#[derive(Clone, Copy)]
struct Rights {
    user: u32,
    group: u32,
    mode: u32,
}

/// Checks that a process is root's, runs the file that its program's path leads to, and that only
/// root can put something else there.
///
/// # Errors
/// What is not so, in words.
pub(super) fn check(process: u32, program: &Path) -> Result<(), String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.map_err(|error| format!("process {process}: {error}"))?;
    if !is_roots(&status) {
        return Err(format!(
            "process {process} is not root's: root does not run the program of another user"
        ));
    }
    let name = program.display();
    let failed = |error| format!("{name}: {error}");
    let file = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let run = std::fs::metadata(format!("/proc/{process}/exe")).map_err(failed)?;
    let found = std::fs::symlink_metadata(program).map_err(failed)?;
    if file(run) != file(found) {
        return Err(format!("{name} is not the program of process {process}"));
    }
    check_path(program, |path| {
        std::fs::symlink_metadata(path).map(|metadata| Rights {
            user: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode(),
        })
    })
}

/// Whether all users of a process are root: the real, effective, saved and file system's one. What
/// a user starts with the rights of root keeps that user as the real one.
fn is_roots(status: &str) -> bool {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.is_some_and(|users| {
        let mut users = users.split_ascii_whitespace().peekable();
        users.peek().is_some() && users.all(|user| user.parse() == Ok(ROOT))
    })
}

/// Checks the program and all folders on the way to it: whoever can write to one can put another
/// program, or another folder, in its place.
fn check_path(program: &Path, rights: impl Fn(&Path) -> io::Result<Rights>) -> Result<(), String> {
    let name = program.display();
    for path in program.ancestors() {
        let rights = rights(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let is_folder = path != program;
        if rights.user != ROOT || is_open(rights, is_folder) {
            return Err(format!(
                "{name} is not run by root, since others than root can change {}",
                path.display()
            ));
        }
    }
    Ok(())
}

/// Whether others than root can write. In a folder with the sticky bit, they cannot put anything
/// in the place of what is root's, and what is below is.
fn is_open(rights: Rights, is_folder: bool) -> bool {
    let has = |bit: Mode| rights.mode & bit.bits() != 0;
    let group_can = has(Mode::S_IWGRP) && rights.group != ROOT;
    (group_can || has(Mode::S_IWOTH)) && !(is_folder && has(Mode::S_ISVTX))
}

#[cfg(test)]
mod tests;
