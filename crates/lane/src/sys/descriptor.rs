//! Descriptors: passing them between processes, inheriting them, and waking by them (unix(7),
//! eventfd(2)).
//!
//! A *parcel* is a byte message with descriptors. One process sends it over a stream socket, and
//! the other receives it completely: the master passes its data to the serving process in this way.

use std::{
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    sync::Mutex,
};

use super::{check, check_size, file, process, retry, socket};

/// Most descriptors one kernel message carries (`SCM_MAX_FD`).
pub const DESCRIPTORS_PER_MESSAGE_MAX: usize = 253;

/// Most descriptors of a parcel: more than any server listens on; it limits what a faulty peer can
/// make us open.
pub const PARCEL_DESCRIPTORS_MAX: usize = 64 * 1024;

/// Bytes of control buffer for a full message: 253 descriptors and a header of 16 bytes.
const CONTROL_BYTES: usize = 1032;

/// A control buffer with the alignment of the kernel's header.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

/// Makes two connected stream sockets, close-on-exec and blocking.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair_of(libc::SOCK_STREAM)
}

/// Makes two connected sockets that keep the bounds of what is sent (SOCK_SEQPACKET),
/// close-on-exec and non-blocking.
pub fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair_of(libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK)
}

fn pair_of(kind: libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    let kind = kind | libc::SOCK_CLOEXEC;
    // SAFETY: the pointer points to two ints.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) })?;
    // SAFETY: the kernel has just returned both descriptors, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

/// Sends `bytes` and `descriptors` as one parcel, and waits for the peer. The peer gets copies;
/// ours stay open. `InvalidInput` beyond [`PARCEL_DESCRIPTORS_MAX`].
///
/// After an error the stream is out of step, and the socket must be closed.
pub fn send_parcel(
    peer: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if descriptors.len() > PARCEL_DESCRIPTORS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut header = [0; 12];
    header[..8].copy_from_slice(&(bytes.len() as u64).to_ne_bytes());
    header[8..].copy_from_slice(&(descriptors.len() as u32).to_ne_bytes());
    send_all(peer, &header)?;
    for batch in descriptors.chunks(DESCRIPTORS_PER_MESSAGE_MAX) {
        waiting(peer, libc::POLLOUT, || send_message(peer, &[0], batch))?;
    }
    send_all(peer, bytes)
}

/// Receives one parcel, and waits for it; its descriptors are close-on-exec, in the sender's order.
///
/// `UnexpectedEof` if the peer has closed; `InvalidData` if the parcel announces more than
/// `bytes_max` bytes or [`PARCEL_DESCRIPTORS_MAX`] descriptors, or if fewer descriptors arrive than
/// announced (the receiver's limit). Allocates.
pub fn receive_parcel(
    peer: BorrowedFd<'_>,
    bytes_max: usize,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut header = [0; 12];
    receive_all(peer, &mut header)?;
    let (length, count) = header.split_at(8);
    let length = u64::from_ne_bytes(length.try_into().unwrap_or_default());
    let count = u32::from_ne_bytes(count.try_into().unwrap_or_default()) as usize;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > bytes_max || count > PARCEL_DESCRIPTORS_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut descriptors = Vec::with_capacity(count);
    while descriptors.len() < count {
        let wanted = (count - descriptors.len()).min(DESCRIPTORS_PER_MESSAGE_MAX);
        let before = descriptors.len();
        let mut carrier = [0];
        let received = waiting(peer, libc::POLLIN, || {
            receive_message(peer, &mut carrier, &mut descriptors)
        })?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if descriptors.len() - before != wanted {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let mut bytes = vec![0; length];
    receive_all(peer, &mut bytes)?;
    Ok((bytes, descriptors))
}

/// Sends a packet, and waits while the peer takes none.
pub fn send_packet(peer: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    waiting(peer, libc::POLLOUT, || {
        socket::send(peer, bytes, socket::More::No)
    })
    .map(|_| ())
}

/// Receives the next packet, and waits for it; what `buffer` has no room for is lost. `Ok(0)`: the
/// peer has closed.
pub fn receive_packet(peer: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    waiting(peer, libc::POLLIN, || socket::receive(peer, buffer))
}

/// Receives the next packet as [`receive_packet`] does, and appends the descriptors that came with
/// it, all close-on-exec; those that this process has no room for are lost.
pub fn receive_packet_with(
    peer: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    waiting(peer, libc::POLLIN, || {
        receive_message(peer, buffer, descriptors)
    })
}

/// Sends `bytes` (at least one) with up to [`DESCRIPTORS_PER_MESSAGE_MAX`] descriptors in one
/// message.
pub fn send_message(
    peer: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    if descriptors.len() > DESCRIPTORS_PER_MESSAGE_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = Control([MaybeUninit::zeroed(); CONTROL_BYTES]);
    let mut piece = io::IoSlice::new(bytes);
    // SAFETY: all zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = (&raw mut piece).cast();
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let payload = mem::size_of_val(descriptors) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE only computes.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as usize;
        // SAFETY: the control buffer holds a header and 253 descriptors, and is aligned for both;
        // CMSG_FIRSTHDR points to its start, since msg_controllen exceeds a header.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(payload) as usize;
            let slots = libc::CMSG_DATA(header).cast::<RawFd>();
            for (index, descriptor) in descriptors.iter().enumerate() {
                slots.add(index).write_unaligned(descriptor.as_raw_fd());
            }
        }
    }
    retry(|| {
        // SAFETY: the message points to `piece` and `control`, which outlive the call.
        check_size(unsafe { libc::sendmsg(peer.as_raw_fd(), &message, libc::MSG_NOSIGNAL) })
    })
}

/// Receives bytes and appends the descriptors that came with them, all close-on-exec.
pub fn receive_message(
    peer: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut control = Control([MaybeUninit::zeroed(); CONTROL_BYTES]);
    let mut piece = io::IoSliceMut::new(buffer);
    // SAFETY: all zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = (&raw mut piece).cast();
    message.msg_iovlen = 1;
    let count = retry(|| {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES;
        // SAFETY: the message points to `piece` and `control` with their own lengths.
        check_size(unsafe { libc::recvmsg(peer.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) })
    })?;
    // SAFETY: recvmsg has filled the control buffer up to msg_controllen, so the headers that the
    // macros walk lie inside it; each descriptor in it is new and ours alone.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let payload = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let slots = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..payload / mem::size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(slots.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    Ok(count)
}

/// Sets whether a descriptor is closed when another program is executed.
pub fn set_close_on_exec(descriptor: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let flags = if on { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD takes an int.
    check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, flags) })?;
    Ok(())
}

