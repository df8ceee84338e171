//! A connection of HTTP/3: it takes what has come of its streams, begins requests, and lets answers
//! go on. Nothing here waits, and no future has it: the lane's loop gives it its turns.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use turnpike_lane::event_loop::Timer;
use turnpike_lane::log::Level;
use turnpike_lane::sys::datagram::{self, Route};
use turnpike_plan::messages::CLIENT_TIMED_OUT;
use turnpike_plan::tls::{Agreement, HTTP3, Offer, ServerIdentity, TlsSession};
use turnpike_quic::{self as quic, Direction, Event, Loss, Read, TimeScale};
use turnpike_wire::field_section::{HeadFault, RequestReader};
use turnpike_wire::h3::UnidirectionalStream;
use turnpike_wire::h3::{ConnectionError, ControlEvent, ErrorCode, RequestEvent};

use super::frames::Http3Frames;
use super::request_stream::RequestStream;
use crate::counters::CloseReason;
use crate::exchange::{Action, Exchange};
use crate::streams::frames::{ResetReason, StreamId};
use crate::streams::serving::{Coming, Serving};
use crate::streams::shared::Shared;
use crate::streams::stream::Stream;

/// Bytes that are read of a stream at a time.
const READ_BYTES: usize = 64 * 1024;

/// Datagrams that are made at a time: what one call sends.
const DATAGRAMS_MAX: usize = datagram::DATAGRAMS_MAX;

/// Datagrams of a connection in a turn, before others have theirs: as many bytes as for HTTP/2.
const TURN_DATAGRAMS_MAX: usize = 512;

const _: () = assert!(DATAGRAMS_MAX <= TURN_DATAGRAMS_MAX);

/// Milliseconds until a socket is tried again that took nothing: it holds what the device sends in
/// less.
const FULL_SOCKET_PAUSE_MS: u64 = 1;

/// Between the numbers of two requests' streams (RFC 9000 section 2.1).
const REQUEST_STEP: u64 = 4;

/// The last number that the stream of a request may have: a GOAWAY with it takes nothing back of
/// what is under way (RFC 9114 section 5.2).
const REQUEST_LAST: StreamId = (1 << 62) - REQUEST_STEP;

/// How long a client without open streams is waited for once it was told to go, in milliseconds:
/// what it has sent before it knew is under way.
const ENDING_GRACE_MS: u64 = 1_000;

/// The same of a client that has asked for nothing yet: before it knows the round trip it sends
/// what was lost again after one second, and after two more (RFC 9002 section 6.2.2).
const FIRST_REQUEST_GRACE_MS: u64 = 4_000;

/// What a connection begins with.
pub(crate) struct Opening {
    pub(crate) serving: Serving,
    pub(crate) frames: Rc<RefCell<Http3Frames>>,
    pub(crate) shared: Rc<Shared>,
    /// The socket that its datagrams came by.
    pub(crate) gate: Arc<OwnedFd>,
    pub(crate) offer: Offer,
    pub(crate) identity: Arc<ServerIdentity>,
    pub(crate) scale: TimeScale,
}

/// Datagrams that the socket did not take.
struct Unsent {
    bytes: Vec<u8>,
    transmit: quic::Transmit,
}

/// Whether the client was told to make its next requests on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    No,
    /// The client was told; what is under way is served.
    Soon,
    /// Requests from this stream on are refused.
    From(StreamId),
}

