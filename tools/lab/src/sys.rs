//! The system calls that neither std nor nix wraps; all unsafe code of the lab.
//!
//! What is here and why: counting tracepoints and instructions (`perf_event_open`), starting a
//! child on chosen CPUs that does not outlive us, busy polling of another process's epoll instance,
//! and many datagrams in one call. Nothing here keeps state or decides anything.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

/// `PERF_TYPE_HARDWARE`.
const PERF_TYPE_HARDWARE: u32 = 0;
/// `PERF_COUNT_HW_INSTRUCTIONS`.
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
/// `PERF_TYPE_TRACEPOINT`.
const PERF_TYPE_TRACEPOINT: u32 = 2;
/// `PERF_ATTR_SIZE_VER1`: the fields up to `config2`, known since Linux 3.3.
const ATTRIBUTE_BYTES: u32 = 72;
/// `PERF_FLAG_FD_CLOEXEC`.
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_FILTER`: `_IOW('$', 6, char *)`.
const PERF_EVENT_IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;

/// `EPIOCSPARAMS`: `_IOW(0x8A, 1, struct epoll_params)`, since kernel 6.9.
const EPIOCSPARAMS: libc::c_ulong = 0x4008_8A01;

/// `struct epoll_params`: how an epoll instance polls network queues itself.
#[repr(C)]
struct EpollParameters {
    busy_poll_us: u32,
    /// Packets in a turn.
    budget: u16,
    prefers: u8,
    padding: u8,
}

/// Packets that a poll takes at most: the kernel's own weight, above which a right is needed.
const BUSY_POLL_BUDGET: u16 = 64;

/// Has an epoll instance, by its descriptor in another process, poll network queues itself for so
/// many microseconds before it sleeps.
///
/// # Errors
/// The system call's: ENOTTY before kernel 6.9, or where the descriptor is no epoll instance; EPERM
/// without the right to trace the process.
pub(crate) fn poll_busily(process: u32, descriptor: i32, microseconds: u32) -> io::Result<()> {
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    // SAFETY: all arguments are numbers.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let handle = owned(handle)?;
    // SAFETY: all arguments are numbers.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), descriptor, 0) };
    let copy = owned(copy)?;
    let parameters = EpollParameters {
        busy_poll_us: microseconds,
        budget: BUSY_POLL_BUDGET,
        prefers: 0,
        padding: 0,
    };
    // SAFETY: the kernel reads a structure of this size, which lives until the call returns.
    let result = unsafe {
        libc::ioctl(
            copy.as_raw_fd(),
            EPIOCSPARAMS,
            std::ptr::from_ref(&parameters),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The descriptor that a system call has returned, or its error.
fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

/// The start of `struct perf_event_attr`, as far as a counter needs it.
#[repr(C)]
#[derive(Default)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
}

/// Where a tracepoint is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counted {
    /// Everything that happens on a CPU; needs CAP_PERFMON.
    Cpu(usize),
    /// What one thread does, wherever it runs.
    Thread(u32),
}

/// A counter that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Counter(File);

impl Counter {
    /// Counts the tracepoint of this number, where `filter` holds.
    ///
    /// # Errors
    /// The system call's: EACCES without the right to it, ENOENT without the tracepoint.
    pub(crate) fn open(id: u64, counted: Counted, filter: Option<&str>) -> io::Result<Counter> {
        let counter = Counter::event(PERF_TYPE_TRACEPOINT, id, counted)?;
        match filter {
            Some(filter) => counter.filter(filter).map(|()| counter),
            None => Ok(counter),
        }
    }

    /// Counts the instructions of a thread, those of the kernel for it included.
    ///
    /// # Errors
    /// As [`Counter::open`]; ENOENT where the processor, or the machine that it is a guest of, does
    /// not count them.
    pub(crate) fn instructions(thread: u32) -> io::Result<Counter> {
        let counted = Counted::Thread(thread);
        Counter::event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, counted)
    }

    fn event(kind: u32, config: u64, counted: Counted) -> io::Result<Counter> {
        let attribute = Attribute {
            kind,
            size: ATTRIBUTE_BYTES,
            config,
            ..Attribute::default()
        };
        let (thread, cpu) = match counted {
            Counted::Cpu(cpu) => (-1, libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX)),
            Counted::Thread(thread) => (libc::pid_t::try_from(thread).unwrap_or(0), -1),
        };
        // SAFETY: the kernel reads `size` bytes of the attribute, which is that large and lives
        // until the call returns; the other arguments are numbers.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attribute),
                thread,
                cpu,
                -1 as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just returned this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(descriptor as libc::c_int) };
        Ok(Counter(file))
    }

    fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter)?;
        // SAFETY: the descriptor is ours, and the kernel copies the string, which ends in 0.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                PERF_EVENT_IOC_SET_FILTER,
                filter.as_ptr(),
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The count so far.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// Makes a command's process run on these CPUs, lead a group of its own, so that Ctrl-C reaches
/// only us, and die when our thread does, so that nothing outlives a killed lab.
pub(crate) fn confine(command: &mut Command, cpus: &[usize]) {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let _ = set.set(*cpu);
    }
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes three system calls and touches no lock and no
    // memory but its own copy of the set.
    unsafe {
        command.pre_exec(move || {
            sched_setaffinity(Pid::from_raw(0), &set)?;
            // We block the signals that we wait for; the child must get its own.
            SigSet::empty().thread_set_mask()?;
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            Ok(())
        });
    }
}

/// Most datagrams in a call.
pub(crate) const DATAGRAMS_MAX: usize = 32;

/// Room for a datagram.
pub(crate) const DATAGRAM_BYTES: usize = 2048;

/// Room for the datagrams of a call, with their senders.
pub(crate) struct Datagrams {
    rooms: Vec<[u8; DATAGRAM_BYTES]>,
    peers: Vec<libc::sockaddr_storage>,
    /// The lengths of those that were received, and of their senders.
    lengths: [(usize, libc::socklen_t); DATAGRAMS_MAX],
}

impl Datagrams {
    /// Room without datagrams.
    pub(crate) fn new() -> Self {
        // SAFETY: all zero bytes are a valid sockaddr_storage.
        let nobody: libc::sockaddr_storage = unsafe { mem::zeroed() };
        Self {
            rooms: vec![[0; DATAGRAM_BYTES]; DATAGRAMS_MAX],
            peers: vec![nobody; DATAGRAMS_MAX],
            lengths: [(0, 0); DATAGRAMS_MAX],
        }
    }

    /// Waits for a datagram, and receives those that have come with it; returns their number.
    ///
    /// # Errors
    /// The error of recvmmsg(2); `WouldBlock` when the socket's time-out has passed.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let whole = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        self.lengths = [(DATAGRAM_BYTES, whole); DATAGRAMS_MAX];
        let flags = libc::MSG_WAITFORONE as _;
        let (received, headers) = self.call(Some, DATAGRAMS_MAX, |headers| {
            // SAFETY: each header points to a room and an address of its own with their
            // lengths, which outlive the call.
            unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    headers.len() as libc::c_uint,
                    flags,
                    std::ptr::null_mut(),
                )
            }
        })?;
        for (length, header) in self.lengths.iter_mut().zip(&headers[..received]) {
            *length = (header.msg_len as usize, header.msg_hdr.msg_namelen);
        }
        Ok(received)
    }

    /// Sends the first `count` that were received back to their senders; returns how many were
    /// taken.
    ///
    /// # Errors
    /// The error of sendmmsg(2) for the first.
    pub(crate) fn send_back(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        self.send_all(socket, count, Some)
    }

    /// Sends `count` datagrams of so many bytes to the sender of the one at that place; returns how
    /// many were taken.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn send_burst(
        &mut self,
        socket: &UdpSocket,
        place: usize,
        (count, bytes): (usize, usize),
    ) -> io::Result<usize> {
        let before = self.lengths;
        let peer_length = before[place].1;
        self.lengths = [(bytes.min(DATAGRAM_BYTES), peer_length); DATAGRAMS_MAX];
        let sent = self.send_all(socket, count, |_| Some(place));
        self.lengths = before;
        sent
    }

    /// Sends `count` datagrams of so many bytes to the peer of a connected socket; returns how many
    /// were taken.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn send(
        &mut self,
        socket: &UdpSocket,
        (count, bytes): (usize, usize),
    ) -> io::Result<usize> {
        self.lengths = [(bytes.min(DATAGRAM_BYTES), 0); DATAGRAMS_MAX];
        self.send_all(socket, count, |_| None)
    }

    fn send_all(
        &mut self,
        socket: &UdpSocket,
        count: usize,
        peer_of: impl Fn(usize) -> Option<usize>,
    ) -> io::Result<usize> {
        let (sent, _) = self.call(peer_of, count, |headers| {
            // SAFETY: each header points to a room, and to an address or to none, with their
            // lengths, which outlive the call.
            unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    headers.len() as libc::c_uint,
                    0,
                )
            }
        })?;
        Ok(sent)
    }

    /// Calls with a header for each of the first `count` rooms, and the address that `peer_of`
    /// names for it; returns its result and the headers.
    fn call(
        &mut self,
        peer_of: impl Fn(usize) -> Option<usize>,
        count: usize,
        call: impl Fn(&mut [libc::mmsghdr]) -> libc::c_int,
    ) -> io::Result<(usize, [libc::mmsghdr; DATAGRAMS_MAX])> {
        // SAFETY: all zero bytes are a valid value of these plain C structures.
        let (mut headers, mut pieces): (
            [libc::mmsghdr; DATAGRAMS_MAX],
            [libc::iovec; DATAGRAMS_MAX],
        ) = unsafe { mem::zeroed() };
        let count = count.min(DATAGRAMS_MAX);
        for (place, (header, piece)) in headers.iter_mut().zip(&mut pieces).enumerate() {
            let (bytes, peer_length) = self.lengths[place];
            piece.iov_base = self.rooms[place].as_mut_ptr().cast();
            piece.iov_len = bytes;
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            if let Some(peer) = peer_of(place) {
                header.msg_hdr.msg_name = (&raw mut self.peers[peer]).cast();
                header.msg_hdr.msg_namelen = peer_length;
            }
        }
        match call(&mut headers[..count]) {
            ..0 => Err(io::Error::last_os_error()),
            done => Ok((done as usize, headers)),
        }
    }
}

#[cfg(test)]
mod tests;
