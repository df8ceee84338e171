//! The choice among the sockets of one reuseport address (socket(7), bpf(2)).

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

/// Attaches the classic BPF program "a hash of the sender's address and both ports, modulo
/// `sockets`" to the group of `socket`, one of UDP: those that were bound after the first `sockets`
/// get no datagram, and those of one flow reach one socket. Needs no privilege.
pub fn attach_flow_filter(socket: BorrowedFd<'_>, sockets: u32) -> io::Result<()> {
    /// An odd constant near 2^32 divided by the golden ratio: its product's upper half depends on
    /// all bits (Knuth, The Art of Computer Programming 3, 6.4).
    const SCATTER: u32 = 0x9e37_79b1;
    if sockets == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let network = libc::SKF_NET_OFF as u32;
    let load = |width: u32, offset: u32| {
        instruction(
            libc::BPF_LD | width | libc::BPF_ABS,
            network.wrapping_add(offset),
        )
    };
    let jump_v6 = libc::sock_filter {
        jt: 4,
        ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0x60)
    };
    let mut filter = [
        load(libc::BPF_B, 0),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xf0),
        jump_v6,
        // Version 4: the sender, then both ports after a header without options.
        load(libc::BPF_W, 12),
        instruction(libc::BPF_MISC | libc::BPF_TAX, 0),
        load(libc::BPF_W, 20),
        instruction(libc::BPF_JMP | libc::BPF_JA, 3),
        // Version 6: the last 4 bytes of the sender, then both ports.
        load(libc::BPF_W, 20),
        instruction(libc::BPF_MISC | libc::BPF_TAX, 0),
        load(libc::BPF_W, 40),
        instruction(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0),
        instruction(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, SCATTER),
        instruction(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 16),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets),
        instruction(libc::BPF_RET | libc::BPF_A, 0),
    ];
    attach(socket, &mut filter)
}

/// Detaches the program: the kernel uses its hash again (`SO_DETACH_REUSEPORT_BPF`, Linux 5.3).
pub fn detach(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_DETACH_REUSEPORT_BPF,
        0_i32,
    )
}

/// Attaches "the kernel's value at that ancillary offset, modulo `sockets`".
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
    attach(socket, &mut filter)
}

fn attach(socket: BorrowedFd<'_>, filter: &mut [libc::sock_filter]) -> io::Result<()> {
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
