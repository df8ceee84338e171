//! Connections that speak HTTP/2: how they are recognised, and how they are driven.

use std::os::fd::AsFd;
use std::rc::Rc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::sys::socket_option;
use turnpike_lane::waiting::Waited;
use turnpike_wire::h2::{self, ConnectionRules, PREFACE};
use turnpike_wire::message::HeadRules;

use super::connections::Connections;
use super::open::Connection;
use super::return_queue::HandBackOnDrop;
use super::security::Security;
use super::slot::DrivenWork;
use crate::counters::CloseReason;
use crate::h2::connection::{Opening, serve};
use crate::h2::shared::Shared;
use crate::lane::LaneShared;
use crate::plan::ServerIndex;
use crate::routing;
use turnpike_plan::tls;

/// The protocol of a connection, by its TLS session or by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
    /// More bytes are needed.
    Unclear,
}

/// What a connection speaks that has had no request yet.
pub(super) fn spoken(connection: &Connection) -> Spoken {
    match &connection.security {
        Security::Secure(session) if *session.protocol == *tls::HTTP2 => return Spoken::Http2,
        Security::Plain => {}
        _ => return Spoken::Http1,
    }
    let plan = &connection.plan;
    let listen = plan.listen(connection.facts.listen);
    if !listen.http2 && !plan.server(listen.default_server).settings.http2.is_on {
        return Spoken::Http1;
    }
    by_first_bytes(connection.input.bytes())
}

fn by_first_bytes(bytes: &[u8]) -> Spoken {
    let count = bytes.len().min(PREFACE.len());
    match (bytes[..count] == PREFACE[..count], count) {
        // HTTP/2 refuses it as an invalid preface: HTTP/1 has no such first line either, and an
        // answer of HTTP/1 would be no frame.
        (false, _) if is_foreign_line(bytes) => Spoken::Http2,
        (false, _) => Spoken::Http1,
        (true, count) if count == PREFACE.len() => Spoken::Http2,
        (true, _) => Spoken::Unclear,
    }
}

/// Whether the first line is whole and has the parts of a request line, but names another protocol
/// than HTTP. Any other line is HTTP/1's to judge, as in nginx: `GET /` is a request of HTTP/0.9.
fn is_foreign_line(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    let words = || {
        let words = bytes[..end].split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    };
    words().count() >= 3 && words().all(|word| !word.starts_with(b"HTTP/"))
}

/// What the connection's future and those of its answers share.
fn shared_by_streams(
    lane: &LaneShared,
    connection: &Connection,
    server: ServerIndex,
) -> Rc<Shared> {
    let settings = &connection.plan.server(server).settings;
    let wire = h2::Connection::new(ConnectionRules {
        streams_max: settings.http2.streams_max,
        stream_window: settings.http2.preread_bytes,
        head: HeadRules {
            line_bytes_max: settings.http2.field_bytes_max,
            head_bytes_max: settings.http2.list_bytes_max,
            ..settings.head_rules
        },
    });
    Shared::new(wire, &lane.clock, lane.outputs(), lane.stream_places())
}

impl Connections {
    /// Drives a connection of HTTP/2 from now on.
    pub(super) fn begin_http2(
        &mut self,
        event_loop: &mut EventLoop,
        token: Option<u32>,
        mut connection: Connection,
    ) {
        let mut exchange = self.exchange(&connection);
        let server = routing::server_of_connection(&mut exchange);
        self.recycle(exchange);
        let plan = &connection.plan;
        let root = plan.location(plan.server(server).root);
        if root.settings.tcp_nodelay && connection.facts.peer.inet().is_some() {
            // A socket that cannot do this is only slower.
            let _ = socket_option::set_no_delay(connection.transport.as_fd(), true);
            connection.no_delay = true;
        }
        let shared = shared_by_streams(&self.lane, &connection, server);
        let work = DrivenWork::Streams(Rc::clone(&shared));
        let Some((mut slot, connection)) = self.driven_slot(event_loop, token, connection, work)
        else {
            return;
        };
        slot.is_http2 = true;
        // The first event may have reported bytes that are not read yet.
        slot.watch.event(false);
        self.http2_connections += 1;
        self.count_writing(0);
        let return_queue = Rc::clone(&self.return_queue);
        let lane = Rc::clone(&self.lane);
        event_loop.drive(Box::pin(async move {
            let handed_back = HandBackOnDrop::new(&return_queue, &slot);
            let (transport, mut input, detached) = connection.detach();
            let tls = match &detached.security {
                Security::Secure(session) => Some(session.clone()),
                _ => None,
            };
            let opening = Opening {
                lane: Rc::clone(&lane),
                plan: Rc::clone(&detached.plan),
                server,
                facts: detached.facts,
                proxy_header: detached.proxy_header.clone(),
                tls,
                input: input.take_bytes(),
                shared,
            };
            input.release();
            let waited = Waited::for_writing(transport);
            let reason: CloseReason = serve(opening, &waited, &slot.watch).await;
            drop(waited);
            handed_back.disarm();
            let exchange = lane.exchange(&detached.plan, &detached.facts);
            return_queue.give_back(slot, Err(reason), Some(exchange));
        }));
    }
}

#[cfg(test)]
mod tests;
