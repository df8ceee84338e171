//! The variables of the PROXY protocol.

use turnpike_plan::proxy_header::{ProxiedEnd, ProxyHeader};

use crate::exchange::Exchange;

/// `$proxy_protocol_addr`.
pub(super) fn client_address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    header(exchange).is_some_and(|header| header.append_address(ProxiedEnd::Client, out))
}

/// `$proxy_protocol_port`.
pub(super) fn client_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    header(exchange).is_some_and(|header| header.append_port(ProxiedEnd::Client, out))
}

/// `$proxy_protocol_server_addr`.
pub(super) fn server_address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    header(exchange).is_some_and(|header| header.append_address(ProxiedEnd::Server, out))
}

/// `$proxy_protocol_server_port`.
pub(super) fn server_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    header(exchange).is_some_and(|header| header.append_port(ProxiedEnd::Server, out))
}

/// `$proxy_protocol_tlv_NAME`.
pub(super) fn addition(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    header(exchange).is_some_and(|header| header.append_addition(name, out))
}

fn header(exchange: &Exchange) -> Option<&ProxyHeader> {
    exchange.requester.proxy_header()
}
