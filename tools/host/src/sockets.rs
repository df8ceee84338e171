//! Sockets: how many there are of each kind, and the queues of those that listen.
//!
//! Listening sockets are asked for by netlink (sock_diag(7)), which alone gives the length and the
//! limit of their queues for all processes. It answers for the network namespace of this process,
//! so a recorded tree has none.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use serde::{Deserialize, Serialize};

use crate::host::Host;

/// A listening TCP socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    pub port: u16,
    /// Whether only this machine can reach it.
    pub is_loopback: bool,
    /// Connections that wait for accept(2).
    pub waiting: u32,
    /// How many may wait: the lesser of listen(2)'s backlog and `net.core.somaxconn`.
    pub backlog: u32,
}

/// TCP sockets by what they are, as `/proc/net/sockstat` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketCounts {
    pub in_use: u64,
    pub orphaned: u64,
    pub time_wait: u64,
    /// Memory, in pages.
    pub memory_pages: u64,
}

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
/// `NLMSG_DONE`; an error is 2.
const DONE: u16 = 3;
const ERROR: u16 = 2;
const TCP_LISTEN: u32 = 10;
const HEADER_BYTES: usize = 16;
/// A header of netlink and `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// The kernel sends dumps in pieces of at most 32 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Answers that are read: more than 100,000 listening sockets are not looked at.
const ANSWERS_MAX: usize = 512;

impl Host {
    /// The listening TCP sockets of this process's network namespace, by port; none for a recorded
    /// tree, or where the kernel does not answer.
    pub fn listeners(&self) -> Vec<Listener> {
        if !self.is_here() {
            return Vec::new();
        }
        let families = [
            libc_family(AddressFamily::Inet),
            libc_family(AddressFamily::Inet6),
        ];
        let found = families.iter().filter_map(|family| dump(*family).ok());
        let mut found: Vec<Listener> = found.flatten().collect();
        found.sort_by_key(|listener| listener.port);
        found
    }

    /// TCP sockets by what they are.
    pub fn socket_counts(&self) -> SocketCounts {
        let counts = self.sockets_below("proc/net");
        counts.unwrap_or_default()
    }

    /// The same of a process's network namespace; `None` where there is no such process.
    pub fn socket_counts_of(&self, process: u32) -> Option<SocketCounts> {
        self.sockets_below(&format!("proc/{process}/net"))
    }

    fn sockets_below(&self, folder: &str) -> Option<SocketCounts> {
        let text = self.text(format!("{folder}/sockstat"));
        let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |name: &str| {
            let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
            pair.and_then(|pair| pair[1].parse().ok()).unwrap_or(0)
        };
        Some(SocketCounts {
            in_use: number("inuse"),
            orphaned: number("orphan"),
            time_wait: number("tw"),
            memory_pages: number("mem"),
        })
    }
}

fn libc_family(family: AddressFamily) -> u8 {
    family as i32 as u8
}

/// All listening sockets of a family.
fn dump(family: u8) -> nix::Result<Vec<Listener>> {
    let protocol = SockProtocol::NetlinkSockDiag;
    let flags = SockFlag::SOCK_CLOEXEC;
    let netlink: OwnedFd = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?;
    let descriptor = netlink.as_raw_fd();
    send(descriptor, &request(family), MsgFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    for _ in 0..ANSWERS_MAX {
        let count = recv(descriptor, &mut buffer, MsgFlags::empty())?;
        if !messages(&buffer[..count], &mut found) {
            break;
        }
    }
    Ok(found)
}

fn request(family: u8) -> [u8; REQUEST_BYTES] {
    /// `IPPROTO_TCP`.
    const TCP: u8 = 6;
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    bytes[16] = family;
    bytes[17] = TCP;
    bytes[20..24].copy_from_slice(&(1_u32 << TCP_LISTEN).to_ne_bytes());
    bytes
}

/// Reads the messages of one answer; whether more answers follow.
pub(crate) fn messages(mut bytes: &[u8], found: &mut Vec<Listener>) -> bool {
    while let Some((header, _)) = bytes.split_at_checked(HEADER_BYTES) {
        let length = number(header, 0) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        if kind == DONE || kind == ERROR || length < HEADER_BYTES {
            return false;
        }
        let Some(message) = bytes.get(HEADER_BYTES..length) else {
            return false;
        };
        found.extend(listener(message));
        // Messages begin at multiples of four.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// A `struct inet_diag_msg`.
fn listener(message: &[u8]) -> Option<Listener> {
    /// The length of the structure.
    const MESSAGE_BYTES: usize = 72;
    let message = message.get(..MESSAGE_BYTES)?;
    let source = &message[8..24];
    let is_v4 = message[0] == libc_family(AddressFamily::Inet);
    let v6_loopback: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    Some(Listener {
        port: u16::from_be_bytes([message[4], message[5]]),
        is_loopback: if is_v4 {
            source[0] == 127
        } else {
            source == v6_loopback
        },
        waiting: number(message, 56),
        backlog: number(message, 60),
    })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}
