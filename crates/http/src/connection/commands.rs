//! Commands of the serving process to a lane.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use turnpike_lane::affinity::CpuSet;
use turnpike_lane::event_loop::{AcceptSettings, LaneGate, Mailbox, Pulse};

use super::moving::Moving;
use super::successor_link::SuccessorLink;
use crate::plan::resolved::Plan;
use crate::running::{RequestId, RequestList};

/// A command to a lane.
pub enum Command {
    /// Serve by this plan from now on.
    Apply(Box<Apply>),
    /// Answers close their connections from now on; all else goes on.
    Announce,
    /// Finish: no new connections, requests are answered, what waits for one is given to another
    /// process or closed soon.
    Quit {
        /// The process that takes connections over.
        successor: Option<Arc<SuccessorLink>>,
    },
    /// Close the connections that were accepted up to that time, whatever they are at.
    Cut {
        /// In monotonic milliseconds.
        until_ms: u64,
    },
    /// End when nothing is left to do: another plan has fewer lanes. What waits is handed to the
    /// other lanes, what runs is finished here.
    Leave(Box<Leave>),
    /// Take a connection of another lane over.
    Adopt(Box<Moving>),
    /// Accept from these gates too, whose lanes are silent; an empty list ends that. First accept
    /// the connections that wait, since no event reports them.
    AdoptGates(Vec<LaneGate>),
    /// Write what is buffered.
    Flush {
        /// Gets a message when it is done.
        done: SyncSender<()>,
    },
    /// List the requests that have to wait for something.
    ListRequests {
        /// Gets the list.
        to: SyncSender<RequestList>,
    },
    /// Close a request of that list.
    CloseRequest {
        /// The request.
        id: RequestId,
        /// Gets a message when it is closed.
        to: SyncSender<()>,
    },
    /// End now.
    Terminate,
}

/// A plan with the gates that belong to it.
pub struct Apply {
    /// The plan; connections take it up at their next request.
    pub plan: Arc<Plan>,
    /// The lane's gates: [`LaneGate::number`] is the index of the plan's listen.
    pub gates: Vec<LaneGate>,
    /// How the lane accepts.
    pub accept: AcceptSettings,
    /// Where the lane reports its state, when that place has changed.
    pub heartbeat: Option<Box<dyn Pulse>>,
    /// The CPUs that the lane is to run on from now on, when that has changed.
    pub cpus: Option<CpuSet>,
    /// Gets a message when the plan is in force.
    pub done: SyncSender<()>,
}

/// What a lane that is to go needs to know.
pub struct Leave {
    /// The plan in force, in which the lane has no part.
    pub plan: Arc<Plan>,
    /// The lanes that stay, at least one.
    pub successors: Vec<Arc<Mailbox<Command>>>,
    /// Gets a message when the lane accepts no more and has handed over what waited.
    pub done: SyncSender<()>,
}
