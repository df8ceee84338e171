//! A connection of HTTP/2: it reads frames, begins requests, and writes what answers have put into
//! the output. Nothing here waits: a parked connection has its turns from the lane's loop, and a
//! driven one from its future ([`super::drive`]).

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use turnpike_lane::log::Level;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_lane::sys::socket::More;
use turnpike_lane::transport::Transport;
use turnpike_lane::turns;
use turnpike_lane::waiting::Waited;
use turnpike_wire::h2::{self, ConnectionError, Event, HeadFault, RequestReader};

use super::frames::{Http2Frames, number};
use crate::counters::CloseReason;
use crate::exchange::{Action, Exchange};
use crate::h1::peer::end_of_input;
use crate::h1::watch::Watch;
use crate::streams::frames::{ResetReason, StreamId};
use crate::streams::serving::{Coming, Serving};
use crate::streams::shared::Shared;
use crate::streams::stream::Stream;
use turnpike_plan::messages::CLIENT_TIMED_OUT;

/// Bytes read at a time: a frame of the usual size, whole.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// Bytes of answers that one connection may send while its requests are taken, before others have
/// their turn: as for HTTP/1.
const TURN_BYTES_MAX: usize = 512 * 1024;

const _: () = assert!(READ_BYTES <= TURN_BYTES_MAX);

/// What is known of a connection when its first frames come.
pub(crate) struct Opening {
    pub(crate) serving: Serving,
    /// What has come.
    pub(crate) input: Vec<u8>,
    /// The frames of the connection.
    pub(crate) frames: Rc<RefCell<Http2Frames>>,
    /// What the futures of the answers share with the connection's.
    pub(crate) shared: Rc<Shared>,
}

/// Which of the frames that have come whole were taken.
enum Taken {
    All,
    /// Frames before DATA that is larger than the window of a stream whose request has not run yet.
    UpToOverrun,
    /// Frames whose answers are as much as one connection may send before others have their turn.
    UpToTurn,
}

/// What a turn of a connection has come to.
pub(crate) enum Turn {
    /// Nothing is open, and all is sent: the connection may be parked.
    Idle,
    /// Answers, the socket or the time are waited for.
    Waits,
    /// The last request has to run before more of its body is taken.
    WantsRun,
    /// As much was sent as one connection may before others have their turn.
    WantsPause,
    /// The connection has ended.
    Ended(CloseReason),
}

/// An open connection, parked or driven.
pub(crate) struct Http2Connection {
    pub(super) opening: Opening,
    pub(super) shared: Rc<Shared>,
    pub(super) waited: Waited,
    /// What the lane's loop has seen of the socket.
    pub(crate) watch: Rc<Watch>,
    /// Since when nothing is open, in the lane's monotonic milliseconds.
    idle_since_ms: u64,
    /// Since when a head is not whole.
    head_since_ms: Option<u64>,
    /// Whether that head was given up, and only what is left of it is still to come.
    is_head_given_up: bool,
    /// Since when the socket takes nothing.
    pub(super) blocked_since_ms: Option<u64>,
    /// The last stream whose request has a body and may not have run yet.
    fresh: Option<Rc<Stream>>,
    /// Bytes that were written since the present frames were begun.
    turn_bytes: usize,
    /// Why the connection ends, once it does: only what the client still sends is read.
    pub(super) ending: Option<CloseReason>,
    /// See [`Fault::SenderNotWoken`].
    pub(super) is_faulty: bool,
}

impl Drop for Http2Connection {
    /// However the connection ends, its streams have no client any more.
    fn drop(&mut self) {
        self.shared.client_left();
        if turns::is_ending() {
            self.log(Level::Alert, format_args!("{}", turns::Ended));
        }
    }
}

impl Http2Connection {
    /// A connection whose first frames come by this transport.
    pub(crate) fn new(opening: Opening, transport: Transport) -> Box<Self> {
        let watch = Watch::new(opening.serving.facts.accepted_ms);
        // The first event may have reported bytes that are not read yet.
        watch.event(false);
        Box::new(Self {
            idle_since_ms: opening.serving.lane.clock.now_ms(),
            shared: Rc::clone(&opening.shared),
            opening,
            waited: Waited::for_writing(transport),
            watch,
            head_since_ms: None,
            is_head_given_up: false,
            blocked_since_ms: None,
            fresh: None,
            turn_bytes: 0,
            ending: None,
            is_faulty: simulation::is_faulty(Fault::SenderNotWoken),
        })
    }

    /// What the futures of the answers share with the connection.
    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    fn frames(&self) -> &Rc<RefCell<Http2Frames>> {
        &self.opening.frames
    }

