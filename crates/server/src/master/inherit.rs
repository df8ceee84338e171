//! What a master takes over from the one before it when a binary is changed, and how it is handed
//! on: listening sockets, by their numbers in the environment variable that nginx uses too, so
//! that either can take the other's place; and a link to the master before, where that one wants
//! to be told how the start goes. The express lane's program, and a link to the serving process
//! before, are handed on in the same way.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::memfd::{MFdFlags, memfd_create};
use turnpike_express::Passed;
use turnpike_lane::gate::Gate;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::process;

use super::express::Express;
use super::gates::GateSet;
use super::kept::MEMORIES;
use super::systemd;
use crate::channel::SuccessionLinks;
use crate::title;

/// nginx's: descriptors of listening sockets, each followed by a semicolon.
const SOCKETS_VARIABLE: &str = "NGINX";
/// nginx's: the descriptor of the control API's listening socket.
const API_VARIABLE: &str = "NGINX_CTRL";
/// Ours: the descriptor of the link between the two masters.
const LINK_VARIABLE: &str = "TURNPIKE_UPGRADE";
/// Ours: the descriptor of the link to the serving process before, for flows of UDP.
const FLOWS_VARIABLE: &str = "TURNPIKE_FLOWS";
/// Ours: the descriptor of the link to the serving process before, for connections.
const CONNECTIONS_VARIABLE: &str = "TURNPIKE_CONNECTIONS";

/// Ours: the descriptors of the express lane's program, each followed by a semicolon, and what they
/// are.
const EXPRESS_VARIABLE: &str = "TURNPIKE_EXPRESS";

/// What was taken over.
#[derive(Debug)]
pub(super) struct Inherited {
    /// The sockets.
    pub(super) gates: GateSet,
    /// The master before.
    pub(super) parent: i32,
    pub(super) link: Option<UnixStream>,
    /// The control API's socket.
    pub(super) api: Option<OwnedFd>,
    /// The links to the serving process before.
    pub(super) succession: SuccessionLinks,
}

/// What is to be logged once the configuration tells how, in its order.
pub(super) type Said = Vec<(Level, String)>;

/// Takes over what the environment names; `None` when this is not another binary's start. To be
/// called before this process opens anything that lasts.
pub(super) fn take(said: &mut Said) -> Option<Inherited> {
    let sockets = env::var(SOCKETS_VARIABLE).ok()?;
    said.push((
        Level::Notice,
        format!("using inherited sockets from \"{sockets}\""),
    ));
    let mut gates = Vec::new();
    for number in sockets.split_terminator([';', ':']) {
        match adopt(number).and_then(Gate::adopt) {
            Ok(gate) => gates.push(gate),
            Err(error) => said.push((
                Level::Emerg,
                format!(
                    "invalid socket number \"{number}\" in {SOCKETS_VARIABLE} environment \
                     variable, ignoring it {}",
                    Errno(&error)
                ),
            )),
        }
    }
    let adopted = |variable| {
        let number = env::var(variable).ok()?;
        adopt(&number).ok()
    };
    for memory in MEMORIES {
        if let Some(descriptor) = adopted(memory.variable) {
            memory.inherit(descriptor);
        }
    }
    let mut gates = GateSet::inherited(gates, systemd::has_sockets());
    if let Some(passed) = take_express() {
        gates.take_express(passed);
    }
    Some(Inherited {
        gates,
        parent: process::parent_process(),
        link: adopted(LINK_VARIABLE).map(UnixStream::from),
        api: adopted(API_VARIABLE),
        succession: SuccessionLinks {
            flows: adopted(FLOWS_VARIABLE),
            connections: adopted(CONNECTIONS_VARIABLE),
        },
    })
}

fn take_express() -> Option<Passed> {
    let text = env::var(EXPRESS_VARIABLE).ok()?;
    let (numbers, words) = text.split_once(' ')?;
    let descriptors = numbers.split_terminator(';').map(adopt);
    Some(Passed {
        descriptors: descriptors.collect::<io::Result<_>>().ok()?,
        words: words.to_owned(),
    })
}

fn adopt(number: &str) -> io::Result<OwnedFd> {
    let number = number
        .parse()
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    descriptor::adopt_inherited(number)
}

/// Starts a binary with what this process was started with, the sockets handed on. `given` is the
/// text of standard input, which cannot be read twice.
///
/// # Errors
/// Those of `dup(2)`, `fork(2)` and `execve(2)`.
pub(super) fn start(
    binary: Option<PathBuf>,
    gates: &GateSet,
    link: Option<OwnedFd>,
    api: Option<OwnedFd>,
    succession: &SuccessionLinks,
    given: Option<&[u8]>,
) -> io::Result<i32> {
    let sockets = gates.descriptors()?;
    let memories = MEMORIES.map(|memory| memory.copy());
    let memories: Vec<Option<OwnedFd>> = memories.into_iter().collect::<io::Result<_>>()?;
    let express = gates.express().map(Express::pass).transpose()?;
    let passed = express.iter().flat_map(|express| &express.descriptors);
    let SuccessionLinks { flows, connections } = succession;
    let links = link.iter().chain(&api).chain(flows).chain(connections);
    let kept = memories.iter().flatten();
    for descriptor in sockets.iter().chain(links).chain(kept).chain(passed) {
        descriptor::set_close_on_exec(descriptor.as_fd(), false)?;
    }
    let mut command = Command::new(binary.map_or_else(program, Ok)?);
    command
        .args(env::args_os().skip(1))
        .env(SOCKETS_VARIABLE, numbers_of(&sockets));
    let single = [
        (LINK_VARIABLE, &link),
        (API_VARIABLE, &api),
        (FLOWS_VARIABLE, flows),
        (CONNECTIONS_VARIABLE, connections),
    ];
    let variables = MEMORIES.iter().map(|memory| memory.variable);
    for (variable, descriptor) in single.into_iter().chain(variables.zip(&memories)) {
        match descriptor {
            Some(descriptor) => command.env(variable, descriptor.as_raw_fd().to_string()),
            None => command.env_remove(variable),
        };
    }
    match &express {
        Some(Passed { words, descriptors }) => {
            let numbers = numbers_of(descriptors);
            command.env(EXPRESS_VARIABLE, format!("{numbers} {words}"))
        }
        None => command.env_remove(EXPRESS_VARIABLE),
    };
    if let Some(text) = given {
        command.stdin(readable(text)?);
    }
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// A file in memory with a text, at its begin.
fn readable(text: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"configuration", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

/// The numbers of descriptors, each followed by a semicolon.
fn numbers_of(descriptors: &[OwnedFd]) -> String {
    let numbers = descriptors.iter().map(AsRawFd::as_raw_fd);
    numbers.map(|number| format!("{number};")).collect()
}

/// The file that this process was started from, by the name it was started under: a package's
/// upgrade has put another file there. A name without a folder was found in that of the file.
fn program() -> io::Result<PathBuf> {
    let name = title::program();
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = env::current_exe()?.into_os_string();
    let bytes = path.as_bytes();
    let path = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    let path = PathBuf::from(OsString::from(std::ffi::OsStr::from_bytes(path)));
    let named = path.with_file_name(name);
    Ok(if named.exists() { named } else { path })
}
