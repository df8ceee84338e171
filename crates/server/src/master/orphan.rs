//! Finding a serving process whose master is gone, and asking it for what it has.
//!
//! Such a process is found by a socket that its master opened with mode 0600 beside the pid file:
//! whoever can put one there could as well write the pid file. See [`crate::adoption`].

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use turnpike_express::Passed;
use turnpike_lane::log::Errno;
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::epoll::{Epoll, EventBuffer, Interest};
use turnpike_lane::sys::process::ProcessHandle;
use turnpike_lane::sys::socket::{self, Family, Kind};
use turnpike_lane::sys::socket_option::peer_credentials;

use super::child;
use super::gates::GateSet;
use super::loaded::LoadedConfiguration;
use crate::adoption::{self, ADOPT, ADOPT_EXPRESS, FACTS_BYTES_MAX, Facts, OLD_EXTENSION};
use crate::control::socket::PrivateSocket;

/// How long a serving process may take to answer: it may be taking a configuration up, for which
/// busy lanes have five seconds.
const ANSWER_WAIT: Duration = Duration::from_secs(15);

/// A serving process whose master is gone, as it was found. Dropped, it goes on waiting for another
/// one.
#[derive(Debug)]
pub(super) struct Orphan {
    pub(super) facts: Facts,
    pub(super) process: i32,
    pub(super) handle: ProcessHandle,
    pub(super) channel: OwnedFd,
    /// Where it was found.
    pub(super) socket: PrivateSocket,
    pub(super) gates: GateSet,
}

impl Orphan {
    /// Whether it can serve this configuration, and understands what goes over the channel.
    pub(super) fn can_serve(&self, loaded: &LoadedConfiguration) -> bool {
        let settings = &loaded.configuration.settings;
        let environment = child::environment(&settings.process);
        let rights = loaded.needs.rights();
        let unchangeable = adoption::unchangeable(&settings.process, environment, &rights);
        settings.master_process
            && !self.facts.program.is_empty()
            && self.facts.program == adoption::program()
            && self.facts.unchangeable == unchangeable
    }
}

/// Looks for one at `path`, and where an upgrade has renamed that. `lent` are the sockets that
/// systemd has passed.
///
/// # Errors
/// There is one that cannot be had, in words for the log.
pub(super) fn find(path: &Path, prefix: &Path, lent: &GateSet) -> Result<Option<Orphan>, String> {
    for path in [path.to_path_buf(), old_path(path)] {
        let connected = connect(&path);
        let Some(stream) = connected.map_err(|error| trouble(&path, None, &error))? else {
            continue;
        };
        let who = peer_credentials(stream.as_fd()).map(|who| who.process).ok();
        let failed = |error: io::Error| trouble(&path, who, &error);
        let asked = match ask(stream, ADOPT_EXPRESS, &path, lent) {
            // It is of a version that does not know the word.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => connect(&path)
                .and_then(|stream| stream.ok_or(error))
                .and_then(|stream| ask(stream, ADOPT, &path, lent)),
            asked => asked,
        };
        let orphan = asked.map_err(failed)?;
        if !orphan.facts.is_of(prefix) {
            let (process, own) = (orphan.process, orphan.facts.prefix.display());
            return Err(format!(
                "serving process {process} has no master, and is of another prefix (\"{own}\"): \
                 start the server with that one"
            ));
        }
        return Ok(Some(orphan));
    }
    Ok(None)
}

/// Where an upgrade moves the socket.
pub(super) fn old_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(OLD_EXTENSION);
    PathBuf::from(name)
}

fn trouble(path: &Path, process: Option<i32>, error: &io::Error) -> String {
    let path = path.display();
    let (who, rest) = match process {
        Some(process) => (
            format!("serving process {process}, which has no master"),
            format!("; if it hangs, end it with \"kill -9 {process}\" and start the server again"),
        ),
        None => (
            "a serving process without a master".to_owned(),
            String::new(),
        ),
    };
    format!(
        "{who}, could not be taken over at \"{path}\" {}{rest}",
        Errno(error)
    )
}

