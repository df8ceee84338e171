//! The fast path: what can be answered at once is, in the turn, with plain system calls.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::log::Level;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket_option;

use super::driven::{self, Stage};
use super::transfer::{Sent, Transfer, log_send_error};
use crate::body::Progress;
use crate::connection::connections::Connections;
use crate::connection::http2::{self, Spoken};
use crate::connection::open::{Connection, move_to, receive};
use crate::connection::proxy_header::{self, ProxyHeaderState};
use crate::connection::return_queue::{DrivenSlot, Left};
use crate::connection::slot::{Await, Driven, DrivenWork, KeptUntil, More, Slot};
use crate::connection::slots::Place;
use crate::connection::tls::security::Handshaking;
use crate::counters::CloseReason;
use crate::engine::Outcome;
use crate::exchange::{Action, Exchange};
use crate::h1::request::{self, HeadRead};
use crate::h1::watch::{Watch, Why};
use crate::phase::Awaiting;
use crate::requester::ConnectionFacts;
use crate::response::Body;

/// Bytes of a response that are sent in the turn; what is larger becomes driven, so that one
/// download does not hold the lane.
const TURN_BYTES_MAX: u64 = 256 * 1024;

/// Pipelined requests answered in one turn before others are looked at.
const PIPELINED_PER_TURN_MAX: usize = 32;

/// How serving a request in the turn ended.
enum Served {
    /// The connection takes its next request.
    Kept,
    /// The connection is closed.
    Closed(CloseReason),
    /// The exchange goes on as a future.
    Driven(Stage),
    /// The exchange is parked until a watched socket brings the answer.
    Awaiting(Box<dyn Awaiting>),
}

impl Connections {
    /// The optimistic first transaction: a client that connects has usually sent its request by
    /// the time it is accepted.
    pub(in crate::connection) fn first_transaction(
        &mut self,
        event_loop: &mut EventLoop,
        connection: Connection,
    ) {
        if connection.security.is_handshaking() {
            let state = Handshaking::Beginning(Vec::new());
            self.shake_hands(event_loop, Place::New, connection, state);
        } else {
            self.receive_first(event_loop, Place::New, connection);
        }
    }

    /// Reads and serves the first request of a connection, or waits for it.
    pub(in crate::connection) fn receive_first(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
    ) -> More {
        match receive(&mut connection) {
            Ok(0) => {
                self.unpark(event_loop, place);
                self.close(connection, CloseReason::ClientClosed);
                More::No
            }
            Ok(received) => {
                let more = More::after(&connection, received);
                let exchange = self.exchange(&connection);
                self.serve(event_loop, place, connection, exchange, None);
                more
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.park(event_loop, place, connection, Await::First);
                More::No
            }
            Err(error) => {
                let failed = (&Await::First, &error);
                self.receive_failed(event_loop, place, connection, failed);
                More::No
            }
        }
    }

    /// Serves the requests that stand in the connection's input. `started_ms` says when the first
    /// of the requests began.
    pub(in crate::connection) fn serve(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        mut exchange: Box<Exchange>,
        mut started_ms: Option<u64>,
    ) {
        for _ in 0..PIPELINED_PER_TURN_MAX {
            self.take_plan(&mut connection, &mut exchange);
            exchange.begin_request();
            if let Some(started_ms) = started_ms.take() {
                exchange.account.begin(started_ms);
            }
            match proxy_header::read_for(&mut exchange.requester, &mut connection) {
                ProxyHeaderState::Complete | ProxyHeaderState::Read => {}
                ProxyHeaderState::Incomplete => {
                    self.wait_for_rest(event_loop, place, connection, exchange);
                    return;
                }
                ProxyHeaderState::Invalid => {
                    self.unpark(event_loop, place);
                    self.recycle(exchange);
                    self.close(connection, CloseReason::Refused);
                    return;
                }
            }
            if connection.facts.requests == 0 {
                let spoken = http2::spoken(&connection);
                if spoken != Spoken::Http1 {
                    self.serve_other(event_loop, place, connection, exchange, spoken);
                    return;
                }
            }
            let served = self.one(&mut connection, &mut exchange);
            if connection.facts.requests == 1 {
                self.measure_first(event_loop, &connection.facts, &served);
            }
            self.count_writing(0);
            match served {
                None => {
                    self.wait_for_rest(event_loop, place, connection, exchange);
                    return;
                }
                Some(Served::Kept) => {
                    if connection.input.next_request() {
                        continue;
                    }
                    self.keep(event_loop, place, connection, exchange);
                    return;
                }
                Some(Served::Closed(reason)) => {
                    self.unpark(event_loop, place);
                    self.recycle(exchange);
                    self.close(connection, reason);
                    return;
                }
                Some(Served::Driven(stage)) => {
                    self.drive(event_loop, place, connection, exchange, stage);
                    return;
                }
                Some(Served::Awaiting(awaiting)) => {
                    self.await_answer(event_loop, place, connection, exchange, awaiting);
                    return;
                }
            }
        }
        // Others have waited: the rest of the pipeline is served in the next turn.
        self.hand_on(event_loop, place, connection, exchange);
    }

