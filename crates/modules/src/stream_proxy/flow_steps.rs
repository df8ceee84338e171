//! Sessions of UDP that need no future: those without rates, to servers that are known. Datagrams
//! of the client are sent to the server as they come; those of the server are read by the batch.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use std::cell::Cell;

use turnpike_lane::sys::datagram::{self, Route};
use turnpike_lane::sys::epoll::{Event, Interest};
use turnpike_lane::sys::socket::{self, Kind};
use turnpike_stream::flow::Flow;
use turnpike_stream::phase::{Happened, NEVER_MS, Next, Status, Steps};
use turnpike_stream::session::Session;
use turnpike_stream::watch::{SocketOf, Watch};
use turnpike_upstream::{ConnectError, FailReason, Picked, begin_connecting};
use turnpike_wire::proxy_protocol::Transport;

use super::datagrams::{DatagramEnd, Progress, failed, log_send_failure};
use super::handler::{self, ends, keep, log_connected, succeeded};
use super::own_address::OwnAddress;
use super::plan::{Destination, Passing};
use super::relay::note_first_byte;

/// Calls that read a server's datagrams in a step: more would keep other sessions waiting.
const CALLS_PER_STEP_MAX: usize = 8;

/// Attempts at a full gate before datagrams are given up, as a network would; there is one a turn.
const FULL_ATTEMPTS_MAX: usize = 100;

/// A session of a flow.
pub(super) struct FlowSteps {
    passing: Arc<Passing>,
    flow: Rc<Flow>,
    /// `None`: there is no server yet, or none any more.
    server: Option<Server>,
    progress: Progress,
    /// Datagrams of the server that the gate did not take, and attempts since it took one. The
    /// server is not read meanwhile.
    left: VecDeque<Vec<u8>>,
    attempts: usize,
    last_ms: u64,
}

struct Server {
    socket: OwnedFd,
    picked: Picked,
    /// The kernel may cut what is sent to it into datagrams.
    cuts: Cell<bool>,
}

/// What a server's socket is watched for.
const INPUT: Interest = Interest::READ;

impl FlowSteps {
    /// A session of this client.
    pub(super) fn new(passing: Arc<Passing>, flow: Rc<Flow>) -> Self {
        Self {
            passing,
            flow,
            server: None,
            progress: Progress::default(),
            left: VecDeque::new(),
            attempts: 0,
            last_ms: 0,
        }
    }
}

impl Steps for FlowSteps {
    fn step(&mut self, session: &mut Session, watch: &Watch<'_>, happened: Happened<'_>) -> Next {
        let done = match happened {
            Happened::Begun => match self.begin(session, watch) {
                Ok(done) => done,
                Err(status) => return Next::End(status),
            },
            Happened::Datagrams(datagrams) => self.pass_up(session, watch, datagrams),
            Happened::Ready(SocketOf::Server, event) => self.ready(session, watch, event),
            Happened::Ready(SocketOf::Client, _) => Ok(()),
            Happened::Due => Err(self.progress.timed_out(&self.passing, session)),
        };
        match done {
            Ok(()) => Next::Wait {
                until_ms: match self.passing.idle_timeout_ms {
                    0 => NEVER_MS,
                    timeout_ms => self.last_ms.saturating_add(timeout_ms),
                },
            },
            Err(end) => Next::End(self.ended(session, end)),
        }
    }
}

