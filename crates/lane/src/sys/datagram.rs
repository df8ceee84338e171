//! Datagrams: several per call, each with its local address (udp(7), ip(7), ipv6(7)).

use std::{
    cell::Cell,
    io,
    mem::{self, MaybeUninit},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, BorrowedFd},
};

use super::socket::{PeerAddress, plain_address, raw_address};
use super::{check_size, retry};

/// Most datagrams per call: enough to make the cost of the call small, and few enough that the
/// lane's other work does not wait long. The kernel cuts at most 64 datagrams out of one send
/// (`UDP_MAX_SEGMENTS`, Linux 4.18).
pub const DATAGRAMS_MAX: usize = 32;

/// The size of the largest datagram: UDP's length has 16 bits.
const DATAGRAM_BYTES: usize = 65_536;

/// The size of the control data of a datagram: an `in6_pktinfo` with its header has 40 bytes, and a
/// number 24.
const CONTROL_BYTES: usize = 64;

/// Bytes of a send that the kernel cuts into datagrams: what an IP packet holds without its
/// headers, and some room for those.
const CUT_BYTES_MAX: usize = 65_000;

/// Memory for received datagrams, reused for each call. The headers point to the rest of it from
/// the beginning: most calls receive one or two datagrams, and are not to prepare 32. No vector
/// ever grows, so all stays where it is.
pub struct Batch {
    bytes: Vec<u8>,
    headers: Vec<libc::mmsghdr>,
    /// For connected sockets: who has sent is known, and the kernel need not write it.
    bare_headers: Vec<libc::mmsghdr>,
    /// The last call used those.
    is_bare: bool,
    /// Headers with addresses that the kernel has written to.
    written: usize,
    pieces: Vec<libc::iovec>,
    peers: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    count: usize,
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    pub bytes: &'a [u8],
    /// The sender.
    pub peer: PeerAddress,
    /// The local address that it was sent to; known if the socket reports it
    /// ([`super::socket_option::set_packet_information`]).
    pub local: Option<IpAddr>,
}

/// Control messages, aligned as their headers must be.
#[repr(align(8))]
#[derive(Clone, Copy)]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

const EMPTY_CONTROL: Control = Control([MaybeUninit::zeroed(); CONTROL_BYTES]);

impl Default for Batch {
    fn default() -> Self {
        // SAFETY: all zero bytes are a valid value of these plain C structures.
        let (header, peer) = unsafe { mem::zeroed() };
        let mut batch = Self {
            bytes: vec![0; DATAGRAMS_MAX * DATAGRAM_BYTES],
            headers: vec![header; DATAGRAMS_MAX],
            bare_headers: vec![header; DATAGRAMS_MAX],
            is_bare: false,
            written: 0,
            pieces: vec![NO_PIECE; DATAGRAMS_MAX],
            peers: vec![peer; DATAGRAMS_MAX],
            controls: vec![EMPTY_CONTROL; DATAGRAMS_MAX],
            count: 0,
        };
        batch.point_headers();
        batch
    }
}

impl Batch {
    /// Points each header to a room, an address and a control buffer of its own, or to a room
    /// alone.
    fn point_headers(&mut self) {
        let bytes = self.bytes.as_mut_ptr();
        let (pieces, peers) = (self.pieces.as_mut_ptr(), self.peers.as_mut_ptr());
        let controls = self.controls.as_mut_ptr();
        let all = self.headers.iter_mut().zip(&mut self.bare_headers);
        for (place, (header, bare)) in all.enumerate() {
            let (header, bare) = (&mut header.msg_hdr, &mut bare.msg_hdr);
            // SAFETY: each vector has DATAGRAMS_MAX elements, and `bytes` as many rooms, so `place`
            // lies inside of them; nobody else refers to a piece meanwhile.
            unsafe {
                let piece = pieces.add(place);
                (*piece).iov_base = bytes.add(place * DATAGRAM_BYTES).cast();
                (*piece).iov_len = DATAGRAM_BYTES;
                header.msg_iov = piece;
                bare.msg_iov = piece;
                header.msg_name = peers.add(place).cast();
                header.msg_control = controls.add(place).cast();
            }
            header.msg_iovlen = 1;
            bare.msg_iovlen = 1;
            reset_lengths(header);
        }
    }

