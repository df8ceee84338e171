//! The `listen` directive: addresses, port ranges, options, and conflicts on one address.

mod error;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use turnpike_conf::{Word, value};
use turnpike_lane::gate::{AcceptMode, Keepalive, ListenAddress, ListenOptions, Reuseport};

pub use error::{AddressFault, ListenError};

/// The most ports of one range: each needs a socket per lane.
const RANGE_PORTS_MAX: u32 = 4096;

/// nginx's default backlog on Linux.
const BACKLOG_DEFAULT: i32 = 511;

/// One address of one `listen` directive.
#[derive(Clone, Debug)]
pub struct ListenRequest {
    pub address: ListenAddress,
    /// The given socket options.
    pub options: ListenOptions,
    /// Whether any socket option is given: only one directive of an address may have them.
    pub options_given: bool,
    /// `default_server`.
    pub default_server: bool,
    /// `proxy_protocol`.
    pub proxy_protocol: bool,
    /// `ssl`.
    pub tls: bool,
    /// `http2`.
    pub http2: bool,
    /// `quic`: the address is one of UDP, and clients speak HTTP/3.
    pub quic: bool,
}

impl ListenRequest {
    /// The way in which lanes share the address, with the settings of `events`: `accept_mutex`,
    /// Tengine's `reuse_port`.
    pub fn mode(&self, accept_mutex: bool, reuse_port: bool) -> AcceptMode {
        match self.options.reuseport {
            Reuseport::Steer => AcceptMode::Steered,
            Reuseport::Hash => AcceptMode::Reuseport,
            Reuseport::None if reuse_port => AcceptMode::Reuseport,
            Reuseport::None if accept_mutex => AcceptMode::Mutex,
            Reuseport::None => AcceptMode::Shared,
        }
    }
}

/// A request for this address without any option.
pub fn plain(address: SocketAddr) -> ListenRequest {
    ListenRequest {
        address: ListenAddress::Tcp(address),
        options: ListenOptions {
            backlog: BACKLOG_DEFAULT,
            ..ListenOptions::default()
        },
        options_given: false,
        default_server: false,
        proxy_protocol: false,
        tls: false,
        http2: false,
        quic: false,
    }
}

/// Reads the words of a directive: the address with its ports, then the parameters. `default_port`
/// applies to addresses without one; `None`: a port is required.
///
/// # Errors
/// The first word that cannot be used.
pub fn read(words: &[Word], default_port: Option<u16>) -> Result<Vec<ListenRequest>, ListenError> {
    let Some((first, parameters)) = words.split_first() else {
        return Err(ListenError::NoArgument);
    };
    let mut requests: Vec<ListenRequest> = addresses(&first.text, default_port)?
        .into_iter()
        .map(|address| ListenRequest {
            address,
            ..plain(SocketAddr::from(([0, 0, 0, 0], 0)))
        })
        .collect();
    for parameter in parameters {
        for request in &mut requests {
            apply(request, &parameter.text)?;
        }
    }
    for request in requests.iter_mut().filter(|request| request.quic) {
        make_quic(request)?;
    }
    Ok(requests)
}

/// Makes a request one for datagrams, whose connections are always secured.
fn make_quic(request: &mut ListenRequest) -> Result<(), ListenError> {
    let options = &request.options;
    for (name, is_given) in [
        ("fastopen", options.fast_open_queue.is_some()),
        ("deferred", options.deferred),
        ("ssl", request.tls),
        ("http2", request.http2),
        ("multipath", options.multipath),
        ("so_keepalive", options.keepalive.is_some()),
        ("proxy_protocol", request.proxy_protocol),
    ] {
        if is_given {
            return Err(ListenError::NotWithQuic(name));
        }
    }
    let ListenAddress::Tcp(address) = request.address else {
        return Err(ListenError::UnixQuic);
    };
    request.address = ListenAddress::Udp(address);
    request.tls = true;
    Ok(())
}

/// Reads the address word: `unix:PATH`, `PORT`, `ADDRESS`, `ADDRESS:PORT`, `[IPV6]:PORT`, `*`, with
/// a range of ports instead of a port.
fn addresses(text: &str, default_port: Option<u16>) -> Result<Vec<ListenAddress>, ListenError> {
    let faulty = |fault| ListenError::Address(fault, text.to_owned());
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return Err(faulty(AddressFault::NoPath));
        }
        return Ok(vec![ListenAddress::Unix(
            turnpike_conf::bytes_of(path).into(),
        )]);
    }
    if text.is_empty() {
        return Err(faulty(AddressFault::NoHost));
    }
    let (host, ports) = split_port(text).ok_or_else(|| faulty(AddressFault::InvalidHost))?;
    let (first, last) = match ports {
        None => {
            let port = default_port.ok_or_else(|| faulty(AddressFault::NoPort))?;
            (port, port)
        }
        Some(ports) => port_range(ports).ok_or_else(|| faulty(AddressFault::InvalidPort))?,
    };
    if u32::from(last - first) >= RANGE_PORTS_MAX {
        return Err(faulty(AddressFault::ManyPorts));
    }
    let hosts = resolve(host).ok_or_else(|| faulty(AddressFault::HostNotFound))?;
    Ok(hosts
        .into_iter()
        .flat_map(|host| (first..=last).map(move |port| SocketAddr::new(host, port)))
        .map(ListenAddress::Tcp)
        .collect())
}