/// An open connection.
pub(crate) struct Http3Connection {
    pub(crate) serving: Serving,
    pub(crate) frames: Rc<RefCell<Http3Frames>>,
    pub(crate) shared: Rc<Shared>,
    pub(crate) gate: Arc<OwnedFd>,
    /// What the deadline of the connection is told by; `None`: it has none yet.
    pub(crate) timer: Option<Timer>,
    offer: Offer,
    identity: Arc<ServerIdentity>,
    scale: TimeScale,
    /// Our control stream, and what it has not taken yet.
    control: Option<(quic::StreamId, Vec<u8>)>,
    unidirectional: HashMap<quic::StreamId, UnidirectionalStream>,
    /// Streams whose heads have not come whole, with the time at which they were opened: in the
    /// lane's monotonic milliseconds.
    partial_heads: Vec<(u64, StreamId)>,
    /// The number of the first stream that no request has come on.
    next_request: StreamId,
    /// Since when nothing is open.
    idle_since_ms: u64,
    is_connected: bool,
    /// The end of what the client may still send, once it was told to go.
    going: Going,
    unsent: Option<Unsent>,
    /// Whether the kernel cuts datagrams on this path.
    cuts: Cell<bool>,
    /// Why it has ended, once it has.
    ended: Option<CloseReason>,
}

impl Drop for Http3Connection {
    /// However the connection ends, its streams have no client any more.
    fn drop(&mut self) {
        self.shared.client_left();
    }
}

impl Http3Connection {
    /// A connection that was just accepted.
    pub(crate) fn new(opening: Opening) -> Self {
        let Opening {
            mut serving,
            frames,
            shared,
            gate,
            offer,
            identity,
            scale,
        } = opening;
        // Until more is known: it says which server's settings the connection has.
        serving.tls = Some(Arc::new(TlsSession {
            host_bytes: offer.host_bytes,
            ..offer.session()
        }));
        let cuts = serving.plan.server(serving.server).settings.http3.cuts;
        Self {
            idle_since_ms: serving.lane.clock.now_ms(),
            serving,
            frames,
            shared,
            gate,
            timer: None,
            offer,
            identity,
            scale,
            control: None,
            unidirectional: HashMap::new(),
            partial_heads: Vec::new(),
            next_request: 0,
            is_connected: false,
            going: Going::No,
            unsent: None,
            cuts: Cell::new(cuts),
            ended: None,
        }
    }

    fn now(&self) -> Instant {
        self.scale.instant(self.serving.lane.clock.now_ns())
    }

    fn now_ms(&self) -> u64 {
        self.serving.lane.clock.now_ms()
    }