    /// Receives up to `datagrams_max` datagrams, which replace those before; returns their number.
    ///
    /// # Errors
    /// The error of recvmmsg(2); `WouldBlock` if none waits.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, datagrams_max: usize) -> io::Result<usize> {
        // The kernel has written to those of the datagrams before.
        for used in &mut self.headers[..self.written] {
            reset_lengths(&mut used.msg_hdr);
        }
        self.written = 0;
        self.is_bare = false;
        self.written = self.receive_with(socket, datagrams_max)?;
        Ok(self.written)
    }

    /// As [`Batch::receive`], from a connected socket: the datagrams have no addresses.
    ///
    /// # Errors
    /// The error of recvmmsg(2); `WouldBlock` if none waits.
    pub fn receive_connected(
        &mut self,
        socket: BorrowedFd<'_>,
        datagrams_max: usize,
    ) -> io::Result<usize> {
        self.is_bare = true;
        self.receive_with(socket, datagrams_max)
    }

    fn receive_with(&mut self, socket: BorrowedFd<'_>, datagrams_max: usize) -> io::Result<usize> {
        let wanted = datagrams_max.clamp(1, DATAGRAMS_MAX);
        let headers = if self.is_bare {
            &mut self.bare_headers
        } else {
            &mut self.headers
        };
        self.count = 0;
        self.count = retry(|| {
            // SAFETY: each header points to a room, and to an address and a control buffer of its
            // own with their lengths or to none; the batch owns them, and they outlive the call.
            check_size(unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    wanted as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            } as isize)
        })?;
        Ok(self.count)
    }

    /// The datagrams of the last call of [`Batch::receive`].
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = Datagram<'_>> {
        self.bytes().enumerate().map(|(place, bytes)| Datagram {
            bytes,
            peer: plain_address(&self.peers[place]),
            local: local_address(&self.headers[place].msg_hdr),
        })
    }

    /// Their bytes alone.
    pub fn bytes(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let rooms = self.bytes.chunks_exact(DATAGRAM_BYTES);
        let headers = if self.is_bare {
            &self.bare_headers
        } else {
            &self.headers
        };
        let all = rooms.zip(&headers[..self.count]);
        all.map(|(room, header)| &room[..(header.msg_len as usize).min(DATAGRAM_BYTES)])
    }
}

/// Says how much room a header has for the address and the control data.
fn reset_lengths(header: &mut libc::msghdr) {
    header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_controllen = CONTROL_BYTES;
}

/// The addresses of a datagram to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Route {
    /// The receiver; `None` if the socket is connected.
    pub peer: Option<SocketAddr>,
    /// The local address, if the socket is bound to all of them.
    pub source: Option<IpAddr>,
}

/// Sends each slice (at most [`DATAGRAMS_MAX`]) as a datagram, as many as the socket takes; returns
/// their number. Datagrams of the same length pass through the kernel as one, which is cut at the
/// end of the way (`UDP_SEGMENT`), while `cuts` says that this path allows it; where it turns out
/// not to, `cuts` becomes false.
///
/// # Errors
/// The error of sendmmsg(2) for the first; `WouldBlock` if the socket is full.
pub fn send<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = &'a [u8]>,
    route: Route,
    cuts: &Cell<bool>,
) -> io::Result<usize> {
    let mut pieces = [NO_PIECE; DATAGRAMS_MAX];
    let mut count = 0;
    for (piece, bytes) in pieces.iter_mut().zip(datagrams) {
        // sendmmsg(2) does not write through it.
        piece.iov_base = bytes.as_ptr().cast_mut().cast();
        piece.iov_len = bytes.len();
        count += 1;
    }
    let pieces = &mut pieces[..count];
    match pieces {
        [] => return Ok(0),
        [_] => return send_one(socket, pieces, route),
        _ => {}
    }
    if !cuts.get() {
        return send_pieces(socket, pieces, route, |_| 1);
    }
    let sent = if cut_together(pieces) == count {
        send_one(socket, pieces, route)
    } else {
        send_pieces(socket, pieces, route, cut_together)
    };
    match sent {
        Err(error) if is_uncuttable(&error) => {
            cuts.set(false);
            send_pieces(socket, pieces, route, |_| 1)
        }
        other => other,
    }
}

const NO_PIECE: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// How many of these datagrams, from the first on, can be cut out of one send: those of its length,
/// and a shorter one behind them.
fn cut_together(pieces: &[libc::iovec]) -> usize {
    let length = pieces[0].iov_len;
    if length == 0 {
        return 1;
    }
    let fit = (CUT_BYTES_MAX / length).max(1);
    let equal = pieces.iter().take(fit);
    let equal = equal.take_while(|piece| piece.iov_len == length).count();
    match pieces.get(equal) {
        Some(last) if equal < fit && (1..length).contains(&last.iov_len) => equal + 1,
        _ => equal,
    }
}

/// Whether the kernel or the path refuses to cut: too large for it, no such option, no checksums
/// by the device.
fn is_uncuttable(error: &io::Error) -> bool {
    let refusals = [libc::EINVAL, libc::EMSGSIZE, libc::EIO, libc::ENOPROTOOPT];
    error
        .raw_os_error()
        .is_some_and(|number| refusals.contains(&number))
}