/// Splits the host from the port; a bare number is a port.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if text.starts_with('[') {
        let end = text.find(']')?;
        let (host, rest) = text.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    if let Some((host, port)) = text.rsplit_once(':') {
        return (!host.contains(':')).then_some((host, Some(port)));
    }
    let numeric = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    if numeric && !text.is_empty() {
        Some(("*", Some(text)))
    } else {
        Some((text, None))
    }
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first: u16 = first.parse().ok().filter(|port| *port > 0)?;
    let last: u16 = last.parse().ok()?;
    (first <= last).then_some((first, last))
}

fn resolve(host: &str) -> Option<Vec<IpAddr>> {
    if host == "*" || host.is_empty() {
        return Some(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]);
    }
    if let Some(inner) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return inner
            .parse::<Ipv6Addr>()
            .ok()
            .map(|address| vec![IpAddr::V6(address)]);
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some(vec![IpAddr::V4(address)]);
    }
    let found: Vec<IpAddr> = (host, 0)
        .to_socket_addrs()
        .ok()?
        .map(|found| found.ip())
        .collect();
    (!found.is_empty()).then_some(found)
}

fn apply(request: &mut ListenRequest, text: &str) -> Result<(), ListenError> {
    match text {
        "default_server" | "default" => {
            request.default_server = true;
            return Ok(());
        }
        "proxy_protocol" => {
            request.proxy_protocol = true;
            return Ok(());
        }
        "ssl" => {
            request.tls = true;
            return Ok(());
        }
        "http2" => {
            request.http2 = true;
            return Ok(());
        }
        "quic" => {
            request.quic = true;
            return Ok(());
        }
        _ => {}
    }
    request.options_given = true;
    let options = &mut request.options;
    match text {
        "bind" => {}
        "deferred" => options.deferred = true,
        "reuseport" | "reuseport=hash" => options.reuseport = Reuseport::Hash,
        "reuseport=steer" => options.reuseport = Reuseport::Steer,
        "multipath" if matches!(request.address, ListenAddress::Unix(_)) => {
            return Err(ListenError::UnixMultipath);
        }
        "multipath" => options.multipath = true,
        "spdy" => {
            return Err(ListenError::NotYet(text.to_owned()));
        }
        _ => return apply_named(request, text),
    }
    no_unix(request, text)
}

fn apply_named(request: &mut ListenRequest, text: &str) -> Result<(), ListenError> {
    let unknown = || ListenError::Unknown(text.to_owned());
    let (name, given) = text.split_once('=').ok_or_else(unknown)?;
    let invalid = |name, value: &str| ListenError::Value(name, value.to_owned());
    let options = &mut request.options;
    match name {
        "backlog" => {
            options.backlog = given
                .parse()
                .ok()
                .filter(|backlog| *backlog > 0)
                // The kernel has its own limit; a larger number means that limit.
                .map(|backlog: i64| i32::try_from(backlog).unwrap_or(i32::MAX))
                .ok_or_else(|| invalid("backlog", text))?;
        }
        "fastopen" => {
            let queue = given.parse().map_err(|_| invalid("fastopen", given))?;
            options.fast_open_queue = Some(queue);
        }
        "rcvbuf" => {
            let bytes = buffer_bytes(given).ok_or_else(|| invalid("rcvbuf", given))?;
            options.receive_buffer_bytes = Some(bytes);
        }
        "sndbuf" => {
            let bytes = buffer_bytes(given).ok_or_else(|| invalid("sndbuf", given))?;
            options.send_buffer_bytes = Some(bytes);
        }
        "ipv6only" => {
            // As nginx reads it: other words than those are no flags at all.
            if !given.starts_with('o') {
                return Err(unknown());
            }
            let flag = on_off(given).ok_or_else(|| invalid("ipv6only flags", given))?;
            // It says nothing of other addresses.
            if let ListenAddress::Tcp(SocketAddr::V6(_)) = request.address {
                options.ipv6_only = flag;
            }
        }
        "so_keepalive" => {
            let keepalive = keep_alive(given);
            let invalid = || invalid("so_keepalive value:", given);
            options.keepalive = Some(keepalive.ok_or_else(invalid)?);
        }
        "setfib" => return Err(ListenError::SetFib),
        // nginx goes on without, where the system has none.
        "accept_filter" => {}
        _ => return Err(unknown()),
    }
    Ok(())
}

fn no_unix(request: &ListenRequest, text: &str) -> Result<(), ListenError> {
    let unix = matches!(request.address, ListenAddress::Unix(_));
    if unix && text.starts_with("reuseport") {
        return Err(ListenError::UnixReuseport);
    }
    Ok(())
}

fn buffer_bytes(text: &str) -> Option<u32> {
    u32::try_from(value::size(text)?).ok()
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// `on`, `off`, or `IDLE:INTERVAL:COUNT` with any of them left out.
fn keep_alive(text: &str) -> Option<Keepalive> {
    if let Some(on) = on_off(text) {
        return Some(Keepalive {
            on,
            idle_s: None,
            interval_s: None,
            count: None,
        });
    }
    let mut parts = text.split(':');
    let seconds = |part: Option<&str>| match part {
        None | Some("") => Some(None),
        Some(text) => Some(Some(u32::try_from(value::seconds(text)?).ok()?)),
    };
    let idle_s = seconds(parts.next())?;
    let interval_s = seconds(parts.next())?;
    let count = match parts.next() {
        None | Some("") => None,
        Some(text) => Some(text.parse().ok()?),
    };
    if parts.next().is_some() || (idle_s.is_none() && interval_s.is_none() && count.is_none()) {
        return None;
    }
    Some(Keepalive {
        on: true,
        idle_s,
        interval_s,
        count,
    })
}
