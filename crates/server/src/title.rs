//! The master's name in `ps`, as nginx shows it: what it is, then how it was started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Begins the name of a master.
const TITLE: &str = "turnpike: master process ";

/// Starts this program anew under its title, in the same process: the only way to a title of any
/// length that needs no writing to memory which the C library owns. It costs a millisecond.
///
/// Returns under the title, and under the old name when the program cannot be started anew.
pub(crate) fn take(name: &OsStr, arguments: &[OsString]) {
    if name.as_bytes().starts_with(TITLE.as_bytes()) {
        return;
    }
    let mut title = OsString::from(TITLE);
    title.push(name);
    // It returns only with an error, and a plain name does as well.
    let _ = Command::new("/proc/self/exe")
        .arg0(title)
        .args(arguments)
        .exec();
}

/// The name under which the program was started, without the title.
pub(crate) fn program() -> OsString {
    let name = std::env::args_os().next().unwrap_or_default();
    match name.as_bytes().strip_prefix(TITLE.as_bytes()) {
        Some(name) => OsStr::from_bytes(name).to_os_string(),
        None => name,
    }
}