    /// Serves a connection that has had no request yet, and speaks HTTP/2 or has not said enough to
    /// tell.
    fn serve_other(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        exchange: Box<Exchange>,
        spoken: Spoken,
    ) {
        if spoken == Spoken::Http2 {
            self.recycle(exchange);
            self.begin_http2(event_loop, place, connection);
        } else {
            self.wait_for_rest(event_loop, place, connection, exchange);
        }
    }

    /// Counts the time to the first byte of a first answer; a driven one counts its own.
    fn measure_first(
        &mut self,
        event_loop: &EventLoop,
        client: &ConnectionFacts,
        served: &Option<Served>,
    ) {
        if !matches!(
            served,
            Some(Served::Kept | Served::Closed(CloseReason::Answered))
        ) {
            return;
        }
        if client.accepted_ns == event_loop.clock.now_ns() {
            self.round.first_answers += 1;
            return;
        }
        let took_ns = monotonic_ns().saturating_sub(client.accepted_ns);
        self.lane.counters.first_byte.record(took_ns);
    }

    /// One request, from its head to its answer. `None`: the head is not whole.
    fn one(&mut self, connection: &mut Connection, exchange: &mut Exchange) -> Option<Served> {
        let outcome = match request::read(&mut connection.input, exchange) {
            HeadRead::Incomplete => return None,
            HeadRead::Complete => {
                self.count_request(connection, exchange);
                exchange.run()
            }
            HeadRead::Refused(status) => {
                self.count_request(connection, exchange);
                exchange.refuse(status)
            }
        };
        Some(self.follow(connection, exchange, outcome))
    }

    /// Does what can be done in the turn.
    fn follow(&self, connection: &Connection, exchange: &mut Exchange, outcome: Outcome) -> Served {
        match outcome {
            Outcome::Respond => self.answer(connection, exchange),
            Outcome::Wait(waiting) => Served::Driven(Stage::Waiting(waiting)),
            Outcome::Await(awaiting) => Served::Awaiting(awaiting),
            Outcome::Close => {
                let reason = exchange.reason_without_answer();
                exchange.log_access();
                Served::Closed(reason)
            }
        }
    }

    /// Goes on with a request whose answer was awaited. `unread`: the client has sent more, of
    /// which no event will tell again.
    pub(in crate::connection) fn go_on(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        mut connection: Connection,
        mut exchange: Box<Exchange>,
        outcome: Outcome,
        unread: bool,
    ) {
        let served = self.follow(&connection, &mut exchange, outcome);
        let place = Place::At(token);
        match served {
            Served::Kept if connection.input.next_request() => {
                self.serve(event_loop, place, connection, exchange, None);
            }
            Served::Kept => self.keep(event_loop, place, connection, exchange),
            Served::Closed(reason) => {
                self.unpark(event_loop, place);
                self.recycle(exchange);
                self.close(connection, reason);
                return;
            }
            Served::Driven(stage) => self.drive(event_loop, place, connection, exchange, stage),
            Served::Awaiting(awaiting) => {
                self.await_answer(event_loop, place, connection, exchange, awaiting);
            }
        }
        if unread {
            self.parked_ready(event_loop, token, false);
        }
    }

