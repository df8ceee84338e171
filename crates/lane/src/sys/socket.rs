//! Sockets: creating, accepting, receiving, sending (socket(7), tcp(7), unix(7)).
//!
//! Options are in [`super::socket_option`]. Sends never raise `SIGPIPE`: the error is `EPIPE`.

use std::{
    io::{self, IoSlice},
    mem::{self, MaybeUninit},
    net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

#[cfg(feature = "simulation")]
use super::simulation;
use super::{check, check_size, retry};

/// Most slices of one [`send_vectored`]; the kernel refuses more (`IOV_MAX`).
pub const IO_SLICES_MAX: usize = 1024;

/// The address of the other (or our own) end of a socket, without heap allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// TCP or UDP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A unix socket. Clients rarely bind theirs to a path, so the path is not kept; nginx prints
    /// `unix:` for all of them.
    Unix,
}

impl PeerAddress {
    /// The internet address, unless this is a unix socket.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            PeerAddress::Inet(address) => Some(*address),
            PeerAddress::Unix => None,
        }
    }
}

/// The family of a new socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Unix domain.
    Unix,
}

/// The kind of a new socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A byte stream.
    Stream,
    /// Single messages.
    Datagram,
}

/// Whether the kernel must hold a last, short segment because more bytes follow at once
/// (`MSG_MORE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// These are the last bytes for now: send them.
    No,
    /// More bytes follow in the next call.
    Yes,
}

/// Creates a non-blocking, close-on-exec socket.
pub fn open(family: Family, kind: Kind) -> io::Result<OwnedFd> {
    open_of(family, kind, 0)
}

/// The same for Multipath TCP (RFC 8684; Linux 5.6).
///
/// # Errors
/// Those of `socket(2)`: `EPROTONOSUPPORT` or `ENOPROTOOPT` where the kernel has none or has it
/// switched off.
pub fn open_multipath(family: Family) -> io::Result<OwnedFd> {
    open_of(family, Kind::Stream, libc::IPPROTO_MPTCP)
}

fn open_of(family: Family, kind: Kind, protocol: libc::c_int) -> io::Result<OwnedFd> {
    let family = match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
        Family::Unix => libc::AF_UNIX,
    };
    let kind = match kind {
        Kind::Stream => libc::SOCK_STREAM,
        Kind::Datagram => libc::SOCK_DGRAM,
    };
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers.
    let descriptor = check(unsafe { libc::socket(family, kind | flags, protocol) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Binds `socket` to an internet address; port 0 lets the kernel choose.
pub fn bind(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let (storage, length) = raw_address(address);
    // SAFETY: `length` is at most the size of `storage`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const storage).cast(), length) })?;
    Ok(())
}

/// Binds `socket` to a unix path (`ENAMETOOLONG` from 108 bytes on). The file gets the mode 0777
/// less the umask.
pub fn bind_unix(socket: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
    let (address, length) = raw_unix_address(path)?;
    // SAFETY: `length` is at most the size of `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// The most bytes of a unix socket's name.
pub const UNIX_NAME_BYTES_MAX: usize = 108;

/// Binds a unix socket to a name that is no path (`abstract` in unix(7)): its first byte is 0, and
/// it goes with the socket. `EINVAL` for any other name, or a longer one than
/// [`UNIX_NAME_BYTES_MAX`].
pub fn bind_unix_name(socket: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    // SAFETY: all zero bytes are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    if name.first() != Some(&0) || name.len() > address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (slot, byte) in address.sun_path.iter_mut().zip(name) {
        *slot = *byte as libc::c_char;
    }
    let length = mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    let length = length as libc::socklen_t;
    // SAFETY: `length` is at most the size of `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Copies the name of a unix socket's other end, where that is no path, into `buffer`; returns its
/// length, 0 if there is none.
pub fn peer_unix_name(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8; UNIX_NAME_BYTES_MAX],
) -> io::Result<usize> {
    // SAFETY: all zero bytes are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `length` is the size of `address`; both outlive the call.
    check(unsafe {
        libc::getpeername(socket.as_raw_fd(), (&raw mut address).cast(), &mut length)
    })?;
    let begin = mem::offset_of!(libc::sockaddr_un, sun_path);
    let count = (length as usize).saturating_sub(begin).min(buffer.len());
    if i32::from(address.sun_family) != libc::AF_UNIX || count == 0 || address.sun_path[0] != 0 {
        return Ok(0);
    }
    for (slot, byte) in buffer.iter_mut().zip(&address.sun_path[..count]) {
        *slot = *byte as u8;
    }
    Ok(count)
}

/// What a peer has closed of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Nothing.
    Nothing,
    /// The sending side: the peer may still receive.
    Sending,
    /// Both sides.
    Everything,
}

/// What the peer has closed, whether all that it has sent was received or not.
pub fn closed_by_peer(socket: BorrowedFd<'_>) -> io::Result<Closed> {
    let seen = super::process::poll_now(socket, libc::POLLRDHUP)?;
    Ok(match seen {
        seen if seen & (libc::POLLHUP | libc::POLLERR) != 0 => Closed::Everything,
        seen if seen & libc::POLLRDHUP != 0 => Closed::Sending,
        _ => Closed::Nothing,
    })
}

/// Starts connecting; a non-blocking socket returns `EINPROGRESS` and becomes writable when done.
pub fn connect(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let (storage, length) = raw_address(address);
    // SAFETY: `length` is at most the size of `storage`, which outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const storage).cast(), length) })?;
    Ok(())
}

/// Connects to a unix path; `EAGAIN` if the listener's queue is full.
pub fn connect_unix(socket: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    simulation::with_world(Ok(()), |world| world.may_connect(path))?;
    let (address, length) = raw_unix_address(path)?;
    // SAFETY: `length` is at most the size of `address`, which outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    #[cfg(feature = "simulation")]
    simulation::with_world((), |world| world.connected(socket.as_raw_fd(), path));
    Ok(())
}

/// Starts listening, or changes the backlog of a listening socket. The kernel caps `backlog` at
/// `net.core.somaxconn`; -1 means that cap.
pub fn listen(socket: BorrowedFd<'_>, backlog: i32) -> io::Result<()> {
    // SAFETY: listen takes no pointers.
    check(unsafe { libc::listen(socket.as_raw_fd(), backlog) })?;
    Ok(())
}

/// Accepts one connection, non-blocking and close-on-exec. `WouldBlock` if none waits.
pub fn accept(gate: BorrowedFd<'_>) -> io::Result<(OwnedFd, PeerAddress)> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    retry(|| {
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut length = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: `length` is the size of `storage`; both outlive the call.
        let descriptor = check(unsafe {
            libc::accept4(
                gate.as_raw_fd(),
                storage.as_mut_ptr().cast(),
                &mut length,
                flags,
            )
        })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let connection = unsafe { OwnedFd::from_raw_fd(descriptor) };
        #[cfg(feature = "simulation")]
        simulation::with_world((), |world| world.accepted(descriptor));
        // SAFETY: a zeroed sockaddr_storage is a valid value, and the kernel only overwrote it.
        let storage = unsafe { storage.assume_init() };
        Ok((connection, plain_address(&storage)))
    })
}

