//! Socket options, each one system call (socket(7), tcp(7), ip(7)).

use std::{
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsRawFd, BorrowedFd, RawFd},
};

use super::{check, retry};

/// Disables Nagle's algorithm (`TCP_NODELAY`).
pub fn set_no_delay(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, i32::from(on))
}

/// Acknowledges now what was received, and delays later acknowledgements as before
/// (`TCP_QUICKACK`, whose even values say so).
pub fn acknowledge(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 2)
}

/// Lets the acknowledgement that ends the handshake of a connection wait for the first bytes that
/// are sent, which carry it; to be called before connect(2). It waits 200 ms at most. What comes
/// later is acknowledged as usual (`TCP_QUICKACK`, which Linux resets when it is connected).
pub fn let_handshake_wait(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)
}

/// Acknowledges now what was received, and what follows without delay until something is sent
/// (`TCP_QUICKACK`).
pub fn acknowledge_without_delay(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1)
}

/// Makes the next close send a reset and drop unsent bytes (`SO_LINGER` with 0 seconds).
pub fn set_reset_on_close(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_LINGER,
        libc::linger {
            l_onoff: 1,
            l_linger: 0,
        },
    )
}

/// Makes a listening socket drop every later packet (`SO_ATTACH_FILTER`): queued connections stay,
/// none is added, and no peer is notified. Accepted connections have sockets of their own and are
/// not affected.
pub fn stop_listening(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut filter = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    }];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Undoes [`stop_listening`] (`SO_DETACH_FILTER`); `ENOENT` if there is nothing to undo.
pub fn set_hearing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0_i32)
}

/// Switches keep-alive probes on or off (`SO_KEEPALIVE`).
pub fn set_keepalive(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, i32::from(on))
}

/// Idle time before the first keep-alive probe (`TCP_KEEPIDLE`), in seconds, 1 to 32767.
pub fn set_keepalive_idle_s(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds)
}

/// Time between keep-alive probes (`TCP_KEEPINTVL`), in seconds, 1 to 32767.
pub fn set_keepalive_interval_s(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds)
}

/// The number of unanswered keep-alive probes that end a connection (`TCP_KEEPCNT`), 1 to 127.
pub fn set_keepalive_count(socket: BorrowedFd<'_>, count: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, count)
}

/// Requests a size of the receive buffer (`SO_RCVBUF`); the kernel doubles and caps it.
pub fn set_receive_buffer_bytes(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
}

/// Requests a size of the send buffer (`SO_SNDBUF`); the kernel doubles and caps it.
pub fn set_send_buffer_bytes(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
}

/// The kernel's size of the receive buffer: the doubled value.
pub fn receive_buffer_bytes(socket: BorrowedFd<'_>) -> io::Result<u32> {
    option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)
}

/// The kernel's size of the send buffer: the doubled value.
pub fn send_buffer_bytes(socket: BorrowedFd<'_>) -> io::Result<u32> {
    option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF)
}

/// Makes accept return a connection only when it has input (`TCP_DEFER_ACCEPT`), for up to this
/// many seconds (rounded up to retransmissions of the SYN-ACK); 0 disables it.
pub fn set_deferred_accept_s(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds)
}

/// Accepts bytes in the SYN (`TCP_FASTOPEN`, RFC 7413), with at most `pending_max` pending
/// requests.
pub fn set_fast_open_queue(socket: BorrowedFd<'_>, pending_max: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, pending_max)
}

/// Sets whether an IPv6 socket refuses IPv4 (`IPV6_V6ONLY`); only before bind.
pub fn set_ipv6_only(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, i32::from(on))
}

/// Allows binding to an address with old connections in `TIME_WAIT` (`SO_REUSEADDR`).
pub fn set_reuse_address(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, i32::from(on))
}

/// Allows several sockets of one user to listen on one address (`SO_REUSEPORT`, Linux 3.9).
pub fn set_reuse_port(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, i32::from(on))
}

/// Makes the kernel report the local address of each datagram (`IP_PKTINFO`, `IPV6_RECVPKTINFO`):
/// for sockets that are bound to all addresses.
pub fn set_packet_information(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    let (level, name) = if is_ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
    } else {
        (libc::IPPROTO_IP, libc::IP_PKTINFO)
    };
    set(socket, level, name, 1_i32)
}

/// Whether it is a datagram socket (`SO_TYPE`).
pub fn is_datagram(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let kind: i32 = option(socket, libc::SOL_SOCKET, libc::SO_TYPE)?;
    Ok(kind == libc::SOCK_DGRAM)
}

/// Whether it is a socket of Multipath TCP (`SO_PROTOCOL`).
pub fn is_multipath(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let protocol: i32 = option(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)?;
    Ok(protocol == libc::IPPROTO_MPTCP)
}

/// Assigns a listening socket to a CPU: among the sockets of one reuseport address, it gets the
/// connections whose packets that CPU handles (`SO_INCOMING_CPU`; settable since Linux 6.2).
pub fn set_incoming_cpu(socket: BorrowedFd<'_>, cpu: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, cpu)
}

