//! What a master keeps of its own life, by owner: how far it has come, its serving processes, its
//! reloads, whoever has started it, what it waits for.

use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Instant;

use turnpike_lane::sys::epoll::{Epoll, Interest};
use turnpike_lane::sys::signal::SignalQueue;

use crate::control::socket::Ticket;
use crate::master::child::Child;
use crate::master::daemon::Launcher;
use crate::master::loaded::LoadedConfiguration;
use crate::master::systemd::Manager;

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    #[default]
    Starting,
    Running,
    Quitting,
    Stopping {
        kill_at: Instant,
    },
}

/// How far the master's life has come.
#[derive(Default, Debug)]
pub(super) struct Lifecycle {
    pub(super) phase: Phase,
    /// When nothing is accepted any more, of a server that ends.
    pub(super) drain_at: Option<Instant>,
    /// The master ends, and not because it was told to.
    pub(super) has_failed: bool,
    pub(super) exit: Option<ExitCode>,
}

/// The serving processes of this master: the one that serves, and those that end.
#[derive(Debug)]
pub(super) struct ServingProcesses {
    pub(super) children: Vec<Child>,
    /// Whether they are processes, not threads of this one (`master_process`).
    pub(super) has_processes: bool,
    /// How many in a row died of their start.
    pub(super) short_lives: u32,
    /// When the next one is started.
    pub(super) restart_at: Option<Instant>,
}

impl ServingProcesses {
    pub(super) fn new(has_processes: bool) -> ServingProcesses {
        ServingProcesses {
            children: Vec::new(),
            has_processes,
            short_lives: 0,
            restart_at: None,
        }
    }
}

/// Reloads: the one under way, and what was asked for since.
#[derive(Default, Debug)]
pub(super) struct Reloads {
    pub(super) pending: Option<Pending>,
    /// Another one was asked for meanwhile.
    pub(super) is_asked_again: bool,
    /// The next one is served by another process: the one that serves has said that it is stuck.
    pub(super) needs_process: bool,
    /// The clients that wait for the next reload's report.
    pub(super) tickets: Vec<Ticket>,
    /// What the last one has logged, from warnings on.
    pub(super) logs: Vec<String>,
}

/// A reload under way.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) loaded: LoadedConfiguration,
    pub(super) generation: u64,
    /// The child that must say Ready.
    pub(super) token: u64,
    /// The clients that wait for the report.
    pub(super) tickets: Vec<Ticket>,
    /// When it was asked for.
    pub(super) since: Instant,
}

/// Attempts to steer sockets that a master before had steered.
#[derive(Debug)]
pub(super) struct Steering {
    pub(super) next_at: Option<Instant>,
    pub(super) tries: u32,
}

impl Steering {
    /// The first attempt, at this moment if there is to be one.
    pub(super) fn first(next_at: Option<Instant>) -> Steering {
        Steering { next_at, tries: 0 }
    }
}

/// The processes that have started this master, and wait for its report.
#[derive(Debug)]
pub(super) struct Starter {
    /// Waits until this server is up.
    pub(super) launcher: Option<Launcher>,
    /// Whether it runs in the background.
    pub(super) is_detached: bool,
    pub(super) manager: Manager,
}

/// What the master waits for.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) signals: SignalQueue,
    pub(super) epoll: Epoll,
    /// The number that was given last in the event queue.
    pub(super) last_token: u64,
}

impl Events {
    /// A queue with the signals in it; tokens up to `last_token` are given.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`.
    pub(super) fn new(signals: SignalQueue, token: u64, last_token: u64) -> io::Result<Events> {
        let epoll = Epoll::new()?;
        epoll.add(signals.as_fd(), Interest::READ, token)?;
        Ok(Events {
            signals,
            epoll,
            last_token,
        })
    }

    /// A number in the event queue that nothing had before.
    pub(super) fn new_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }
}
