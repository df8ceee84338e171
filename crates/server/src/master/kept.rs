//! Memory that outlives every process of the server: the keys of TLS tickets and sessions, and what
//! commands have changed. The first master makes it and hands it to each serving process, and to
//! the master of another binary, so that sessions are resumed and changes hold after a change of
//! the binary and after a serving process has died.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;

use turnpike_lane::sys::mapping::SharedWords;
use turnpike_plan::environment::KEPT_WORDS;
use turnpike_plan::held::{HELD_WORDS, HeldValues};

use crate::channel::{HELD_NAME, KEPT_NAME};

/// One memory, made when it is asked for first.
#[derive(Debug)]
pub(super) struct Memory {
    /// What a bundle calls it.
    pub(super) name: &'static str,
    /// The environment variable with its descriptor, for another binary.
    pub(super) variable: &'static str,
    words: usize,
    /// `None` where the kernel gives none.
    descriptor: OnceLock<Option<OwnedFd>>,
}

static KEPT: Memory = Memory {
    name: KEPT_NAME,
    variable: "TURNPIKE_KEPT",
    words: KEPT_WORDS,
    descriptor: OnceLock::new(),
};

static HELD: Memory = Memory {
    name: HELD_NAME,
    variable: "TURNPIKE_HELD",
    words: HELD_WORDS,
    descriptor: OnceLock::new(),
};

/// All memory that there is.
pub(super) const MEMORIES: [&Memory; 2] = [&KEPT, &HELD];

impl Memory {
    /// Takes over that of the master before. Other files than such memory are closed.
    pub(super) fn inherit(&self, memory: OwnedFd) {
        if SharedWords::is_memory(memory.as_fd(), self.words) {
            // There is none yet: this is the start of a master.
            let _ = self.descriptor.set(Some(memory));
        }
    }

    /// A copy of its descriptor.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn copy(&self) -> io::Result<Option<OwnedFd>> {
        let memory = self
            .descriptor
            .get_or_init(|| SharedWords::create(self.words).ok());
        memory.as_ref().map(OwnedFd::try_clone).transpose()
    }
}

/// Puts what commands have changed under a master that is gone into the memory of this one.
pub(super) fn restore_changes(text: &str) {
    // Without memory they end with the serving process.
    if let Ok(Some(memory)) = HELD.copy()
        && let Ok(held) = HeldValues::map(memory.as_fd())
    {
        held.restore(text);
    }
}
