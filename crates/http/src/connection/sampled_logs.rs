//! Access log lines of sampled requests, which the express lane answered. Nothing is answered or
//! counted here.

use std::net::SocketAddr;
use std::rc::Rc;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::SocketFacts;

use crate::h1::input::Input;
use crate::h1::request::{self, HeadRead};
use crate::lane::{LanePlan, LaneShared};
use crate::plan::{ListenIndex, Plan};
use crate::requester::ConnectionFacts;
use crate::sampling::SampledRequest;

/// Writes lines of the samples that have arrived.
pub(super) fn write_logs(lane: &Rc<LaneShared>, plan: &Rc<LanePlan>) {
    for source in plan.sample_sources() {
        source.drain(&mut |sample| write_log(lane, plan, &sample));
    }
}

/// Writes the line of a request. Variables have their usual values, which follow from its head.
fn write_log(lane: &Rc<LaneShared>, plan: &Rc<LanePlan>, sample: &SampledRequest<'_>) {
    let (server, location) = (sample.server, sample.location);
    let Some(listen) = listen_at(plan, sample.gate) else {
        return;
    };
    if !plan.has(server, location) {
        return;
    }
    let facts = ConnectionFacts {
        serial: lane.next_serial(),
        peer: PeerAddress::Inet(sample.client),
        listen,
        socket: SocketFacts::NONE,
        local: None,
        requests: 1,
        is_pipelined: false,
        accepted_ms: lane.clock.now_ms(),
        accepted_ns: lane.clock.now_ns(),
    };
    let mut exchange = lane.exchange(plan, &facts);
    exchange.begin_request();
    let mut input = Input::new(lane.inputs());
    input.put(sample.head);
    if request::read(&mut input, &mut exchange) == HeadRead::Complete {
        exchange.walk.set_server(server);
        exchange.walk.set_location(location);
        exchange.response.set_status(sample.status);
        exchange.sending.close_connection();
        exchange.account.head_written(sample.head_bytes);
        exchange.account.sent(sample.sent_bytes);
        exchange.account.set_completed(true);
        exchange.account.set_sample_weight(sample.weight);
        exchange.write_sampled_log();
    }
    lane.recycle(exchange);
}

/// The gate of an address: its own, or one of all addresses.
fn listen_at(plan: &Plan, gate: SocketAddr) -> Option<ListenIndex> {
    let position = |is_it: &dyn Fn(SocketAddr) -> bool| {
        let mut listens = plan.listens.iter();
        listens.position(|listen| match &listen.address {
            ListenAddress::Tcp(address) => is_it(*address),
            ListenAddress::Unix(_) | ListenAddress::Udp(_) => false,
        })
    };
    let is_any = |address: SocketAddr| {
        let takes = address.is_ipv6() || gate.is_ipv4();
        address.ip().is_unspecified() && address.port() == gate.port() && takes
    };
    let found = position(&|address| address == gate).or_else(|| position(&is_any));
    found.map(|position| ListenIndex(position as u32))
}