/// The socket's own address.
pub fn local_address(socket: BorrowedFd<'_>) -> io::Result<PeerAddress> {
    local_address_of(socket.as_raw_fd())
}

/// The own address of the socket with this number, for callers that only have the number. After the
/// socket is closed, the result is an error or another socket's address.
pub(crate) fn local_address_of(number: RawFd) -> io::Result<PeerAddress> {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: `length` is the size of `storage`; both outlive the call.
    check(unsafe { libc::getsockname(number, storage.as_mut_ptr().cast(), &mut length) })?;
    // SAFETY: a zeroed sockaddr_storage is a valid value, and the kernel only overwrote it.
    Ok(plain_address(&unsafe { storage.assume_init() }))
}

/// Copies the path of a unix socket into `buffer`; returns its length, 0 if it has none or is not a
/// unix socket.
pub fn local_unix_path(socket: BorrowedFd<'_>, buffer: &mut [u8; 108]) -> io::Result<usize> {
    // SAFETY: all zero bytes are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `length` is the size of `address`; both outlive the call.
    check(unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &mut length)
    })?;
    if i32::from(address.sun_family) != libc::AF_UNIX || address.sun_path[0] == 0 {
        return Ok(0);
    }
    let mut count = 0;
    for (slot, byte) in buffer
        .iter_mut()
        .zip(address.sun_path)
        .take_while(|(_, byte)| *byte != 0)
    {
        *slot = byte as u8;
        count += 1;
    }
    Ok(count)
}

/// Receives into `buffer`. `Ok(0)` is the end of the stream; `WouldBlock` if there is no input.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: initialised bytes are also possibly-initialised bytes, and `receive_with` only
    // writes bytes it got from the kernel.
    let buffer = unsafe { &mut *(buffer as *mut [u8] as *mut [MaybeUninit<u8>]) };
    receive_with(socket, buffer, 0)
}

