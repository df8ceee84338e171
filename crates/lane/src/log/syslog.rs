//! Syslog over UDP or a unix datagram socket (RFC 3164), with nginx's parameters.
//!
//! Sending never waits: a datagram that does not fit into the socket buffer is lost, as syslog
//! allows.

use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::{AddressFault, LINE_BYTES_MAX, Level, SyslogError, clock};
use crate::sys::process;

/// Longest TAG (RFC 3164, 4.1.3).
pub(super) const TAG_BYTES_MAX: usize = 32;
/// The space for priority, time, host name and tag before the text.
const HEAD_BYTES_MAX: usize = 128;
const PORT_DEFAULT: u16 = 514;

const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
const FACILITY_DEFAULT: u8 = 23;

/// The address of the syslog server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SyslogAddress {
    Udp(SocketAddr),
    /// A unix datagram socket.
    Unix(PathBuf),
}

/// The parameters of `syslog:server=...,...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyslogSpec {
    /// The server's address.
    pub address: SyslogAddress,
    /// The facility's number (RFC 3164, 4.1.1).
    pub facility: u8,
    /// The severity of lines that have none of their own (access logs).
    pub severity: Level,
    /// The name before the text.
    pub tag: String,
    /// Whether to leave the host name out of the head.
    pub nohostname: bool,
}

#[derive(Default)]
struct Draft {
    address: Option<SyslogAddress>,
    facility: Option<u8>,
    severity: Option<Level>,
    tag: Option<String>,
    nohostname: bool,
}

impl SyslogSpec {
    /// Reads the text after `syslog:`.
    ///
    /// # Errors
    /// nginx's message, without file and line.
    pub fn parse(text: &str) -> Result<SyslogSpec, SyslogError> {
        let mut draft = Draft::default();
        for parameter in text.split(',') {
            draft.take(parameter)?;
        }
        Ok(SyslogSpec {
            address: draft.address.ok_or(SyslogError::NoServer)?,
            facility: draft.facility.unwrap_or(FACILITY_DEFAULT),
            severity: draft.severity.unwrap_or(Level::Info),
            tag: draft.tag.unwrap_or_else(|| "nginx".to_owned()),
            nohostname: draft.nohostname,
        })
    }
}

impl Draft {
    fn take(&mut self, parameter: &str) -> Result<(), SyslogError> {
        match parameter.split_once('=') {
            Some(("server", server)) => {
                once(self.address.is_none(), "server")?;
                self.address = Some(parse_address(server)?);
            }
            Some(("facility", name)) => {
                once(self.facility.is_none(), "facility")?;
                let index = FACILITIES.iter().position(|facility| *facility == name);
                let index = index.and_then(|index| u8::try_from(index).ok());
                let unknown = || SyslogError::UnknownFacility(name.to_owned());
                self.facility = Some(index.ok_or_else(unknown)?);
            }
            Some(("severity", name)) => {
                once(self.severity.is_none(), "severity")?;
                let unknown = || SyslogError::UnknownSeverity(name.to_owned());
                self.severity = Some(Level::from_name(name).ok_or_else(unknown)?);
            }
            Some(("tag", tag)) => {
                once(self.tag.is_none(), "tag")?;
                self.tag = Some(check_tag(tag)?.to_owned());
            }
            None if parameter == "nohostname" => self.nohostname = true,
            _ => return Err(SyslogError::Unknown(parameter.to_owned())),
        }
        Ok(())
    }
}

fn once(first: bool, name: &'static str) -> Result<(), SyslogError> {
    if first {
        Ok(())
    } else {
        Err(SyslogError::Duplicate(name))
    }
}

fn check_tag(tag: &str) -> Result<&str, SyslogError> {
    if tag.len() > TAG_BYTES_MAX {
        return Err(SyslogError::LongTag);
    }
    if tag
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return Ok(tag);
    }
    Err(SyslogError::InvalidTag)
}

fn parse_address(server: &str) -> Result<SyslogAddress, SyslogError> {
    let faulty = |fault| SyslogError::Address(fault, server.to_owned());
    if let Some(path) = server.strip_prefix("unix:") {
        if path.is_empty() {
            return Err(faulty(AddressFault::NoPath));
        }
        return Ok(SyslogAddress::Unix(PathBuf::from(path)));
    }
    if server.is_empty() {
        return Err(faulty(AddressFault::NoHost));
    }
    let has_port = match server.strip_prefix('[') {
        Some(rest) => rest.contains("]:"),
        None => server.contains(':'),
    };
    let owned;
    let full = if has_port {
        server
    } else {
        owned = format!("{server}:{PORT_DEFAULT}");
        &owned
    };
    let port = full.rsplit_once(':').map_or("", |(_, port)| port);
    if port.parse::<u16>().is_ok_and(|port| port == 0) || port.parse::<u16>().is_err() {
        return Err(faulty(AddressFault::InvalidPort));
    }
    let mut addresses = full
        .to_socket_addrs()
        .map_err(|_| faulty(AddressFault::HostNotFound))?;
    let address = addresses.next();
    let address = address.ok_or_else(|| faulty(AddressFault::HostNotFound))?;
    Ok(SyslogAddress::Udp(address))
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// A connection to a syslog server, opened on the first line and again after an error.
#[derive(Debug)]
pub struct Syslog {
    spec: SyslogSpec,
    hostname: String,
    socket: Mutex<Option<Socket>>,
}

impl Syslog {
    /// A sender for this server; it opens no socket yet.
    pub fn new(spec: SyslogSpec) -> Syslog {
        Syslog {
            spec,
            hostname: process::host_name(),
            socket: Mutex::new(None),
        }
    }

    /// The parameters.
    pub fn spec(&self) -> &SyslogSpec {
        &self.spec
    }

    /// Sends one line (without line feed) at the severity of its configuration.
    pub fn send_default(&self, text: &[u8]) {
        self.send(self.spec.severity, text);
    }

    /// Sends one line (without line feed). Errors are dropped; the next line tries a new socket.
    pub fn send(&self, severity: Level, text: &[u8]) {
        let mut message = [0u8; HEAD_BYTES_MAX + 256 + LINE_BYTES_MAX];
        let mut rest = &mut message[..];
        let size = rest.len();
        // The slice cuts a line that is too long.
        let _ = self.write_head(&mut rest, severity);
        let _ = rest.write(text);
        let length = size - rest.len();
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if socket.is_none() {
            *socket = self.connect().ok();
        }
        let sent = match &*socket {
            Some(Socket::Udp(udp)) => udp.send(&message[..length]),
            Some(Socket::Unix(unix)) => unix.send(&message[..length]),
            None => return,
        };
        if sent.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            *socket = None;
        }
    }

    fn write_head(&self, rest: &mut &mut [u8], severity: Level) -> io::Result<()> {
        let priority = u16::from(self.spec.facility) * 8 + severity as u16 - 1;
        write!(rest, "<{priority}>")?;
        rest.write_all(&clock::syslog_stamp())?;
        if !self.spec.nohostname {
            write!(rest, " {}", self.hostname)?;
        }
        write!(rest, " {}: ", self.spec.tag)
    }

    fn connect(&self) -> io::Result<Socket> {
        match &self.spec.address {
            SyslogAddress::Udp(address) => {
                let local: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(local)?;
                socket.set_nonblocking(true)?;
                socket.connect(address)?;
                Ok(Socket::Udp(socket))
            }
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                socket.connect(path)?;
                Ok(Socket::Unix(socket))
            }
        }
    }
}
