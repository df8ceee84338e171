//! Datagrams of a session, both ways. None is ever cut or joined with another.

use std::cell::Cell;
use std::io;

use turnpike_lane::alternating::first_of;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::datagram::DATAGRAMS_MAX;
use turnpike_stream::flow::Flow;
use turnpike_stream::session::Session;
use turnpike_upstream::{DatagramConnection, Picked, UPSTREAM_TIMED_OUT};

use super::activity::{Activity, pause};
use super::direction_limit::DirectionLimit;
use super::plan::Passing;

/// A session of UDP while its datagrams are passed on.
pub(super) struct DatagramRelay<'a> {
    passing: &'a Passing,
    session: &'a Session,
    flow: &'a Flow,
    picked: &'a Picked,
    connection: &'a DatagramConnection,
    upload: DirectionLimit,
    download: DirectionLimit,
    activity: Activity,
    progress: Progress,
}

/// How many datagrams of a session have come.
#[derive(Default)]
pub(super) struct Progress {
    /// Of the client.
    pub(super) requests: Cell<u64>,
    /// Of the server.
    pub(super) responses: Cell<u64>,
}

impl Progress {
    /// More have come of the client.
    pub(super) fn add_requests(&self, count: usize) {
        self.requests.set(self.requests.get() + count as u64);
    }

    /// More have come of the server.
    pub(super) fn add_responses(&self, count: usize) {
        self.responses.set(self.responses.get() + count as u64);
    }

    /// Datagrams of the server that all those of the client call for; `None`: nobody knows.
    fn expected(&self, passing: &Passing) -> Option<u64> {
        let each = passing.responses?;
        Some(each.saturating_mul(self.requests.get()))
    }

    /// How many datagrams of the server are read at a time.
    pub(super) fn wanted(&self, passing: &Passing) -> usize {
        let expected = self.expected(passing);
        let left = expected.map(|expected| expected.saturating_sub(self.responses.get()));
        let left = left.and_then(|left| usize::try_from(left).ok());
        left.unwrap_or(DATAGRAMS_MAX).clamp(1, DATAGRAMS_MAX)
    }

    fn has_all(&self, passing: &Passing) -> bool {
        let expected = self.expected(passing);
        expected.is_some_and(|expected| self.responses.get() >= expected)
    }

    /// Whether all that belongs to the session has come.
    pub(super) fn is_done(&self, passing: &Passing) -> bool {
        self.requests.get() >= passing.requests && self.has_all(passing)
    }

    /// What it means that nothing has come for too long.
    pub(super) fn timed_out(&self, passing: &Passing, session: &Session) -> DatagramEnd {
        if passing.responses.is_none() || self.has_all(passing) {
            return DatagramEnd::Done;
        }
        let message = format_args!("{UPSTREAM_TIMED_OUT}");
        session.log(Level::Error, message);
        DatagramEnd::Failed
    }

    /// Writes the end of a session to the error log.
    pub(super) fn log_end(&self, session: &Session, end: DatagramEnd) {
        if end == DatagramEnd::Done {
            let (requests, responses) = (self.requests.get(), self.responses.get());
            let message = format_args!("udp done, packets from/to client:{requests}/{responses}");
            session.log(Level::Info, message);
        }
    }
}

/// The server cannot be reached.
pub(super) fn failed(session: &Session, call: &str, error: &io::Error) -> DatagramEnd {
    let message = format_args!("{call} failed {}", Errno(error));
    session.log(Level::Error, message);
    DatagramEnd::Failed
}

/// Why a relay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramEnd {
    /// All that was expected has been passed on; or nothing more came for too long where nothing
    /// more was expected, or nobody knows what is.
    Done,
    /// What was expected of the server did not come, or it cannot be reached.
    Failed,
}

/// The client cannot be reached.
pub(super) fn log_send_failure(session: &Session, error: &io::Error) {
    let message = format_args!("sendmsg() failed {}", Errno(error));
    session.log(Level::Info, message);
}

impl<'a> DatagramRelay<'a> {
    pub(super) fn new(
        passing: &'a Passing,
        session: &'a Session,
        flow: &'a Flow,
        (picked, connection): (&'a Picked, &'a DatagramConnection),
        [upload, download]: [DirectionLimit; 2],
    ) -> Self {
        Self {
            passing,
            session,
            flow,
            picked,
            connection,
            upload,
            download,
            activity: Activity::new(session.lane.clock.clone(), passing.idle_timeout_ms),
            progress: Progress::default(),
        }
    }

