//! Gates: listening sockets, opened by the master and accepted from by lanes.
//!
//! A gate knows its address and nothing of what is served there. It prints nothing: what fails is
//! returned as a [`GateError`] with nginx's text, and the caller decides what is fatal, retries a
//! busy address, and removes the file of a unix socket at the end.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::sys::{
    descriptor, file,
    socket::{self, Kind, PeerAddress},
    socket_option as option,
};

mod accept;
mod options;
#[cfg(test)]
mod tests;

pub use accept::{AcceptMode, AcceptMutex, AcceptTurn, Turn};
pub use options::{BACKLOG_DEFAULT, Keepalive, ListenAddress, ListenOptions, Reuseport};

/// Attempts at an address that is in use, and the pause between them, before giving up: nginx's.
pub const BIND_ATTEMPTS_MAX: u32 = 5;
/// See [`BIND_ATTEMPTS_MAX`].
pub const BIND_PAUSE_MS: u64 = 500;

/// Most gates of one address: far more lanes than any machine has, against a wrong argument.
pub const GATES_PER_ADDRESS_MAX: usize = 4096;

/// Mode of a unix socket's file: everybody may connect. nginx's.
const UNIX_MODE: u32 = 0o666;

/// Seconds of `TCP_DEFER_ACCEPT`. The kernel does not tell how long a connection has waited, so
/// the shortest time is asked for, as nginx does.
const DEFERRED_S: u32 = 1;

/// What was tried when a gate failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStep {
    /// Making the socket.
    Socket,
    /// Setting the option of this name to this value.
    Option(&'static str, Option<u32>),
    /// Taking the address.
    Bind,
    /// Opening a unix socket's file to everybody.
    Mode,
    /// Listening with this backlog.
    Listen(i32),
    /// Asking an inherited socket who it is.
    Adopt,
}

/// A step that failed.
#[derive(Debug)]
pub struct GateError {
    /// What was tried.
    pub step: GateStep,
    /// The kernel's answer.
    pub error: io::Error,
}

impl GateError {
    /// Whether another socket has the address: worth a few more attempts.
    pub fn is_address_in_use(&self) -> bool {
        self.error.raw_os_error() == Some(libc::EADDRINUSE)
    }