    /// Why the connection has ended; `None`: it goes on.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    /// Whether it only waits for its next request.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.is_idle() && self.ended.is_none()
    }

    /// Takes what has come, lets answers go on, and sends what there is to send.
    pub(crate) fn take_turn(&mut self) {
        let taken = self.take_events();
        if let Err(error) = taken {
            self.fail(&error);
        }
        self.go_away_if_needed();
        if !self.shared.is_filling() {
            self.shared.wake_sender();
        }
        self.transmit();
        if !self.shared.is_filling() {
            self.shared.wake_sender();
        }
        match self.closes_ms() {
            _ if !self.is_resting() => self.idle_since_ms = self.now_ms(),
            Some(closes_ms) if closes_ms <= self.now_ms() => self.close_gone(),
            _ => {}
        }
    }

    /// When the connection closes, as its client was told; `None`: it was not.
    fn closes_ms(&self) -> Option<u64> {
        // A lane that leaves may have connections for as long as their clients like.
        let is_lane_alone = self.going == Going::Soon && !self.serving.lane.shutdown.is_draining();
        let is_to_go = self.going != Going::No && (!is_lane_alone || self.shared.is_leaving());
        let is_gone = is_to_go && self.is_resting() && self.ended.is_none();
        let grace_ms = if self.next_request == 0 {
            FIRST_REQUEST_GRACE_MS
        } else {
            ENDING_GRACE_MS
        };
        is_gone.then_some(self.idle_since_ms + grace_ms)
    }

    /// Whether nothing is under way, as far as is known here: an answer is until the client has
    /// acknowledged the last of it, which may be long after it was written.
    fn is_resting(&self) -> bool {
        let quic = &mut self.frames.borrow_mut().quic;
        self.shared.is_idle() && !quic.is_handshaking() && quic.has_delivered_all()
    }

    /// Closes a connection whose client was told to go, and asks for nothing more.
    fn close_gone(&mut self) {
        let reason = if self.serving.lane.shutdown.has_begun() {
            CloseReason::Drained
        } else {
            CloseReason::Answered
        };
        self.go_away(Going::From(self.next_request));
        self.close(ErrorCode::NoError, "", reason);
        self.transmit();
    }

    /// The deadline of the connection has passed.
    pub(crate) fn time_passed(&mut self) {
        let now = self.now();
        self.frames.borrow_mut().quic.time_passed(now);
        self.end_late_heads();
        let header_timeout_ms = self.header_timeout_ms();
        let began_ms = self.serving.facts.accepted_ms;
        let is_late = header_timeout_ms > 0 && self.now_ms() >= began_ms + header_timeout_ms;
        if !self.is_connected && is_late && self.ended.is_none() {
            self.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
            self.close(ErrorCode::NoError, "", CloseReason::HandshakeFailed);
        }
    }

    /// When the connection is to be looked at next, in the lane's monotonic milliseconds.
    pub(crate) fn deadline_ms(&mut self) -> Option<u64> {
        let own = self.frames.borrow_mut().quic.deadline();
        let own_ms = own.map(|deadline| self.scale.ms(deadline));
        let full_ms = self.unsent.as_ref();
        let full_ms = full_ms.map(|_| self.now_ms() + FULL_SOCKET_PAUSE_MS);
        let header_timeout_ms = self.header_timeout_ms();
        let since_ms = if self.is_connected {
            self.partial_heads.first().map(|(opened_ms, _)| *opened_ms)
        } else {
            Some(self.serving.facts.accepted_ms)
        };
        let head_ms = since_ms
            .filter(|_| header_timeout_ms > 0 && self.ended.is_none())
            .map(|since_ms| since_ms + header_timeout_ms);
        let closes_ms = self.closes_ms();
        [own_ms, full_ms, head_ms, closes_ms]
            .into_iter()
            .flatten()
            .min()
    }

    fn header_timeout_ms(&self) -> u64 {
        let server = self.serving.plan.server(self.serving.server);
        server.settings.client_header_timeout_ms
    }

    /// Closes the connection now, whatever it is at.
    pub(crate) fn cut(&mut self, reason: CloseReason) {
        self.close(ErrorCode::NoError, "", reason);
        self.transmit();
    }

    /// Writes to the error log, of no request.
    pub(crate) fn log(&self, level: Level, message: std::fmt::Arguments<'_>) {
        self.serving.log(Action::ProcessingHttp3, level, message);
    }

    fn close(&mut self, code: ErrorCode, why: &'static str, reason: CloseReason) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(reason);
        let now = self.now();
        let mut frames = self.frames.borrow_mut();
        frames.quic.close(now, code.number(), why);
        drop(frames);
        self.shared.client_left();
    }

    fn fail(&mut self, error: &ConnectionError) {
        self.log(Level::Info, format_args!("{}", error.reason));
        self.close(error.code, error.reason, CloseReason::Refused);
    }

    fn take_events(&mut self) -> Result<(), ConnectionError> {
        loop {
            let event = self.frames.borrow_mut().quic.poll();
            let Some(event) = event else {
                break;
            };
            match event {
                Event::Connected => self.connected(),
                Event::Lost(loss) => self.lost(loss),
                Event::Opened(Direction::Both) => self.requests_opened()?,
                Event::Opened(Direction::One) => self.streams_opened()?,
                Event::Readable(id) if self.unidirectional.contains_key(&id) => {
                    self.read_unidirectional(id)?;
                }
                Event::Readable(id) => self.read_stream(quic::stream_number(id))?,
                Event::Writable(id) => self.is_writable(id),
                Event::Stopped(id) => self.was_stopped(quic::stream_number(id))?,
            }
        }
        let granted = std::mem::take(&mut self.frames.borrow_mut().granted);
        for id in granted {
            self.read_stream(id)?;
        }
        Ok(())
    }

    /// The handshake is complete.
    fn connected(&mut self) {
        self.is_connected = true;
        self.agree();
        let is_http3 = self.serving.tls.as_ref();
        if is_http3.is_none_or(|tls| *tls.protocol != *HTTP3) {
            return self.close(ErrorCode::NoError, "", CloseReason::Refused);
        }
        let mut frames = self.frames.borrow_mut();
        if let Some(id) = frames.quic.open() {
            let mut beginning = Vec::new();
            frames.wire.open_control(&mut beginning);
            self.control = Some((id, beginning));
        }
        drop(frames);
        self.flush_control();
    }

    /// Notes what the handshake has come to, as far as that is known.
    fn agree(&mut self) {
        let negotiated = self.frames.borrow().quic.negotiated();
        let Some(negotiated) = negotiated else {
            return;
        };
        let agreed = TlsSession::of_quic(&negotiated, self.offer.clone(), &self.identity);
        let session = match agreed {
            Agreement::Complete(session) => session,
            // No server that asks responders is served by QUIC.
            Agreement::Pending(_) => return,
        };
        self.serving.tls = Some(Arc::new(session));
        self.serving.choose_server();
    }

    fn lost(&mut self, loss: Loss) {
        let is_idle = self.shared.is_idle();
        let reason = match &loss {
            Loss::ClosedByClient if is_idle => CloseReason::ClientClosed,
            Loss::ClosedByClient => CloseReason::ClientAborted,
            Loss::TimedOut if is_idle => CloseReason::IdleTimeout,
            Loss::TimedOut => CloseReason::ClientTimeout,
            Loss::Reset => CloseReason::ClientReset,
            Loss::ClosedHere => CloseReason::Failed,
            Loss::Failed(_) if !self.is_connected => CloseReason::HandshakeFailed,
            Loss::Failed(_) => CloseReason::Refused,
        };
        if let Loss::Failed(why) = &loss {
            if self.is_connected {
                self.log(Level::Info, format_args!("QUIC connection failed: {why}"))
            } else {
                self.serving.log(
                    Action::HandshakingClient,
                    Level::Info,
                    format_args!("SSL_do_handshake() failed (SSL: {why})"),
                )
            }
        }
        self.ended.get_or_insert(reason);
        self.shared.client_left();
    }

    fn streams_opened(&mut self) -> Result<(), ConnectionError> {
        loop {
            let id = self.frames.borrow_mut().quic.accept(Direction::One);
            let Some(id) = id else {
                return Ok(());
            };
            let stream = UnidirectionalStream::default();
            self.unidirectional.insert(id, stream);
            self.read_unidirectional(id)?;
        }
    }

    fn read_unidirectional(&mut self, id: quic::StreamId) -> Result<(), ConnectionError> {
        while self.read_some_unidirectional(id)? {}
        Ok(())
    }

    /// Reads some of a stream that only the client writes; `true`: there may be more.
    fn read_some_unidirectional(&mut self, id: quic::StreamId) -> Result<bool, ConnectionError> {
        let now_ms = self.now_ms();
        let Some(mut stream) = self.unidirectional.remove(&id) else {
            return Ok(false);
        };
        let mut bytes = self.serving.lane.take_scratch();
        let read = self
            .frames
            .borrow_mut()
            .quic
            .read(id, READ_BYTES, &mut bytes);
        let mut input = bytes.as_slice();
        let mut is_of_use = true;
        let taken = loop {
            let mut frames = self.frames.borrow_mut();
            let event = frames
                .wire
                .receive_unidirectional(&mut stream, &mut input, now_ms);
            match event {
                Err(error) => break Err(error),
                Ok(ControlEvent::More) => break Ok(()),
                Ok(ControlEvent::Settings | ControlEvent::GoingAway { .. }) => {}
                Ok(ControlEvent::Prioritized {
                    stream: id,
                    priority,
                }) => {
                    frames.prioritize(id, priority);
                    drop(frames);
                    if let Some(stream) = self.shared.stream(id) {
                        stream.prioritize(priority);
                    }
                }
                Ok(ControlEvent::Stop(code)) => {
                    frames.quic.stop(id, code.number());
                    is_of_use = false;
                    break Ok(());
                }
            }
        };
        self.serving.lane.keep_scratch(bytes);
        taken?;
        match read {
            Read::Some(count) if is_of_use => {
                self.unidirectional.insert(id, stream);
                Ok(count == READ_BYTES)
            }
            Read::Some(_) => Ok(false),
            Read::End(_) | Read::Reset => {
                let frames = self.frames.borrow();
                frames.wire.end_unidirectional(&stream).map(|()| false)
            }
        }
    }

    fn requests_opened(&mut self) -> Result<(), ConnectionError> {
        loop {
            let mut frames = self.frames.borrow_mut();
            let Some(id) = frames.quic.accept(Direction::Both) else {
                return Ok(());
            };
            let id = quic::stream_number(id);
            let (preread_bytes, now_ms) = (frames.preread_bytes, self.now_ms());
            let stream = RequestStream::new(preread_bytes, now_ms);
            frames.streams.insert(id, stream);
            drop(frames);
            self.next_request = self.next_request.max(id + REQUEST_STEP);
            self.partial_heads.push((now_ms, id));
            self.read_stream(id)?;
        }
    }

    /// Reads a stream as far as its reader lets it.
    fn read_stream(&mut self, id: StreamId) -> Result<(), ConnectionError> {
        let lane = Rc::clone(&self.serving.lane);
        let mut bytes = lane.take_scratch();
        let result = loop {
            bytes.clear();
            let Some(read) = self.read_bytes(id, &mut bytes) else {
                break Ok(());
            };
            let ends = matches!(read, Read::End(_));
            if let Err(error) = self.take_frames(id, &bytes, ends) {
                break Err(error);
            }
            match read {
                Read::Some(0) => break Ok(()),
                Read::Some(_) => {}
                Read::End(_) => {
                    self.frames.borrow_mut().input_ended(id);
                    break Ok(());
                }
                Read::Reset => {
                    self.partial_heads.retain(|(_, stream)| *stream != id);
                    self.tell(id, Stream::client_left);
                    let code = ErrorCode::RequestCancelled;
                    let mut frames = self.frames.borrow_mut();
                    break frames.was_reset(id, code, lane.clock.now_ms());
                }
            }
        };
        lane.keep_scratch(bytes);
        result
    }

    /// Reads what may be read now; `None`: nothing may.
    fn read_bytes(&self, id: StreamId, bytes: &mut Vec<u8>) -> Option<Read> {
        let mut frames = self.frames.borrow_mut();
        let stream = frames.streams.get(&id)?;
        let bytes_max = stream.readable_bytes(READ_BYTES);
        if bytes_max == 0 || !stream.may_receive || stream.wire.is_none() {
            return None;
        }
        Some(frames.quic.read(quic::stream_id(id), bytes_max, bytes))
    }

    /// Takes what has come of a request.
    fn take_frames(
        &mut self,
        id: StreamId,
        mut input: &[u8],
        ends: bool,
    ) -> Result<(), ConnectionError> {
        let lane = Rc::clone(&self.serving.lane);
        let now_ms = lane.clock.now_ms();
        let Some(mut wire) = self.frames.borrow_mut().take_wire(id) else {
            return Ok(());
        };
        let mut reader = lane.take_request_reader();
        let result = loop {
            let event = self.frames.borrow_mut().wire.receive_request(
                &mut wire,
                &mut input,
                ends,
                &mut reader,
                now_ms,
            );
            match event {
                Err(error) => break Err(error),
                Ok(RequestEvent::More) => break Ok(()),
                Ok(RequestEvent::Head { ends, fault }) => {
                    self.request(id, ends, fault, &mut reader);
                    if ends {
                        break Ok(());
                    }
                }
                Ok(RequestEvent::Data(data)) => {
                    if let Some(stream) = self.frames.borrow_mut().streams.get_mut(&id) {
                        stream.was_read(data.len());
                    }
                    if let Some(stream) = self.shared.stream(id) {
                        stream.body_arrived(data, false);
                    }
                }
                Ok(RequestEvent::Trailers) => {
                    let trailers = std::mem::take(&mut reader.head.fields);
                    if let Some(stream) = self.shared.stream(id) {
                        stream.ended_by(trailers);
                    }
                }
                Ok(RequestEvent::End) => {
                    self.tell(id, |stream| stream.body_arrived(&[], true));
                    break Ok(());
                }
                Ok(RequestEvent::BodyFault) => {
                    self.tell(id, Stream::body_is_malformed);
                    break Ok(());
                }
                Ok(RequestEvent::Reset(code)) => {
                    self.tell(id, Stream::client_left);
                    break self.frames.borrow_mut().was_reset(id, code, now_ms);
                }
            }
        };
        lane.keep_request_reader(reader);
        if !wire.awaits_head() {
            self.partial_heads.retain(|(_, stream)| *stream != id);
        }
        if let Some(stream) = self.frames.borrow_mut().streams.get_mut(&id) {
            stream.wire = Some(wire);
        }
        result
    }

    /// Tells a stream whose request is not answered yet what has come of it.
    fn tell(&self, id: StreamId, tells: fn(&Stream)) {
        if let Some(stream) = self.shared.stream(id) {
            tells(&stream);
        }
    }

    /// Begins a request: it is answered at once, or driven from now on.
    fn request(
        &mut self,
        id: StreamId,
        ends: bool,
        fault: Option<HeadFault>,
        reader: &mut RequestReader,
    ) {
        if !self.serving.take_plan() {
            self.go_away(Going::Soon);
        }
        let connections_max = self.serving.plan.events.connections_max;
        let is_late = matches!(self.going, Going::From(first) if id >= first);
        if is_late || self.ended.is_some() || !self.shared.has_place(connections_max) {
            self.shared.reset(id, ResetReason::Refused);
            return;
        }
        let is_early = self.frames.borrow().quic.is_handshaking();
        if is_early {
            self.agree();
        }
        self.frames
            .borrow_mut()
            .prioritize_request(id, reader.priority);
        self.idle_since_ms = self.now_ms();
        let begun = self.serving.begin(
            &self.shared,
            Coming {
                stream: id,
                ends,
                fault,
                reader,
                is_early,
                speaks: speaks_http3,
            },
        );
        if self.serving.is_spent() || self.serving.settings().keepalive_timeout_ms == 0 {
            // The request that has come is the last.
            self.go_away(Going::From(self.next_request));
        }
        let lane = Rc::clone(&self.serving.lane);
        begun.answer(&lane, || self.make_room());
    }

    /// Sends what there is, so that a request is answered at once instead of by a future of its
    /// own. Returns whether that has made room.
    fn make_room(&mut self) -> bool {
        if self.shared.has_room() {
            return false;
        }
        self.transmit();
        self.shared.has_room()
    }

    fn is_writable(&mut self, id: quic::StreamId) {
        if self.control.as_ref().is_some_and(|(own, _)| *own == id) {
            return self.flush_control();
        }
        let id = quic::stream_number(id);
        self.frames.borrow_mut().is_writable(id);
    }

    /// The client wants no more of an answer.
    fn was_stopped(&mut self, id: StreamId) -> Result<(), ConnectionError> {
        self.tell(id, Stream::client_left);
        let now_ms = self.now_ms();
        let mut frames = self.frames.borrow_mut();
        // An answer that is complete may have parts that were not sent (RFC 9000 section 3.5).
        let code = ErrorCode::RequestCancelled;
        frames.quic.reset(quic::stream_id(id), code.number());
        frames.was_reset(id, code, now_ms)
    }

    fn flush_control(&mut self) {
        if let Some((id, output)) = &mut self.control {
            let mut frames = self.frames.borrow_mut();
            while !output.is_empty() {
                match frames.quic.write(*id, output) {
                    0 => break,
                    count => drop(output.drain(..count)),
                }
            }
        }
    }

    fn go_away_if_needed(&mut self) {
        if self.serving.lane.shutdown.has_begun() || self.shared.is_leaving() {
            self.go_away(Going::Soon);
        }
    }

    /// Tells the client that it has to make its next requests on another connection.
    fn go_away(&mut self, going: Going) {
        let last = match (self.going, going) {
            (Going::No, Going::Soon) => REQUEST_LAST,
            (Going::No | Going::Soon, Going::From(first)) => first,
            _ => return,
        };
        self.going = going;
        if self.is_resting() {
            self.idle_since_ms = self.now_ms();
        }
        if let Some((_, output)) = &mut self.control {
            let mut frames = self.frames.borrow_mut();
            frames.wire.go_away(last, output);
        }
        self.flush_control();
    }

    /// Gives up streams whose heads do not come.
    fn end_late_heads(&mut self) {
        let header_timeout_ms = self.header_timeout_ms();
        let now_ms = self.now_ms();
        if header_timeout_ms == 0 {
            return;
        }
        let late = self
            .partial_heads
            .iter()
            .take_while(|(opened_ms, _)| opened_ms + header_timeout_ms <= now_ms)
            .count();
        for (_, id) in self.partial_heads.drain(..late) {
            let mut frames = self.frames.borrow_mut();
            frames.give_up(id, ErrorCode::RequestIncomplete);
        }
        if late > 0 {
            self.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
        }
    }

    /// Sends the datagrams that there are, as far as the socket takes them.
    fn transmit(&mut self) {
        if let Some(unsent) = self.unsent.take()
            && !self.send(unsent)
        {
            return;
        }
        let now = self.now();
        let mut sent = 0;
        while sent < TURN_DATAGRAMS_MAX {
            let mut bytes = self.serving.lane.take_scratch();
            let transmit = self
                .frames
                .borrow_mut()
                .quic
                .transmit(now, DATAGRAMS_MAX, &mut bytes);
            let Some(transmit) = transmit else {
                self.serving.lane.keep_scratch(bytes);
                return;
            };
            sent += transmit.datagrams();
            if !self.send(Unsent { bytes, transmit }) {
                return;
            }
        }
        // The others have their turn first.
        self.shared.work.notify_one();
    }

    /// Sends datagrams; those that the socket does not take are kept. `false`: there are some.
    fn send(&mut self, mut unsent: Unsent) -> bool {
        let transmit = unsent.transmit;
        let route = Route {
            peer: Some(transmit.peer),
            source: transmit.source,
        };
        while !unsent.bytes.is_empty() {
            let datagrams = unsent.bytes.chunks(transmit.datagram_bytes.max(1));
            match datagram::send(self.gate.as_fd(), datagrams, route, &self.cuts) {
                Ok(count) => {
                    let count_bytes = (count * transmit.datagram_bytes).min(unsent.bytes.len());
                    unsent.bytes.drain(..count_bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some(unsent);
                    return false;
                }
                // The network is like this: the protocol sends again what it misses.
                Err(_) => break,
            }
        }
        self.serving.lane.keep_scratch(unsent.bytes);
        true
    }
}

/// Whether the server that a request names speaks HTTP/3.
fn speaks_http3(exchange: &Exchange) -> bool {
    exchange.server().settings.http3.is_on
}
