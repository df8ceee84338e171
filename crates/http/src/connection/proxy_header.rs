//! The PROXY protocol's header at the start of a connection.

use std::rc::Rc;

use turnpike_lane::log::Level;
use turnpike_wire::proxy_protocol;

use super::open::Connection;
use crate::exchange::Action;
use crate::requester::Requester;
use turnpike_plan::Quoted;
use turnpike_plan::proxy_header::ProxyHeader;

/// How much of a connection's PROXY protocol header has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyHeaderState {
    /// The header was read now.
    Read,
    /// The header was read before, or the listener wants none.
    Complete,
    /// More bytes are needed.
    Incomplete,
    /// The bytes are no header: the connection is to be closed.
    Invalid,
}

/// Reads the header where the gate wants one that has not come yet.
pub(super) fn read(connection: &mut Connection) -> ProxyHeaderState {
    let listen = connection.plan.listen(connection.facts.listen);
    if connection.proxy_header.is_some() || !listen.proxy_protocol {
        return ProxyHeaderState::Complete;
    }
    let bytes = connection.input.bytes();
    match proxy_protocol::parse(bytes) {
        Ok(None) => ProxyHeaderState::Incomplete,
        Ok(Some(header)) => {
            let header_len = header.len;
            let header = Rc::new(ProxyHeader::new(&header, bytes));
            connection.proxy_header = Some(header);
            connection.input.consume(header_len);
            ProxyHeaderState::Read
        }
        Err(error) => {
            let (reason, quoted) = (error.reason(), Quoted(first_line(bytes)));
            let message = format_args!("{reason}: \"{quoted}\"");
            let context = connection.context();
            context.log(Action::ReadingProxyHeader, Level::Error, message);
            ProxyHeaderState::Invalid
        }
    }
}

/// The same, with what was read for an exchange that has begun.
pub(super) fn read_for(requester: &mut Requester, connection: &mut Connection) -> ProxyHeaderState {
    let state = read(connection);
    if state == ProxyHeaderState::Read {
        let header = &connection.proxy_header;
        requester.set_proxy_header(header);
    }
    state
}

/// What is shown of bytes that are no header: the first line, at most a version 1 header's length.
fn first_line(bytes: &[u8]) -> &[u8] {
    let shown = &bytes[..bytes.len().min(proxy_protocol::V1_BYTES_MAX)];
    let end = shown.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    &shown[..end.unwrap_or(shown.len())]
}
