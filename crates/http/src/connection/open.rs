//! An open connection, whatever it is doing: its transport, what has come of it, and what is known
//! of it.

use std::io;
use std::rc::Rc;

use turnpike_lane::transport::Transport;

use super::tls::security::Security;
use crate::connection_context::ConnectionContext;
use crate::h1::input::Input;
use crate::lane::LanePlan;
use crate::requester::ConnectionFacts;
use turnpike_plan::proxy_header::ProxyHeader;

/// Bytes first asked of a socket: most heads are far smaller, and all fit that nginx's first
/// buffer and one large one would take.
pub(super) const RECEIVE_BYTES: usize = 8 * 1024;

/// A connection between two of its states.
pub(super) struct Connection<T = Transport> {
    pub(super) transport: T,
    /// What it has sent and nobody has taken.
    pub(super) input: Input,
    pub(super) facts: ConnectionFacts,
    /// Whether Nagle's algorithm was switched off.
    pub(super) no_delay: bool,
    /// The plan of its gate; replaced at the next request after a reload.
    pub(super) plan: Rc<LanePlan>,
    /// The PROXY protocol's header, once it was read.
    pub(super) proxy_header: Option<Rc<ProxyHeader>>,
    pub(super) security: Security,
}

impl Connection {
    /// The transport with what has come of it, and the connection without: for whoever owns the
    /// transport for a while.
    pub(super) fn detach(self) -> (Transport, Input, Connection<()>) {
        let Connection {
            transport,
            mut input,
            facts,
            no_delay,
            plan,
            proxy_header,
            security,
        } = self;
        let taken = input.take();
        let detached = Connection {
            transport: (),
            input,
            facts,
            no_delay,
            plan,
            proxy_header,
            security,
        };
        (transport, taken, detached)
    }
}

impl Connection<()> {
    /// The connection with its transport again, and what has come of that.
    pub(super) fn attach(self, transport: Transport, input: Input) -> Connection {
        Connection {
            transport,
            input,
            facts: self.facts,
            no_delay: self.no_delay,
            plan: self.plan,
            proxy_header: self.proxy_header,
            security: self.security,
        }
    }
}

impl<T> Connection<T> {
    /// The connection as its log has it while it has no request.
    pub(super) fn context(&self) -> ConnectionContext<'_> {
        ConnectionContext::new(&self.plan, &self.facts)
    }
}

/// Reads what the socket has, behind what is there.
pub(super) fn receive(connection: &mut Connection) -> io::Result<usize> {
    let Connection {
        transport, input, ..
    } = connection;
    input.receive(transport, RECEIVE_BYTES)
}

/// Moves a connection to another plan where its gate is in that too.
pub(super) fn move_to(plan: &Rc<LanePlan>, connection: &mut Connection) {
    if Rc::ptr_eq(&connection.plan, plan) {
        return;
    }
    if let Some(listen) = connection.plan.same_listen(connection.facts.listen, plan) {
        connection.facts.listen = listen;
        connection.plan = plan.clone();
    }
}