/// Sends a message: a datagram, or several that the kernel cuts. One call for one message costs
/// less than to prepare many.
fn send_one(socket: BorrowedFd<'_>, pieces: &mut [libc::iovec], route: Route) -> io::Result<usize> {
    // SAFETY: all zero bytes are a valid msghdr.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    let mut address = route.peer.map(raw_address);
    if let Some((storage, length)) = &mut address {
        header.msg_name = (&raw mut *storage).cast();
        header.msg_namelen = *length;
    }
    let mut control = EMPTY_CONTROL;
    let used = write_controls(&mut control, pieces, route);
    if used > 0 {
        header.msg_controllen = used;
        header.msg_control = control.0.as_mut_ptr().cast();
    }
    header.msg_iov = pieces.as_mut_ptr();
    header.msg_iovlen = pieces.len();
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    retry(|| {
        // SAFETY: the header points to the caller's datagrams, and to an address and control data
        // that outlive the call too.
        check_size(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags) })
    })
    .map(|_| pieces.len())
}

/// Writes what a message says besides its bytes: its source, and where it is cut. Returns the
/// length of the control data.
fn write_controls(control: &mut Control, pieces: &[libc::iovec], route: Route) -> usize {
    let used = route
        .source
        .map_or(0, |source| write_source(control, source));
    match pieces {
        [first, _, ..] => {
            let bytes = first.iov_len as u16;
            used + write_control(control, used, (libc::SOL_UDP, libc::UDP_SEGMENT), bytes)
        }
        _ => used,
    }
}

/// Sends datagrams; `together` says how many of them the next message holds.
fn send_pieces(
    socket: BorrowedFd<'_>,
    pieces: &mut [libc::iovec],
    route: Route,
    together: impl Fn(&[libc::iovec]) -> usize,
) -> io::Result<usize> {
    let mut address = route.peer.map(raw_address);
    let mut controls = [EMPTY_CONTROL; DATAGRAMS_MAX];
    // SAFETY: all zero bytes are a valid value of these plain C structures.
    let mut headers: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { mem::zeroed() };
    let mut count = 0;
    let mut begin = 0;
    while begin < pieces.len() {
        let length = together(&pieces[begin..]);
        let header = &mut headers[count].msg_hdr;
        if let Some((storage, length)) = &mut address {
            header.msg_name = (&raw mut *storage).cast();
            header.msg_namelen = *length;
        }
        header.msg_iov = &raw mut pieces[begin];
        header.msg_iovlen = length;
        let control = &mut controls[count];
        let used = write_controls(control, &pieces[begin..begin + length], route);
        if used > 0 {
            header.msg_controllen = used;
            header.msg_control = control.0.as_mut_ptr().cast();
        }
        begin += length;
        count += 1;
    }
    let sent = retry(|| {
        // SAFETY: the first `count` headers point to the caller's datagrams, and to an address and
        // control data that outlive the call too.
        check_size(unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as _,
            )
        } as isize)
    })?;
    let sent = &headers[..sent];
    Ok(sent.iter().map(|header| header.msg_hdr.msg_iovlen).sum())
}

/// The local address that a datagram was sent to.
fn local_address(message: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: recvmmsg has filled the control buffer up to msg_controllen, so the headers that the
    // macros walk and the data behind them lie inside it; the data is read unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    return Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => header = libc::CMSG_NXTHDR(message, header),
            }
        }
    }
    None
}

/// Writes the source address of a datagram; returns the length of the control data.
fn write_source(control: &mut Control, source: IpAddr) -> usize {
    match source {
        IpAddr::V4(source) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from_ne_bytes(source.octets()),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            write_control(control, 0, (libc::IPPROTO_IP, libc::IP_PKTINFO), info)
        }
        IpAddr::V6(source) => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: source.octets(),
                },
                ipi6_ifindex: 0,
            };
            write_control(control, 0, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info)
        }
    }
}

/// Writes a control message behind those that use `used` bytes; returns the length of its own.
fn write_control<T: Copy>(
    control: &mut Control,
    used: usize,
    (level, kind): (i32, i32),
    value: T,
) -> usize {
    let payload = mem::size_of::<T>() as u32;
    // SAFETY: CMSG_SPACE and CMSG_LEN only compute.
    let (space, length) = unsafe { (libc::CMSG_SPACE(payload), libc::CMSG_LEN(payload)) };
    assert!(used + space as usize <= CONTROL_BYTES, "both values fit");
    // SAFETY: the control buffer has room for a header and the value behind `used`, as was just
    // checked; it is aligned for a header, and `used` is a sum of CMSG_SPACEs, which keep that.
    unsafe {
        let header = control.0.as_mut_ptr().add(used).cast::<libc::cmsghdr>();
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = length as usize;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    space as usize
}
