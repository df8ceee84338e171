//! What the requests of a connection have in common, and how one of them begins: in every protocol
//! that has streams alike.

use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::log::Level;
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::tls::TlsSession;
use turnpike_wire::h2::{HeadFault, RequestReader};

use super::answer::{self, BegunAnswer, End, SendProgress, Stage};
use super::frames::StreamId;
use super::shared::{SHORT_REST_BYTES, Shared};
use super::stream::Stream;
use crate::connection_context::ConnectionContext;
use crate::engine::Outcome;
use crate::exchange::{Action, Exchange};
use crate::lane::{LanePlan, LaneShared};
use crate::plan::ServerIndex;
use crate::requester::ConnectionFacts;
use crate::response::{Body, BodyFailed};
use crate::routing;
use crate::settings::LocationSettings;

/// What is known of a connection, whatever comes on it.
pub(crate) struct Serving {
    pub(crate) lane: Rc<LaneShared>,
    pub(crate) plan: Rc<LanePlan>,
    /// The server whose settings the connection has.
    pub(crate) server: ServerIndex,
    pub(crate) facts: ConnectionFacts,
    pub(crate) proxy_header: Option<Rc<ProxyHeader>>,
    pub(crate) tls: Option<Arc<TlsSession>>,
}

/// A request whose head has come.
pub(crate) struct Coming<'a> {
    pub(crate) stream: StreamId,
    /// Whether nothing follows the head.
    pub(crate) ends: bool,
    pub(crate) fault: Option<HeadFault>,
    /// Has the head.
    pub(crate) reader: &'a mut RequestReader,
    /// Whether it has come before the handshake was complete.
    pub(crate) is_early: bool,
    /// Whether the server that a request names speaks the protocol.
    pub(crate) speaks: fn(&Exchange) -> bool,
}

/// A request that was run as far as it goes without waiting.
pub(crate) struct Begun {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) stream: Rc<Stream>,
    pub(crate) outcome: Outcome,
}

impl Serving {
    pub(crate) fn settings(&self) -> &LocationSettings {
        let root = self.plan.server(self.server).root;
        &self.plan.location(root).settings
    }

    pub(crate) fn exchange(&self) -> Box<Exchange> {
        let mut exchange = self.lane.exchange(&self.plan, &self.facts);
        exchange.requester.set_proxy_header(&self.proxy_header);
        exchange.requester.set_tls(self.tls.as_ref());
        exchange
    }

    /// Writes to the error log, of no request.
    pub(crate) fn log(&self, action: Action, level: Level, message: std::fmt::Arguments<'_>) {
        let context = ConnectionContext::new(&self.plan, &self.facts);
        context.log(action, level, message);
    }

    /// Takes up the plan in force; `false`: the gate is not in it.
    pub(crate) fn take_plan(&mut self) -> bool {
        let Some(plan) = self.lane.plan() else {
            return true;
        };
        if Rc::ptr_eq(&plan, &self.plan) {
            return true;
        }
        let listen = self.facts.listen;
        let Some(listen) = self.plan.same_listen(listen, &plan) else {
            return false;
        };
        self.facts.listen = listen;
        self.plan = plan;
        self.choose_server();
        true
    }

    /// Chooses the server whose settings the connection has.
    pub(crate) fn choose_server(&mut self) {
        let context = ConnectionContext::new(&self.plan, &self.facts);
        self.server = context.server(self.tls.as_deref());
    }

    /// Whether the connection has had its requests, or its time.
    pub(crate) fn is_spent(&self) -> bool {
        let settings = self.settings();
        let now_ms = self.lane.clock.now_ms();
        let age_ms = now_ms.saturating_sub(self.facts.accepted_ms);
        self.facts.requests >= settings.keepalive_requests || age_ms > settings.keepalive_time_ms
    }

