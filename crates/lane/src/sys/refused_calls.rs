//! System calls that a seccomp(2) filter refuses with `SIGSYS`: they fail with `EPERM`, as if the
//! kernel had refused them, and their numbers can be read here.
//!
//! The handler allocates nothing and takes no lock; numbers that are not read in time are lost.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{AtomicI32, Ordering::Relaxed},
    },
};

use super::{check, descriptor, file};

/// Whether refused calls are handled on this processor. If not, the filter must return the error.
pub const IS_ANSWERED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The pipe for the numbers: the handler writes to it.
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
/// The write end of the pipe, as the handler needs it.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// Installs the handler.
pub fn answer() -> io::Result<()> {
    if PIPE.get().is_none() {
        let (writer, reader) = descriptor::socket_pair()?;
        descriptor::set_non_blocking(writer.as_fd(), true)?;
        descriptor::set_non_blocking(reader.as_fd(), false)?;
        WRITER.store(writer.as_raw_fd(), Relaxed);
        // It cannot be set already: this runs before there are other threads.
        let _ = PIPE.set((writer, reader));
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zero bytes are a valid sigaction.
    let action = unsafe { action.assume_init_mut() };
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    action.sa_sigaction = refused as Handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
    // SAFETY: the action is initialised, its handler keeps to what a handler may do, and no old
    // one is asked for.
    check(unsafe { libc::sigaction(libc::SIGSYS, action, std::ptr::null_mut()) })?;
    Ok(())
}

/// Waits for the number of a refused call.
///
/// # Errors
/// `NotFound` before [`answer`].
pub fn next() -> io::Result<u64> {
    let (_, reader) = PIPE.get().ok_or(io::ErrorKind::NotFound)?;
    let mut number = [0; 8];
    match file::read(reader.as_fd(), &mut number)? {
        8 => Ok(u64::from_ne_bytes(number)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Calls getpid by the x32 kind of call (x86-64 with 32-bit pointers), to check whether a filter
/// allows that kind.
#[cfg(target_arch = "x86_64")]
pub fn process_number_by_x32() -> io::Result<i32> {
    const X32: libc::c_long = 0x4000_0000;
    // SAFETY: getpid takes no arguments and changes nothing.
    check(unsafe { libc::syscall(X32 | libc::SYS_getpid) } as i32)
}

/// The handler.
extern "C" fn refused(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the interrupted thread's context, which is
    // ours until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    let number = {
        let place = &mut context.uc_mcontext.gregs[libc::REG_RAX as usize];
        std::mem::replace(place, -libc::c_longlong::from(libc::EPERM)) as u64
    };
    #[cfg(target_arch = "aarch64")]
    let number = {
        context.uc_mcontext.regs[0] = (-i64::from(libc::EPERM)) as u64;
        context.uc_mcontext.regs[8]
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let number = {
        let _ = context;
        0_u64
    };
    let number = number.to_ne_bytes();
    // SAFETY: pointer and length are those of one array; write(2) may be called in a handler, and
    // the number it would leave in errno is put back by who looks at the refused call's result.
    unsafe { libc::write(WRITER.load(Relaxed), number.as_ptr().cast(), number.len()) };
}
