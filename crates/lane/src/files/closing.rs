//! Closing of files without a name: the file system frees the blocks of a file when its last
//! descriptor is closed, which takes a second for a gigabyte. Lanes leave large ones to a thread.

use std::fs::File;

use crate::pool::{PoolLimits, WorkerPool};

/// A larger file may take some milliseconds to be freed.
pub const LARGE_FILE_BYTES: u64 = 1024 * 1024;

/// One thread, since a file system frees one file after the other. Each waiting file is an open
/// descriptor: a sixteenth of what a process may usually have. Beyond them a lane closes its file
/// itself, which slows down whoever makes so many.
static CLOSING: WorkerPool = WorkerPool::new(PoolLimits {
    name: "file closer",
    threads_max: 1,
    queued_max: 64,
});

/// Closes a large file that nothing else holds, on a thread that is no lane. Never waits, unless
/// too many files wait already.
pub fn close_on_thread(file: File) {
    // Work that is refused is dropped, and closes the file here.
    let _ = CLOSING.spawn(move || drop(file));
}