    /// Begins a request, and runs it as far as it goes without waiting.
    pub(crate) fn begin(&mut self, shared: &Rc<Shared>, coming: Coming<'_>) -> Begun {
        let reader = coming.reader;
        self.facts.requests += 1;
        self.lane.counters.requests.add();
        let mut exchange = self.exchange();
        exchange.requester.set_early_data(coming.is_early);
        exchange.begin_request();
        exchange.read_request(|request| {
            std::mem::swap(request.head_mut(), &mut reader.head);
        });
        let head_bytes = exchange.request().head().fields.bytes();
        let doing = self.lane.progress.doing();
        doing.note(self.facts.serial, head_bytes);
        let block_bytes = reader.block_bytes as u64;
        exchange.account.head_received(block_bytes);
        exchange.sending.keep_connection(true);
        let asks_for_tunnel = exchange.request().head().is_extended_connect;
        if asks_for_tunnel {
            routing::complete_tunnel_request(&mut exchange);
        }
        let stream = Stream::new(coming.stream, shared, coming.ends, asks_for_tunnel);
        shared.begin(&stream);
        if coming.ends || asks_for_tunnel {
            exchange.body.arrived().set_whole();
        }
        exchange.leave_location();
        routing::choose_server(&mut exchange);
        let outcome = run(&mut exchange, coming.fault, coming.speaks);
        Begun {
            exchange,
            stream,
            outcome,
        }
    }
}

impl Begun {
    /// Answers at once where all is at hand, and fits; else a future goes on. `make_room` writes
    /// the output, and says whether that has made room.
    pub(crate) fn answer(self, lane: &LaneShared, make_room: impl FnMut() -> bool) {
        let Self {
            mut exchange,
            stream,
            outcome,
        } = self;
        let stage = match outcome {
            Outcome::Respond
                if !exchange.may_be_limited()
                    && !matches!(exchange.response.body(), Body::Tunnel(_)) =>
            {
                let Ok(mut answer) = BegunAnswer::begin(&mut exchange, &stream) else {
                    return answer::end(exchange, &stream, End::Cut);
                };
                match send_now(&mut exchange, &stream, &mut answer, make_room) {
                    Ok(SendProgress::Done) => return answer::end(exchange, &stream, End::Whole),
                    Err(_) => return answer::end(exchange, &stream, End::Cut),
                    Ok(_) => Stage::Sending(answer),
                }
            }
            Outcome::Close => return answer::end(exchange, &stream, End::Nothing),
            outcome => Stage::Outcome(outcome),
        };
        let send_timeout_ms = exchange.location().settings.send_timeout_ms;
        stream.traffic.set_timeout(send_timeout_ms);
        stream.running.replace(Some(exchange.running()));
        lane.drive_stream(Box::pin(answer::drive(exchange, stream, stage)));
    }
}

/// Sends what may be sent of an answer now. The output is written for the short rest of one, but
/// not for long ones: what the socket holds cannot let a more urgent answer pass.
fn send_now(
    exchange: &mut Exchange,
    stream: &Stream,
    answer: &mut BegunAnswer,
    mut make_room: impl FnMut() -> bool,
) -> Result<SendProgress, BodyFailed> {
    loop {
        let progress = answer.advance(exchange, stream, u64::MAX)?;
        let is_short = answer.rest_bytes(exchange) <= SHORT_REST_BYTES;
        if progress != SendProgress::WantsRoom || !is_short || !make_room() {
            return Ok(progress);
        }
    }
}

/// Runs a request as far as it goes without waiting, or refuses it.
fn run(
    exchange: &mut Exchange,
    fault: Option<HeadFault>,
    speaks: fn(&Exchange) -> bool,
) -> Outcome {
    if let Some(fault) = fault {
        exchange.account.set_action(Action::ReadingHeaders);
        routing::note_target(exchange);
        exchange.log(Level::Info, format_args!("{}", fault.reason()));
        return exchange.refuse(fault.status());
    }
    if !speaks(exchange) {
        routing::note_target(exchange);
        exchange.log(
            Level::Info,
            format_args!(
                "client attempted to request the server name for which the negotiated protocol is \
                 disabled"
            ),
        );
        return exchange.refuse(421);
    }
    match routing::settle(exchange) {
        Ok(()) => exchange.run(),
        Err(status) => exchange.refuse(status),
    }
}
