//! The list of the protocols. A line adds one.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{EventLoop, GateNumber, LaneGate, Owner};
use turnpike_lane::flows::ForwardedDatagram;
use turnpike_lane::log::ErrorLog;
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::background::Service;
use turnpike_plan::control::Command;
use turnpike_plan::passed::PassedConnection;
use turnpike_plan::protocol::{LaneCommon, PlanListen, ProcessCommon, Protocol, ProtocolPlan};

use crate::commands::RoundRobin;
use crate::dispatch::dispatch;

dispatch! {
    http: Http = turnpike_http::connection::Connections,
    stream: Stream = turnpike_stream::sessions::Sessions,
}
