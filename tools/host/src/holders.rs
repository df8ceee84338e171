//! Which process holds an address where it listens.
//!
//! The kernel's tables give the number of each socket, and the descriptors of processes name the
//! sockets by it. Descriptors of other users' processes are hidden from all but root.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::host::Host;

/// Where a process listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint<'a> {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    /// The path of a unix socket.
    Unix(&'a str),
}

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub process: u32,
    /// The name that the kernel shows, at most 15 bytes.
    pub name: String,
}

/// The state of a listening TCP socket in the kernel's table.
const LISTENING: &str = "0A";

impl Host {
    /// The process that listens at an address; the oldest of several that share the socket. `None`
    /// if nobody does, or this user may not see who.
    pub fn holder(&self, endpoint: Endpoint<'_>) -> Option<Holder> {
        let sockets = match endpoint {
            Endpoint::Tcp(address) => self.sockets_of(&["tcp", "tcp6"], address, Some(LISTENING)),
            Endpoint::Udp(address) => self.sockets_of(&["udp", "udp6"], address, None),
            Endpoint::Unix(path) => self.unix_sockets(path),
        };
        if sockets.is_empty() {
            return None;
        }
        let numbers = self.names("proc").into_iter();
        let numbers = numbers.filter_map(|name| name.parse::<u32>().ok());
        let holds = |process: &u32| sockets.iter().any(|socket| self.has_open(*process, socket));
        let age = |process: &u32| self.process(*process).map(|process| process.started_ticks);
        let process = numbers.filter(holds).min_by_key(age)?;
        Some(Holder {
            process,
            name: self.line(format!("proc/{process}/comm")),
        })
    }

    /// The links of the sockets in the kernel's tables that stand in the way of an address.
    fn sockets_of(&self, tables: &[&str], wanted: SocketAddr, state: Option<&str>) -> Vec<String> {
        let mut found = Vec::new();
        for table in tables {
            let text = self.text(format!("proc/net/{table}"));
            for line in text.lines().skip(1) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [_, local, _, status, _, _, _, _, _, inode, ..] = words[..] else {
                    continue;
                };
                let is_listening = state.is_none_or(|state| state == status);
                let overlaps = address(local).is_some_and(|held| overlap(held, wanted));
                if is_listening && overlaps {
                    found.push(format!("socket:[{inode}]"));
                }
            }
        }
        found
    }

    fn unix_sockets(&self, path: &str) -> Vec<String> {
        let text = self.text("proc/net/unix");
        let lines = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (inode, name) = (words.get(6)?, words.get(7)?);
            (*name == path).then(|| format!("socket:[{inode}]"))
        });
        lines.collect()
    }

    fn has_open(&self, process: u32, link: &str) -> bool {
        let folder = format!("proc/{process}/fd");
        let names = self.names(&folder).into_iter();
        let mut links = names.map(|name| std::fs::read_link(self.path(format!("{folder}/{name}"))));
        links.any(|found| found.is_ok_and(|found| found.as_os_str() == link))
    }
}

/// An address as the kernel's tables have it: words of 32 bits in the machine's order.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for word in digits.as_bytes().chunks(8) {
        let word = std::str::from_utf8(word).ok()?;
        let word = u32::from_str_radix(word, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Whether a socket at one address keeps another from being bound.
fn overlap(held: SocketAddr, wanted: SocketAddr) -> bool {
    let is_any = |address: SocketAddr| address.ip().is_unspecified();
    held.port() == wanted.port() && (held.ip() == wanted.ip() || is_any(held) || is_any(wanted))
}