/// Receives up to `bytes_max` after the content of `buffer`, into memory that is not zeroed first.
/// Allocates only if the buffer has less space than that.
pub fn receive_append(
    socket: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<usize> {
    buffer.reserve(bytes_max);
    let filled = buffer.len();
    let room = &mut buffer.spare_capacity_mut()[..bytes_max];
    let received = receive_with(socket, room, 0)?;
    // SAFETY: the kernel has written `received` bytes, at most `bytes_max`, behind `filled`.
    unsafe { buffer.set_len(filled + received) };
    Ok(received)
}

/// As [`receive`], but leaves the bytes in the socket.
pub fn peek(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: as in `receive`.
    let buffer = unsafe { &mut *(buffer as *mut [u8] as *mut [MaybeUninit<u8>]) };
    receive_with(socket, buffer, libc::MSG_PEEK)
}

/// Sends from `bytes`; may take fewer than all. `WouldBlock` if the send buffer is full.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], more: More) -> io::Result<usize> {
    let flags = send_flags(more);
    #[cfg(feature = "simulation")]
    let bytes = &bytes[..simulation::may_send(socket, bytes.len())?];
    let result = retry(|| {
        // SAFETY: pointer and length are those of one slice; there is no address.
        check_size(unsafe {
            libc::syscall(
                libc::SYS_sendto,
                socket.as_raw_fd(),
                bytes.as_ptr(),
                bytes.len(),
                flags,
                NO_ADDRESS,
                NO_LENGTH,
            )
        } as isize)
    });
    #[cfg(feature = "simulation")]
    let result = simulation::sent(socket, result);
    result
}

/// Sends from several slices in one call; may take fewer than all. At most [`IO_SLICES_MAX`] are
/// sent: the rest counts as not taken.
pub fn send_vectored(
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    more: More,
) -> io::Result<usize> {
    let flags = send_flags(more);
    #[cfg(feature = "simulation")]
    {
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        if simulation::may_send(socket, bytes)? < bytes {
            // The kernel sends a part from the beginning.
            let first = slices.iter().find(|slice| !slice.is_empty());
            return send(socket, first.map_or(&[], |slice| slice), more);
        }
    }
    // SAFETY: all zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    // IoSlice is guaranteed to be laid out as iovec on Unix; sendmsg does not write through it.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len().min(IO_SLICES_MAX);
    let result = retry(|| {
        // SAFETY: the message points to `slices`, which outlive the call, and to nothing else.
        check_size(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })
    });
    #[cfg(feature = "simulation")]
    let result = simulation::sent(socket, result);
    result
}

/// Closes one or both directions of a connection.
pub fn shutdown(socket: BorrowedFd<'_>, direction: Shutdown) -> io::Result<()> {
    let how = match direction {
        Shutdown::Read => libc::SHUT_RD,
        Shutdown::Write => libc::SHUT_WR,
        Shutdown::Both => libc::SHUT_RDWR,
    };
    // SAFETY: shutdown takes no pointers.
    check(unsafe { libc::shutdown(socket.as_raw_fd(), how) })?;
    Ok(())
}

/// The address argument of sendto(2) and recvfrom(2) without an address. They are called by number:
/// the C library's own functions are cancellation points, and execute two locked instructions per
/// call if the process has several threads.
const NO_ADDRESS: *const libc::sockaddr = std::ptr::null();

/// The length of no address.
const NO_LENGTH: *const libc::socklen_t = std::ptr::null();

fn receive_with(
    socket: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    flags: libc::c_int,
) -> io::Result<usize> {
    let result = retry(|| {
        // SAFETY: pointer and length are those of one slice, which the kernel may overwrite; no
        // address is asked for.
        check_size(unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                socket.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
                flags,
                NO_ADDRESS,
                NO_LENGTH,
            )
        } as isize)
    });
    #[cfg(feature = "simulation")]
    let result = simulation::received(socket, result, flags & libc::MSG_PEEK != 0);
    result
}

fn send_flags(more: More) -> libc::c_int {
    match more {
        More::No => libc::MSG_NOSIGNAL,
        More::Yes => libc::MSG_NOSIGNAL | libc::MSG_MORE,
    }
}

pub(super) fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let length = match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large enough and aligned for every sockaddr.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            mem::size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            mem::size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

fn raw_unix_address(path: &[u8]) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zero bytes are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    if path.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    if path.is_empty() || path.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (slot, byte) in address.sun_path.iter_mut().zip(path) {
        *slot = *byte as libc::c_char;
    }
    let length = mem::offset_of!(libc::sockaddr_un, sun_path) + path.len() + 1;
    Ok((address, length as libc::socklen_t))
}

pub(super) fn plain_address(storage: &libc::sockaddr_storage) -> PeerAddress {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage holds a sockaddr_in, and it is aligned.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let address = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            let port = u16::from_be(raw.sin_port);
            PeerAddress::Inet(SocketAddr::V4(SocketAddrV4::new(address, port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that the storage holds a sockaddr_in6, and it is aligned.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            PeerAddress::Inet(SocketAddr::V6(SocketAddrV6::new(
                address,
                u16::from_be(raw.sin6_port),
                raw.sin6_flowinfo,
                raw.sin6_scope_id,
            )))
        }
        _ => PeerAddress::Unix,
    }
}
