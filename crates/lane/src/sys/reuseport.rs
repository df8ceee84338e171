//! Choosing among the sockets of one reuseport address (socket(7), bpf(2)).

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use super::socket_option::set;

/// Attaches an eBPF program (`sk_reuseport`) to the group `socket` belongs to
/// (`SO_ATTACH_REUSEPORT_EBPF`, Linux 4.19 for this program type). `socket` must have
/// `SO_REUSEPORT`.
pub fn attach_program(socket: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_EBPF,
        program.as_raw_fd(),
    )
}

/// Attaches the classic BPF program "the CPU's number, modulo `sockets`" to the group of `socket`
/// (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5): the group's sockets, in the order in which they began
/// to listen, take the connections of CPU 0, 1, ... Needs no privilege.
pub fn attach_cpu_filter(socket: BorrowedFd<'_>, sockets: u32) -> io::Result<()> {
    attach_modulo(socket, libc::SKF_AD_CPU, sockets)
}

/// Attaches the classic BPF program "any of the first `sockets`" to the group of `socket`: those
/// that began to listen after them get no connection. Needs no privilege.
pub fn attach_first_filter(socket: BorrowedFd<'_>, sockets: u32) -> io::Result<()> {
    attach_modulo(socket, libc::SKF_AD_RANDOM, sockets)
}

/// Takes the program off the group: plain hashing again (`SO_DETACH_REUSEPORT_BPF`, Linux 5.3).
pub fn detach(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_DETACH_REUSEPORT_BPF,
        0_i32,
    )
}

/// Attaches "what the kernel has at that ancillary offset, modulo `sockets`".
fn attach_modulo(socket: BorrowedFd<'_>, ancillary: i32, sockets: u32) -> io::Result<()> {
    if sockets == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let offset = (libc::SKF_AD_OFF + ancillary) as u32;
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets),
        instruction(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        program,
    )
}

fn instruction(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}
