//! A connection that has no request: it logs, chooses a server by a name, and knows the settings
//! that hold for it, without an exchange.

use std::cell::RefCell;
use std::fmt;

use turnpike_lane::log::{Level, Member, Subject};
use turnpike_plan::pattern::{Matcher, Pattern};
use turnpike_plan::regex::{Allowance, Groups, Undecided};
use turnpike_plan::tls::TlsSession;

use crate::exchange::Action;
use crate::lane::LanePlan;
use crate::log;
use crate::plan::ServerIndex;
use crate::plan::listen::Listen;
use crate::plan::resolved::Location;
use crate::requester::ConnectionFacts;
use crate::settings::LocationSettings;

/// A connection that has no request.
pub(crate) struct ConnectionContext<'a> {
    plan: &'a LanePlan,
    facts: &'a ConnectionFacts,
    /// The cost that its matches may still have.
    allowance: RefCell<Allowance>,
}

/// The text of a log line after its message.
struct Line<'a> {
    context: &'a ConnectionContext<'a>,
    action: Action,
}

impl<'a> ConnectionContext<'a> {
    /// The context of a connection under a plan that has its listen.
    pub(crate) fn new(plan: &'a LanePlan, facts: &'a ConnectionFacts) -> Self {
        let allowance = RefCell::new(Allowance::LANE);
        Self {
            plan,
            facts,
            allowance,
        }
    }

    /// Writes to the error log of the default server.
    pub(crate) fn log(&self, action: Action, level: Level, message: fmt::Arguments<'_>) {
        let line = Line {
            context: self,
            action,
        };
        let log = &self.root().error_log;
        let client = (self.facts.peer, self.facts.serial);
        log::write(log, &self.plan.events, client, level, message, &line);
    }

    /// The settings of the default server.
    pub(crate) fn settings(&self) -> &LocationSettings {
        &self.root().settings
    }

    /// The server of that name at the connection's address. A pattern without a verdict matches
    /// nothing, since nothing can wait here.
    pub(crate) fn server_named(&self, name: &[u8]) -> Option<ServerIndex> {
        self.listen().names.find(name, self).ok().flatten()
    }

    /// The server that the connection belongs to before its requests name one: the one that TLS
    /// names (SNI), or the default server of its address.
    pub(crate) fn server(&self, tls: Option<&TlsSession>) -> ServerIndex {
        let listen = self.listen();
        let name = match tls {
            Some(tls) if !listen.names.is_empty() => tls.negotiated_host(),
            _ => b"",
        };
        let named = if name.is_empty() {
            None
        } else {
            self.server_named(name)
        };
        named.unwrap_or(listen.default_server)
    }

    fn listen(&self) -> &'a Listen {
        self.plan.listen(self.facts.listen)
    }

    fn root(&self) -> &'a Location {
        let server = self.plan.server(self.listen().default_server);
        self.plan.location(server.root)
    }
}

impl Matcher for ConnectionContext<'_> {
    /// The groups are not kept: there is nothing that could use them.
    fn matches(&self, pattern: &Pattern, text: &[u8]) -> Result<bool, Undecided> {
        let regex = &pattern.regex;
        let mut groups = Groups::new();
        let found = self.with_allowance(|allowance| {
            let program = regex.program();
            program.on_lane(text, allowance, &mut groups)
        });
        found.map_err(|failure| {
            let line = regex.failed(failure.message(), failure.0, text);
            self.log(Action::default(), Level::Alert, format_args!("{line}"));
            Undecided
        })
    }

    fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T {
        call(&mut self.allowance.borrow_mut())
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        log::write_client(formatter, self.action, self.context.facts.peer)?;
        write!(formatter, ", server: {}", self.context.listen().address)
    }
}

impl Subject for Line<'_> {
    fn members(&self, add: &mut dyn FnMut(Member, fmt::Arguments<'_>)) {
        log::add_client(add, self.action, self.context.facts.peer);
        let address = &self.context.listen().address;
        add(Member::Server, format_args!("{address}"));
    }
}
