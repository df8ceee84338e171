//! Lines of the error log that belong to a request: message, action, client, server, request.

use std::fmt;

use turnpike_lane::log::{ErrorLog, Level, Member, Subject};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::turns;

use crate::engine::Purpose;
use crate::exchange::{Action, Exchange};
use crate::phase::Logger;
use crate::settings::server::EventsSettings;
use turnpike_plan::Quoted;
use turnpike_plan::messages::CLIENT_TIMED_OUT;
use turnpike_wire::message::Known;

impl Exchange {
    /// Writes to the error log of the location in force.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        let log = &self.location().error_log;
        let (peer, serial) = (self.requester.peer(), self.requester.serial());
        let subject = Context(self);
        write(
            log,
            &self.plan.events,
            (peer, serial),
            level,
            message,
            &subject,
        );
    }

    /// Logs that the client neither sent nor took data in time.
    pub(crate) fn log_client_timeout(&self) {
        self.log(Level::Info, format_args!("{CLIENT_TIMED_OUT}"));
    }

    /// Logs that the client closed the connection before the response was complete.
    pub(crate) fn log_client_closed(&self) {
        self.log(
            Level::Info,
            format_args!("client prematurely closed connection"),
        );
    }

    /// Writes how a request is handled, where somebody wants to know (`error_log ... debug`,
    /// `debug_connection`).
    #[inline]
    pub fn debug(&self, message: fmt::Arguments<'_>) {
        if self.plan.is_debugged {
            self.log(Level::Debug, message);
        }
    }
}

impl Exchange {
    /// Lets the location's loggers write the exchange down; called once, at its end.
    pub(crate) fn log_access(&mut self) {
        let status = self.logged_status();
        let counters = &self.lane.counters;
        counters.answered(
            status,
            self.account.request_bytes(),
            self.account.sent_bytes(),
        );
        let now_ms = self.lane.clock.now_ms();
        match now_ms.saturating_sub(self.account.started_ms()) {
            // It began and ended in one round, whose end nobody has measured yet.
            0 => self.lane.progress.count_round_answer(),
            took_ms => counters.request_times.record(took_ms * 1_000_000),
        }
        self.write_access_log();
        self.account.logged();
        self.rooms.release();
    }

    /// Lets the location's loggers write the exchange down.
    pub(crate) fn write_access_log(&mut self) {
        self.write_down(|logger, exchange| logger.log(exchange));
    }

    /// The same for an exchange that was made from a sample.
    pub(crate) fn write_sampled_log(&mut self) {
        self.write_down(|logger, exchange| logger.log_sampled(exchange));
    }

    fn write_down(&mut self, write: impl Fn(&dyn Logger, &Exchange)) {
        let plan = self.plan.clone();
        self.matching_is_late();
        self.enter_log();
        self.account.set_action(Action::Logging);
        for logger in plan.location(self.walk.location()).loggers() {
            write(&**logger, self);
        }
    }
}

/// Writes to an error log about a client, which is of that address and connection: at every level
/// where `debug_connection` names the client.
pub(crate) fn write(
    log: &ErrorLog,
    events: &EventsSettings,
    (peer, serial): (PeerAddress, u64),
    level: Level,
    message: fmt::Arguments<'_>,
    subject: &dyn Subject,
) {
    let debugged = &events.debugged;
    if !debugged.is_empty() && debugged.contains(&peer) {
        log.write_everywhere(level, Some(serial), message, Some(subject));
    } else {
        log.write_about(level, Some(serial), message, Some(subject));
    }
}

/// Writes what a client's connection is at, and where the client is, after a message: nginx's order
/// and words.
pub(crate) fn write_client(
    formatter: &mut fmt::Formatter<'_>,
    action: Action,
    peer: PeerAddress,
) -> fmt::Result {
    if action != Action::Processing {
        write!(formatter, " while {}", action.text())?;
    }
    match peer {
        PeerAddress::Inet(address) => write!(formatter, ", client: {}", address.ip()),
        PeerAddress::Unix => formatter.write_str(", client: unix:"),
    }
}

