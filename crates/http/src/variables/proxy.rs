//! The variables of the PROXY protocol.

use std::io::Write;
use std::net::SocketAddr;

use turnpike_wire::proxy_protocol::{self, Addresses};

use super::append_number;
use crate::exchange::Exchange;

/// `$proxy_protocol_addr`.
pub(super) fn client_address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    address(exchange, 0, |found| found.source, out)
}

/// `$proxy_protocol_port`.
pub(super) fn client_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    port(exchange, |found| found.source, out)
}

/// `$proxy_protocol_server_addr`.
pub(super) fn server_address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    address(exchange, 1, |found| found.destination, out)
}

/// `$proxy_protocol_server_port`.
pub(super) fn server_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    port(exchange, |found| found.destination, out)
}

/// `$proxy_protocol_tlv_NAME`.
pub(super) fn addition(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(header) = &exchange.proxy_header else {
        return false;
    };
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    match name {
        "ssl_verify" => match proxy_protocol::find_ssl(&header.tlvs) {
            Ok(Some(ssl)) => {
                append_number(out, u64::from(ssl.verify));
                true
            }
            _ => false,
        },
        _ => match proxy_protocol::find_named_tlv(&header.tlvs, name) {
            Ok(Some(value)) => {
                out.extend_from_slice(value);
                true
            }
            _ => false,
        },
    }
}

fn address(
    exchange: &Exchange,
    text: usize,
    pick: fn(&Addresses) -> SocketAddr,
    out: &mut Vec<u8>,
) -> bool {
    let Some(header) = &exchange.proxy_header else {
        return false;
    };
    let Some(addresses) = &header.addresses else {
        return false;
    };
    match header.texts.get(text) {
        Some(written) if !written.is_empty() => {
            out.extend_from_slice(written);
            true
        }
        _ => write!(out, "{}", pick(addresses).ip()).is_ok(),
    }
}

fn port(exchange: &Exchange, pick: fn(&Addresses) -> SocketAddr, out: &mut Vec<u8>) -> bool {
    let header = exchange.proxy_header.as_ref();
    let Some(addresses) = header.and_then(|header| header.addresses.as_ref()) else {
        return false;
    };
    match pick(addresses).port() {
        0 => {}
        port => append_number(out, u64::from(port)),
    }
    true
}