    /// Passes datagrams on until the session ends; `first` was received already, with a header
    /// before it where there is one.
    pub(super) async fn run(&self, first: Vec<u8>) -> DatagramEnd {
        let end = tokio::select! {
            biased;
            end = first_of(self.up(first), self.down()) => end,
            () = self.activity.idle() => self.progress.timed_out(self.passing, self.session),
        };
        self.progress.log_end(self.session, end);
        end
    }

    /// From the client to the server.
    async fn up(&self, first: Vec<u8>) -> DatagramEnd {
        let mut datagram = first;
        loop {
            self.progress.add_requests(1);
            if let Err(error) = self.connection.send(&datagram).await {
                return failed(self.session, "send()", &error);
            }
            self.activity.note();
            if let Some(one) = self.session.tries.last() {
                let sent = one.bytes_sent.get() + datagram.len() as u64;
                one.bytes_sent.set(sent);
            }
            if self.progress.is_done(self.passing) {
                return DatagramEnd::Done;
            }
            pause(self.upload.pause_ms(datagram.len())).await;
            let clock = &self.session.lane.clock;
            let received = &self.session.bytes_received;
            self.upload
                .next_room(clock, received.get(), usize::MAX)
                .await;
            datagram = self.flow.receive().await;
            self.activity.note();
            received.set(received.get() + datagram.len() as u64);
        }
    }

    /// From the server to the client.
    async fn down(&self) -> DatagramEnd {
        let Some(one) = self.session.tries.last() else {
            return DatagramEnd::Failed;
        };
        loop {
            let clock = &self.session.lane.clock;
            let received = &one.bytes_received;
            self.download
                .next_room(clock, received.get(), usize::MAX)
                .await;
            let wanted = self.wanted();
            let lane = &self.session.lane;
            let read = self
                .connection
                .receive(|socket| lane.batch().receive_connected(socket, wanted));
            let (count, sent) = match read.await {
                Ok(count) => (count, self.pass_down()),
                Err(error) => return failed(self.session, "recv()", &error),
            };
            if count < wanted {
                self.connection.emptied();
            }
            self.progress.add_responses(count);
            self.activity.note();
            let now_ms = clock.now_ms();
            if one.note_first_byte(now_ms) {
                self.picked.header_received(now_ms);
            }
            received.set(received.get() + sent.bytes);
            for datagram in sent.left {
                if let Err(error) = self.flow.send(&datagram).await {
                    log_send_failure(self.session, &error);
                    return DatagramEnd::Done;
                }
                self.note_sent(datagram.len());
            }
            if self.progress.is_done(self.passing) {
                return DatagramEnd::Done;
            }
            pause(self.download.pause_ms(sent.bytes as usize)).await;
        }
    }

    /// Sends what was received of the server to the client, as much as the gate takes.
    fn pass_down(&self) -> PassedDown {
        let batch = self.session.lane.batch();
        let datagrams = || batch.bytes();
        if let Some(connections) = &self.passing.quic {
            let now_ms = self.session.lane.clock.now_ms();
            connections.note(datagrams(), self.picked.peer().sticky_id(), now_ms);
        }
        // What an error is about, the next attempt says again.
        let sent = self.flow.try_send(datagrams()).unwrap_or(0);
        datagrams()
            .take(sent)
            .for_each(|datagram| self.note_sent(datagram.len()));
        PassedDown {
            bytes: datagrams().map(|datagram| datagram.len() as u64).sum(),
            left: datagrams().skip(sent).map(<[u8]>::to_vec).collect(),
        }
    }

    /// How many datagrams of the server are read at a time.
    fn wanted(&self) -> usize {
        if self.download.bytes_per_second > 0 {
            return 1;
        }
        self.progress.wanted(self.passing)
    }

    fn note_sent(&self, bytes: usize) {
        let sent = self.session.bytes_sent.get() + bytes as u64;
        self.session.bytes_sent.set(sent);
    }
}

/// What became of datagrams of the server.
struct PassedDown {
    /// How long they are together.
    bytes: u64,
    /// Datagrams that the gate did not take at once.
    left: Vec<Vec<u8>>,
}
