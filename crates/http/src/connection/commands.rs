//! What the serving process asks of HTTP's connections alone.

use std::sync::mpsc::SyncSender;

use crate::running::{RequestId, RequestList};

/// A command to the connections of a lane.
pub enum Command {
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
}