    fn count_request(&self, connection: &mut Connection, exchange: &mut Exchange) {
        connection.facts.requests += 1;
        let is_pipelined = connection.input.is_pipelined();
        exchange
            .requester
            .set_request_count(connection.facts.requests, is_pipelined);
        let is_early = connection.transport.is_handshaking();
        exchange.requester.set_early_data(is_early);
        self.lane.counters.requests.add();
        self.lane.progress.doing().note(
            connection.facts.serial,
            exchange.request().head().fields.bytes(),
        );
        self.count_writing(1);
        let gate_is_gone = !Rc::ptr_eq(&connection.plan, &self.plan);
        if self.is_draining() || gate_is_gone {
            exchange.sending.close_connection();
        }
    }

    fn answer(&self, connection: &Connection, exchange: &mut Exchange) -> Served {
        if self.is_draining() {
            exchange.sending.close_connection();
        }
        if matches!(exchange.response.body(), Body::Tunnel(_)) {
            return Served::Driven(Stage::Answer);
        }
        // Before anything is sent: a malformed body is no success, however it is answered.
        let Some(whole) = self.take_body_rest(exchange) else {
            return self.refuse_body(connection, exchange);
        };
        if exchange.may_be_limited() || has_to_wait(exchange.response.body()) {
            return Served::Driven(Stage::Answer);
        }
        let Some(mut transfer) = Transfer::begin(exchange) else {
            exchange.end_body();
            exchange.log_access();
            return Served::Closed(CloseReason::CutShort);
        };
        exchange.account.set_action(Action::Sending);
        if transfer.wants_pieces(exchange) {
            return Served::Driven(Stage::Sending(transfer));
        }
        if !exchange.sending.keeps_connection() && !lingers(connection, exchange) {
            transfer.closes();
        }
        match transfer.send(exchange, &connection.transport, TURN_BYTES_MAX) {
            Ok(Sent::All) => answered(connection, exchange, whole),
            Ok(Sent::Blocked | Sent::Slice | Sent::WantsPiece | Sent::WantsFile) => {
                Served::Driven(Stage::Sending(transfer))
            }
            Err(error) => {
                log_send_error(exchange, &error);
                exchange.end_body();
                exchange.log_access();
                Served::Closed(CloseReason::of(&error))
            }
        }
    }

    /// Takes what has come of a body that no handler wanted. Returns whether that was all of it;
    /// `None` where it cannot be understood.
    fn take_body_rest(&self, exchange: &mut Exchange) -> Option<bool> {
        match exchange.drop_buffered_body() {
            Ok(Progress::Complete) => Some(true),
            Ok(Progress::Incomplete) => Some(false),
            Err(_) if exchange.response.status() == 400 => Some(false),
            Err(_) => None,
        }
    }

    /// Answers with 400 in place of what was to be answered, since the body is malformed.
    fn refuse_body(&self, connection: &Connection, exchange: &mut Exchange) -> Served {
        exchange.log(
            Level::Error,
            format_args!("client sent invalid chunked body"),
        );
        exchange.response.clear();
        let outcome = exchange.refuse(400);
        self.follow(connection, exchange, outcome)
    }

    /// Hands the exchange to a future of its own.
    pub(in crate::connection) fn drive(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        exchange: Box<Exchange>,
        stage: Stage,
    ) {
        let work = match &stage {
            Stage::Discard | Stage::Linger => DrivenWork::None,
            _ => DrivenWork::Request(exchange.running()),
        };
        let driven = self.driven_slot(event_loop, place, connection, work);
        let Some((slot, connection)) = driven else {
            self.recycle(exchange);
            return;
        };
        let return_queue = Rc::clone(&self.return_queue);
        event_loop.drive(Box::pin(driven::drive(
            connection,
            exchange,
            stage,
            slot,
            return_queue,
        )));
    }

    /// The place of a connection that is driven from now on; the lane's loop goes on watching it.
    /// `None`: it cannot be watched, and is closed.
    pub(in crate::connection) fn driven_slot(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        work: DrivenWork,
    ) -> Option<(DrivenSlot, Connection)> {
        let (token, connection) = match place {
            Place::At(token) => (token, connection),
            Place::New => self.insert(event_loop, connection)?,
        };
        let watch = Watch::new(connection.facts.accepted_ms);
        let slot = self.drive_at(token, watch, work);
        self.count_writing(0);
        Some((slot, connection))
    }

