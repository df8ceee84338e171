//! Connections that a session of `stream` passes to an address of HTTP.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;

use crate::connection::connections::Connections;
use crate::connection::open::Connection;
use crate::connection::slots::Place;
use crate::connection::tls::security::{Handshaking, Security};
use crate::counters::CloseReason;
use crate::h1::input::Input;
use crate::plan::index::ListenIndex;
use crate::requester::ConnectionFacts;
use turnpike_plan::passed::{PassedFacts, Receiver};

impl Receiver for Connections {
    fn place_of(&self, address: &ListenAddress) -> Option<usize> {
        let mut listens = self.plan.listens.iter();
        listens.position(|listen| listen.address == *address)
    }

    fn receive(
        &mut self,
        event_loop: &mut EventLoop,
        place: usize,
        transport: Transport,
        facts: PassedFacts,
    ) {
        let is_plain = transport.is_plain();
        let mut connection =
            self.begun(event_loop, ListenIndex(place as u32), transport, facts.peer);
        let listen = self.plan.listen(connection.facts.listen);
        let (listens_by_tls, expects_header) = (listen.tls, listen.proxy_protocol);
        if let Some(session) = facts.tls {
            connection.security = Security::Secure(Arc::from(session));
        }
        connection.proxy_header = facts.proxy_header.filter(|_| !expects_header).map(Rc::new);
        if listens_by_tls && !is_plain {
            // One session within another has no place here.
            self.report(format_args!(
                "a connection with TLS was passed to {}, which expects TLS of its own: closed",
                listen.address
            ));
            self.close(connection, CloseReason::Refused);
            return;
        }
        let has_bytes = !facts.bytes.is_empty();
        let served = AssertUnwindSafe(|| {
            if has_bytes && listens_by_tls {
                let state = Handshaking::Given(facts.bytes);
                self.shake_hands(event_loop, Place::New, connection, state);
            } else if has_bytes {
                connection.input.put(&facts.bytes);
                let exchange = self.exchange(&connection);
                self.serve(event_loop, Place::New, connection, exchange, None);
            } else {
                self.first_transaction(event_loop, connection);
            }
        });
        if catch_unwind(served).is_err() {
            self.panicked();
        }
    }
}

impl Connections {
    /// A connection whose client has just come to an address.
    pub(in crate::connection) fn begun(
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
        let facts = ConnectionFacts {
            serial: self.lane.next_serial(),
            peer,
            listen,
            socket: transport.facts(),
            local: None,
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        };
        self.round.has_worked = true;
        Connection {
            transport,
            input: Input::new(self.lane.inputs()),
            facts,
            no_delay: false,
            security: Security::of_new(self.plan.listen(listen).tls),
            plan: self.plan.clone(),
            proxy_header: None,
        }
    }
}
