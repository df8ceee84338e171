//! Programs of the kernel on network interfaces, held by a descriptor: bpf(2), BPF_LINK_CREATE.

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// `BPF_LINK_CREATE` of `enum bpf_cmd`.
const LINK_CREATE: libc::c_int = 28;
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

/// The index of the interface of that name in this thread's network namespace; `None`: there is
/// none. One call may take several of the kernel's: if_nametoindex(3).
pub fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a string that ends with a zero byte, and is only read.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
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
    // SAFETY: the kernel reads so many bytes of the structure, which lives until it returns.
    let number = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            LINK_CREATE,
            &raw mut attributes,
            size_of::<LinkAttributes>(),
        )
    };
    let number = super::check(number as libc::c_int)?;
    // SAFETY: the kernel has just made the descriptor, close-on-exec, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