/// Sets whether reads and writes return `WouldBlock` instead of waiting. Two system calls.
pub fn set_non_blocking(descriptor: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: F_GETFL takes no argument.
    let old = check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) })?;
    let new = if on {
        old | libc::O_NONBLOCK
    } else {
        old & !libc::O_NONBLOCK
    };
    // SAFETY: F_SETFL takes an int.
    check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, new) })?;
    Ok(())
}

/// Takes ownership of a descriptor that this process has inherited, and makes it close-on-exec.
///
/// Only for the start of a process, before it has opened anything itself: the number is trusted to
/// be an inherited one. `EBADF` if nothing is open under it; `InvalidInput` for the standard
/// streams and for a number that was already adopted, so that no descriptor gets two owners.
pub fn adopt_inherited(number: RawFd) -> io::Result<OwnedFd> {
    static ADOPTED: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());
    let mut adopted = ADOPTED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if number <= libc::STDERR_FILENO || adopted.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: F_SETFD takes an int, and fails when nothing is open under the number.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    adopted.push(number);
    // SAFETY: it is open, inherited, and by the list above adopted for the first time.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A counter that wakes its poller (eventfd(2)): a thread calls a lane with it.
#[derive(Debug)]
pub struct Waker {
    descriptor: OwnedFd,
}

impl Waker {
    /// Makes one, non-blocking and close-on-exec.
    pub fn new() -> io::Result<Waker> {
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: eventfd takes no pointers.
        let descriptor = check(unsafe { libc::eventfd(0, flags) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Waker { descriptor })
    }

    /// Makes the descriptor readable. If the counter is full, it is readable already.
    pub fn wake(&self) -> io::Result<()> {
        match file::write(self.as_fd(), &1_u64.to_ne_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Makes it unreadable again; returns whether there was a call.
    pub fn drain(&self) -> io::Result<bool> {
        match file::read(self.as_fd(), &mut [0; 8]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn send_all(peer: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = waiting(peer, libc::POLLOUT, || {
            socket::send(peer, bytes, socket::More::No)
        })?;
        bytes = &bytes[count..];
    }
    Ok(())
}

fn receive_all(peer: BorrowedFd<'_>, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match waiting(peer, libc::POLLIN, || socket::receive(peer, buffer))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(())
}

/// Repeats `call` while its result is `WouldBlock`, and waits for `events` in between.
fn waiting<T>(
    peer: BorrowedFd<'_>,
    events: libc::c_short,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                process::poll_one(peer, events)?;
            }
            other => return other,
        }
    }
}
