//! `$tcpinfo_...`: what the kernel knows of the client's connection.

use turnpike_lane::sys::socket_option::TcpInfo;

use super::row::VariableRow;
use super::text::append_number;
use crate::exchange::Exchange;

/// The variables.
pub const SOCKET: &[VariableRow] = &[
    VariableRow {
        name: "tcpinfo_rcv_space",
        get: |exchange, out| tell(exchange, out, |info| info.receive_space_bytes),
        set: None,
        summary: "The kernel's buffer space for data from the client, in bytes.",
    },
    VariableRow {
        name: "tcpinfo_rtt",
        get: |exchange, out| tell(exchange, out, |info| info.rtt_us),
        set: None,
        summary: "The round-trip time to the client, in microseconds.",
    },
    VariableRow {
        name: "tcpinfo_rttvar",
        get: |exchange, out| tell(exchange, out, |info| info.rtt_variance_us),
        set: None,
        summary: "The variance of the round-trip time, in microseconds.",
    },
    VariableRow {
        name: "tcpinfo_snd_cwnd",
        get: |exchange, out| tell(exchange, out, |info| info.congestion_window_segments),
        set: None,
        summary: "The congestion window of the connection, in segments.",
    },
];

fn tell(exchange: &Exchange, out: &mut Vec<u8>, of: fn(&TcpInfo) -> u32) -> bool {
    match exchange.requester.socket().tcp_info() {
        Ok(info) => {
            append_number(out, u64::from(of(&info)));
            true
        }
        Err(_) => false,
    }
}
