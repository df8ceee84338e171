//! What every lane counts, whatever protocol it speaks.

use crate::metric_set;

metric_set! {
    /// The metrics of a lane's connections and files.
    pub enum LaneMetric {
        ConnectionsAccepted: Counter "connections_accepted" in "connections",
            "Connections taken from a gate.";
        ConnectionsHandled: Counter "connections_handled" in "connections",
            "Connections that were served, and not dropped for want of room.";
        ConnectionsActive: Gauge "connections_active" in "connections",
            "Connections open now, waiting ones included.";
        ConnectionsReading: Gauge "connections_reading" in "connections",
            "Connections whose request is being read now.";
        ConnectionsWriting: Gauge "connections_writing" in "connections",
            "Connections whose response is being written now.";
        ConnectionsParked: Gauge "connections_parked" in "connections",
            "Connections that wait for a request now.";
        ConnectionsDriven: Gauge "connections_driven" in "connections",
            "Connections whose exchange runs as a task now.";
        ConnectionsTimedOut: Counter "connections_timed_out" in "connections",
            "Connections closed because their time was over.";
        ConnectionsReset: Counter "connections_reset" in "connections",
            "Connections that the peer has broken off.";
        AcceptEmpty: Counter "accept_empty" in "calls",
            "Accepts that found no connection: another lane was first.";
        AcceptFailed: Counter "accept_failed" in "calls",
            "Accepts that failed, for want of descriptors or memory.";
        FirstTransactions: Counter "first_transactions" in "requests",
            "Requests answered straight after accept, without waiting for anything.";
        Requests: Counter "requests" in "requests",
            "Requests begun.";
        BytesReceived: Counter "bytes_received" in "bytes",
            "Bytes received from clients.";
        BytesSent: Counter "bytes_sent" in "bytes",
            "Bytes sent to clients.";
        FilesOpened: Counter "files_opened" in "files",
            "Files opened, the cache not having them.";
        FilesLent: Counter "files_lent" in "files",
            "Files that the cache had.";
        LoopRounds: Counter "loop_rounds" in "rounds",
            "Rounds of the lane's loop.";
        Panics: Counter "panics" in "connections",
            "Connections ended by a fault of ours.";
    }
}