/// Allows binding to an address that is not the machine's (`IP_TRANSPARENT`, or
/// `IPV6_TRANSPARENT`); needs CAP_NET_ADMIN or CAP_NET_RAW.
pub fn set_transparent(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    if is_ipv6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)
    } else {
        set(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)
    }
}

/// Defers the choice of the port from bind to connect(2) if the port is 0: one port may then serve
/// connections to several peers (`IP_BIND_ADDRESS_NO_PORT`, Linux 4.2; also for IPv6 sockets).
pub fn set_bind_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Whether the socket listens (`SO_ACCEPTCONN`).
pub fn is_listening(socket: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(option::<i32>(socket, libc::SOL_SOCKET, libc::SO_ACCEPTCONN)? != 0)
}

/// The kernel's state of a TCP socket (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The state number; 1 is established, 10 is listening.
    pub state: u8,
    /// Smoothed round trip time in microseconds.
    pub rtt_us: u32,
    /// The mean deviation in microseconds.
    pub rtt_variance_us: u32,
    pub congestion_window_segments: u32,
    /// The advertised receive window, in bytes.
    pub receive_space_bytes: u32,
    /// The segments retransmitted since the connection began.
    pub retransmits_total: u32,
    /// The segments that were sent and not acknowledged; 0 for a listening socket.
    pub unacknowledged: u32,
    /// Milliseconds since bytes were sent that were no repetition.
    pub last_sent_ms: u32,
    /// Milliseconds since bytes were received.
    pub last_received_ms: u32,
    /// The connections that wait to be accepted; only for a listening socket.
    pub accept_queue: u32,
    /// The limit of waiting connections; only for a listening socket.
    pub accept_queue_max: u32,
}

/// The state number of a listening socket.
pub const TCP_STATE_LISTEN: u8 = 10;

/// Reads `TCP_INFO`. For a listening socket the kernel reports its queue in fields that otherwise
/// count segments; this function separates them.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let raw: libc::tcp_info = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let mut info = TcpInfo {
        state: raw.tcpi_state,
        rtt_us: raw.tcpi_rtt,
        rtt_variance_us: raw.tcpi_rttvar,
        congestion_window_segments: raw.tcpi_snd_cwnd,
        receive_space_bytes: raw.tcpi_rcv_space,
        retransmits_total: raw.tcpi_total_retrans,
        unacknowledged: raw.tcpi_unacked,
        last_sent_ms: raw.tcpi_last_data_sent,
        last_received_ms: raw.tcpi_last_data_recv,
        accept_queue: 0,
        accept_queue_max: 0,
    };
    if info.state == TCP_STATE_LISTEN {
        info.accept_queue = mem::take(&mut info.unacknowledged);
        info.accept_queue_max = raw.tcpi_sacked;
    }
    Ok(info)
}

/// The process at the other end of a unix socket (`SO_PEERCRED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process that connected, or that listened last; for a pair, its creator.
    pub process: i32,
    /// The effective user at that time.
    pub user: u32,
}

/// The credentials of the peer of a unix socket.
pub fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<PeerCredentials> {
    let raw: libc::ucred = option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
    Ok(PeerCredentials {
        process: raw.pid,
        user: raw.uid,
    })
}

/// As [`tcp_info`], for the socket with this number, for callers that only have the number. After
/// the socket is closed, the result is an error or another socket's state.
pub(crate) fn tcp_info_of(number: RawFd) -> io::Result<TcpInfo> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is not -1, and getsockopt(2), which alone sees it, checks it.
    tcp_info(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Plain data that the kernel may read and write byte by byte as an option's value.
///
/// # Safety
/// Every bit pattern, all zero bytes among them, must be a valid value.
pub(super) unsafe trait OptionValue: Copy {}

// SAFETY: integers are valid in every bit pattern.
unsafe impl OptionValue for i32 {}
// SAFETY: as above.
unsafe impl OptionValue for u32 {}
// SAFETY: two integers.
unsafe impl OptionValue for libc::linger {}
// SAFETY: three integers.
unsafe impl OptionValue for libc::ucred {}
// SAFETY: integers only; it is only read from the kernel, and zeroed before.
unsafe impl OptionValue for libc::tcp_info {}
// SAFETY: a length and a pointer; it is only passed to the kernel, which checks both.
unsafe impl OptionValue for libc::sock_fprog {}

pub(super) fn set<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `length` is the size of `value`, which outlives the call; the kernel only reads it.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    })?;
    Ok(())
}

fn option<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    retry(|| {
        // SAFETY: `length` is the size of `value`; the kernel writes at most that much.
        check(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                level,
                name,
                value.as_mut_ptr().cast(),
                &mut length,
            )
        })
    })?;
    // SAFETY: zeroed at first, and by `OptionValue` every value from the kernel is valid.
    Ok(unsafe { value.assume_init() })
}
