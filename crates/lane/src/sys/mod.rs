//! The system calls: the only unsafe code of the server, one file per subject.
//!
//! Every function here keeps this contract:
//!
//! * **Safe to call.** A function takes borrowed descriptors and Rust buffers and returns owned
//!   descriptors and plain values. No argument can make it read or write outside of the memory it
//!   was given; lengths come from slices, never from separate arguments.
//! * **One call, one system call**, unless its doc says otherwise. None of them allocates, except
//!   those whose doc says so, so that a lane can count its system calls and allocations.
//! * **Every descriptor is close-on-exec** and, if it can wait, non-blocking. The few that a child
//!   must inherit are marked explicitly by [`descriptor::set_close_on_exec`].
//! * **Errors are the kernel's**: `io::Error` with the errno, never wrapped, so that the caller
//!   can print nginx's text for it. `EINTR` is retried if that is correct; otherwise (a wait with
//!   a timeout) it is reported as no event.
//! * **No policy.** The callers decide on socket options, logging and fatal errors.

use std::{ffi::CStr, io, mem::MaybeUninit};

use crate::turns;

#[cfg(debug_assertions)]
pub mod allocations;
pub mod bpf_link;
pub mod crypt;
pub mod datagram;
pub mod descriptor;
pub mod epoll;
pub mod file;
pub mod heap;
pub mod inotify;
pub mod mapping;
pub mod pcre;
pub mod pipe;
pub mod process;
pub mod readiness;
pub mod refused_calls;
pub mod reuseport;
pub mod signal;
pub mod simulation;
pub mod socket;
pub mod socket_option;
pub mod stack;

#[cfg(test)]
mod tests;

/// Longest path for the kernel, with its closing NUL (`PATH_MAX`): the kernel refuses longer ones,
/// so a stack buffer of this size is enough for every path.
pub const PATH_BYTES_MAX: usize = libc::PATH_MAX as usize;

/// The result of a call that returns `-1` for an error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The result of a call that returns a size, or `-1` for an error. So much has moved.
fn check_size(result: isize) -> io::Result<usize> {
    if result > 0 {
        turns::moved();
    }
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats `call` while a signal interrupts it. No limit would help: a call that is interrupted
/// again and again means a signal storm.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Calls `action` with `path` as a C string that lives on the stack.
fn with_c_path<T>(path: &[u8], action: impl FnOnce(&CStr) -> io::Result<T>) -> io::Result<T> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); PATH_BYTES_MAX];
    if path.len() >= PATH_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (slot, byte) in buffer.iter_mut().zip(path.iter().chain(Some(&0))) {
        slot.write(*byte);
    }
    // SAFETY: the loop above has initialised the first `path.len() + 1` bytes of the buffer.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), path.len() + 1) };
    match CStr::from_bytes_with_nul(bytes) {
        Ok(path) => action(path),
        Err(_) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}
