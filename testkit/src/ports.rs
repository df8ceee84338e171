//! Ports from the kernel, and a check for listeners that makes no connection.

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Mutex;

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, sockopt};

/// The ports given out by this process, each with the socket that holds it.
static GIVEN: Mutex<BTreeMap<u16, OwnedFd>> = Mutex::new(BTreeMap::new());

/// A port without a listener, held until this process ends: a socket that does not listen stays
/// bound to it, so the kernel gives the port neither to another test nor to a client of another
/// process as its own. A server that sets `SO_REUSEADDR` (nginx, Go, Rust's and Python's
/// libraries do) binds it all the same. Ports of datagrams are not held.
pub fn reserve() -> Option<u16> {
    let socket = unbound().ok()?;
    socket::setsockopt(&socket, sockopt::ReuseAddr, &true).ok()?;
    let any = SockaddrIn::new(0, 0, 0, 0, 0);
    socket::bind(socket.as_raw_fd(), &any).ok()?;
    let address: SockaddrIn = socket::getsockname(socket.as_raw_fd()).ok()?;
    let given = GIVEN.lock();
    let mut given = given.unwrap_or_else(std::sync::PoisonError::into_inner);
    given.insert(address.port(), socket);
    Some(address.port())
}

/// A loopback port that refuses connections or datagrams while this lives: a socket is bound to it
/// and does not listen, so no other test is given the port.
pub struct RefusedPort {
    _socket: OwnedFd,
    number: u16,
}

impl RefusedPort {
    /// A port from the kernel.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn new() -> io::Result<RefusedPort> {
        let socket = unbound()?;
        socket::bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0))?;
        let address: SockaddrIn = socket::getsockname(socket.as_raw_fd())?;
        Ok(RefusedPort {
            _socket: socket,
            number: address.port(),
        })
    }

    /// A port for datagrams: its socket is connected to itself, so the kernel refuses those of all
    /// others.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn of_datagrams() -> io::Result<RefusedPort> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        let address = socket.local_addr()?;
        socket.connect(address)?;
        Ok(RefusedPort {
            _socket: socket.into(),
            number: address.port(),
        })
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// A socket that listens on a shared loopback port (`SO_REUSEPORT`), as systemd passes it to a
/// service.
///
/// # Errors
/// Those of the system calls.
pub fn listen_shared(port: u16) -> io::Result<OwnedFd> {
    let socket = unbound()?;
    socket::setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    socket::setsockopt(&socket, sockopt::ReusePort, &true)?;
    let address = SockaddrIn::new(127, 0, 0, 1, port);
    socket::bind(socket.as_raw_fd(), &address)?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(socket)
}

/// The same for UDP: datagrams wait in it while no server reads it.
///
/// # Errors
/// Another program has the port.
pub fn bind_shared(port: u16) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    socket::setsockopt(&socket, sockopt::ReusePort, &true)?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port))?;
    Ok(socket)
}

/// A TCP socket without an address.
fn unbound() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socket::socket(
        AddressFamily::Inet,
        SockType::Stream,
        flags,
        None,
    )?)
}

/// The kernel's tables of sockets, and the states that accept input from any sender: listening for
/// TCP, unconnected for UDP.
const TABLES: [(&str, &str); 4] = [
    ("/proc/thread-self/net/tcp", "0A"),
    ("/proc/thread-self/net/tcp6", "0A"),
    ("/proc/thread-self/net/udp", "07"),
    ("/proc/thread-self/net/udp6", "07"),
];

/// Whether a TCP or UDP socket of this network namespace listens on the port.
pub fn is_listening(port: u16) -> bool {
    TABLES.iter().any(|(table, state)| {
        std::fs::read_to_string(table)
            .unwrap_or_default()
            .lines()
            .any(|line| is_row(line, port, state))
    })
}

/// Whether a row of a kernel's table is a socket in that state on the port.
fn is_row(line: &str, port: u16, wanted: &str) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = fields.next().and_then(|address| address.rsplit_once(':'));
    let state = fields.nth(1);
    state == Some(wanted) && local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::{RefusedPort, listen_shared, reserve, unbound};
    use nix::sys::socket::{self, SockaddrIn};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_reserved_port_is_its_users_alone() {
        let port = reserve().expect("a port");
        let error = TcpStream::connect(("127.0.0.1", port)).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let client = unbound().expect("a socket");
        let address = SockaddrIn::new(127, 0, 0, 1, port);
        let bound = socket::bind(client.as_raw_fd(), &address);
        bound.expect_err("a client cannot have it");
        for host in ["127.0.0.1", "0.0.0.0", "[::]"] {
            let listener = TcpListener::bind(format!("{host}:{port}")).expect(host);
            TcpStream::connect(("127.0.0.1", port)).expect(host);
            drop(listener);
        }
        let shared = [(); 2].map(|()| listen_shared(port).expect("a shared listener"));
        TcpStream::connect(("127.0.0.1", port)).expect("a listener");
        drop(shared);
    }

    #[test]
    fn refused_ports_refuse_connections_and_datagrams() {
        let port = RefusedPort::new().expect("a port");
        let error = TcpStream::connect(("127.0.0.1", port.number())).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let port = RefusedPort::of_datagrams().expect("a port");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a client");
        client
            .connect(("127.0.0.1", port.number()))
            .expect("a peer");
        client.send(b"anyone?").expect("it is sent all the same");
        let error = client.recv(&mut [0; 1]).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
