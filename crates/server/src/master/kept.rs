//! Memory that outlives every process of the server: the keys of TLS tickets, and sessions. The
//! first master makes it and hands it to each serving process, and to the master of another binary,
//! so that sessions are resumed after a change of the binary and after a serving process has died.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;

use turnpike_lane::sys::mapping::SharedWords;
use turnpike_plan::environment::KEPT_WORDS;

/// The memory; `None` where the kernel gives none.
static MEMORY: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Takes over the memory of the master before. Other files than such memory are closed.
pub(super) fn inherit(memory: OwnedFd) {
    if SharedWords::is_memory(memory.as_fd(), KEPT_WORDS) {
        // There is none yet: this is the start of a master.
        let _ = MEMORY.set(Some(memory));
    }
}

/// A copy of its descriptor. The memory is made when it is asked for first.
///
/// # Errors
/// Those of `dup(2)`.
pub(super) fn copy() -> io::Result<Option<OwnedFd>> {
    let memory = MEMORY.get_or_init(|| SharedWords::create(KEPT_WORDS).ok());
    memory.as_ref().map(OwnedFd::try_clone).transpose()
}
