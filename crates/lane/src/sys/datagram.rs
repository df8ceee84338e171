//! Datagrams: several per call, each with its local address (udp(7), ip(7), ipv6(7)).

use std::{
    io,
    mem::{self, MaybeUninit},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, BorrowedFd},
};

use super::socket::{PeerAddress, plain_address, raw_address};
use super::{check_size, retry};

/// Most datagrams per call: enough to make the cost of the call small, and few enough that the
/// lane's other work does not wait long.
pub const DATAGRAMS_MAX: usize = 32;

/// The size of the largest datagram: UDP's length has 16 bits.
const DATAGRAM_BYTES: usize = 65_536;

/// The size of the control data of a datagram: one `in6_pktinfo` with its header is 36 bytes.
const CONTROL_BYTES: usize = 64;

/// Memory for received datagrams, reused for each call.
pub struct Batch {
    bytes: Box<[u8]>,
    received: [Envelope; DATAGRAMS_MAX],
    count: usize,
}

/// The metadata of a datagram.
#[derive(Clone, Copy)]
struct Envelope {
    length: usize,
    peer: PeerAddress,
    local: Option<IpAddr>,
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
        let nothing = Envelope {
            length: 0,
            peer: PeerAddress::Unix,
            local: None,
        };
        Self {
            bytes: vec![0; DATAGRAMS_MAX * DATAGRAM_BYTES].into_boxed_slice(),
            received: [nothing; DATAGRAMS_MAX],
            count: 0,
        }
    }
}

impl Batch {
    /// Receives up to `datagrams_max` datagrams, which replace those before; returns their number.
    ///
    /// # Errors
    /// The error of recvmmsg(2); `WouldBlock` if none waits.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, datagrams_max: usize) -> io::Result<usize> {
        self.count = 0;
        let wanted = datagrams_max.clamp(1, DATAGRAMS_MAX);
        // SAFETY: all zero bytes are a valid value of each of these plain C structures.
        let mut headers: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut peers: [libc::sockaddr_storage; DATAGRAMS_MAX] = unsafe { mem::zeroed() };
        let mut controls = [EMPTY_CONTROL; DATAGRAMS_MAX];
        let mut pieces = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; DATAGRAMS_MAX];
        let rooms = self.bytes.chunks_exact_mut(DATAGRAM_BYTES);
        for (place, room) in rooms.take(wanted).enumerate() {
            pieces[place].iov_base = room.as_mut_ptr().cast();
            pieces[place].iov_len = room.len();
            let header = &mut headers[place].msg_hdr;
            header.msg_iov = &raw mut pieces[place];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut peers[place]).cast();
            header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_control = controls[place].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES;
        }
        let count = retry(|| {
            // SAFETY: each of the first `wanted` headers points to a room, an address and a control
            // buffer of its own with their lengths, and all of them outlive the call.
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
        for place in 0..count {
            self.received[place] = Envelope {
                length: (headers[place].msg_len as usize).min(DATAGRAM_BYTES),
                peer: plain_address(&peers[place]),
                local: local_address(&headers[place].msg_hdr),
            };
        }
        self.count = count;
        Ok(count)
    }

    /// The datagrams of the last call.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = Datagram<'_>> {
        let rooms = self.bytes.chunks_exact(DATAGRAM_BYTES);
        let all = rooms.zip(&self.received[..self.count]);
        all.map(|(room, envelope)| Datagram {
            bytes: &room[..envelope.length],
            peer: envelope.peer,
            local: envelope.local,
        })
    }
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
/// their number.
///
/// # Errors
/// The error of sendmmsg(2) for the first; `WouldBlock` if the socket is full.
pub fn send<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = &'a [u8]>,
    route: Route,
) -> io::Result<usize> {
    let mut control = EMPTY_CONTROL;
    // SAFETY: all zero bytes are a valid msghdr.
    let mut template: libc::msghdr = unsafe { mem::zeroed() };
    let mut address = route.peer.map(raw_address);
    if let Some((storage, length)) = &mut address {
        template.msg_name = (&raw mut *storage).cast();
        template.msg_namelen = *length;
    }
    if let Some(source) = route.source {
        template.msg_controllen = write_source(&mut control, source);
        template.msg_control = control.0.as_mut_ptr().cast();
    }
    // SAFETY: all zero bytes are a valid value of these plain C structures.
    let mut headers: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { mem::zeroed() };
    let mut pieces = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; DATAGRAMS_MAX];
    let mut count = 0;
    for (place, bytes) in datagrams.take(DATAGRAMS_MAX).enumerate() {
        // sendmmsg(2) does not write through it.
        pieces[place].iov_base = bytes.as_ptr().cast_mut().cast();
        pieces[place].iov_len = bytes.len();
        headers[place].msg_hdr = template;
        headers[place].msg_hdr.msg_iov = &raw mut pieces[place];
        headers[place].msg_hdr.msg_iovlen = 1;
        count = place + 1;
    }
    retry(|| {
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
    })
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
            write_control(control, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        IpAddr::V6(source) => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: source.octets(),
                },
                ipi6_ifindex: 0,
            };
            write_control(control, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
    }
}

fn write_control<T: Copy>(control: &mut Control, level: i32, kind: i32, value: T) -> usize {
    let payload = mem::size_of::<T>() as u32;
    // SAFETY: all zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as usize;
    assert!(message.msg_controllen <= CONTROL_BYTES, "one value fits");
    // SAFETY: the control buffer has room for a header and the value, as was just checked, and is
    // aligned for the header; CMSG_FIRSTHDR points to its start.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(payload) as usize;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    message.msg_controllen
}
