//! The few system calls that neither std, nix nor socket2 wraps; all unsafe code of this tool.
//!
//! What is here and why: a descriptor table per thread (`close_range` with `UNSHARE`), waiting
//! with nanoseconds (`epoll_pwait2`), discarding received bytes (`MSG_TRUNC`) and three socket
//! options. Nothing here keeps state or decides anything.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};

/// The first descriptor after standard input, output and error.
const DESCRIPTOR_FIRST: libc::c_uint = 3;

/// `IP_LOCAL_PORT_RANGE`, Linux 6.3.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Gives the calling thread a descriptor table of its own, empty except for descriptors 0 to 2.
///
/// Then the file limit holds for each thread by itself, and the kernel takes no reference on the
/// table's entries during a system call, since no other thread can close them. Linux 5.9.
///
/// To be called first in a new thread: descriptors owned by values moved into the thread would be
/// closed under them.
///
/// # Errors
/// The system call's.
pub(crate) fn unshare_descriptors() -> io::Result<()> {
    // SAFETY: close_range takes no pointers; UNSHARE closes in a table private to this thread,
    // which owns no descriptor above 2 yet, so no owner anywhere loses what it owns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            DESCRIPTOR_FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    check(result as isize).map(|_| ())
}

/// Waits for events for at most `timeout` (`None`: until one comes), to the nanosecond.
///
/// Returns how many of `events` were filled. Before Linux 5.11, to the millisecond.
///
/// # Errors
/// The system call's; an interruption by a signal counts as no event.
pub(crate) fn wait(
    epoll: &Epoll,
    events: &mut [EpollEvent],
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let timespec = timeout.map(|duration| libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    });
    let timespec = timespec
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let capacity = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: EpollEvent is a transparent wrapper of epoll_event; the kernel writes at most
    // `capacity` of them into the slice, and `timespec` is null or outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            events.as_mut_ptr(),
            capacity,
            timespec,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    match check(result as isize) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let timeout = timeout.map(|duration| duration.as_micros().div_ceil(1000));
            let timeout = timeout.map(|ms| EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX));
            Ok(epoll
                .wait(events, timeout.unwrap_or(EpollTimeout::NONE))
                .unwrap_or(0))
        }
        other => other,
    }
}

/// Takes up to `length` bytes out of a TCP socket without copying them anywhere.
///
/// # Errors
/// The system call's, `WouldBlock` when nothing has arrived.
pub(crate) fn discard(socket: BorrowedFd<'_>, length: usize) -> io::Result<usize> {
    // SAFETY: for TCP, MSG_TRUNC drops the bytes in the kernel and never writes to the buffer
    // (recv(2), since Linux 2.4), which may therefore be null.
    let result = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            length,
            libc::MSG_TRUNC | libc::MSG_DONTWAIT,
        )
    };
    check(result)
}

/// Lets bind(2) take a source address without choosing a port yet: the port is chosen by
/// connect(2), when the destination is known, so that one port serves many destinations.
///
/// # Errors
/// The system call's.
pub(crate) fn bind_address_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Confines the kernel's choice of a source port to `first..=last`. Linux 6.3.
///
/// # Errors
/// The system call's.
pub(crate) fn local_port_range(socket: BorrowedFd<'_>, first: u16, last: u16) -> io::Result<()> {
    let value = (u32::from(last) << 16) | u32::from(first);
    set_option(
        socket,
        libc::IPPROTO_IP,
        IP_LOCAL_PORT_RANGE,
        value.cast_signed(),
    )
}

/// Makes connect(2) wait for the first data, sent with the SYN when a cookie is known. Linux 4.11.
///
/// # Errors
/// The system call's.
pub(crate) fn fast_open(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
}

fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option value is a c_int on this stack, passed with its own size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(result as isize).map(|_| ())
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
