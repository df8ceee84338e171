//! The heap of the process.

/// Gives the pages of the heap that hold nothing back to the system. The more there are, the longer
/// it takes, in several system calls: up to some milliseconds for each 10 MB. Other threads that
/// allocate may wait for that long. Without effect where the C library is not glibc.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}
