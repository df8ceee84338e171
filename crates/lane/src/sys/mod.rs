//! The operating system's edge: the only unsafe code of the server, one file a concern.
//!
//! The contract every function here keeps, so that no caller has to think about it:
//!
//! * **Safe to call.** A function takes borrowed descriptors and Rust buffers and returns owned
//!   descriptors and plain values. Nothing a caller passes can make it read or write outside
//!   the memory it was given; lengths are taken from slices, never from arguments beside them.
//! * **One call, one system call**, unless its doc says otherwise. None of them allocates, except
//!   those whose doc says so, so that a lane can count its system calls and allocations.
//! * **Every descriptor is made close-on-exec** and, where it can wait, non-blocking. The few that
//!   a child shall inherit are marked by [`descriptor::set_close_on_exec`], explicitly.
//! * **Errors are the kernel's**: `io::Error` with the errno, never wrapped, so that the caller
//!   can print nginx's text for it. `EINTR` is retried here wherever retrying is right, and where
//!   it is not (a wait with a timeout) it is reported as nothing having happened.
//! * **No policy.** Which options a socket gets, what is logged, what is fatal: all of that is
//!   decided above.

use std::{ffi::CStr, io, mem::MaybeUninit};

#[cfg(feature = "count-allocations")]
pub mod allocations;
pub mod crypt;
pub mod datagram;
pub mod descriptor;
pub mod epoll;
pub mod file;
pub mod mapping;
pub mod pcre;
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

/// Longest path handed to the kernel, with its closing NUL (`PATH_MAX`): the kernel refuses longer
/// ones, so a stack buffer of this size suffices for every path.
pub const PATH_BYTES_MAX: usize = libc::PATH_MAX as usize;

/// Turns the `-1` convention into a result.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Turns the `-1` convention of calls that count bytes into a result.
fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats `call` while a signal interrupts it. A call that keeps being interrupted is a signal
/// storm, which no limit here would make better.
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