    /// The socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.waited.transport().as_fd()
    }

    /// Whether something that was sent is not read yet.
    pub(crate) fn has_input(&self) -> bool {
        self.waited.transport().peek().is_ok_and(|count| count > 0)
    }

    /// Takes the frames that have come, and sends what there is to send.
    pub(crate) fn take_turn(&mut self) -> Turn {
        match self.take_frames() {
            Ok(Taken::All) => {}
            Ok(Taken::UpToOverrun) => return Turn::WantsRun,
            Ok(Taken::UpToTurn) => {
                return match self.send() {
                    Ok(()) => Turn::WantsPause,
                    Err(error) => Turn::Ended(CloseReason::of(&error)),
                };
            }
            Err(error) => {
                self.failed(error);
                return Turn::Ended(CloseReason::Refused);
            }
        }
        let is_draining = self.opening.serving.lane.shutdown.has_begun() && !self.is_kept();
        if is_draining || self.shared.is_leaving() {
            self.frames().borrow_mut().wire.go_away();
        }
        if !self.shared.is_filling() && !self.shared.wake_sender() {
            if let Err(error) = self.send() {
                return Turn::Ended(CloseReason::of(&error));
            }
            self.shared.wake_sender();
        }
        if let Some(reason) = self.has_ended() {
            return Turn::Ended(reason);
        }
        if self.blocked_since_ms.is_none() && self.shared.is_idle() {
            Turn::Idle
        } else {
            Turn::Waits
        }
    }

    /// Makes ready to be parked: idle ones are many, so they hold nothing that the next request can
    /// get anew.
    pub(crate) fn rest(&mut self) {
        self.waited.unregister();
        self.fresh = None;
    }

    /// The connection ends for this reason: [`super::drive`] reads what the client still sends.
    pub(crate) fn end(&mut self, reason: CloseReason) {
        self.ending = Some(reason);
    }

    /// Takes up the plan in force where the gate is still in it, so that the one before it is not
    /// held until the next request.
    pub(crate) fn take_plan_at_rest(&mut self) {
        self.opening.serving.take_plan();
    }

    /// Tells the client that the connection ends, as its place is needed. What GOAWAY finds no room
    /// for in the socket is lost with it.
    pub(crate) fn leave(&mut self) {
        self.frames().borrow_mut().wire.go_away();
        let _ = self.flush();
    }

    /// Writes to the error log, of no request.
    pub(crate) fn log(&self, level: Level, message: std::fmt::Arguments<'_>) {
        let serving = &self.opening.serving;
        serving.log(Action::ProcessingHttp2, level, message);
    }

    /// Whether it waits for its next request, and `keepalive_min_timeout` has not passed yet.
    fn is_kept(&self) -> bool {
        let now_ms = self.opening.serving.lane.clock.now_ms();
        self.shared.is_idle() && self.shared.kept_until_ms() > now_ms
    }

    /// Nothing is open, from the end of this turn on.
    fn begin_idle(&mut self) {
        let min_timeout_ms = self.opening.serving.settings().keepalive_min_timeout_ms;
        self.idle_since_ms = self.opening.serving.lane.clock.now_ms();
        if min_timeout_ms == 0 || self.opening.serving.facts.requests == 0 {
            return;
        }
        // A request that comes while the server drains is the last one.
        self.shared
            .keep_until(if self.opening.serving.lane.shutdown.has_begun() {
                0
            } else {
                self.idle_since_ms.saturating_add(min_timeout_ms)
            });
    }

    /// Whether all is done that there is to do.
    fn has_ended(&mut self) -> Option<CloseReason> {
        let is_busy = !self.shared.is_idle();
        if self.shared.is_leaving() && !is_busy {
            // What GOAWAY finds no room for in the socket is lost with it.
            return Some(CloseReason::MadeRoom);
        }
        if is_busy || self.blocked_since_ms.is_some() {
            self.begin_idle();
            return None;
        }
        let keeps = self.opening.serving.settings().keepalive_timeout_ms > 0;
        if !keeps && self.opening.serving.facts.requests > 0 {
            self.frames().borrow_mut().wire.go_away();
        }
        if !self.frames().borrow().wire.is_going_away() {
            return None;
        }
        if self.opening.serving.lane.shutdown.has_begun() {
            Some(CloseReason::Drained)
        } else {
            Some(CloseReason::Answered)
        }
    }

    /// When the client is late, in the lane's monotonic milliseconds.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let settings = self.opening.serving.settings();
        let server = self
            .opening
            .serving
            .plan
            .server(self.opening.serving.server);
        let header_timeout_ms = server.settings.client_header_timeout_ms;
        let after = |since_ms: Option<u64>, timeout_ms: u64| {
            since_ms
                .filter(|_| timeout_ms > 0)
                .map(|since_ms| since_ms + timeout_ms)
        };
        let is_idle = self.shared.is_idle();
        let idle_ms = if self.frames().borrow().wire.is_open() {
            settings
                .keepalive_timeout_ms
                .max(settings.keepalive_min_timeout_ms)
        } else {
            header_timeout_ms
        };
        let idle = is_idle.then_some(self.idle_since_ms);
        let is_kept = self.is_kept() && self.opening.serving.lane.shutdown.has_begun();
        [
            is_kept.then(|| self.shared.kept_until_ms()),
            after(self.blocked_since_ms, settings.send_timeout_ms),
            after(self.head_since_ms, header_timeout_ms),
            after(idle, idle_ms),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Looks at what the client is late with, once the time for it may have passed.
    ///
    /// # Errors
    /// Why the connection closes.
    pub(crate) fn is_late(&mut self) -> Result<(), CloseReason> {
        self.opening.serving.lane.clock.update();
        let now_ms = self.opening.serving.lane.clock.now_ms();
        if self
            .deadline_ms()
            .is_none_or(|deadline_ms| deadline_ms > now_ms)
        {
            return Ok(());
        }
        if self.blocked_since_ms.is_some() {
            self.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
            return Err(CloseReason::ClientTimeout);
        }
        let mut frames = self.opening.frames.borrow_mut();
        let is_head_late = self.head_since_ms.take().is_some();
        if is_head_late && frames.wire.give_up_head(&self.opening.input) {
            drop(frames);
            self.is_head_given_up = true;
            self.idle_since_ms = now_ms;
            self.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
            return Ok(());
        }
        if !self.shared.is_idle() {
            return Ok(());
        }
        if !frames.wire.is_open() {
            return Err(CloseReason::HeaderTimeout);
        }
        frames.wire.go_away();
        Ok(())
    }

    /// Reads what the socket has, up to what a turn takes.
    ///
    /// # Errors
    /// Why the connection closes: its client has gone.
    pub(crate) fn read(&mut self) -> Result<(), CloseReason> {
        let server = self
            .opening
            .serving
            .plan
            .server(self.opening.serving.server);
        let turn_bytes_max = server.settings.http2.receive_bytes_max.max(READ_BYTES);
        let transport = self.waited.transport();
        let input = &mut self.opening.input;
        let before = input.len();
        while input.len() - before < turn_bytes_max {
            match end_of_input(transport.try_read(input, READ_BYTES)) {
                Ok(0) => return Err(CloseReason::ClientClosed),
                Ok(received) if transport.was_emptied(received, READ_BYTES) => {
                    self.watch.emptied();
                    break;
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.watch.emptied();
                    break;
                }
                Err(error) => return Err(CloseReason::of(&error)),
            }
        }
        Ok(())
    }

    /// Takes the frames that have come whole.
    fn take_frames(&mut self) -> Result<Taken, ConnectionError> {
        self.turn_bytes = 0;
        let input = std::mem::take(&mut self.opening.input);
        let lane = Rc::clone(&self.opening.serving.lane);
        lane.progress.begin_batch();
        let mut reader = lane.take_request_reader();
        let now_ms = self.opening.serving.lane.clock.now_ms();
        let mut at = 0;
        let taken = loop {
            let rest = &input[at..];
            if self.overruns(rest) {
                break Ok(Taken::UpToOverrun);
            }
            if self.turn_bytes >= TURN_BYTES_MAX && self.blocked_since_ms.is_none() {
                break Ok(Taken::UpToTurn);
            }
            let step = self
                .frames()
                .borrow_mut()
                .wire
                .receive(rest, &mut reader, now_ms);
            let step = match step {
                Ok(step) => step,
                Err(error) => break Err(error),
            };
            at += step.consumed;
            match step.event {
                Event::More => break Ok(Taken::All),
                Event::Nothing | Event::Sendable | Event::GoingAway => {}
                Event::Prioritized { stream, priority } => {
                    if let Some(stream) = self.shared.stream(stream.into()) {
                        stream.prioritize(priority);
                    }
                }
                Event::Request {
                    stream,
                    ends,
                    fault,
                } => {
                    self.make_room();
                    self.request(stream.into(), ends, fault, &mut reader);
                }
                Event::Data { stream, data, ends } => {
                    if let Some(stream) = self.shared.stream(stream.into()) {
                        stream.body_arrived(data, ends);
                    }
                }
                Event::Trailers { stream } => {
                    let trailers = std::mem::take(&mut reader.head.fields);
                    if let Some(stream) = self.shared.stream(stream.into()) {
                        stream.ended_by(trailers);
                    }
                }
                Event::BodyFault { stream } => self.tell(stream, Stream::body_is_malformed),
                Event::Reset { stream } => self.tell(stream, Stream::client_left),
            }
        };
        lane.keep_request_reader(reader);
        lane.progress.end_batch();
        self.opening.input = input;
        self.opening.input.drain(..at);
        if self.opening.input.is_empty() {
            // Idle ones are many: they hold no buffer.
            self.opening.input = Vec::new();
        }
        self.note_partial_head(now_ms);
        taken
    }

    /// Tells a stream whose request is not answered yet what has come of it.
    fn tell(&self, id: h2::StreamId, tells: fn(&Stream)) {
        if let Some(stream) = self.shared.stream(id.into()) {
            tells(&stream);
        }
    }

    /// Notes since when a head is not whole.
    fn note_partial_head(&mut self, now_ms: u64) {
        let is_partial = self
            .frames()
            .borrow()
            .wire
            .has_partial_head(&self.opening.input);
        self.is_head_given_up &= is_partial;
        self.head_since_ms = if is_partial && !self.is_head_given_up {
            self.head_since_ms.or(Some(now_ms))
        } else {
            None
        };
    }

    /// Whether DATA has come that is more than a stream's window takes whose request has not run.
    fn overruns(&self, input: &[u8]) -> bool {
        self.fresh.as_ref().is_some_and(|stream| {
            !stream.has_run()
                && self
                    .frames()
                    .borrow()
                    .wire
                    .overruns_window(number(stream.id), input)
        })
    }

    /// Whether the last request that has a body was run as far as it goes without it.
    pub(super) fn has_run_fresh(&self) -> bool {
        self.fresh.as_ref().is_none_or(|stream| stream.has_run())
    }

    /// Begins a request: it is answered at once, or driven from now on.
    fn request(
        &mut self,
        id: StreamId,
        ends: bool,
        fault: Option<HeadFault>,
        reader: &mut RequestReader,
    ) {
        let serving = &mut self.opening.serving;
        if !serving.take_plan() {
            self.opening.frames.borrow_mut().wire.go_away();
        }
        if !self.shared.has_place(serving.plan.events.connections_max) {
            self.shared.reset(id, ResetReason::Refused);
            return;
        }
        let begun = serving.begin(
            &self.shared,
            Coming {
                stream: id,
                ends,
                fault,
                reader,
                is_early: self.waited.transport().is_handshaking(),
                speaks: speaks_http2,
            },
        );
        if serving.is_spent() {
            // The request that has come is the last.
            self.opening.frames.borrow_mut().wire.go_away();
        }
        // It may be answered before anything could see the connection busy.
        self.begin_idle();
        self.fresh = (!ends).then(|| Rc::clone(&begun.stream));
        let lane = Rc::clone(&self.opening.serving.lane);
        begun.answer(&lane, || self.make_room());
    }

    /// Writes what the socket takes of the output, and notes since when it takes nothing.
    fn send(&mut self) -> io::Result<()> {
        let unsent_bytes = self.shared.unsent_bytes();
        match self.flush() {
            Ok(()) => self.blocked_since_ms = None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let now_ms = self.opening.serving.lane.clock.now_ms();
                if self.blocked_since_ms.is_none() || self.shared.unsent_bytes() < unsent_bytes {
                    self.blocked_since_ms = Some(now_ms);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes an output that is full, so that a request is answered at once instead of by a future
    /// of its own. Returns whether it has made room.
    fn make_room(&mut self) -> bool {
        if self.shared.has_room() || self.blocked_since_ms.is_some() {
            return false;
        }
        let unsent_bytes = self.shared.unsent_bytes();
        // What the socket says is heard again when the rest is written.
        let _ = self.send();
        self.turn_bytes += unsent_bytes - self.shared.unsent_bytes();
        self.shared.has_room()
    }

    /// Writes what the socket takes of the output.
    pub(super) fn flush(&self) -> io::Result<()> {
        let mut frames = self.frames().borrow_mut();
        let output = frames.wire.output();
        let mut sent = 0;
        let written = loop {
            let rest = &output[sent..];
            if rest.is_empty() {
                break self.waited.transport().flush();
            }
            match self
                .waited
                .transport()
                .try_write(&[IoSlice::new(rest)], More::No)
            {
                Ok(count) => sent += count,
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.waited.filled();
        }
        output.drain(..sent);
        if output.is_empty() {
            // Idle connections are many: they hold no buffer.
            self.opening
                .serving
                .lane
                .outputs()
                .keep(std::mem::take(output));
        }
        written
    }

    fn failed(&self, error: ConnectionError) {
        self.log(Level::Info, format_args!("{}", error.reason));
        self.frames().borrow_mut().wire.fail(error);
    }
}

/// Whether the server that a request names speaks HTTP/2.
fn speaks_http2(exchange: &Exchange) -> bool {
    exchange.listen().http2 || exchange.server().settings.http2.is_on
}
