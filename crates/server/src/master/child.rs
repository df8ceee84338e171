//! A serving process (or, without master process, a serving thread), as the master sees it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use turnpike_lane::sys::descriptor::socket_pair;
use turnpike_lane::sys::process::ProcessHandle;
use turnpike_lane::sys::signal;
use turnpike_plan::product::Product;

use crate::channel::{self, Bundle};
use crate::serving;
use crate::settings::ProcessSettings;
use crate::title;

/// The only variable that is kept unless `env` says otherwise: local time depends on it.
const KEPT_VARIABLE: &str = "TZ";

/// What serves.
#[derive(Debug)]
pub(super) enum Server {
    /// A process of this number.
    Process(i32),
    /// A process that another master has started; the handle shows when it ends.
    Adopted {
        /// The number.
        process: i32,
        /// What means it and no other.
        handle: ProcessHandle,
        /// The handle's number in the master's event queue.
        token: u64,
    },
    /// A thread of this process; taken when it has ended.
    Thread(Option<JoinHandle<()>>),
}

/// Where it stands.
///
/// ```text
///  Starting ──Ready──► Serving ──QUIT, TERM, replaced──► Leaving ──► gone
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The process has been sent its first bundle.
    Starting,
    /// The lane or process serves.
    Serving,
    /// The process has been told to end.
    Leaving,
}

/// One server.
#[derive(Debug)]
pub(super) struct Child {
    /// The number in the master's event queue.
    pub(super) token: u64,
    pub(super) server: Server,
    pub(super) state: State,
    pub(super) started: Instant,
    channel: OwnedFd,
    /// The numbers of the listening sockets that it may hold, each with the bundle that it came
    /// with last.
    gates: BTreeMap<u64, u64>,
}

impl Child {
    /// Starts this same program as a serving process. Its end of the channel is its standard
    /// input, so that nothing else need be inherited.
    ///
    /// # Errors
    /// Those of `socketpair(2)`, `fork(2)` and `execve(2)`.
    pub(super) fn process(token: u64, settings: &ProcessSettings) -> io::Result<Child> {
        let (channel, theirs) = socket_pair()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(title::serving(Product::of_program(&title::program())))
            .stdin(Stdio::from(theirs))
            .env_clear();
        command.envs(environment(settings));
        let child = command.spawn()?;
        let process = i32::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Child::new(token, Server::Process(process), channel))
    }

    /// Starts a serving thread in this process.
    ///
    /// # Errors
    /// Those of `socketpair(2)` and of starting a thread.
    pub(super) fn thread(token: u64) -> io::Result<Child> {
        let (channel, theirs) = socket_pair()?;
        let builder = thread::Builder::new().name("serving".to_owned());
        let handle = builder.spawn(move || serving::thread_main(theirs))?;
        Ok(Child::new(token, Server::Thread(Some(handle)), channel))
    }

    /// Takes over a process that another master has started.
    pub(super) fn adopted(token: u64, server: Server, channel: OwnedFd) -> Child {
        Child::new(token, server, channel)
    }

    fn new(token: u64, server: Server, channel: OwnedFd) -> Child {
        Child {
            token,
            server,
            state: State::Starting,
            started: Instant::now(),
            channel,
            gates: BTreeMap::new(),
        }
    }

    /// The master's end of the channel.
    pub(super) fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Has it serve a bundle.
    ///
    /// # Errors
    /// Those of [`channel::send_apply`].
    pub(super) fn apply(&mut self, bundle: &Bundle) -> io::Result<()> {
        let sockets = bundle.listening_sockets.iter();
        self.has_gates(sockets.map(|socket| socket.gate), bundle.generation);
        channel::send_apply(self.channel.as_fd(), bundle)
    }

    /// Notes that it has the listening sockets of these numbers, since a bundle of that number.
    pub(super) fn has_gates(&mut self, numbers: impl Iterator<Item = u64>, generation: u64) {
        self.gates
            .extend(numbers.map(|number| (number, generation)));
    }

    /// Notes that it holds listening sockets no more, unless a bundle that followed that one has
    /// brought them again.
    pub(super) fn has_closed(&mut self, numbers: &[u64], generation: u64) {
        let is_closed =
            |number: &u64, since: &u64| numbers.contains(number) && *since <= generation;
        self.gates.retain(|number, since| !is_closed(number, since));
    }

    /// Whether it may hold the listening socket of this number.
    pub(super) fn may_hold(&self, number: u64) -> bool {
        self.gates.contains_key(&number)
    }

    /// Ends it without asking. A thread cannot be ended so, and goes with the process.
    pub(super) fn kill(&self) {
        self.signal(nix::libc::SIGKILL);
    }

    /// Sends a signal that is to end it.
    pub(super) fn signal(&self, number: i32) {
        // It fails only when the process is gone, which is what was wanted.
        let _ = match &self.server {
            Server::Process(process) => signal::send(*process, number),
            Server::Adopted { handle, .. } => handle.send(number),
            Server::Thread(_) => Ok(()),
        };
    }

    /// Whether it was started by another master.
    pub(super) fn is_adopted(&self) -> bool {
        matches!(self.server, Server::Adopted { .. })
    }

    /// What the log calls it.
    pub(super) fn number(&self) -> i32 {
        match self.server {
            Server::Process(process) | Server::Adopted { process, .. } => process,
            Server::Thread(_) => i32::try_from(std::process::id()).unwrap_or_default(),
        }
    }
}

/// nginx's rule: nothing but TZ and what `env` names.
pub(super) fn environment(settings: &ProcessSettings) -> HashMap<OsString, OsString> {
    let mut environment = HashMap::new();
    let mut keep = |name: &str| {
        if let Some(value) = std::env::var_os(name) {
            environment.insert(OsString::from(name), value);
        }
    };
    keep(KEPT_VARIABLE);
    for (name, value) in &settings.environment {
        if value.is_none() {
            keep(name);
        }
    }
    for (name, value) in &settings.environment {
        if let Some(value) = value {
            environment.insert(OsString::from(name), OsString::from(value));
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Sandbox;

    #[test]
    fn only_named_variables_are_handed_on() {
        let settings = ProcessSettings {
            account: None,
            lanes: 1,
            affinity: None,
            open_files_max: None,
            core_bytes_max: None,
            priority: 0,
            working_directory: None,
            environment: vec![
                ("PATH".to_owned(), None),
                ("TZ".to_owned(), Some("UTC".to_owned())),
                ("TURNPIKE_NOT_SET".to_owned(), None),
            ],
            sandbox: Sandbox::Off,
        };
        let environment = environment(&settings);
        assert_eq!(
            environment.get(&OsString::from("PATH")),
            std::env::var_os("PATH").as_ref()
        );
        assert_eq!(
            environment.get(&OsString::from("TZ")),
            Some(&OsString::from("UTC"))
        );
        assert_eq!(environment.len(), 2);
    }
}