impl FlowSteps {
    /// Opens a socket to a server and sends the first datagram.
    fn begin(
        &mut self,
        session: &mut Session,
        watch: &Watch<'_>,
    ) -> Result<Result<(), DatagramEnd>, Status> {
        let Destination::Fixed(upstream) = &self.passing.destination else {
            return Err(Status::InternalServerError);
        };
        session.action.set("connecting to upstream");
        let mut tries = self.passing.begin_tries(upstream, session);
        let started_ms = session.lane.clock.now_ms();
        let (socket, picked) = loop {
            let picked = self.passing.next_server(session, &mut tries)?;
            let own = OwnAddress::of(session, &picked)?;
            let bind = self.passing.bind.address(session);
            let options = self.passing.options(&[], bind.as_ref());
            let opened = begin_connecting(&picked, Kind::Datagram, &options);
            let opened = opened.and_then(|(socket, _)| {
                own.opened(session, socket.as_fd());
                let watched = watch.add(SocketOf::Server, socket.as_fd(), INPUT | Interest::EDGE);
                watched.map_err(ConnectError::Socket)?;
                Ok(socket)
            });
            match opened {
                Ok(socket) => {
                    keep(session, socket.as_fd())?;
                    break (socket, picked);
                }
                Err(error) => {
                    let passing = &self.passing;
                    passing.not_connected(session, &tries, picked, &error, started_ms)?;
                }
            }
        };
        session.connected();
        session.action.set("proxying connection");
        log_connected(session, || socket::local_address(socket.as_fd()), &picked);
        self.server = Some(Server {
            socket,
            picked,
            cuts: Cell::new(true),
        });
        let mut first =
            self.passing
                .proxy_header
                .header(session, ends(session), Transport::Datagram);
        first.append(&mut session.preread);
        Ok(self.send_up(session, watch, &[&first]))
    }

    /// Datagrams of the client have come.
    fn pass_up(
        &mut self,
        session: &Session,
        watch: &Watch<'_>,
        datagrams: &[&[u8]],
    ) -> Result<(), DatagramEnd> {
        let bytes: usize = datagrams.iter().map(|datagram| datagram.len()).sum();
        let received = &session.bytes_received;
        received.set(received.get() + bytes as u64);
        self.send_up(session, watch, datagrams)
    }

    /// Sends datagrams to the server behind those that it did not take yet.
    fn send_up(
        &mut self,
        session: &Session,
        watch: &Watch<'_>,
        mut datagrams: &[&[u8]],
    ) -> Result<(), DatagramEnd> {
        self.progress.add_requests(datagrams.len());
        self.last_ms = session.lane.clock.now_ms();
        let Some(server) = &self.server else {
            return Err(DatagramEnd::Failed);
        };
        while !datagrams.is_empty() && !self.flow.has_kept() {
            match server.send(session, datagrams)? {
                0 => break,
                sent => datagrams = &datagrams[sent..],
            }
        }
        if !datagrams.is_empty() {
            datagrams.iter().for_each(|bytes| self.flow.keep(bytes));
            server.watch(session, watch, INPUT | Interest::WRITE)?;
        }
        self.go_on()
    }

    /// Whether the session goes on: it does while answers have come that the gate has not taken.
    fn go_on(&self) -> Result<(), DatagramEnd> {
        if self.left.is_empty() && self.progress.is_done(&self.passing) {
            Err(DatagramEnd::Done)
        } else {
            Ok(())
        }
    }

    /// The server's socket has an event.
    fn ready(
        &mut self,
        session: &Session,
        watch: &Watch<'_>,
        event: Event,
    ) -> Result<(), DatagramEnd> {
        if event.is_writable() && self.flow.has_kept() {
            self.send_kept(session, watch)?;
        }
        if !self.left.is_empty() {
            self.send_left(session);
            self.go_on()?;
        }
        for _ in 0..CALLS_PER_STEP_MAX {
            if !self.left.is_empty() {
                break;
            }
            if self.pass_down(session)? {
                return Ok(());
            }
        }
        // More may wait in the socket, or in front of the gate: the next turn goes on.
        let waits_for_space = self.flow.has_kept() || !self.left.is_empty();
        let interest = if waits_for_space {
            INPUT | Interest::WRITE
        } else {
            INPUT
        };
        match &self.server {
            Some(server) => server.watch(session, watch, interest),
            None => Ok(()),
        }
    }

