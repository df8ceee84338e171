//! The variables of a session, under nginx's names.

use std::io::Write;
use std::net::IpAddr;

use turnpike_lane::sys::socket::{Kind, PeerAddress};
use turnpike_plan::product::NGINX_VERSION;
use turnpike_plan::proxy_header::ProxiedEnd;
use turnpike_plan::time;
use turnpike_plan::variables::PrefixRow;

use crate::session::Session;
use crate::upstream::Try;

/// A variable that a directive family offers.
pub type VariableRow = turnpike_plan::variables::VariableRow<Session>;

/// The variables of a plan.
pub type VariableTable = turnpike_plan::variables::VariableTable<Session>;

const fn row(
    name: &'static str,
    get: turnpike_plan::variables::Getter<Session>,
    summary: &'static str,
) -> VariableRow {
    VariableRow {
        name,
        get,
        set: None,
        summary,
    }
}

/// The core's variables.
pub const BUILTIN: &[VariableRow] = &[
    row(
        "binary_remote_addr",
        |session, out| {
            match session.peer {
                PeerAddress::Inet(address) => match address.ip() {
                    IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
                },
                PeerAddress::Unix => out.extend_from_slice(b"unix:"),
            }
            true
        },
        "The client's address in 4 or 16 bytes.",
    ),
    row(
        "bytes_received",
        |session, out| number(session.bytes_received.get(), out),
        "Bytes received from the client.",
    ),
    row(
        "bytes_sent",
        |session, out| number(session.bytes_sent.get(), out),
        "Bytes sent to the client.",
    ),
    row(
        "connection",
        |session, out| number(session.serial, out),
        "The connection's number.",
    ),
    row(
        "hostname",
        |session, out| {
            out.extend_from_slice(session.plan.host_name().as_bytes());
            true
        },
        "The machine's name.",
    ),
    row(
        "msec",
        |session, out| seconds(session.lane.clock.unix_ms(), out),
        "The time in seconds with milliseconds.",
    ),
    row(
        "nginx_version",
        |_, out| {
            out.extend_from_slice(NGINX_VERSION.as_bytes());
            true
        },
        "The version of nginx that Turnpike is compatible with.",
    ),
    row(
        "pid",
        |_, out| number(u64::from(std::process::id()), out),
        "The process ID of the serving process.",
    ),
    row(
        "protocol",
        |session, out| {
            out.extend_from_slice(match session.listen().address.kind() {
                Kind::Stream => b"TCP",
                Kind::Datagram => b"UDP",
            });
            true
        },
        "The protocol of the client: `TCP` or `UDP`.",
    ),
    row(
        "proxy_protocol_addr",
        |session, out| proxied_address(session, ProxiedEnd::Client, out),
        "The client's address from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_port",
        |session, out| proxied_port(session, ProxiedEnd::Client, out),
        "The client's port from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_server_addr",
        |session, out| proxied_address(session, ProxiedEnd::Server, out),
        "The server's address from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_server_port",
        |session, out| proxied_port(session, ProxiedEnd::Server, out),
        "The server's port from the PROXY protocol header.",
    ),
    row(
        "remote_addr",
        |session, out| address(session.peer, out),
        "The client's address.",
    ),
    row(
        "remote_port",
        |session, out| port(session.peer, out),
        "The client's port.",
    ),
    row(
        "server_addr",
        |session, out| address(session.local, out),
        "The address that the client connected to.",
    ),
    row(
        "server_port",
        |session, out| port(session.local, out),
        "The port that the client connected to.",
    ),
    row(
        "server_name",
        |session, out| {
            out.extend_from_slice(&session.server().name);
            true
        },
        "The name of the server that the session belongs to.",
    ),
    row(
        "session_time",
        |session, out| {
            let now_ms = session.lane.clock.now_ms();
            seconds(now_ms.saturating_sub(session.started_ms), out)
        },
        "The age of the session in seconds with milliseconds.",
    ),
    row(
        "status",
        |session, out| match session.status {
            Some(status) => number(u64::from(status.number()), out),
            None => {
                out.extend_from_slice(b"000");
                true
            }
        },
        "How the session ended: 200, 400, 403, 500, 502 or 503.",
    ),
    row(
        "time_iso8601",
        |session, out| {
            time::append_iso8601(session.lane.clock.unix_seconds(), out);
            true
        },
        "The local time in ISO 8601.",
    ),
    row(
        "time_local",
        |session, out| {
            time::append_local(session.lane.clock.unix_seconds(), out);
            true
        },
        "The local time in the format of logs.",
    ),
    row(
        "upstream_addr",
        |session, out| {
            list(session, out, |one, out| {
                out.extend_from_slice(one.address.as_bytes());
            })
        },
        "The addresses of the servers that were tried.",
    ),
    row(
        "upstream_bytes_received",
        |session, out| {
            list(session, out, |one, out| {
                number(one.bytes_received.get(), out);
            })
        },
        "Bytes received from the servers.",
    ),
    row(
        "upstream_bytes_sent",
        |session, out| {
            list(session, out, |one, out| {
                number(one.bytes_sent.get(), out);
            })
        },
        "Bytes sent to the servers.",
    ),
    row(
        "upstream_connect_time",
        |session, out| list(session, out, |one, out| duration(one.connect_ms, out)),
        "Times of connecting to the servers, in seconds with milliseconds.",
    ),
    row(
        "upstream_first_byte_time",
        |session, out| {
            list(session, out, |one, out| {
                duration(one.first_byte_ms.get(), out);
            })
        },
        "Times until the servers' first bytes, in seconds with milliseconds.",
    ),
    row(
        "upstream_session_time",
        |session, out| list(session, out, |one, out| duration(one.session_ms, out)),
        "How long the servers were used, in seconds with milliseconds.",
    ),
];

