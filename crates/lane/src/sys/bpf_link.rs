//! Programs of the kernel on network interfaces, held by a descriptor (a link): bpf(2).

use std::{
    ffi::CString,
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::{check, socket};

/// Of `enum bpf_cmd`: `BPF_OBJ_GET_INFO_BY_FD`, `BPF_LINK_CREATE`, `BPF_LINK_UPDATE` and
/// `BPF_LINK_DETACH`.
const GET_INFO: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const LINK_DETACH: libc::c_int = 34;
/// `BPF_XDP` of `enum bpf_attach_type` (Linux 5.9 for links).
const ATTACH_XDP: u32 = 37;
/// `BPF_TCX_INGRESS` of the same (Linux 6.6).
const ATTACH_INGRESS: u32 = 46;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// Behind the driver.
    Generic,
}

/// The part of `union bpf_attr` that makes a link; what is left out is 0 for the kernel.
#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 4],
}

/// The part of `union bpf_attr` that changes a link.
#[repr(C)]
struct UpdateAttributes {
    link: u32,
    program: u32,
    flags: u32,
    program_before: u32,
}

/// The part of `union bpf_attr` that asks about a descriptor.
#[repr(C)]
struct InfoAttributes {
    descriptor: u32,
    info_bytes: u32,
    info: u64,
}

/// The start of `struct bpf_link_info`, as XDP and TCX fill it in.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    hole: u32,
    interface: u32,
    rest: [u32; 3],
}

/// The index of the interface of that name in this thread's network namespace; `None`: there is
/// none. One call may take several of the kernel's: if_nametoindex(3).
pub fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a string that ends with a zero byte, and is only read.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// The request that asks the driver of an interface (include/uapi/linux/sockios.h).
const ETHTOOL: libc::c_ulong = 0x8946;

/// The command of `struct ethtool_drvinfo`, and its bytes (include/uapi/linux/ethtool.h).
const GET_DRIVER: u32 = 3;
const DRIVER_INFO_BYTES: usize = 196;

/// `struct ethtool_drvinfo` up to the driver's name.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; DRIVER_INFO_BYTES - 36],
}

/// The name of the driver of the interface of that name in this thread's network namespace.
///
/// # Errors
/// Those of socket(2) and ioctl(2); `InvalidInput`: no interface has such a name.
pub fn interface_driver(name: &str) -> io::Result<String> {
    // SAFETY: all zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    let mut info = DriverInfo {
        command: GET_DRIVER,
        driver: [0; 32],
        rest: [0; DRIVER_INFO_BYTES - 36],
    };
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    let socket = socket::open(socket::Family::V4, socket::Kind::Datagram)?;
    // SAFETY: the request points to memory of the size that the command asks for; both outlive the
    // call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL as _, &raw mut request) })?;
    let name: Vec<u8> = info
        .driver
        .into_iter()
        .take_while(|byte| *byte != 0)
        .collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Attaches an XDP program to the interface of that index. Closing all copies of the descriptor
/// detaches it.
pub fn attach_xdp(program: BorrowedFd<'_>, interface: u32, mode: XdpMode) -> io::Result<OwnedFd> {
    let flags = match mode {
        XdpMode::Native => FLAG_NATIVE,
        XdpMode::Generic => FLAG_GENERIC,
    };
    create(program, interface, ATTACH_XDP, flags)
}

/// Attaches a classifier where frames come in from the interface of that index, behind XDP.
pub fn attach_ingress(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    create(program, interface, ATTACH_INGRESS, 0)
}

/// Puts another program of the same kind in the place of a link's, at once: no frame meets neither.
/// Linux 5.9 for XDP, 6.6 for classifiers.
pub fn update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = UpdateAttributes {
        link: link.as_raw_fd() as u32,
        program: program.as_raw_fd() as u32,
        flags: 0,
        program_before: 0,
    };
    call(LINK_UPDATE, &mut attributes).map(|_| ())
}

/// Detaches a link's program, whoever else has copies of the link.
pub fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    let mut link = link.as_raw_fd() as u32;
    call(LINK_DETACH, &mut link).map(|_| ())
}

/// Whether a link's program is still attached: it is not where the interface is gone, or the link
/// was detached.
pub fn is_attached(link: BorrowedFd<'_>) -> bool {
    let mut info = LinkInfo::default();
    let mut attributes = InfoAttributes {
        descriptor: link.as_raw_fd() as u32,
        info_bytes: size_of::<LinkInfo>() as u32,
        info: (&raw mut info).expose_provenance() as u64,
    };
    call(GET_INFO, &mut attributes).is_ok() && info.interface != 0
}

fn create(
    program: BorrowedFd<'_>,
    interface: u32,
    attach_type: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let mut attributes = LinkAttributes {
        program: program.as_raw_fd() as u32,
        interface,
        attach_type,
        flags,
        rest: [0; 4],
    };
    let number = call(LINK_CREATE, &mut attributes)?;
    // SAFETY: the kernel has just made the descriptor, close-on-exec, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// One command of bpf(2): its number, as large as `T` whatever the kernel's own structure is.
fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads so many bytes of the structure, which lives until it returns, and
    // writes at most the memory that the structure names with its size, which lives as long.
    let number = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    check(number as libc::c_int)
}
