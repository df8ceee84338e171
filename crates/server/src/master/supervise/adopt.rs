//! A serving process that outlives its master: where it is found, and how another master goes on
//! with it.
//!
//! ```text
//!  found ─► sent this configuration ─Ready─► served, as after a reload
//!    │
//!    └─ of another program, user or environment: another one is started on its sockets,
//!       and when that is Ready this one drains
//! ```
//!
//! Until then, and when the start fails, it serves as before.

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Interest;

use super::Master;
use super::state::Phase;
use crate::adoption::BACKLOG;
use crate::channel::{self, End};
use crate::control::socket::PrivateSocket;
use crate::master::child::{Child, Server, State};
use crate::master::gates::GateSet;
use crate::master::kept;
use crate::master::orphan::{self, Orphan};

/// Questions are counted from here on, times this process's number: those of the last master have
/// smaller numbers, or another master's.
const QUESTIONS: u64 = 1 << 32;

/// What this has to do with adoption.
#[derive(Default, Debug)]
pub(super) struct Adoption {
    /// Where another master finds the serving process when this one is gone.
    pub(super) socket: Option<PrivateSocket>,
    /// The sockets that were taken over, until this configuration is served.
    taken: Option<GateSet>,
}

impl Master {
    /// Goes on with a serving process whose master is gone.
    pub(super) fn adopt(&mut self, orphan: Orphan) -> io::Result<()> {
        let process = orphan.process;
        let message = format_args!("taking over serving process {process}, which has no master");
        self.log.event(Level::Notice, message);
        let can_serve = orphan.can_serve(&self.loaded);
        kept::restore_changes(&orphan.facts.changes);
        self.generation = orphan.facts.generation;
        self.control.counts = orphan.facts.counts;
        self.control
            .asked
            .count_from(u64::from(std::process::id()) * QUESTIONS);
        self.adoption.socket = Some(orphan.socket);
        let (channel_token, token) = (self.events.new_token(), self.events.new_token());
        self.events
            .epoll
            .add(orphan.handle.as_fd(), Interest::READ, token)?;
        let server = Server::Adopted {
            process,
            handle: orphan.handle,
            token,
        };
        let mut child = Child::adopted(channel_token, server, orphan.channel);
        child.has_gates(orphan.gates.numbers(), self.generation);
        orphan.gates.stop_listening_except(&self.loaded.gates);
        self.adoption.taken = Some(orphan.gates);
        if !can_serve {
            // What it says need not be understood.
            child.state = State::Leaving;
            self.serving.children.push(child);
            return self.start_serving();
        }
        self.events
            .epoll
            .add(child.channel(), Interest::READ, channel_token)?;
        self.generation += 1;
        let bundle = self.loaded.bundle(self.generation)?;
        child.apply(&bundle)?;
        self.serving.children.push(child);
        Ok(())
    }

    /// This configuration is served: what only the last master's needed goes.
    pub(super) fn settle_adoption(&mut self) {
        let Some(taken) = self.adoption.taken.take() else {
            return;
        };
        taken.unlink_except(&self.loaded.gates, &self.log);
        self.loaded.gates.keep_closing(taken);
        self.close_gates();
        for child in self
            .serving
            .children
            .iter()
            .filter(|child| child.is_adopted())
        {
            if child.state == State::Leaving {
                // One that cannot be told is gone, and its end will be noticed.
                let _ = channel::send_end(child.channel(), End::Drained);
            }
        }
        // Files may have been moved while nobody told it so.
        self.reopen();
    }

    /// The start has failed: who was taken over is as before. `false`: nobody was.
    pub(super) fn give_back(&mut self) -> bool {
        let Some(taken) = self.adoption.taken.take() else {
            return false;
        };
        taken.hear_again();
        let mut adopted = self.serving.children.iter().filter(|one| one.is_adopted());
        if !adopted.any(|child| child.state == State::Serving) {
            // It has not taken up the program that this start may have put in place of its own.
            taken.renew_express();
        }
        true
    }

    /// Whether an event says that a process which was taken over has ended.
    pub(super) fn is_adopted_end(&self, token: u64) -> bool {
        self.index_of_adopted(token).is_some()
    }

    fn index_of_adopted(&self, token: u64) -> Option<usize> {
        let mut children = self.serving.children.iter();
        children.position(
            |child| matches!(child.server, Server::Adopted { token: own, .. } if own == token),
        )
    }

    /// The process is another one's child: only that one learns how it ended.
    pub(super) fn adopted_ended(&mut self, token: u64) {
        let Some(index) = self.index_of_adopted(token) else {
            return;
        };
        let (level, process) = match self.serving.children[index].state {
            State::Leaving => (Level::Notice, self.serving.children[index].number()),
            State::Starting | State::Serving => {
                (Level::Alert, self.serving.children[index].number())
            }
        };
        let message = format_args!("worker process {process}, which was taken over, exited");
        self.log.event(level, message);
        self.drain_replies(index);
        let child = self.serving.children.remove(index);
        if let Server::Adopted { handle, .. } = &child.server {
            // It was added when the process was taken over.
            let _ = self.events.epoll.delete(handle.as_fd());
        }
        self.child_gone(&child);
    }

    /// Listens where the configuration says, and tells the serving processes. Where that place
    /// cannot be had, they end with this master as they did before.
    pub(super) fn place_adoption(&mut self) {
        if !self.serving.has_processes {
            return;
        }
        let wanted = self.loaded.configuration.settings.adoption.clone();
        let current = self.adoption.socket.as_ref().map(PrivateSocket::path);
        if current != wanted.as_deref() {
            self.move_adoption(wanted);
        }
        self.tell_adoption();
    }

    fn move_adoption(&mut self, wanted: Option<PathBuf>) {
        if let (Some(socket), Some(path)) = (&mut self.adoption.socket, &wanted)
            && socket.path() == orphan::old_path(path)
            && socket.rename(path).is_ok()
        {
            // An upgrade had moved it, and came to nothing.
            return;
        }
        let old = self.adoption.socket.take();
        if let Some(path) = wanted {
            match PrivateSocket::open(&path, BACKLOG) {
                Ok(socket) => self.adoption.socket = Some(socket),
                Err(error) => {
                    let (path, error) = (path.display(), Errno(&error));
                    let message = format_args!(
                        "listen on \"{path}\" failed {error}, the serving process ends with its \
                         master"
                    );
                    self.log.event(Level::Warn, message);
                }
            }
        }
        if let Some(old) = old {
            self.remove_socket(&old);
        }
    }

    /// Says where they are found when this master is gone. Before the server is up they are not to
    /// outlive it.
    pub(super) fn tell_adoption(&self) {
        let Some(socket) = self.adoption.socket.as_ref() else {
            return;
        };
        let running = self.course.phase == Phase::Running;
        for child in self.serving.children.iter().filter(|_| running) {
            if child.state != State::Leaving {
                // One that cannot be told is gone, and its end will be noticed.
                let _ = channel::send_adoption(child.channel(), socket.listener());
            }
        }
    }
}