    /// Notes that the connection at a place is driven from now on.
    pub(in crate::connection) fn drive_at(
        &mut self,
        token: u32,
        watch: Rc<Watch>,
        work: DrivenWork,
    ) -> DrivenSlot {
        let driven = Driven {
            watch: Rc::clone(&watch),
            work,
            is_leaving: false,
        };
        self.slots.put(token, Slot::Driven(driven));
        DrivenSlot { token, watch }
    }

    /// Gives a connection with unread requests its next turn through the same door by which driven
    /// ones come back.
    fn hand_on(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        exchange: Box<Exchange>,
    ) {
        let driven = self.driven_slot(event_loop, place, connection, DrivenWork::None);
        let Some((slot, connection)) = driven else {
            self.recycle(exchange);
            return;
        };
        let return_queue = Rc::clone(&self.return_queue);
        event_loop.drive(Box::pin(async move {
            return_queue.give_back(slot, Left::Connection(connection, exchange))
        }));
    }

    /// A driven connection comes back: it has pipelined requests, or waits for its next one.
    pub(in crate::connection) fn taken_back(
        &mut self,
        event_loop: &mut EventLoop,
        slot: DrivenSlot,
        mut connection: Connection,
        exchange: Box<Exchange>,
    ) {
        let DrivenSlot { token, watch } = slot;
        if let Some(why @ (Why::Cut | Why::MakesRoom)) = watch.why_closed() {
            self.recycle(exchange);
            self.unpark(event_loop, Place::At(token));
            self.close(connection, why.reason());
            return;
        }
        if connection.input.next_request() {
            self.serve(event_loop, Place::At(token), connection, exchange, None);
        } else {
            self.keep(event_loop, Place::At(token), connection, exchange);
        }
        // The loop has reported what came meanwhile, and will not do so again.
        if watch.is_readable() {
            self.parked_ready(event_loop, token, watch.has_ended());
        }
    }

    fn keep(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        exchange: Box<Exchange>,
    ) {
        // Also while draining: the answer was sent before that began, and has promised to keep the
        // connection, so that the next request may be on its way. It has the time of a drain.
        let settings = &exchange.location().settings;
        if settings.tcp_nodelay && !connection.no_delay {
            connection.no_delay = true;
            if exchange.requester.peer().inet().is_some()
                && let Err(error) = socket_option::set_no_delay(connection.transport.as_fd(), true)
            {
                exchange.log(
                    Level::Info,
                    format_args!("setsockopt(TCP_NODELAY) failed ({error})"),
                );
            }
        }
        let min_timeout_ms = settings.keepalive_min_timeout_ms;
        let idle = Await::Idle {
            timeout_ms: settings.keepalive_timeout_ms.max(min_timeout_ms),
            kept: KeptUntil::after(event_loop.clock.now_ms(), min_timeout_ms),
        };
        self.recycle(exchange);
        // It may have been driven while the plan changed: the one before is held no longer.
        move_to(&self.plan, &mut connection);
        self.park(event_loop, place, connection, idle);
    }
}

/// Whether a body cannot be sent in the turn: it has pieces of which some are to come.
fn has_to_wait(body: &Body) -> bool {
    match body {
        Body::Stream(body) => !body.may_end_at_once(),
        _ => false,
    }
}

/// The response is out: is the connection kept, closed, or is there a body to get rid of?
fn answered(connection: &Connection, exchange: &mut Exchange, body_whole: bool) -> Served {
    exchange.account.set_completed(true);
    exchange.end_body();
    exchange.log_access();
    match (exchange.sending.keeps_connection(), body_whole) {
        (true, true) => Served::Kept,
        (true, false) => Served::Driven(Stage::Discard),
        (false, _) if lingers(connection, exchange) => Served::Driven(Stage::Linger),
        (false, _) => {
            connection.transport.end_session();
            if connection.transport.has_unsent() {
                Served::Driven(Stage::Linger)
            } else {
                Served::Closed(CloseReason::Answered)
            }
        }
    }
}

fn lingers(connection: &Connection, exchange: &Exchange) -> bool {
    driven::lingers(
        exchange,
        &connection.transport,
        connection.input.has_unread(),
    )
}