/// The names that stand for any addition of a PROXY protocol header.
const PREFIXES: &[PrefixRow<Session>] = &[PrefixRow {
    prefix: "proxy_protocol_tlv_",
    get: addition,
}];

/// A table that knows the built-in variables and those of the families.
pub(crate) fn table(rows: impl IntoIterator<Item = VariableRow>) -> VariableTable {
    VariableTable::new(BUILTIN.iter().copied().chain(rows), PREFIXES)
}

/// Appends a number.
pub fn number(number: u64, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    true
}

/// Appends an address without its port.
pub fn address(peer: PeerAddress, out: &mut Vec<u8>) -> bool {
    match peer {
        PeerAddress::Inet(address) => write!(out, "{}", address.ip()).is_ok(),
        PeerAddress::Unix => {
            out.extend_from_slice(b"unix:");
            true
        }
    }
}

/// Appends an address's port; nothing where there is none.
pub fn port(peer: PeerAddress, out: &mut Vec<u8>) -> bool {
    match peer {
        PeerAddress::Inet(address) if address.port() > 0 => number(u64::from(address.port()), out),
        _ => true,
    }
}

fn seconds(milliseconds: u64, out: &mut Vec<u8>) -> bool {
    let (whole, rest) = (milliseconds / 1000, milliseconds % 1000);
    write!(out, "{whole}.{rest:03}").is_ok()
}

fn duration(milliseconds: Option<u64>, out: &mut Vec<u8>) {
    match milliseconds {
        Some(milliseconds) => {
            seconds(milliseconds, out);
        }
        None => out.push(b'-'),
    }
}

fn list(session: &Session, out: &mut Vec<u8>, one: impl Fn(&Try, &mut Vec<u8>)) -> bool {
    for (index, part) in session.tries.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        one(part, out);
    }
    !session.tries.is_empty()
}

fn proxied_address(session: &Session, end: ProxiedEnd, out: &mut Vec<u8>) -> bool {
    let header = session.proxy_header.as_ref();
    header.is_some_and(|header| header.append_address(end, out))
}

fn proxied_port(session: &Session, end: ProxiedEnd, out: &mut Vec<u8>) -> bool {
    let header = session.proxy_header.as_ref();
    header.is_some_and(|header| header.append_port(end, out))
}

fn addition(session: &Session, name: &[u8], out: &mut Vec<u8>) -> bool {
    let header = session.proxy_header.as_ref();
    header.is_some_and(|header| header.append_addition(name, out))
}
