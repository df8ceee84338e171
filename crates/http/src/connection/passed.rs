//! Connections that a session of `stream` passes to an address of HTTP.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;

use super::connections::Connections;
use super::open::Connection;
use super::security::{Handshaking, Security};
use crate::counters::CloseReason;
use crate::h1::input::Input;
use crate::plan::index::ListenIndex;
use crate::requester::ConnectionFacts;
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::tls::TlsSession;

/// A connection that a session of `stream` passes to an address of HTTP (`pass`).
pub struct PassedConnection {
    /// The address whose servers serve it from now on.
    pub address: ListenAddress,
    pub transport: Transport,
    /// What was read of it, and nobody has looked at.
    pub bytes: Vec<u8>,
    /// The client, as far as it is known.
    pub peer: PeerAddress,
    /// What its TLS session has agreed on, where it has one.
    pub tls: Option<Box<TlsSession>>,
    /// What its PROXY protocol header said, where it began with one.
    pub proxy_header: Option<ProxyHeader>,
}

impl Connections {
    /// Serves a connection that was passed on; gives it back where its address is not of the plan
    /// in force.
    pub fn passed(
        &mut self,
        event_loop: &mut EventLoop,
        passed: PassedConnection,
    ) -> Option<PassedConnection> {
        let mut listens = self.plan.listens.iter();
        let place = listens.position(|listen| listen.address == passed.address);
        let Some(place) = place else {
            return Some(passed);
        };
        self.round.has_worked = true;
        let counters = &self.lane.counters;
        counters.accepted.add();
        counters.handled.add();
        counters.active.add();
        let client = ConnectionFacts {
            serial: self.lane.next_serial(),
            peer: passed.peer,
            listen: ListenIndex(place as u32),
            socket: passed.transport.facts(),
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        };
        let listen = self.plan.listen(client.listen);
        let is_plain = passed.transport.is_plain();
        let (listens_by_tls, expects_header) = (listen.tls, listen.proxy_protocol);
        let mut connection = Connection {
            transport: passed.transport,
            input: Input::new(self.lane.inputs()),
            client,
            no_delay: false,
            security: match passed.tls {
                Some(session) => Security::Secure(Arc::from(session)),
                None => Security::of_new(listens_by_tls),
            },
            plan: self.plan.clone(),
            proxy_header: passed.proxy_header.filter(|_| !expects_header).map(Rc::new),
        };
        if listens_by_tls && !is_plain {
            // One session within another has no place here.
            self.report(format_args!(
                "a connection with TLS was passed to {}, which expects TLS of its own: closed",
                passed.address
            ));
            self.close(connection, CloseReason::Refused);
            return None;
        }
        let has_bytes = !passed.bytes.is_empty();
        if listens_by_tls && has_bytes {
            let given = Handshaking::Given(passed.bytes);
            connection.security = Security::Handshaking(Box::new(given));
        } else {
            connection.input.put(&passed.bytes);
        }
        let served = AssertUnwindSafe(|| {
            if has_bytes && !listens_by_tls {
                let exchange = self.exchange(&connection);
                self.serve(event_loop, None, connection, exchange, None);
            } else {
                self.first_transaction(event_loop, connection);
            }
        });
        if catch_unwind(served).is_err() {
            self.panicked();
        }
        None
    }

    /// A connection whose client has just come to an address.
    pub(super) fn begun(
        &mut self,
        event_loop: &EventLoop,
        listen: ListenIndex,
        transport: Transport,
        peer: PeerAddress,
    ) -> Connection {
        let counters = &self.lane.counters;
        counters.accepted.add();
        counters.handled.add();
        counters.active.add();
        let client = ConnectionFacts {
            serial: self.lane.next_serial(),
            peer,
            listen,
            socket: transport.facts(),
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        };
        self.round.has_worked = true;
        Connection {
            transport,
            input: Input::new(self.lane.inputs()),
            client,
            no_delay: false,
            security: Security::of_new(self.plan.listen(listen).tls),
            plan: self.plan.clone(),
            proxy_header: None,
        }
    }
}
