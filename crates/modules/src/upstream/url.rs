//! Addresses of servers as configurations write them: `host[:port]`, `[v6]:port`, `unix:path`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use turnpike_conf::bytes_of;
use turnpike_upstream::Address;

use super::handler::group_key;

/// Longest path of a unix socket, with its closing NUL.
const UNIX_PATH_BYTES_MAX: usize = 108;

/// Most addresses that are taken of one name: a resolver that gives more is out of its mind.
const ADDRESSES_MAX: usize = 1024;

/// What an address says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An address.
    Ip(IpAddr),
    /// A name to be looked up.
    Name(String),
    /// A unix socket's path.
    Unix(Vec<u8>),
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Where it is.
    pub target: Target,
    /// The host as written, without the port.
    pub host: String,
    /// The port, where one is written.
    pub port: Option<u16>,
}

impl Url {
    /// Reads an address without anything behind it.
    ///
    /// # Errors
    /// nginx's word for what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Url, &'static str> {
        if text.len() >= 5 && text.as_bytes()[..5].eq_ignore_ascii_case(b"unix:") {
            let path = bytes_of(&text[5..]);
            if path.is_empty() {
                return Err("no path in the unix domain socket");
            }
            if path.len() >= UNIX_PATH_BYTES_MAX {
                return Err("too long path in the unix domain socket");
            }
            return Ok(Url {
                target: Target::Unix(path),
                host: text.to_owned(),
                port: None,
            });
        }
        if text.contains(['/', '?']) {
            return Err("invalid host");
        }
        if let Some(rest) = text.strip_prefix('[') {
            return bracketed(rest);
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(self::port(port)?)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err("no host");
        }
        let target = match host.parse::<Ipv4Addr>() {
            Ok(address) => Target::Ip(address.into()),
            Err(_) => Target::Name(host.to_owned()),
        };
        Ok(Url {
            target,
            host: host.to_owned(),
            port,
        })
    }

    /// Checks that there is a port where one is needed: `default_port` is 0 then.
    ///
    /// # Errors
    /// nginx's word for what is wrong.
    pub(super) fn need_port(&self, default_port: u16) -> Result<(), &'static str> {
        let has_port = self.port.is_some() || matches!(self.target, Target::Unix(_));
        if has_port || default_port != 0 {
            Ok(())
        } else {
            Err("no port")
        }
    }

    /// Host in lower case and port, whether or not a port is written. A path is kept as it is.
    pub(super) fn identity(&self, default_port: u16) -> String {
        let port = self.port.unwrap_or(default_port);
        match &self.target {
            Target::Unix(_) => self.host.clone(),
            _ => format!("{}:{port}", group_key(&self.host)),
        }
    }

    /// The addresses, those of IPv4 first. Names are looked up by the machine's own means, which
    /// blocks: only while a configuration is read.
    ///
    /// # Errors
    /// nginx's word for what is wrong.
    pub(crate) fn addresses(&self, default_port: u16) -> Result<Vec<Address>, &'static str> {
        let port = self.port.unwrap_or(default_port);
        match &self.target {
            Target::Unix(path) => Ok(vec![Address::unix(path)]),
            Target::Ip(address) => Ok(vec![Address::Inet(SocketAddr::new(*address, port))]),
            Target::Name(name) => {
                let found = (name.as_str(), port).to_socket_addrs();
                let found = found.map_err(|_| "host not found")?;
                let mut found: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
                found.sort_by_key(SocketAddr::is_ipv6);
                found.dedup();
                if found.is_empty() {
                    Err("host not found")
                } else {
                    Ok(found.into_iter().map(Address::Inet).collect())
                }
            }
        }
    }
}

fn bracketed(rest: &str) -> Result<Url, &'static str> {
    let (inner, after) = rest.split_once(']').ok_or("invalid host")?;
    let port = match after.strip_prefix(':') {
        Some(port) => Some(self::port(port)?),
        None if after.is_empty() => None,
        None => return Err("invalid host"),
    };
    if inner.is_empty() {
        return Err("no host");
    }
    let address: Ipv6Addr = inner.parse().map_err(|_| "invalid IPv6 address")?;
    Ok(Url {
        target: Target::Ip(address.into()),
        host: format!("[{inner}]"),
        port,
    })
}

fn port(text: &str) -> Result<u16, &'static str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port > 0);
    port.ok_or("invalid port")
}