/// Adds the same as members of a JSON object.
pub(crate) fn add_client(
    add: &mut dyn FnMut(Member, fmt::Arguments<'_>),
    action: Action,
    peer: PeerAddress,
) {
    if action != Action::Processing {
        add(Member::Action, format_args!("{}", action.text()));
    }
    match peer {
        PeerAddress::Inet(address) => add(Member::Client, format_args!("{}", address.ip())),
        PeerAddress::Unix => add(Member::Client, format_args!("unix:")),
    }
}

/// An exchange in the hands of a future. Where the future is dropped before its end, since its lane
/// ends (`worker_shutdown_timeout`) or since it has had its turns, the request is written to the
/// access log all the same.
pub(crate) struct DrivenExchange(Option<Box<Exchange>>);

impl DrivenExchange {
    /// Takes an exchange that a future drives from now on.
    pub(crate) fn new(exchange: Box<Exchange>) -> Self {
        Self(Some(exchange))
    }

    /// The exchange; `None` after the first call.
    pub(crate) fn exchange(&mut self) -> Option<&mut Exchange> {
        self.0.as_deref_mut()
    }

    /// Gives the exchange back at the future's end.
    pub(crate) fn into_exchange(mut self) -> Option<Box<Exchange>> {
        self.0.take()
    }
}

impl Drop for DrivenExchange {
    fn drop(&mut self) {
        let Some(exchange) = &mut self.0 else {
            return;
        };
        if turns::is_ending() {
            exchange.log(Level::Alert, format_args!("{}", turns::Ended));
        }
        if !exchange.account.is_unlogged() || std::thread::panicking() {
            return;
        }
        exchange.account.set_completed(false);
        if exchange.logged_status() == 0 {
            exchange.client_closed_request();
        }
        exchange.end_body();
        exchange.log_access();
    }
}

/// What stands after the message: nginx's order and words.
struct Context<'a>(&'a Exchange);

impl fmt::Display for Context<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exchange = self.0;
        let (action, peer) = (exchange.account.action(), exchange.requester.peer());
        write_client(formatter, action, peer)?;
        let line = exchange.request().head().line();
        if line.is_empty() {
            return write!(formatter, ", server: {}", exchange.listen().address);
        }
        write!(formatter, ", server: {}", Quoted(&exchange.server().name))?;
        write!(formatter, ", request: \"{}\"", Quoted(line))?;
        if matches!(exchange.purpose(), Purpose::Subrequest | Purpose::Part) {
            write!(
                formatter,
                ", subrequest: \"{}\"",
                Quoted(exchange.walk.path())
            )?;
        }
        if !exchange.upstream.target().is_empty() {
            let target = Quoted(exchange.upstream.target());
            write!(formatter, ", upstream: \"{target}\"")?;
        }
        if let Some(host) = exchange.known_field(Known::Host) {
            write!(formatter, ", host: \"{}\"", Quoted(host))?;
        }
        if let Some(referrer) = exchange.known_field(Known::Referer) {
            write!(formatter, ", referrer: \"{}\"", Quoted(referrer))?;
        }
        Ok(())
    }
}

impl Subject for Context<'_> {
    fn members(&self, add: &mut dyn FnMut(Member, fmt::Arguments<'_>)) {
        let exchange = self.0;
        let (action, peer) = (exchange.account.action(), exchange.requester.peer());
        add_client(add, action, peer);
        let line = exchange.request().head().line();
        if line.is_empty() {
            return add(
                Member::Server,
                format_args!("{}", exchange.listen().address),
            );
        }
        let mut quoted = |member, value| add(member, format_args!("{}", Quoted(value)));
        quoted(Member::Server, &exchange.server().name);
        quoted(Member::Request, line);
        if matches!(exchange.purpose(), Purpose::Subrequest | Purpose::Part) {
            quoted(Member::Subrequest, exchange.walk.path());
        }
        let upstream = exchange.upstream.target();
        if !upstream.is_empty() {
            quoted(Member::Upstream, upstream);
        }
        if let Some(host) = exchange.known_field(Known::Host) {
            quoted(Member::Host, host);
        }
        if let Some(referrer) = exchange.known_field(Known::Referer) {
            quoted(Member::Referrer, referrer);
        }
    }
}
