//! Gates: listening sockets, which the master opens and lanes accept from.
//!
//! A gate knows its address, and not the service behind it. It logs nothing: it returns a
//! [`GateError`] with nginx's text. The caller decides whether that is fatal, retries a busy
//! address, and removes the file of a unix socket at the end.

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

/// The attempts at an address in use before giving up; nginx's number.
pub const BIND_ATTEMPTS_MAX: u32 = 5;
/// The pause between two attempts; see [`BIND_ATTEMPTS_MAX`].
pub const BIND_PAUSE_MS: u64 = 500;

/// Most gates of one address: far more than the lanes of any machine; it catches wrong arguments.
pub const GATES_PER_ADDRESS_MAX: usize = 4096;

/// The mode of a unix socket's file: everyone may connect. It is nginx's mode.
const UNIX_MODE: u32 = 0o666;

/// Seconds of `TCP_DEFER_ACCEPT`. The kernel does not report how long a connection has waited, so
/// the shortest time is used, as in nginx.
const DEFERRED_S: u32 = 1;

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStep {
    /// Creating the socket.
    Socket,
    /// Setting the option with this name to this value.
    Option(&'static str, Option<u32>),
    /// Binding to the address.
    Bind,
    /// Setting the mode of a unix socket's file.
    Mode,
    /// Listening with this backlog.
    Listen(i32),
    /// Reading the address of an inherited socket.
    Adopt,
}

/// A step that failed.
#[derive(Debug)]
pub struct GateError {
    /// The step that failed.
    pub step: GateStep,
    /// The kernel's error.
    pub error: io::Error,
}

impl GateError {
    /// Whether another socket has the address: another attempt may succeed.
    pub fn is_address_in_use(&self) -> bool {
        self.error.raw_os_error() == Some(libc::EADDRINUSE)
    }

    /// nginx's message, without the error's own text and without `, ignored`.
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
    /// Opens a gate. Non-fatal failures are added to `ignored`.
    ///
    /// `SO_REUSEADDR` is always set. An existing file of a unix socket means that the address is in
    /// use, even if no process listens: it is not removed, as in nginx.
    pub fn open(
        address: &ListenAddress,
        options: &ListenOptions,
        ignored: &mut Vec<GateError>,
    ) -> Result<Gate, GateError> {
        let is_shared = options.reuseport != Reuseport::None;
        let descriptor = bound(address, options, is_shared, ignored)?;
        let gate = Gate {
            address: address.clone(),
            descriptor,
        };
        gate.set_options(options, ignored);
        if address.kind() == Kind::Stream {
            let backlog = options.backlog;
            socket::listen(gate.as_fd(), backlog).at(GateStep::Listen(backlog))?;
            gate.set_deferred(options, ignored);
        }
        gate.with_own_address()
    }

    /// Binds a socket to the address and closes it: whether a gate could be opened. As with
    /// `nginx -t`, an address in use is no failure. The socket neither listens nor shares the
    /// address, so that a running server loses no connection and no datagram to it.
    ///
    /// # Errors
    /// The step that failed. It is not for unix sockets, whose file would be left.
    pub fn probe(address: &ListenAddress, options: &ListenOptions) -> Result<(), GateError> {
        // A kernel without Multipath TCP is no failure.
        let options = ListenOptions {
            multipath: false,
            ..options.clone()
        };
        match bound(address, &options, false, &mut Vec::new()) {
            Err(failure) if failure.is_address_in_use() => Ok(()),
            bound => bound.map(drop),
        }
    }

    /// Opens `count` gates of one address (at least 1, at most [`GATES_PER_ADDRESS_MAX`]); more
    /// than one needs [`Reuseport`]. With port 0, all get the port of the first.
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

    /// Adopts a listening socket that another process has opened, and reads its address.
    /// `InvalidInput` if it does not listen; a UDP socket need not.
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

    /// Sets the options of an open gate that a reload may change: buffers, probes, Fast Open,
    /// backlog and `deferred`. No queued connection is lost, and no failure is fatal.
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

    /// The address, with the port that the kernel chose.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Accepts one connection, non-blocking. `WouldBlock` if none waits. Does not allocate.
    pub fn accept(&self) -> io::Result<(OwnedFd, PeerAddress)> {
        socket::accept(self.as_fd())
    }

    /// Whether it is one of Multipath TCP.
    pub fn is_multipath(&self) -> bool {
        option::is_multipath(self.as_fd()).unwrap_or(false)
    }

    /// The connections that wait to be accepted, and their limit. `None` for a unix socket, because
    /// the kernel does not report it, and for UDP, which has no queue.
    pub fn queue(&self) -> io::Result<Option<(u32, u32)>> {
        if !matches!(self.address, ListenAddress::Tcp(_)) {
            return Ok(None);
        }
        let info = option::tcp_info(self.as_fd())?;
        Ok(Some((info.accept_queue, info.accept_queue_max)))
    }

    /// Removes the file of a unix socket; does nothing for other sockets.
    ///
    /// Only the process that opened the gate calls it, when the server ends: not when another
    /// process closes its copy, and not when another master has taken over the gate.
    pub fn remove_file(&self) -> io::Result<()> {
        match &self.address {
            ListenAddress::Unix(path) => file::unlink(path),
            ListenAddress::Tcp(_) | ListenAddress::Udp(_) => Ok(()),
        }
    }

    /// The descriptor, to pass it on.
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

/// A socket that is bound to an address, and may share it. Non-fatal failures are added to
/// `ignored`.
fn bound(
    address: &ListenAddress,
    options: &ListenOptions,
    is_shared: bool,
    ignored: &mut Vec<GateError>,
) -> Result<OwnedFd, GateError> {
    let kind = address.kind();
    let opened = if options.multipath && matches!(address, ListenAddress::Tcp(_)) {
        socket::open_multipath(address.family())
    } else {
        socket::open(address.family(), kind)
    };
    let descriptor = opened.at(GateStep::Socket)?;
    let fd = descriptor.as_fd();
    if kind == Kind::Stream {
        // With UDP it would let another program take the datagrams.
        option::set_reuse_address(fd, true).at(GateStep::Option("SO_REUSEADDR", None))?;
    }
    if is_shared {
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
    Ok(descriptor)
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Adds the failed step to a kernel error.
trait At<T> {
    fn at(self, step: GateStep) -> Result<T, GateError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, step: GateStep) -> Result<T, GateError> {
        self.map_err(|error| GateError { step, error })
    }
}

/// Adds a non-fatal failure to the list.
trait OrAdd {
    fn or_add(self, ignored: &mut Vec<GateError>);
}

impl OrAdd for Result<(), GateError> {
    fn or_add(self, ignored: &mut Vec<GateError>) {
        ignored.extend(self.err());
    }
}
