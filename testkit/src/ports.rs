//! Ports from the kernel, and a check for listeners that makes no connection.

use std::collections::BTreeSet;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Mutex;

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, sockopt};

/// The ports given out by this process: the kernel may offer one again before its user has bound
/// it.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// The number of refused offers in a row before giving up: more than the tests of one process hold.
const OFFERS_MAX: u32 = 10_000;

/// A port without a listener that this process has not given out before. Another process may still
/// take it first, so a user that cannot bind it must ask again.
pub fn reserve() -> Option<u16> {
    for _ in 0..OFFERS_MAX {
        let listener = TcpListener::bind(("0.0.0.0", 0)).ok()?;
        let port = listener.local_addr().ok()?.port();
        if give(port) {
            return Some(port);
        }
    }
    None
}

/// Notes that a port is given out. `false`: it was before.
fn give(port: u16) -> bool {
    let given = GIVEN.lock();
    let mut given = given.unwrap_or_else(std::sync::PoisonError::into_inner);
    given.insert(port)
}

/// A loopback port that refuses connections or datagrams while this lives: a socket is bound to it
/// and does not listen, so no other test is given the port.
pub struct RefusedPort {
    _socket: OwnedFd,
    number: u16,
}

impl RefusedPort {
    /// A port from the kernel that this process has not given out before.
    ///
    /// # Errors
    /// Those of the system calls, and `AddrInUse` where the kernel offers no other port.
    pub fn new() -> io::Result<RefusedPort> {
        for _ in 0..OFFERS_MAX {
            let socket = unbound()?;
            socket::bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0))?;
            let address: SockaddrIn = socket::getsockname(socket.as_raw_fd())?;
            let number = address.port();
            if give(number) {
                return Ok(RefusedPort {
                    _socket: socket,
                    number,
                });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
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
    use std::net::{TcpStream, UdpSocket};

    use super::RefusedPort;

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
