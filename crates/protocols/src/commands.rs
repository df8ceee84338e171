//! Commands of the serving process to a lane.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use turnpike_lane::affinity::CpuSet;
use turnpike_lane::event_loop::{AcceptSettings, LaneGate, Mailbox, Pulse};

use crate::list::{Moving, OwnCommand, Plans, Successors};

/// A command to a lane.
pub enum Command {
    /// Serve by these plans from now on.
    Apply(Box<Apply>),
    /// Answers close their connections from now on; all else goes on.
    Announce,
    /// Finish: no new connections, requests are answered, what waits for one is given to another
    /// process or closed soon.
    Quit {
        /// The process that takes connections over.
        successors: Successors,
    },
    /// Close what began up to that time, whatever it is at.
    Cut {
        /// In monotonic milliseconds.
        until_ms: u64,
    },
    /// End when nothing is left to do: another plan has fewer lanes. What waits is handed to the
    /// other lanes, what runs is finished here.
    Leave(Box<Leave>),
    /// Take a connection of another lane over.
    Adopt(Moving),
    /// Accept from these gates too, whose lanes are silent; an empty list ends that. First accept
    /// the connections that wait, since no event reports them.
    AdoptGates(Vec<LaneGate>),
    /// Write what is buffered.
    Flush {
        /// Gets a message when it is done.
        done: SyncSender<()>,
    },
    /// What only one protocol knows.
    Own(OwnCommand),
    /// End now.
    Terminate,
}

/// Plans with the gates that belong to them.
pub struct Apply {
    /// The plans; connections take them up at their next request.
    pub plans: Plans,
    /// The lane's gates.
    pub gates: Vec<LaneGate>,
    /// How the lane accepts.
    pub accept: AcceptSettings,
    /// Where the lane reports its state, when that place has changed.
    pub heartbeat: Option<Box<dyn Pulse>>,
    /// The CPUs that the lane is to run on from now on, when that has changed.
    pub cpus: Option<CpuSet>,
    /// Gets a message when the plans are in force.
    pub done: SyncSender<()>,
}

/// What a lane that is to go needs to know.
pub struct Leave {
    /// The plans in force, in which the lane has no part.
    pub plans: Plans,
    /// The lanes that stay, at least one.
    pub successors: Vec<Arc<Mailbox<Command>>>,
    /// Gets a message when the lane accepts no more and has handed over what waited.
    pub done: SyncSender<()>,
}

/// Lanes that are given connections in turn.
#[derive(Default)]
pub struct RoundRobin {
    mailboxes: Vec<Arc<Mailbox<Command>>>,
    /// The next one to be asked.
    next: Cell<usize>,
}

impl RoundRobin {
    /// These lanes.
    pub fn new(mailboxes: Vec<Arc<Mailbox<Command>>>) -> Self {
        Self {
            mailboxes,
            next: Cell::new(0),
        }
    }

    /// Has these lanes take the place of those before; the turn stays where it is.
    pub fn replace(&mut self, mailboxes: Vec<Arc<Mailbox<Command>>>) {
        self.mailboxes = mailboxes;
    }

    /// Gives a connection to the next one that still takes something; back when none does.
    ///
    /// # Errors
    /// The connection.
    pub fn give(&self, moving: Moving) -> Result<(), Moving> {
        let mut letter = Command::Adopt(moving);
        for _ in 0..self.mailboxes.len() {
            let index = self.next.get() % self.mailboxes.len();
            self.next.set(index + 1);
            match self.mailboxes[index].try_send(letter) {
                Ok(()) => return Ok(()),
                Err(back) => letter = back,
            }
        }
        match letter {
            Command::Adopt(moving) => Err(moving),
            _ => unreachable!("a letter comes back as it was sent"),
        }
    }
}