    /// nginx's sentence for it, without the error's own text and without `, ignored`.
    pub fn sentence(&self, address: &ListenAddress) -> String {
        match self.step {
            GateStep::Socket => format!("socket() {address} failed"),
            GateStep::Option(name @ "TCP_DEFER_ACCEPT", Some(value)) => {
                format!("setsockopt({name}, {value}) for {address} failed")
            }
            GateStep::Option(name, Some(value)) => {
                format!("setsockopt({name}, {value}) {address} failed")
            }
            GateStep::Option(name, None) => format!("setsockopt({name}) {address} failed"),
            GateStep::Bind => format!("bind() to {address} failed"),
            GateStep::Mode => {
                let address = address.to_string();
                format!("chmod() \"{}\" failed", address.trim_start_matches("unix:"))
            }
            GateStep::Listen(backlog) => format!("listen() to {address}, backlog {backlog} failed"),
            GateStep::Adopt => format!("getsockname() of the inherited socket {address} failed"),
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Gate {
    descriptor: OwnedFd,
    address: ListenAddress,
}

impl Gate {
    /// Opens a gate. What failed without making it useless is added to `ignored`.
    ///
    /// `SO_REUSEADDR` is always set. A unix socket's file that is already there is an address in
    /// use, whether somebody listens or not: it is not taken away, as nginx does not.
    pub fn open(
        address: &ListenAddress,
        options: &ListenOptions,
        ignored: &mut Vec<GateError>,
    ) -> Result<Gate, GateError> {
        let kind = address.kind();
        let descriptor = socket::open(address.family(), kind).at(GateStep::Socket)?;
        let fd = descriptor.as_fd();
        if kind == Kind::Stream {
            // For UDP it would let another program take the datagrams.
            option::set_reuse_address(fd, true).at(GateStep::Option("SO_REUSEADDR", None))?;
        }
        if options.reuseport != Reuseport::None {
            option::set_reuse_port(fd, true).at(GateStep::Option("SO_REUSEPORT", None))?;
        }
        match address {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => {
                if address.is_ipv6() {
                    let step = GateStep::Option("IPV6_V6ONLY", None);
                    option::set_ipv6_only(fd, options.ipv6_only)
                        .at(step)
                        .or_add(ignored);
                }
                if kind == Kind::Datagram && address.ip().is_unspecified() {
                    let step = GateStep::Option("IP_PKTINFO", None);
                    option::set_packet_information(fd, address.is_ipv6()).at(step)?;
                }
                socket::bind(fd, *address).at(GateStep::Bind)?;
            }
            ListenAddress::Unix(path) => {
                socket::bind_unix(fd, path).at(GateStep::Bind)?;
                file::set_mode(path, UNIX_MODE)
                    .at(GateStep::Mode)
                    .or_add(ignored);
            }
        }
        let gate = Gate {
            address: address.clone(),
            descriptor,
        };
        gate.set_options(options, ignored);
        if kind == Kind::Stream {
            let backlog = options.backlog;
            socket::listen(gate.as_fd(), backlog).at(GateStep::Listen(backlog))?;
            gate.set_deferred(options, ignored);
        }
        gate.with_own_address()
    }

    /// Opens `count` gates of one address (at least 1, at most [`GATES_PER_ADDRESS_MAX`]), which
    /// more than one needs [`Reuseport`] for. With port 0, all get the port of the first.
    pub fn open_group(
        address: &ListenAddress,
        options: &ListenOptions,
        count: usize,
        ignored: &mut Vec<GateError>,
    ) -> Result<Vec<Gate>, GateError> {
        let first = Gate::open(address, options, ignored)?;
        let address = first.address.clone();
        let mut gates = vec![first];
        while gates.len() < count.min(GATES_PER_ADDRESS_MAX) {
            gates.push(Gate::open(&address, options, ignored)?);
        }
        Ok(gates)
    }

    /// Takes a listening socket that another process has opened; its address is asked for.
    /// `InvalidInput` when it does not listen; one of datagrams needs not.
    pub fn adopt(descriptor: OwnedFd) -> io::Result<Gate> {
        let fd = descriptor.as_fd();
        let is_datagram = option::is_datagram(fd)?;
        if !is_datagram && !option::is_listening(fd)? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        descriptor::set_close_on_exec(fd, true)?;
        descriptor::set_non_blocking(fd, true)?;
        let address = match socket::local_address(fd)? {
            PeerAddress::Inet(address) if is_datagram => ListenAddress::Udp(address),
            PeerAddress::Inet(address) => ListenAddress::Tcp(address),
            PeerAddress::Unix if is_datagram => return Err(io::ErrorKind::InvalidInput.into()),
            PeerAddress::Unix => {
                let mut path = [0; 108];
                let length = socket::local_unix_path(fd, &mut path)?;
                ListenAddress::Unix(path[..length].into())
            }
        };
        Ok(Gate {
            descriptor,
            address,
        })
    }

    /// Sets what a reload may have changed at an open gate: buffers, probes, Fast Open, backlog
    /// and `deferred`. Nothing queued is lost, and nothing of it is fatal.
    pub fn configure(&self, options: &ListenOptions, ignored: &mut Vec<GateError>) {
        self.set_options(options, ignored);
        if self.address.kind() == Kind::Datagram {
            return;
        }
        let backlog = options.backlog;
        socket::listen(self.as_fd(), backlog)
            .at(GateStep::Listen(backlog))
            .or_add(ignored);
        self.set_deferred(options, ignored);
    }

    /// Where it listens, with the port that the kernel has chosen.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Takes one connection, non-blocking. `WouldBlock` when none is queued. No heap allocation.
    pub fn accept(&self) -> io::Result<(OwnedFd, PeerAddress)> {
        socket::accept(self.as_fd())
    }

    /// Connections that wait to be accepted, and their limit. `None` for a unix socket, of which
    /// the kernel does not tell, and for UDP, which has none.
    pub fn queue(&self) -> io::Result<Option<(u32, u32)>> {
        if !matches!(self.address, ListenAddress::Tcp(_)) {
            return Ok(None);
        }
        let info = option::tcp_info(self.as_fd())?;
        Ok(Some((info.accept_queue, info.accept_queue_max)))
    }

    /// Takes the file of a unix socket away; nothing to do for the others.
    ///
    /// For whoever opened it, when the server ends: not when a copy in another process is closed,
    /// nor when another master has taken the gate over.
    pub fn remove_file(&self) -> io::Result<()> {
        match &self.address {
            ListenAddress::Unix(path) => file::unlink(path),
            ListenAddress::Tcp(_) | ListenAddress::Udp(_) => Ok(()),
        }
    }

    /// The descriptor, to be passed on.
    pub fn into_descriptor(self) -> OwnedFd {
        self.descriptor
    }

    fn set_options(&self, options: &ListenOptions, ignored: &mut Vec<GateError>) {
        type Setter = fn(BorrowedFd<'_>, u32) -> io::Result<()>;
        let keepalive = options.keepalive;
        let switch = keepalive.map(|keepalive| u32::from(keepalive.on));
        let table: [(&'static str, Option<u32>, Setter); 7] = [
            (
                "SO_RCVBUF",
                options.receive_buffer_bytes,
                option::set_receive_buffer_bytes,
            ),
            (
                "SO_SNDBUF",
                options.send_buffer_bytes,
                option::set_send_buffer_bytes,
            ),
            ("SO_KEEPALIVE", switch, |fd, on| {
                option::set_keepalive(fd, on != 0)
            }),
            (
                "TCP_KEEPIDLE",
                keepalive.and_then(|k| k.idle_s),
                option::set_keepalive_idle_s,
            ),
            (
                "TCP_KEEPINTVL",
                keepalive.and_then(|k| k.interval_s),
                option::set_keepalive_interval_s,
            ),
            (
                "TCP_KEEPCNT",
                keepalive.and_then(|k| k.count),
                option::set_keepalive_count,
            ),
            (
                "TCP_FASTOPEN",
                options.fast_open_queue,
                option::set_fast_open_queue,
            ),
        ];
        for (name, value, set) in table {
            if let Some(value) = value {
                let step = GateStep::Option(name, Some(value));
                set(self.as_fd(), value).at(step).or_add(ignored);
            }
        }
    }

    fn set_deferred(&self, options: &ListenOptions, ignored: &mut Vec<GateError>) {
        if matches!(self.address, ListenAddress::Unix(_)) {
            return;
        }
        let seconds = if options.deferred { DEFERRED_S } else { 0 };
        let step = GateStep::Option("TCP_DEFER_ACCEPT", Some(seconds));
        option::set_deferred_accept_s(self.as_fd(), seconds)
            .at(step)
            .or_add(ignored);
    }

    fn with_own_address(mut self) -> Result<Gate, GateError> {
        if self.address.port() == Some(0) {
            let address = socket::local_address(self.as_fd()).at(GateStep::Adopt)?;
            if let Some(address) = address.inet() {
                self.address = match self.address.kind() {
                    Kind::Stream => ListenAddress::Tcp(address),
                    Kind::Datagram => ListenAddress::Udp(address),
                };
            }
        }
        Ok(self)
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Says of a kernel's error which step it belongs to.
trait At<T> {
    fn at(self, step: GateStep) -> Result<T, GateError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, step: GateStep) -> Result<T, GateError> {
        self.map_err(|error| GateError { step, error })
    }
}

/// Puts a failure that is not fatal on the list.
trait OrAdd {
    fn or_add(self, ignored: &mut Vec<GateError>);
}

impl OrAdd for Result<(), GateError> {
    fn or_add(self, ignored: &mut Vec<GateError>) {
        ignored.extend(self.err());
    }
}