/// Connects to a serving process without a master; `None` where there is none.
fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let own = nix::unistd::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        // Somebody else may have put it there.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let stream = socket::open(Family::Unix, Kind::Stream)?;
    match socket::connect_unix(stream.as_fd(), path.as_os_str().as_bytes()) {
        Ok(()) => Ok(Some(UnixStream::from(stream))),
        Err(error) => match error.kind() {
            // Both processes are gone: a start as any other.
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        },
    }
}

fn ask(mut stream: UnixStream, word: &str, path: &Path, lent: &GateSet) -> io::Result<Orphan> {
    writeln!(stream, "{word}")?;
    wait_for_answer(stream.as_fd())?;
    let (text, descriptors) = descriptor::receive_parcel(stream.as_fd(), FACTS_BYTES_MAX)?;
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let facts = Facts::parse(&text).ok_or_else(malformed)?;
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(malformed);
    let (channel, listener) = (next()?, next()?);
    let board = facts.has_board.then(&mut next).transpose()?;
    let is_whole = if facts.express.is_empty() {
        descriptors.len() == facts.gates.len()
    } else {
        descriptors.len() > facts.gates.len()
    };
    if !is_whole {
        return Err(malformed());
    }
    let sockets = descriptors.by_ref().take(facts.gates.len());
    let sockets = facts.gates.iter().copied().zip(sockets).collect();
    let mut gates = GateSet::adopted(sockets, board, lent)?;
    if !facts.express.is_empty() {
        gates.take_express(Passed {
            words: facts.express.clone(),
            descriptors: descriptors.collect(),
        });
    }
    // The pair was made by the serving process: the kernel says which one that is.
    let process = peer_credentials(channel.as_fd())?.process;
    Ok(Orphan {
        handle: ProcessHandle::open(process)?,
        process,
        channel,
        socket: PrivateSocket::adopt(path, listener)?,
        gates,
        facts,
    })
}

fn wait_for_answer(stream: BorrowedFd<'_>) -> io::Result<()> {
    let (epoll, mut events) = (Epoll::new()?, EventBuffer::with_capacity(1));
    epoll.add(stream, Interest::READ, 0)?;
    match epoll.wait(&mut events, ANSWER_WAIT.as_millis() as i32)? {
        0 => Err(io::Error::from_raw_os_error(nix::libc::ETIMEDOUT)),
        _ => Ok(()),
    }
}

/// Tells a serving process without a master to end, without waiting for it. Nothing happens where
/// there is none; where one has a master, it hears of it should that die.
pub(super) fn send_away(path: &Path) {
    // Nobody there is what is wanted.
    if let Ok(Some(mut stream)) = connect(path) {
        let _ = writeln!(stream, "{}", adoption::QUIT);
    }
}

/// Tells a serving process without a master to end, and waits until it has heard.
///
/// # Errors
/// It does not answer, in words for the log.
pub(super) fn command(path: &Path, word: &str) -> Result<(), String> {
    let failed = |error: io::Error| trouble(path, None, &error);
    let gone = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let connected = connect(path).and_then(|stream| stream.ok_or_else(gone));
    let mut stream = connected.map_err(failed)?;
    let mut tell = || {
        writeln!(stream, "{word}")?;
        wait_for_answer(stream.as_fd())?;
        let mut answer = [0; adoption::OK.len()];
        stream.read_exact(&mut answer)?;
        if answer == *adoption::OK.as_bytes() {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    };
    tell().map_err(failed)
}

/// Whether a serving process is found there, without asking it for anything: its number.
pub(super) fn look(path: &Path) -> Option<i32> {
    let stream = connect(path).ok().flatten()?;
    peer_credentials(stream.as_fd()).map(|who| who.process).ok()
}
