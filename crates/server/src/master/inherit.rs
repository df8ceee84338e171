//! What a master takes over from the one before it when a binary is changed, and how it is handed
//! on: listening sockets, by their numbers in the environment variable that nginx uses too, so
//! that either can take the other's place; and a link to the master before, where that one wants
//! to be told how the start goes.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use turnpike_lane::gate::Gate;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::process;

use super::gates::GateSet;
use super::{kept, systemd};
use crate::title;

/// nginx's: descriptors of listening sockets, each followed by a semicolon.
const SOCKETS_VARIABLE: &str = "NGINX";
/// Ours: the descriptor of the link between the two masters.
const LINK_VARIABLE: &str = "TURNPIKE_UPGRADE";
/// Ours: the descriptor of the memory that outlives processes.
const KEPT_VARIABLE: &str = "TURNPIKE_KEPT";

/// What was taken over.
#[derive(Debug)]
pub(super) struct Inherited {
    /// The sockets.
    pub(super) gates: GateSet,
    /// The master before.
    pub(super) parent: i32,
    pub(super) link: Option<UnixStream>,
}

/// Takes over what the environment names; `None` when this is not another binary's start. To be
/// called before this process opens anything that lasts.
pub(super) fn take(log: &ErrorLog) -> Option<Inherited> {
    let sockets = env::var(SOCKETS_VARIABLE).ok()?;
    log.event(
        Level::Notice,
        format_args!("using inherited sockets from \"{sockets}\""),
    );
    let mut gates = Vec::new();
    for number in sockets.split_terminator([';', ':']) {
        match adopt(number).and_then(Gate::adopt) {
            Ok(gate) => gates.push(gate),
            Err(error) => log.event(
                Level::Emerg,
                format_args!(
                    "invalid socket number \"{number}\" in {SOCKETS_VARIABLE} environment \
                     variable, ignoring it {}",
                    Errno(&error)
                ),
            ),
        }
    }
    let link = env::var(LINK_VARIABLE).ok();
    let link = link.and_then(|number| adopt(&number).ok());
    let memory = env::var(KEPT_VARIABLE).ok();
    if let Some(memory) = memory.and_then(|number| adopt(&number).ok()) {
        kept::inherit(memory);
    }
    Some(Inherited {
        gates: GateSet::inherited(gates, systemd::has_sockets()),
        parent: process::parent_process(),
        link: link.map(UnixStream::from),
    })
}

fn adopt(number: &str) -> io::Result<OwnedFd> {
    let number = number
        .parse()
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    descriptor::adopt_inherited(number)
}

/// Starts a binary with what this process was started with, the sockets handed on.
///
/// # Errors
/// Those of `dup(2)`, `fork(2)` and `execve(2)`.
pub(super) fn start(
    binary: Option<PathBuf>,
    gates: &GateSet,
    link: Option<OwnedFd>,
) -> io::Result<i32> {
    let sockets = gates.descriptors()?;
    let mut names = String::new();
    let memory = kept::copy()?;
    for socket in sockets.iter().chain(&link).chain(&memory) {
        descriptor::set_close_on_exec(socket.as_fd(), false)?;
    }
    for socket in &sockets {
        names.push_str(&format!("{};", socket.as_raw_fd()));
    }
    let mut command = Command::new(binary.map_or_else(program, Ok)?);
    command
        .args(env::args_os().skip(1))
        .env(SOCKETS_VARIABLE, names);
    match &link {
        Some(link) => command.env(LINK_VARIABLE, link.as_raw_fd().to_string()),
        None => command.env_remove(LINK_VARIABLE),
    };
    match &memory {
        Some(memory) => command.env(KEPT_VARIABLE, memory.as_raw_fd().to_string()),
        None => command.env_remove(KEPT_VARIABLE),
    };
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// The file that this process was started from, by the name it was started under: a package's
/// upgrade has put another file there.
fn program() -> io::Result<PathBuf> {
    let name = title::program();
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = env::current_exe()?.into_os_string();
    let bytes = path.as_bytes();
    let path = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    Ok(PathBuf::from(OsString::from(std::ffi::OsStr::from_bytes(
        path,
    ))))
}