    /// Sends what the server did not take before, as far as it does now.
    fn send_kept(&self, session: &Session, watch: &Watch<'_>) -> Result<(), DatagramEnd> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        while let Some(datagram) = self.flow.take() {
            if server.send(session, &[&datagram])? == 0 {
                self.flow.keep_first(datagram);
                return Ok(());
            }
        }
        server.watch(session, watch, INPUT)
    }

    /// Sends what the gate did not take before. What it will not take is lost.
    fn send_left(&mut self, session: &Session) {
        let left = self.left.iter().map(Vec::as_slice);
        let sent = match self.flow.try_send(left) {
            Ok(sent) => sent,
            Err(error) if is_full(&error) && self.attempts < FULL_ATTEMPTS_MAX => {
                self.attempts += 1;
                return;
            }
            Err(error) => {
                log_send_failure(session, &error);
                self.left.clear();
                0
            }
        };
        self.attempts = 0;
        for datagram in self.left.drain(..sent) {
            note_sent(session, datagram.len());
        }
    }

    /// Reads datagrams of the server and sends them to the client; `true`: there are no more, and
    /// the gate took all.
    fn pass_down(&mut self, session: &Session) -> Result<bool, DatagramEnd> {
        let (Some(server), Some(one)) = (&self.server, session.tries.last()) else {
            return Err(DatagramEnd::Failed);
        };
        let wanted = self.progress.wanted(&self.passing);
        let mut batch = session.lane.batch();
        let count = match batch.receive_connected(server.socket.as_fd(), wanted) {
            Ok(count) => count,
            Err(error) if is_full(&error) => return Ok(true),
            Err(error) => return Err(failed(session, "recv()", &error)),
        };
        self.progress.add_responses(count);
        self.last_ms = session.lane.clock.now_ms();
        note_first_byte(one, &server.picked, self.last_ms);
        if let Some(connections) = &self.passing.quic {
            connections.note(
                batch.bytes(),
                server.picked.peer().sticky_id(),
                self.last_ms,
            );
        }
        let bytes: usize = batch.bytes().map(<[u8]>::len).sum();
        let received = &one.bytes_received;
        received.set(received.get() + bytes as u64);
        let mut passed = 0;
        // Each call may take a part.
        while passed < count {
            match self.flow.try_send(batch.bytes().skip(passed)) {
                Ok(sent) => {
                    let sent_bytes = batch.bytes().skip(passed).take(sent).map(<[u8]>::len);
                    note_sent(session, sent_bytes.sum());
                    passed += sent;
                }
                Err(error) if is_full(&error) => break,
                Err(error) => {
                    log_send_failure(session, &error);
                    return Err(DatagramEnd::Done);
                }
            }
        }
        let left = batch.bytes().skip(passed);
        self.left.extend(left.map(<[u8]>::to_vec));
        self.go_on()?;
        Ok(count < wanted && self.left.is_empty())
    }

    fn ended(&mut self, session: &mut Session, end: DatagramEnd) -> Status {
        self.progress.log_end(session, end);
        let Some(Server { picked, .. }) = self.server.take() else {
            return Status::BadGateway;
        };
        if end == DatagramEnd::Done {
            succeeded(session, picked);
            return Status::Ok;
        }
        session.end_try();
        handler::failed(session, picked, FailReason::Error);
        Status::BadGateway
    }
}

impl Server {
    /// Sends datagrams, as many as it takes; returns how many.
    fn send(&self, session: &Session, datagrams: &[&[u8]]) -> Result<usize, DatagramEnd> {
        let all = datagrams.iter().copied();
        let sent = match datagram::send(self.socket.as_fd(), all, Route::default(), &self.cuts) {
            Ok(sent) => sent,
            Err(error) if is_full(&error) => return Ok(0),
            Err(error) => return Err(failed(session, "send()", &error)),
        };
        if let Some(one) = session.tries.last() {
            let bytes: usize = datagrams[..sent].iter().map(|bytes| bytes.len()).sum();
            one.bytes_sent.set(one.bytes_sent.get() + bytes as u64);
        }
        Ok(sent)
    }

    /// Watches the socket for these events, and has what is ready now told again.
    fn watch(
        &self,
        session: &Session,
        watch: &Watch<'_>,
        interest: Interest,
    ) -> Result<(), DatagramEnd> {
        let socket = self.socket.as_fd();
        let watched = watch.modify(SocketOf::Server, socket, interest | Interest::EDGE);
        watched.map_err(|error| failed(session, "epoll_ctl()", &error))
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn note_sent(session: &Session, bytes: usize) {
    let sent = &session.bytes_sent;
    sent.set(sent.get() + bytes as u64);
}
